"""Export and import in a browser: the export is downloaded and is all there when it comes back; memories of mem0 are
brought, with what is lost said before, and found."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from memory.jobs import tasks
from memory.models import ImportJob, Topic
from tests.browser.axe import findings
from tests.browser.conftest import NARROW, Enter
from tests.browser.watch import overflow, settled

IMPORT = re.compile(r"/transfer/[0-9a-f-]{36}/$")
MEMORIES = {
    "results": [
        {
            "id": f"0b8e7c1a-5d2f-4c3b-9a10-00000000000{place}",
            "memory": text,
            "hash": "5d41",
            "user_id": "ida",
            "created_at": "2026-03-01T09:00:00-08:00",
            "updated_at": None,
            "metadata": {"source": "app"},
        }
        for place, text in enumerate(["Ida plays the hurdy-gurdy on Sundays", "Ida is allergic to hazelnuts"])
    ],
    "relations": [{"source": "ida", "relationship": "plays", "target": "hurdy-gurdy"}],
}


@pytest.fixture(params=[True, False], ids=["with script", "without script"])
def page(enter: Enter, request: pytest.FixtureRequest, settings: object, tmp_path: Path) -> Page:
    settings.MEMSTATE_DATA_DIR = tmp_path  # type: ignore[attr-defined]
    return enter("operator", java_script_enabled=request.param, accept_downloads=True)


def work(page: Page, got: str) -> None:
    """Let the worker do its part, and wait until the page says what came of it."""
    expect(page).to_have_url(IMPORT)
    for job in ImportJob.objects.filter(status__in=["checking", "working"]):
        tasks.import_continue(str(job.pk))
    # Without script the page asks for itself anew every three seconds, which is too long for a test.
    page.reload()
    expect(page.locator(".page-head")).to_contain_text(got)


def upload(page: Page, file: Path, *, scope: str = "") -> None:
    page.goto("/transfer/")
    page.get_by_label("Into scope").fill(scope)
    page.get_by_label("File", exact=True).set_input_files(file)
    page.get_by_role("button", name="Upload and check").click()


def test_an_export_is_downloaded_and_is_all_there_when_it_comes_back(page: Page, tmp_path: Path) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/transfer/")
    page.locator("#export-form").get_by_label("Scope").fill("/user")
    page.locator("#export-form").get_by_label("With vectors").check()
    page.locator("#export-form").get_by_label("With vectors").uncheck()
    settled(page)
    script = page.evaluate("document.documentElement.classList.contains('script')")
    assert any("/transfer/size/?scope=" in each for each in asked) == script
    assert not any("csrfmiddlewaretoken" in each for each in asked)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert re.fullmatch(r"memstate-user-[\d-]+\.jsonl", download.value.suggested_filename)
    file = tmp_path / "export.jsonl"
    download.value.save_as(file)
    assert json.loads(file.read_text().splitlines()[-1])["type"] == "end"
    upload(page, file)
    work(page, "There is nothing to import")
    expect(page.get_by_role("button", name=re.compile("^Import "))).to_have_count(0)
    page.get_by_role("button", name="Remove file").click()
    expect(page.locator("#notices .notice.success")).to_contain_text("nothing was imported")
    settled(page)


def test_memories_of_mem0_are_checked_brought_and_found(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "memories.json"
    file.write_text(json.dumps(MEMORIES))
    upload(page, file, scope="/brought")
    work(page, "The file would import the following")
    expect(page.get_by_role("listitem").filter(has_text="2 of 3: hash: not kept")).to_be_visible()
    expect(page.get_by_role("listitem").filter(has_text="1 of 3: relations: not kept")).to_be_visible()
    assert not findings_of(page)
    page.get_by_role("button", name="Import 2 memories").click()
    work(page, "2 memories imported")
    assert set(Topic.objects.filter(kind="memory").values_list("scope__path", flat=True)) == {"/brought/user/ida"}
    page.goto("/lookup/?q=hurdy-gurdy")
    expect(page.get_by_role("main")).to_contain_text("Ida plays the hurdy-gurdy on Sundays")
    upload(page, file, scope="/brought")
    work(page, "There is nothing to import")
    expect(page.get_by_role("main")).to_contain_text("The same file was imported")
    settled(page)


def findings_of(page: Page) -> list[str]:
    """What is wrong with the look of the page, where a script can tell."""
    if page.evaluate("document.documentElement.classList.contains('script')"):
        page.set_viewport_size(NARROW)
        settled(page)
        wrong = [*findings(page), *overflow(page)]
        page.set_viewport_size({"width": 1360, "height": 850})
        return wrong
    return []
