"""What is refused before Django sees it."""

import pytest

from memstate_site.wsgi import application
from tests.cast import Caller


@pytest.mark.parametrize("path", ["/livez", "/static/console.css", "/v1/topics"])
def test_http_1_1_needs_a_host(path: str) -> None:
    statuses: list[str] = []
    environ = {"SERVER_PROTOCOL": "HTTP/1.1", "PATH_INFO": path, "REQUEST_METHOD": "GET", "SERVER_NAME": "127.0.0.1"}
    application(environ, lambda status, _headers, *_more: statuses.append(status))  # type: ignore[arg-type]
    assert statuses == ["400 Bad Request"]


def test_a_method_that_a_route_refuses_makes_no_label(nobody: Caller) -> None:
    for method in ("PUT", "PATCH", "DELETE"):
        nobody.request(method, "/v1/query")
    metrics = nobody.get("/metrics").text
    assert 'method="PUT",route="v1/query"' not in metrics
    assert 'method="other",route="v1/query"' in metrics
