"""What a person does with memories, each task from Home with its clicks counted; and lists by keys alone."""

import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from memory.jobs import tasks
from memory.models import DuplicatePair, ImportJob, Topic
from tests.browser.clicks import Clicks
from tests.browser.conftest import NARROW, Enter
from tests.browser.watch import overflow, settled
from tests.cast import Caller, in_process, secret_of, worker_turn
from tests.waits import turns_until_done


def topic_in(url: str) -> Topic:
    return Topic.objects.get(pk=uuid.UUID(url.rstrip("/").rpartition("/")[2]))


@pytest.fixture
def twice(enter: Enter) -> None:
    """Facts that were written down twice."""
    agent = Caller(in_process, secret_of("agent"))
    for title in ("Sourdough starter", "Spare keys"):
        for _time in range(2):
            agent.remember(title, summary="The very same words.", scope="/home/again", topic_kind="observation")
    turns_until_done(worker_turn)


def test_why_a_memory_was_archived_and_its_restore(enter: Enter) -> None:
    """Two clicks to the reason, one more to restore it; then Undo."""
    wanted = Topic.objects.filter(rung=3, released_at=None, merged_into=None).order_by("created_at").first()
    assert wanted
    page = enter("operator")
    page.goto("/")
    clicks = Clicks(page)
    clicks.click(page.get_by_role("link", name="Memories", exact=False).first)
    page.get_by_role("combobox", name="Search").fill(" ".join(re.findall(r"\w+", wanted.title.lower())))
    page.get_by_role("combobox", name="Search").press("Enter")
    settled(page)
    first = page.locator("[data-row] h3 a").locator("visible=true").first
    expect(first).to_have_attribute("href", f"/topics/{wanted.pk}/")
    clicks.click(first)
    assert clicks.count == 2
    expect(page.locator("#why h2")).to_have_text("Why it is archived")
    clicks.click(page.get_by_role("button", name="Restore"))
    assert clicks.count == 3
    assert topic_in(page.url).rung == 0
    clicks.click(page.locator("[data-toast]").get_by_role("button", name="Undo"))
    assert topic_in(page.url).rung == 3


def test_all_that_an_agent_wrote_is_searched_for_in_one_click(enter: Enter) -> None:
    """One click to the search, and `by:` typed, completed by the box; or two by the facet."""
    agent = Caller(in_process, secret_of("agent"))
    wrote = {agent.remember(title, scope="/trip") for title in ("The ferry leaves at ten", "The cabin has no key")}
    page = enter("reader")
    page.goto("/")
    clicks = Clicks(page)
    clicks.click(page.get_by_role("link", name="Memories", exact=False).first)
    page.get_by_role("combobox", name="Search").press_sequentially("by:key:ag")
    expect(page.locator("#q-suggested option")).to_have_attribute("value", "by:key:agent")
    page.get_by_role("combobox", name="Search").fill("by:key:agent")
    page.get_by_role("combobox", name="Search").press("Enter")
    settled(page)
    assert clicks.count == 1
    rows = page.locator(".lookup-live [data-row]")
    expect(rows).to_have_count(len(wrote))
    assert all(page.locator(f"[data-row] a[href='/topics/{topic}/']").count() for topic in wrote)

    page.goto("/")
    clicks = Clicks(page)
    clicks.click(page.get_by_role("link", name="Memories", exact=False).first)
    clicks.click(page.locator(".facets").get_by_role("link", name=re.compile("key:agent")))
    expect(rows).to_have_count(len(wrote))
    assert clicks.count == 2
    clicks.click(page.locator(".facets .chosen"))
    expect(rows).not_to_have_count(len(wrote))
    expect(page.get_by_role("combobox", name="Search")).to_have_value("")


def test_what_only_resembles_is_folded_and_scores_are_shown_on_demand(enter: Enter) -> None:
    Caller(in_process, secret_of("agent")).remember("Birgit is allergic to zinnwaldite")
    page = enter("reader")
    page.goto("/lookup/?q=zinnwaldite")
    settled(page)
    hits = page.locator(".lookup-live .hits > li")
    found = hits.first
    expect(found).to_contain_text("zinnwaldite")
    assert hits.count() > 1
    expect(hits.nth(1)).to_be_hidden()
    expect(found.locator(".score")).to_be_hidden()
    page.get_by_label("Show scores").check()
    expect(found.locator(".score")).to_be_visible()
    page.goto("/lookup/?q=zinnwaldites+vaseline")
    expect(page.get_by_role("main")).to_contain_text("No exact match.")


