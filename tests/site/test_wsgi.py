"""What is refused before Django sees it."""

import importlib
from typing import Any

import pytest

from tests.cast import Caller


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch) -> Any:
    # The module says in the environment that this is a web process, which processes of later tests would inherit.
    monkeypatch.setenv("MEMSTATE_PROCESS", "command")
    return importlib.import_module("memstate_site.wsgi").application


@pytest.mark.parametrize("path", ["/livez", "/static/console.css", "/v1/topics"])
def test_http_1_1_needs_a_host(application: Any, path: str) -> None:
    statuses: list[str] = []
    environ = {"SERVER_PROTOCOL": "HTTP/1.1", "PATH_INFO": path, "REQUEST_METHOD": "GET", "SERVER_NAME": "127.0.0.1"}
    application(environ, lambda status, _headers, *_more: statuses.append(status))
    assert statuses == ["400 Bad Request"]


def test_a_method_that_a_route_refuses_makes_no_label(anonymous: Caller) -> None:
    for method in ("PUT", "PATCH", "DELETE"):
        anonymous.request(method, "/v1/query")
    metrics = anonymous.get("/metrics").text
    assert 'method="PUT",route="v1/query"' not in metrics
    assert 'method="other",route="v1/query"' in metrics
