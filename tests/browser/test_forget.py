"""Forget in a browser: a request that fits two things, the choice, the yes and its undo; a purge that has to be typed,
its receipt, and nothing to be found afterwards."""

import re

import pytest
from playwright.sync_api import Page, expect

from memory.models import ErasureReceipt, ForgetListing, Topic
from tests.browser.axe import findings
from tests.browser.clicks import Clicks
from tests.browser.conftest import NARROW, Enter
from tests.browser.watch import overflow, settled
from tests.cast import Caller, in_process, secret_of

LIST = re.compile(r"/forget/[0-9a-f-]{36}/$")
RECEIPT = re.compile(r"/forget/receipts/[0-9a-f-]{36}/$")


@pytest.fixture(params=[True, False], ids=["with script", "without script"])
def page(enter: Enter, request: pytest.FixtureRequest) -> Page:
    return enter("operator", java_script_enabled=request.param)


@pytest.fixture
def agent(enter: Enter) -> Caller:
    return Caller(in_process, secret_of("agent"))


def ask(page: Page, verb: str, query: str, *, reason: str) -> None:
    page.goto("/forget/")
    page.get_by_role("radio", name=verb).check()
    page.get_by_label("Text", exact=True).fill(query)
    page.get_by_label("Reason").fill(reason)
    page.get_by_role("button", name="List matching memories").click()


def released(topic_id: str) -> bool:
    return Topic.objects.get(pk=topic_id).released_at is not None


@pytest.mark.meaning
def test_what_fits_two_things_is_chosen_released_and_taken_back(page: Page, agent: Caller) -> None:
    office = agent.remember("Wifi password", summary="The wifi password of the office is blue-canoe.")
    cabin = agent.remember("Wifi password", summary="The wifi password of the cabin is red-kayak.")
    ask(page, "Release", "forget the wifi password", reason="it was changed")
    expect(page).to_have_url(LIST)
    expect(page.locator(".forget-question")).to_contain_text("Which do you mean?")
    row = page.get_by_role("row").filter(has_text="red-kayak")
    row.get_by_role("button", name="Only this one").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Release 1 memory?")
    expect(page.locator(".forget-matches")).to_contain_text("red-kayak")
    page.get_by_role("button", name="Release 1 memory").click()
    notice = page.locator("#notices .notice.success")
    expect(notice).to_contain_text("1 memory is released")
    assert (released(office), released(cabin)) == (False, True)
    notice.get_by_role("button", name="Undo").click()
    expect(page.locator("#notices .notice.success")).to_contain_text("Undone")
    assert (released(office), released(cabin)) == (False, False)