def test_a_file_is_imported_in_three_clicks_and_its_target_is_shown_before(
    enter: Enter, settings: Any, tmp_path: Path
) -> None:
    """One click to the form, one to check the file, and one to import what it contains."""
    settings.MEMSTATE_DATA_DIR = tmp_path
    file = tmp_path / "facts.jsonl"
    file.write_text('{"text": "Ana plays the viola", "user_id": "ana"}\n{"text": "The lake is cold"}\n')
    page = enter("operator")
    page.goto("/")
    clicks = Clicks(page)
    clicks.click(page.get_by_role("link", name="Add memories"))
    form = page.get_by_role("region", name="A file")
    form.get_by_label("File", exact=True).set_input_files(file)
    # The scope may be chosen after the file.
    form.get_by_label("Into scope").fill("/brought")
    clicks.click(form.get_by_role("button", name="check"))
    confirm = page.get_by_role("button", name="Import 2 memories")
    expect(confirm).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("/brought/user/ana")
    assert not Topic.objects.filter(scope__path__startswith="/brought").exists()
    clicks.click(confirm)
    for job in ImportJob.objects.filter(status="working"):
        tasks.import_continue(str(job.pk))
    page.reload()
    expect(page.get_by_role("main")).to_contain_text("2 memories imported")
    brought = Topic.objects.filter(scope__path__startswith="/brought").values_list(
        "fields__revisions__value", "scope__path"
    )
    assert set(brought) == {("Ana plays the viola", "/brought/user/ana"), ("The lake is cold", "/brought")}
    assert clicks.count == 3


@pytest.mark.usefixtures("twice")
def test_a_pair_is_merged_and_the_merge_undone_in_three_clicks(enter: Enter) -> None:
    page = enter("operator")
    page.goto("/")
    clicks = Clicks(page)
    clicks.click(page.locator(".decide").get_by_role("link", name=re.compile("pair")).first)
    clicks.click(page.locator("[data-row] [data-key=m]").first)
    expect(page.locator("[data-toast]")).to_contain_text("Merged “")
    assert DuplicatePair.objects.filter(state="merged").count() == 1
    clicks.click(page.locator("[data-toast]").get_by_role("button", name="Undo"))
    expect(page.locator("#notices")).to_contain_text("again")
    assert not DuplicatePair.objects.filter(state="merged").exists()
    assert clicks.count == 3
    expect(page).to_have_url(re.compile("/duplicates/$"))


@pytest.mark.usefixtures("twice")
def test_duplicates_are_decided_by_keys_alone(enter: Enter) -> None:
    page = enter("operator")
    page.goto("/duplicates/?scope=/home/again")
    settled(page)
    rows = page.locator("[data-row]")
    found = rows.count()
    assert found >= 2
    page.keyboard.press("j")
    expect(rows.first.locator("h2 a")).to_be_focused()
    page.keyboard.press("p")
    expect(page.locator("#peek")).to_contain_text("What a merge would do")
    page.keyboard.press("Escape")
    expect(page.locator("#peek")).to_have_count(0)
    page.keyboard.press("e")
    expect(rows).to_have_count(found - 1)
    expect(page.locator("[data-toast]")).to_contain_text("Kept both")
    # The next pair is at hand.
    expect(rows.first.locator("h2 a")).to_be_focused()
    page.keyboard.press("m")
    expect(page.locator("[data-toast]")).to_contain_text("Merged")
    page.keyboard.press("z")
    expect(page.locator("#notices")).to_contain_text("again")
    settled(page)
    assert DuplicatePair.objects.filter(state="kept").count() == 1
    assert not DuplicatePair.objects.filter(state="merged").exists()


