"""What the first look at Home costs a browser that has never been here."""

import datetime as dt
from collections.abc import Iterator

import pytest
from django.test import override_settings
from playwright.sync_api import Page, Response, expect

from memstate_site.staticfiles import release_make
from tests.browser.conftest import Enter, site_served
from tests.browser.watch import settled

MAX_BYTES = 200_000


@pytest.fixture(scope="module")
def site(demo: dt.datetime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A site that serves the files of a release, compressed, as an installation does."""
    folder = tmp_path_factory.mktemp("release") / "static"
    with override_settings(MEMSTATE_RELEASE_DIR=folder, STATIC_ROOT=folder):
        release_make()
        with site_served() as address:
            yield address


def transferred(page: Page, address: str) -> dict[str, int]:
    """Go there and return the bytes of the body and headers of each answer, as they came over the wire."""
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))
    page.goto(address)
    settled(page)
    page.wait_for_load_state("networkidle")
    found: dict[str, int] = {}
    for answer in answers:
        sizes = answer.request.sizes()
        size = sizes["responseBodySize"] + sizes["responseHeadersSize"]
        found[answer.url] = found.get(answer.url, 0) + size
    return found


def test_the_first_home_is_light_and_draws_its_sparklines_on_the_server(enter: Enter) -> None:
    page = enter("operator")
    found = transferred(page, "/")
    print("\n".join(f"{size:8,} {url}" for url, size in found.items()))
    assert len(found) > 5
    assert 20_000 < sum(found.values()) <= MAX_BYTES
    assert not any("plotly" in url for url in found)
    assert page.locator("svg.spark").count() >= 4
    expect(page.locator("svg.spark path.spark-line").first).to_be_visible()
    assert page.locator("canvas, .js-plotly-plot").count() == 0


def test_without_script_the_sparklines_are_there_too(enter: Enter) -> None:
    page = enter("operator", java_script_enabled=False)
    page.goto("/")
    expect(page.locator("svg.spark path.spark-line").first).to_be_visible()
