"""A person tunes the policy from Home, each task with its clicks counted."""

import re

from playwright.sync_api import Page, expect

from memory.models import PolicyVersion
from tests.browser.clicks import Clicks
from tests.browser.conftest import Enter
from tests.browser.watch import settled

THRESHOLD = "#salience-form input[name=forget_salience_threshold]"


def begin(page: Page) -> Clicks:
    page.goto("/")
    settled(page)
    clicks = Clicks(page)
    clicks.click(page.get_by_role("link", name="Tuning", exact=True))
    return clicks


def archive_line_drag(page: Page, *, by: int) -> str:
    """Drag the lowest threshold by so many pixels and return where it stands then."""
    line = page.locator("#salience-form .shapelayer path").first.bounding_box()
    assert line
    middle = line["y"] + line["height"] / 2
    page.mouse.move(line["x"] + line["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(line["x"] + line["width"] / 2 + by, middle, steps=8)
    page.mouse.up()
    settled(page)
    return page.locator(THRESHOLD).input_value()


def newest(scope: str) -> PolicyVersion:
    return PolicyVersion.objects.filter(scope=scope).latest("number")


def test_a_threshold_is_dragged_and_its_effect_seen_after_one_click(enter: Enter) -> None:
    page = enter("reader")
    clicks = begin(page)
    said = page.locator("#salience-said")
    before = said.inner_text()
    value = archive_line_drag(page, by=-30)
    expect(page.locator("#salience-form .annotation").first).to_contain_text(f"archive {float(value):g}")
    expect(said).not_to_have_text(before)
    expect(said).to_be_in_viewport()
    expect(page).to_have_url(re.compile(rf"forget_salience_threshold={re.escape(value)}"))
    assert clicks.count == 1


def test_the_scope_is_completed_and_opened_without_a_click(enter: Enter) -> None:
    page = enter("reader")
    clicks = begin(page)
    scope = page.get_by_label("Scope", exact=True)
    scope.fill("/user/m")
    expect(page.locator("#id_scope-suggested option").first).to_have_attribute("value", "/user/mara")
    scope.fill("/user/mara")
    scope.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Tuning /user/mara")
    settled(page)
    assert archive_line_drag(page, by=-30)
    assert clicks.count == 1
    # From there to what is in the scope.
    clicks.click(page.get_by_role("heading", level=1).get_by_role("link"))
    expect(page).to_have_url(re.compile(r"/scope/\?scope=%2Fuser%2Fmara"))


def test_a_draft_is_saved_with_a_reason_by_one_click_and_what_is_saved_is_shown(enter: Enter) -> None:
    page = enter("operator")
    begin(page)
    for by in (-30, 20):
        value = archive_line_drag(page, by=by)
        number = newest("/").number + 1
        clicks = Clicks(page)
        page.locator("#save").get_by_label("Reason").fill(f"dragged by {by}")
        clicks.click(page.get_by_role("button", name="Save as new version"))
        assert clicks.count == 1
        expect(page.locator(".tuning-facts")).to_contain_text(f"Version {number}")
        settled(page)
        version = newest("/")
        assert (version.reason, version.values["forget_salience_threshold"]) == (f"dragged by {by}", float(value))
        expect(page.locator("#notices .success")).to_be_in_viewport()
        expect(page.locator(THRESHOLD)).to_have_value(value)
        expect(page.locator("#salience-form .annotation").first).to_contain_text(f"archive {float(value):g}")
        expect(page.locator("#salience-diff")).to_contain_text("equals the current policy")


def test_enter_in_the_reason_saves_without_a_click(enter: Enter) -> None:
    page = enter("operator")
    begin(page)
    value = archive_line_drag(page, by=-30)
    number = newest("/").number + 1
    reason = page.locator("#save").get_by_label("Reason")
    reason.fill("by Enter")
    reason.press("Enter")
    expect(page.locator(".tuning-facts")).to_contain_text(f"Version {number}")
    version = newest("/")
    assert (version.reason, version.values["forget_salience_threshold"]) == ("by Enter", float(value))


def test_a_rule_completes_the_kind_or_the_scope_that_its_row_asks_for(enter: Enter) -> None:
    page = enter("operator")
    page.goto("/policies/rules/?scope=/")
    page.get_by_role("button", name="Add a rule").click()
    what, op = page.get_by_label("What of row 1"), page.get_by_label("Comparison of row 1")
    value, options = page.get_by_label("Value of row 1"), page.locator(".rule-row datalist option")
    what.select_option("kind")
    value.fill("sess")
    expect(options.first).to_have_attribute("value", "session_state")
    op.select_option("in")
    value.fill("event, sess")
    expect(options.first).to_have_attribute("value", "event, session_state")
    what.select_option("scope")
    expect(options).to_have_count(0)
    value.fill("/user/m")
    expect(options.first).to_have_attribute("value", "/user/mara")
    what.select_option("title")
    value.fill("/user")
    page.wait_for_timeout(500)
    expect(options).to_have_count(0)


def test_a_policy_is_rolled_back_by_three_clicks_with_its_effect_shown_before(enter: Enter) -> None:
    page = enter("operator")
    before = newest("/")
    clicks = begin(page)
    clicks.click(page.get_by_role("link", name="Roll back…"))
    expect(page.locator("section[aria-labelledby=effect]")).to_contain_text("A run today would archive")
    page.get_by_label("Reason").fill("the former was better")
    clicks.click(page.get_by_role("button", name=f"Roll back to version {before.number - 1}"))
    assert clicks.count == 3
    expect(page.locator(f"#version-{before.number + 1}")).to_contain_text("in force")
    version = newest("/")
    assert (version.number, version.rolled_back_to) == (before.number + 1, before.number - 1)
    expect(page.locator("#notices .success")).to_be_in_viewport()


def test_the_history_of_regret_is_two_clicks_away_and_leads_to_a_version(enter: Enter) -> None:
    page = enter("reader")
    clicks = begin(page)
    clicks.click(page.get_by_role("link", name="Versions", exact=True))
    assert clicks.count == 2
    expect(page.locator("#regret .spark-line")).to_be_visible()
    clicks.click(page.locator("#regret a[href*=number] text").last)
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"^Version \d+ of "))
    # The list of what was wrongly archived leads there too.
    page.goto("/overview/regretted/")
    page.get_by_role("link", name="Missed over time").click()
    settled(page)
    expect(page.locator("#regret .spark-line")).to_be_visible()