def test_a_list_is_walked_selected_peeked_at_and_restored_by_keys(enter: Enter) -> None:
    page = enter("operator")
    page.goto("/archived/")
    settled(page)
    rows = page.locator("[data-row]")
    second = rows.nth(1).locator("a").first.get_attribute("href")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("[data-picked]")).to_have_text("1")
    page.keyboard.press("x")
    page.keyboard.press("p")
    expect(page.locator("#peek")).to_contain_text("Archived ")
    page.keyboard.press("k")
    page.keyboard.press("j")
    expect(page.locator("#peek h2 a")).to_have_attribute("href", str(second))
    page.keyboard.press("e")
    expect(page.locator("[data-toast]")).to_contain_text("is active again")
    assert topic_in(str(second)).rung == 0
    expect(page).to_have_url(re.compile("/archived/$"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/topics/"))


@pytest.mark.parametrize(
    ("address", "opens", "peek"),
    [
        ("/recalls/", r"/recalls/\d+/", "relevance"),
        ("/runs/", r"/runs/[\w-]{36}/", " over "),
        ("/overview/regretted/", r"/topics/[\w-]{36}/", ""),
        ("/scopes/", r"/scope/\?scope=", None),
        ("/agents/", r"/callers/\?name=", None),
        ("/keys/", r"/callers/\?name=", None),
    ],
)
def test_every_list_is_walked_by_keys(enter: Enter, address: str, opens: str, peek: str | None) -> None:
    page = enter("reader")
    page.goto(address)
    settled(page)
    rows = page.locator("[data-row]")
    assert rows.count() >= 2
    page.keyboard.press("j")
    expect(rows.first.locator(":focus")).to_have_count(1)
    page.keyboard.press("j")
    expect(rows.nth(1).locator(":focus")).to_have_count(1)
    link = page.evaluate("document.activeElement.getAttribute('href')")
    page.keyboard.press("p")
    if peek is None:
        expect(page.locator("#peek")).to_have_count(0)
    else:
        expect(page.locator("#peek")).to_contain_text(peek)
        expect(page.locator("#peek h2 a")).to_have_attribute("href", link)
        assert overflow(page) == []
        page.keyboard.press("Escape")
        expect(page.locator("#peek")).to_have_count(0)
    page.keyboard.press("k")
    expect(rows.first.locator(":focus")).to_have_count(1)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(opens))


def test_an_entry_of_activity_about_no_memory_is_opened_in_place(enter: Enter) -> None:
    page = enter("reader")
    page.goto("/audit/?range=all&action=Policy+saved")
    settled(page)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("[data-row]").first.locator("details")).to_have_attribute("open", "")


def test_the_place_in_a_live_list_is_kept(enter: Enter) -> None:
    """A list that renews itself replaces the row in which someone has looked with the mouse."""
    page = enter("reader")
    page.goto("/runs/")
    settled(page)
    row = page.locator("[data-row]").nth(1)
    row.locator("[data-peek]").click()
    expect(page.locator("#peek")).to_contain_text(" over ")
    page.evaluate("document.querySelector('#run-rows').dataset.old = 'yes'")
    with page.expect_response("**/runs/"):
        page.evaluate(
            "htmx.ajax('GET', '/runs/', {source: '#run-rows', target: '#run-rows', select: '#run-rows', "
            "swap: 'outerHTML'})"
        )
    expect(page.locator("#run-rows[data-old]")).to_have_count(0)
    expect(row.locator("[data-open]")).to_be_focused()


def test_a_toast_is_announced_closed_and_reached_by_tab(enter: Enter) -> None:
    page = enter("operator", viewport=NARROW)
    page.goto("/archived/")
    settled(page)
    page.locator("[data-row] [data-key=e]").first.click()
    toast = page.locator("#notices[aria-live=polite] [data-toast]")
    expect(toast).to_be_in_viewport()
    # The script has moved the focus to the next row by then.
    settled(page)
    assert overflow(page) == []
    page.evaluate("document.activeElement.blur(); document.getElementById('content').focus()")
    page.keyboard.press("Tab")
    expect(toast.get_by_role("button", name="Undo")).to_be_focused()
    # It stays there when the notice is put in its place once more, to be announced.
    page.evaluate("noticesSay()")
    page.wait_for_timeout(200)
    expect(toast.get_by_role("button", name="Undo")).to_be_focused()
    toast.get_by_role("button", name="Close").click()
    expect(toast).to_have_count(0)
