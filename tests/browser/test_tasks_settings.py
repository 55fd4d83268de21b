"""Activity and Settings by a person's steps from Home, with the clicks counted, and completion of what is typed."""

import re

from playwright.sync_api import expect

from memory.insight.action_words import action_words
from memory.models import AuditEvent
from tests.browser.clicks import Clicks
from tests.browser.conftest import Enter
from tests.browser.watch import settled
from tests.cast import Caller, in_process, secret_of


def test_what_changed_in_24_hours_is_one_click(enter: Enter) -> None:
    Caller(in_process, secret_of("agent")).remember("The agent wrote this")
    page = enter("reader")
    page.goto("/")
    settled(page)
    clicks = Clicks(page)
    clicks.click(page.get_by_role("link", name="Activity", exact=True))
    assert clicks.count == 1
    expect(page.get_by_role("navigation", name="Time range").locator("[aria-current]")).to_have_text("24 h")
    expect(page.locator("tbody tr").first).to_contain_text("The agent wrote this")
    expect(page.locator(".tally")).to_contain_text("key:agent 1")
    expect(page.locator(".tally")).to_contain_text("Created")
    # The counts lead to what they count, also from Home.
    page.goto("/")
    page.locator(".tally").get_by_role("link", name="key:agent 1").click()
    settled(page)
    expect(page.locator("tbody tr")).to_have_count(1)


def test_what_is_typed_is_completed_and_found(enter: Enter) -> None:
    page = enter("reader")
    page.goto("/audit/?range=all")
    settled(page)
    scope, options = page.get_by_label("Scope"), page.locator("#id_scope-suggested option")
    scope.focus()
    expect(options.first).to_be_attached()
    scope.fill("/user/m")
    expect(options).to_have_count(1)
    expect(options).to_have_attribute("value", "/user/mara")
    scope.fill("/user/mara")
    expect(options.nth(1)).to_have_attribute("value", re.compile("^/user/mara/"))
    what = page.get_by_label("What")
    what.fill("crea")
    expect(page.locator("#id_action-suggested option").first).to_have_attribute("value", "Created")
    what.fill("Created")
    what.press("Enter")
    settled(page)
    shown = set(page.locator("td[data-is=What]").all_inner_texts())
    assert shown == {"Created"}
    known = AuditEvent.objects.filter(action="ingest_new_topic", scope__startswith="/user/mara").exists()
    assert (known, action_words("ingest_new_topic")) == (True, "Created")