@pytest.mark.meaning
def test_everything_about_a_person_is_released_but_for_what_is_unticked_and_one_undo_restores_it(enter: Enter) -> None:
    """Four clicks to the undo, and two to leave one out."""
    before = _live()
    page = enter("operator")
    page.goto("/")
    clicks = Clicks(page)
    clicks.click(page.get_by_role("link", name="Erasure"))
    page.get_by_label("Text", exact=True).fill("everything about Viktor")
    clicks.click(page.get_by_role("button", name="List matching memories"))
    expect(page.locator(".forget-matches mark").first).to_have_text("Viktor")
    listed = page.locator(".forget-matches tbody tr").count()
    assert listed > 3
    spared = page.locator("[data-pick]").first
    clicks.click(spared)
    # The list as it is now cannot be confirmed.
    expect(page.get_by_role("button", name=re.compile("^Release"))).to_be_hidden()
    spared_id = spared.get_attribute("value")
    clicks.click(page.get_by_role("button", name="List only the ticked"))
    clicks.click(page.get_by_role("button", name=f"Release {listed - 1} memories"))
    assert Topic.objects.filter(released_at__isnull=False).count() >= listed - 1
    assert not released(str(spared_id))
    clicks.click(page.locator("[data-toast]").get_by_role("button", name="Undo"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("was undone")
    assert _live() == before
    assert clicks.count == 6


def _live() -> list[tuple[object, ...]]:
    """Return what recalls can return, and how it ranks."""
    members = ("pk", "title", "summary", "rung", "vitality__pinned", "vitality__salience", "vitality__fade")
    return sorted(Topic.objects.filter(released_at=None, merged_into=None).values_list(*members))


def test_a_purge_is_typed_leaves_a_receipt_and_nothing_to_be_found(page: Page, enter: Enter, agent: Caller) -> None:
    one = agent.remember("Contact of Quirina", summary="Write to quirina@example.org about the lease.")
    other = agent.remember("Contact", summary="Write to a.quirina@example.org about the roof.")
    ask(page, "Purge", "quirina@example.org", reason="asked by the person")
    expect(page.get_by_role("heading", level=1)).to_have_text("Purge 1 memory?")
    typed = page.get_by_label("Type “purge 1” to confirm")
    typed.fill("purge")
    with enter.expects(422):
        page.get_by_role("button", name="Purge 1 memory").click()
        expect(page.locator(".errorlist [data-code=invalid-member]")).to_be_visible()
    assert Topic.objects.filter(pk=one).exists()
    page.get_by_label("Type “purge 1” to confirm").fill("purge 1")
    page.get_by_role("button", name="Purge 1 memory").click()
    expect(page).to_have_url(RECEIPT)
    expect(page.get_by_role("heading", level=1)).to_have_text("Receipt 1")
    settled(page)
    assert "quirina" not in page.content().casefold()
    assert not Topic.objects.filter(pk=one).exists()
    assert Topic.objects.filter(pk=other).exists()
    assert ErasureReceipt.objects.get().topic_ids == [one]
    page.goto("/lookup/?q=Quirina")
    expect(page.locator("[data-row]", has_text="Contact of Quirina")).to_have_count(0)
    page.goto("/forget/")
    expect(page.locator("tbody tr").first).to_contain_text("the request was erased")


def test_a_topic_is_purged_from_its_page_once_its_id_is_typed(page: Page, agent: Caller) -> None:
    one = agent.remember("A letter nobody should have kept")
    page.goto(f"/topics/{one}/")
    page.get_by_role("link", name="Purge").click()
    page.get_by_label("Reason").fill("it was a mistake")
    page.get_by_label("Type the memory title").fill(one[:8])
    page.get_by_role("button", name="Purge 1 memory").click()
    expect(page).to_have_url(RECEIPT)
    assert not Topic.objects.filter(pk=one).exists()


def test_a_fact_is_replaced_on_the_page_of_its_topic(page: Page, agent: Caller) -> None:
    one = agent.remember("Zenobia", summary="Zenobia lives in Bergen. Zenobia likes tea.")
    page.goto(f"/topics/{one}/")
    page.get_by_role("link", name="Replace a fact").click()
    page.get_by_label("Zenobia lives in Bergen").check()
    page.get_by_label("What is true now").fill("Zenobia lives in Oslo.")
    page.get_by_role("button", name="Replace fact").click()
    expect(page.locator("#notices .notice.success")).to_contain_text("Replaced in 1 memory")
    assert "likes tea" in Topic.objects.get(pk=one).summary
    assert "Bergen" not in Topic.objects.get(pk=one).summary


@pytest.mark.parametrize("verb", ["Release", "Purge"])
def test_the_pages_of_a_list_are_sound_wide_and_narrow(enter: Enter, agent: Caller, verb: str) -> None:
    for place in range(3):
        agent.remember(f"Contact {place}", summary="Write to quirina@example.org and to somebody.else@example.org.")
    page = enter("operator")
    ask(page, verb, "quirina@example.org", reason="for the test")
    expect(page).to_have_url(LIST)
    settled(page)
    assert ForgetListing.objects.latest("created_at").count == 3
    assert overflow(page) == []
    wrong = findings(page)
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(NARROW)
    assert overflow(page) == []
    assert wrong + findings(page) == []


def test_keys_lead_to_the_page(enter: Enter) -> None:
    page = enter("reader")
    page.goto("/")
    page.keyboard.press("g")
    page.keyboard.press("e")
    expect(page.get_by_role("heading", level=1)).to_have_text("Erasure")
    expect(page.get_by_role("button", name="List matching memories")).to_have_count(0)
