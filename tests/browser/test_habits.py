"""Habits that hold on every page: the keyboard, narrow screens, Back and reload, live parts, two who edit at once."""

import re

import pytest
from playwright.sync_api import Page, expect

from memory.models import PolicyVersion, Topic
from tests.browser.conftest import NARROW, Enter
from tests.browser.watch import overflow, settled

# --- Keyboard ---


# The parts of a date draw their own ring.
RING = """() => {
  const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
  if (at === document.body) return 'nothing';
  const outline = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
  const ring = outline || style.boxShadow !== 'none' || at.type === 'date';
  const there = box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight;
  return ring && there ? '' : `no ring (${ring}) or not in sight (${there}): `;
}"""
FORM = """() => {
  const form = document.createElement('form');
  form.innerHTML = '<label>Note <input id="note"></label>';
  document.querySelector('[data-live]').append(form);
}"""


def focused(page: Page) -> str:
    found: str = page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
    return found


def test_a_slash_leads_to_the_search(enter: Enter) -> None:
    page = enter("reader")
    page.goto("/audit/")
    page.keyboard.press("/")
    expect(page).to_have_url(re.compile(r"/lookup/"))
    page.locator("h1").click()
    page.keyboard.press("/")
    expect(page.locator("[data-search]")).to_be_focused()
    page.keyboard.type("a/b?")
    expect(page.locator("[data-search]")).to_have_value("a/b?")
    page.keyboard.press("Escape")
    expect(page.locator("[data-search]")).not_to_be_focused()


def test_a_question_mark_lists_the_keys_and_escape_closes_the_list(enter: Enter) -> None:
    page = enter("reader")
    page.goto("/audit/")
    page.keyboard.press("?")
    dialog = page.locator("dialog#shortcuts")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("h", "/"),
        ("m", "/lookup/"),
        ("r", "/recalls/"),
        ("s", "/scopes/"),
        ("t", "/salience/"),
        ("u", "/runs/"),
        ("e", "/forget/"),
        ("a", "/audit/"),
        (",", "/keys/"),
    ],
)
def test_g_and_a_letter_go_to_a_page(enter: Enter, key: str, path: str) -> None:
    page = enter("reader")
    page.goto("/audit/?actor=demo")
    page.keyboard.press("g")
    page.keyboard.press(key)
    expect(page).to_have_url(re.compile(f":\\d+{path}$"))
    settled(page)


@pytest.mark.parametrize("path", ["/audit/", "/lookup/?q=rung:archived", "/salience/", "/policies/at/?scope=/"])
def test_everything_is_reached_by_tab_and_shows_that_it_is(enter: Enter, path: str) -> None:
    page = enter("operator")
    page.goto(path)
    settled(page)
    # Where a field has the focus already, Tab goes on from there.
    page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    page.keyboard.press("Tab")
    seen: list[str] = []
    for _ in range(60):
        shown = page.evaluate(RING)
        if shown == "nothing":
            break
        assert shown == "", shown + focused(page)
        seen.append(focused(page))
        page.keyboard.press("Tab")
    assert "skip" in seen[0]
    assert len(set(seen)) >= 15


def test_the_skip_link_passes_the_navigation(enter: Enter) -> None:
    page = enter("reader")
    page.goto("/audit/")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    box = skip.bounding_box()
    assert box is not None
    assert box["y"] >= 0
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.getElementById('content').contains(document.activeElement)")


