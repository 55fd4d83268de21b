"""The command palette by keys alone, and its button."""

import re

from playwright.sync_api import Route, expect

from memory.models import Topic, Vitality
from tests.browser.axe import findings
from tests.browser.conftest import NARROW, Enter
from tests.browser.watch import overflow, settled


def test_it_is_opened_typed_in_walked_and_followed_by_keys(enter: Enter) -> None:
    topic = Topic.objects.filter(rung=0, released_at=None, merged_into=None, title__contains=" ").order_by("pk")[0]
    page = enter("operator")
    page.goto("/")
    settled(page)
    dialog, field = page.locator("#palette"), page.locator("#palette-input")
    chosen = dialog.locator("[aria-selected=true]")
    page.get_by_role("link", name="Recalls").first.focus()
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    expect(chosen).to_have_text(re.compile("^Home g .$"))
    page.keyboard.press("ArrowDown")
    expect(chosen).to_have_text(re.compile("^Memories g .$"))
    expect(field).to_have_attribute("aria-activedescendant", str(chosen.get_attribute("id")))
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(dialog.get_by_role("option").last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("link", name="Recalls").first).to_be_focused()

    page.keyboard.press("Control+k")
    page.keyboard.type("backtest")
    expect(chosen).to_have_text("Tuning › Backtest")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/salience/backtest/$"))

    # Enter waits for what was typed, although the answer to the opening comes after it.
    settled(page)
    held: list[Route] = []
    page.route("**/palette/**", lambda route: route.continue_() if held else held.append(route))
    with page.expect_request("**/palette/**"):
        page.keyboard.press("Control+k")
    page.keyboard.insert_text(str(topic.pk))
    page.keyboard.press("Enter")
    held[0].continue_()
    expect(page).to_have_url(re.compile(f"/topics/{topic.pk}/$"))


def test_its_button_opens_it_and_it_has_no_flaw(enter: Enter) -> None:
    for options in ({}, {"viewport": NARROW, "color_scheme": "dark"}):
        page = enter("reader", **options)
        page.goto("/runs/")
        settled(page)
        page.get_by_role("link", name="Jump to").click()
        page.keyboard.type("mara")
        expect(page.get_by_role("option", name="/user/mara", exact=True)).to_be_visible()
        assert findings(page) == []
        assert overflow(page) == []
        page.mouse.click(5, 400)
        expect(page.locator("#palette")).to_be_hidden()
        page.keyboard.press("?")
        expect(page.locator("#shortcuts")).to_contain_text("Jump to a place")


def test_it_offers_what_the_page_offers(enter: Enter) -> None:
    topic = Topic.objects.filter(rung=0, released_at=None, merged_into=None, vitality__pinned=False).order_by("pk")[0]
    page = enter("operator")
    page.goto(f"/topics/{topic.pk}/")
    settled(page)
    here = page.get_by_role("group", name="On this page")
    page.keyboard.press("Control+k")
    expect(here.get_by_role("option", name="Pin")).to_be_visible()
    page.keyboard.type("pin")
    expect(page.locator("#palette [aria-selected=true]")).to_have_text("Pin")
    page.keyboard.press("Enter")
    expect(page.locator("#notices .notice.success").first).to_be_visible()
    assert Vitality.objects.get(pk=topic.pk).pinned
    settled(page)
