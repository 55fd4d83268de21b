"""Duplicates in a browser: a pair is merged and taken back, with script and without, and on a narrow screen."""

import re

import pytest
from playwright.sync_api import Page, expect

from memory.models import DuplicatePair, Topic
from tests.browser.conftest import NARROW, Enter
from tests.browser.watch import overflow, settled
from tests.cast import Caller, in_process, secret_of, worker_turn
from tests.waits import turns_until_done

pytestmark = pytest.mark.usefixtures("_written_twice")

PAIR = re.compile(r"/duplicates/[0-9a-f-]{36}/")


@pytest.fixture
def _written_twice(enter: Enter) -> None:
    """Two facts that were written down twice, and one that only looks like it, beside what the demo holds."""
    agent = Caller(in_process, secret_of("agent"))
    for title, summary in (
        *[("Sourdough starter", "Feed it on Mondays and Fridays with rye.")] * 2,
        *[("Spare keys", "With the neighbour on the second floor.")] * 2,
        ("Boiler pressure", "Fill it up below 1.2 bar."),
        ("Boiler pressure", "Fill it up below 2.1 bar."),
    ):
        agent.remember(title, summary=summary, scope="/home/again", topic_kind="observation")
    turns_until_done(worker_turn)


def open_pair(page: Page) -> DuplicatePair:
    """Go from the list to the first pair in which nothing that matters differs."""
    page.goto("/duplicates/?held=no&scope=/home/again")
    page.locator(".pair h2 a").first.click()
    expect(page).to_have_url(PAIR)
    return DuplicatePair.objects.get(pk=page.url.partition("/duplicates/")[2].partition("/")[0])


def merged(pair: DuplicatePair) -> int:
    return Topic.objects.filter(pk__in=(pair.one_id, pair.other_id), merged_into__isnull=False).count()


@pytest.mark.parametrize("script", [True, False])
def test_a_pair_is_merged_and_the_notice_takes_it_back(enter: Enter, script: bool) -> None:
    page = enter("operator", java_script_enabled=script)
    pair = open_pair(page)
    expect(page.locator(".pair-table").first).to_be_visible()
    page.get_by_label("Reason").fill("said twice")
    page.get_by_role("button", name="Merge", exact=True).click()
    notice = page.locator("#notices .notice.success")
    expect(notice).to_contain_text("Merged")
    assert merged(pair) == 1
    notice.get_by_role("button", name="Undo").click()
    expect(page.locator("#notices .notice.success")).to_contain_text("became separate again")
    assert merged(pair) == 0


def test_a_merge_is_taken_back_from_the_list_of_what_was_merged(enter: Enter) -> None:
    page = enter("operator")
    pair = open_pair(page)
    page.get_by_role("button", name="Merge", exact=True).click()
    expect(page.locator("#notices .notice.success")).to_be_visible()
    page.goto("/duplicates/")
    page.get_by_label("Status").select_option("merged")
    expect(page).to_have_url(re.compile(r"state=merged"))
    page.locator(f".pair h2 a[href*='{pair.pk}']").click()
    page.get_by_role("form", name="Undo the decision").get_by_role("button", name="Undo").click()
    expect(page.locator("#notices .notice.success")).to_contain_text("Undone")
    assert merged(pair) == 0


def test_picked_pairs_are_merged_after_a_page_that_counts_them_and_undone_together(enter: Enter) -> None:
    page = enter("operator")
    page.goto("/duplicates/?held=no&scope=/home/again")
    boxes = page.locator(".pair input[data-pick]")
    assert boxes.count() >= 2
    for place in (0, 1):
        boxes.nth(place).check()
    expect(page.locator("[data-picked]")).to_have_text("2")
    page.get_by_role("button", name="Merge…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Merge 2 pairs")
    page.get_by_role("button", name="Merge 2 pairs").click()
    notice = page.locator("#notices .notice.success")
    expect(notice).to_contain_text("2 pairs were merged")
    merged = DuplicatePair.objects.filter(state="merged").count()
    notice.get_by_role("button", name="Undo").click()
    expect(notice).to_contain_text("4 memories became separate again")
    assert DuplicatePair.objects.filter(state="merged").count() == merged - 2


def test_a_pair_that_differs_says_so_and_fits_a_narrow_screen(enter: Enter) -> None:
    page = enter("reader", viewport=NARROW)
    page.goto("/duplicates/?held=yes&scope=/home/again")
    assert overflow(page) == []
    page.locator(".pair h2 a").first.click()
    settled(page)
    expect(page.locator(".pair-differences")).to_be_visible()
    assert overflow(page) == []
    assert page.get_by_role("button", name="Keep both").count() == 0