def test_a_topic_is_found_and_pinned_without_a_mouse(enter: Enter) -> None:
    page = enter("operator")
    page.goto("/audit/")
    page.keyboard.press("/")
    expect(page).to_have_url(re.compile(r"/lookup/"))
    expect(page.locator("[data-search]")).to_be_focused()
    page.keyboard.type("-is:pinned rung:active")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/lookup/\?"))
    page.locator("[data-row] [data-open]").first.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/topics/.*/"))
    settled(page)
    page.get_by_role("button", name="Pin", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#notices .notice.success")).to_be_visible()
    expect(page.locator(".topic-marks")).to_contain_text("pinned")
    page.keyboard.press("z")
    expect(page.locator(".topic-marks")).not_to_contain_text("pinned")
    settled(page)


# --- Narrow screens ---


def test_the_menu_opens_on_a_narrow_screen(enter: Enter) -> None:
    page = enter("reader", viewport=NARROW, has_touch=True)
    page.goto("/audit/")
    settled(page)
    nav = page.get_by_role("navigation", name="Pages", exact=True)
    expect(nav).to_be_hidden()
    page.locator("details.menu summary").tap()
    expect(nav).to_be_visible()
    assert overflow(page) == []
    nav.get_by_role("link", name="Tuning").tap()
    expect(page).to_have_url(re.compile(r"/salience/"))
    expect(nav).to_be_hidden()


def test_on_a_narrow_screen_lists_stack_and_wide_tables_scroll_within_their_box(enter: Enter) -> None:
    page = enter("reader", viewport=NARROW)
    page.goto("/audit/")
    settled(page)
    assert page.locator(".table-scroll").first.evaluate("each => each.scrollWidth === each.clientWidth")
    who = page.locator("td[data-is=Who]").first
    assert who.evaluate("each => getComputedStyle(each, '::before').content") == '"Who"'
    # The counts of the stages fit also on the smallest phone.
    page.set_viewport_size({"width": 320, "height": 800})
    page.goto("/salience/")
    settled(page)
    box = page.get_by_role("region", name="Counts by stage")
    assert box.evaluate("each => each.scrollWidth === each.clientWidth")
    assert overflow(page) == []


# --- Back, reload, addresses ---


def test_filters_and_pages_live_in_the_address(enter: Enter) -> None:
    page = enter("reader")
    page.goto("/audit/?range=30d")
    page.get_by_label("Who").fill("demo")
    page.get_by_label("Who").press("Enter")
    expect(page).to_have_url(re.compile(r"/audit/\?.*actor=demo.*range=30d"))
    settled(page)
    # The column of times says how long ago, which changes.
    rows = page.locator("tbody td[data-is=Memory], tbody td[data-is=Scope], tbody td[data-is=About]")
    first = rows.all_inner_texts()
    count = page.locator(".pager-count").inner_text()
    page.get_by_role("link", name="Next page").click()
    expect(page).to_have_url(re.compile(r"cursor="))
    settled(page)
    assert rows.all_inner_texts() != first
    expect(page.locator(".pager-count")).to_have_text(count)
    page.reload()
    settled(page)
    expect(page.get_by_label("Who")).to_have_value("demo")
    page.go_back()
    expect(rows).to_have_text(first, use_inner_text=True)
    settled(page)
    page.go_back()
    expect(page.get_by_label("Who")).to_have_value("")
    settled(page)
    page.go_forward()
    expect(page.get_by_label("Who")).to_have_value("demo")
    settled(page)


def test_a_draft_survives_reload_and_back(enter: Enter) -> None:
    page = enter("reader")
    page.goto("/salience/?forget_salience_threshold=0.1")
    settled(page)
    number = page.locator("#salience-form input[name=forget_salience_threshold]")
    expect(number).to_have_value("0.1")
    said = page.locator("#salience-said").inner_text()
    page.reload()
    settled(page)
    expect(number).to_have_value("0.1")
    expect(page.locator("#salience-said")).to_have_text(said)
    page.goto("/audit/")
    page.go_back()
    settled(page)
    expect(number).to_have_value("0.1")


# --- Lists whose rows can be picked ---


def test_rows_are_picked_counted_and_restored(enter: Enter) -> None:
    page = enter("operator")
    page.goto("/archived/")
    settled(page)
    picked = page.locator("[data-picked]")
    boxes = page.locator("input[data-pick]")
    page.locator("input[data-pick-all]").check()
    expect(picked).to_have_text(str(boxes.count()))
    page.locator("input[data-pick-all]").uncheck()
    expect(page.locator(".bulk")).to_be_hidden()
    boxes.nth(0).check()
    boxes.nth(2).check()
    expect(picked).to_have_text("2")
    chosen = [boxes.nth(place).get_attribute("value") for place in (0, 2)]
    page.locator(".bulk").get_by_role("button", name="Restore").click()
    notice = page.locator("#notices .notice.success")
    expect(notice.get_by_role("button", name="Undo")).to_be_visible()
    expect(page).to_have_url(re.compile("/archived/$"))
    assert Topic.objects.filter(pk__in=chosen, rung=0).count() == 2
    settled(page)


# --- Live parts ---


def test_live_parts_refresh_pause_on_a_hidden_tab_and_leave_forms_alone(enter: Enter) -> None:
    page = enter("operator")
    page.clock.install()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/schedules/pulse/" in request.url else None)
    page.goto("/schedules/")
    page.clock.run_for(1000)
    asked.clear()

    page.evaluate("document.getElementById('schedule-pulse').dataset.old = 'yes'")
    with page.expect_response("**/schedules/pulse/"):
        page.clock.run_for(11_000)
    # The answer takes its place a moment after it has come.
    page.clock.run_for(500)
    expect(page.locator("#schedule-pulse[data-old]")).to_have_count(0)
    assert len(asked) == 1

    page.evaluate("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    page.clock.run_for(40_000)
    assert len(asked) == 1, "a tab that nobody sees asks for nothing"

    page.evaluate("Object.defineProperty(document, 'hidden', { value: false, configurable: true })")
    page.evaluate(FORM)
    page.locator("#note").fill("half a sent")
    page.locator("h1").click()
    page.clock.run_for(40_000)
    assert len(asked) == 1, "a form being filled in is nobody else's"
    expect(page.locator("#note")).to_have_value("half a sent")
    page.evaluate("delete document.querySelector('#note').form.dataset.dirty")
    with page.expect_response("**/schedules/pulse/"):
        page.clock.run_for(11_000)


# --- Two at once ---


def test_two_operators_edit_one_policy_and_the_second_is_reported(enter: Enter) -> None:
    first, second = enter("operator"), enter("olga")
    for page in (first, second):
        page.goto("/policies/at/?scope=/")
        settled(page)
    first.locator("[name=forget_salience_threshold]").fill("0.06")
    first.get_by_label("Reason").fill("a little more room")
    first.get_by_role("button", name="Save as new version").click()
    expect(first).to_have_url(re.compile(r"/policies/at/"))
    settled(first)

    second.locator("[name=theta_summary]").fill("0.3")
    second.get_by_label("Reason").fill("summaries sooner")
    with enter.expects(409, 422):
        second.get_by_role("button", name="Save as new version").click()
        got = second.locator(".conflict")
        expect(got).to_contain_text("was saved in the meantime")
    expect(got).to_contain_text("a little more room")
    expect(second.locator("[name=theta_summary]")).to_have_value("0.3")
    expect(second.get_by_label("Reason")).to_have_value("summaries sooner")
    assert "theta_summary" not in PolicyVersion.objects.filter(scope="/").latest("number").values

    second.get_by_role("link", name="Start from version").click()
    settled(second)
    expect(second.locator("[name=forget_salience_threshold]")).to_have_value("0.06")
    second.locator("[name=theta_summary]").fill("0.3")
    second.get_by_label("Reason").fill("summaries sooner")
    second.get_by_role("button", name="Save as new version").click()
    expect(second).to_have_url(re.compile(r"/policies/at/"))
    settled(second)
    values = PolicyVersion.objects.filter(scope="/").latest("number").values
    assert (values["forget_salience_threshold"], values["theta_summary"]) == (0.06, 0.3)
