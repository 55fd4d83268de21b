"""/livez, /readyz, /metrics, /v1/docs and /v1/openapi.json."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection

from tests.cast import Caller, Cast, raises_code


def test_livez_asks_nothing_of_the_database(anonymous: Caller, django_assert_num_queries: Any):
    with django_assert_num_queries(0):
        assert anonymous.get("/livez").ok() == {"status": "ok"}


def test_readyz_tells_strangers_that_all_is_well_and_no_more(anonymous: Caller):
    assert anonymous.get("/readyz").ok() == {"status": "ok"}


def test_readyz_says_so_when_the_database_is_away(anonymous: Caller, monkeypatch: pytest.MonkeyPatch):
    def fail(*_args: Any, **_more: Any) -> None:
        raise OperationalError("connection refused")

    with monkeypatch.context() as patch:
        patch.setattr(connection, "cursor", fail)
        answer = anonymous.get("/readyz")
        assert anonymous.get("/livez").status == 200
    assert answer.status == 503
    assert answer.json == {"status": "not ready", "failed": ["database"]}


def test_metrics_are_in_the_format_of_prometheus(anonymous: Caller):
    answer = anonymous.get("/metrics")
    assert (answer.status, answer.content_type) == (200, "text/plain")
    assert re.search(r"^# TYPE \w+ (counter|gauge|histogram|summary|untyped)$", answer.text, re.MULTILINE)


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_they_can_only_be_read(anonymous: Caller, path: str):
    assert anonymous.post(path, {}).status == 405


# --- The OpenAPI document --------------------------------------------------------------------------------------------


def test_the_committed_document_is_the_one_that_is_served(anonymous: Caller):
    served = anonymous.get("/v1/openapi.json").ok()
    committed = json.loads((Path(settings.BASE_DIR) / "docs" / "openapi.json").read_text(encoding="utf-8"))
    assert served == committed


def test_checking_fails_when_the_document_is_not_up_to_date(tmp_path: Path, settings: Any):
    settings.BASE_DIR = tmp_path
    with raises_code(CommandError, "generated-file-outdated"):
        call_command("openapi", "--check")
    call_command("openapi", verbosity=0)
    call_command("openapi", "--check")
    file = tmp_path / "docs" / "openapi.json"
    file.write_text(file.read_text().replace("salience", "silence"))
    with raises_code(CommandError, "generated-file-outdated"):
        call_command("openapi", "--check")


def test_every_operation_is_described(anonymous: Caller):
    document = anonymous.get("/v1/openapi.json").ok()
    tags = {tag["name"] for tag in document["tags"]}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            where = f"{method} {path}"
            assert operation["summary"], where
            assert operation["description"].endswith("."), where
            assert len(operation["tags"]) == 1, where
            assert operation["tags"][0] in tags, where
            assert {"200", "202"} & set(operation["responses"]), where
            # No one is asked for a key who fetches the client.
            keyed = path != "/v1/client.py"
            assert ("security" in operation) == keyed, where
            assert ({"401", "429", "500"} if keyed else {"500"}) <= set(operation["responses"]), where
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    assert set(response["content"]) == {"application/problem+json"}, where
                    assert response["description"].endswith("."), where


# --- The documentation page ------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """The addresses that a page loads, and what it holds inline."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        address = (
            given.get("src") if tag in ("script", "img", "iframe") else given.get("href") if tag == "link" else None
        )
        if address:
            self.addresses.append(address)
        # A block of data is no script.
        if (tag == "script" and not given.get("src") and given.get("type") != "application/json") or tag == "style":
            self.inline.append(tag)
        self.inline += [name for name in given if name == "style" or name.startswith("on")]


def test_the_documentation_page_comes_from_our_own_address(anonymous: Caller):
    answer = anonymous.get("/v1/docs")
    assert answer.status == 200
    page = Page()
    page.feed(answer.text)
    assert page.inline == []
    assert any(address.endswith(".js") for address in page.addresses)
    assert any(address.endswith(".css") for address in page.addresses)
    for address in page.addresses:
        assert address.startswith("/static/"), address
        assert anonymous.get(address).status == 200, address
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy


@pytest.fixture
def browser_page() -> Iterator[Any]:
    """A page of a real browser."""
    sync_api = pytest.importorskip("playwright.sync_api")
    # The browser's driver runs an event loop in this thread, which Django takes for asynchronous code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    try:
        with sync_api.sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=os.environ.get("MEMSTATE_TEST_BROWSER") or shutil.which("chromium"),
                args=["--no-sandbox"],
            )
            yield browser.new_page()
            browser.close()
    finally:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


def test_the_documentation_page_works_in_a_browser(http_cast: Cast, live_server: Any, browser_page: Any):
    complaints: list[str] = []
    addresses: list[str] = []
    browser_page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    browser_page.on("pageerror", lambda problem: complaints.append(str(problem)))
    browser_page.on("request", lambda request: addresses.append(request.url))
    browser_page.goto(f"{live_server.url}/v1/docs")
    browser_page.get_by_text("Ingest one item").wait_for(timeout=30_000)
    browser_page.get_by_text("Ask for context").click()
    browser_page.get_by_role("button", name="Try it out").wait_for(timeout=30_000)
    assert complaints == []
    assert {address for address in addresses if not address.startswith((live_server.url, "data:", "blob:"))} == set()
