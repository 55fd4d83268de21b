"""The Salience page in a browser: what is saved is what stands in the fields, however quickly the button is pressed."""

import itertools
import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, Request, Route, expect

from memory.models import PolicyVersion
from tests.browser.conftest import NARROW, Enter
from tests.browser.watch import overflow, settled

THRESHOLD = "#salience-form input[name=forget_salience_threshold]"
RULES = json.dumps(
    [
        {
            "name": f"rule {place}",
            "action": "archive",
            "condition": {
                "all": [
                    {"field": "kind", "op": "is", "value": f"kind_{place}"},
                    {"field": "age", "op": ">=", "value": "30d"},
                ]
            },
        }
        for place in range(50)
    ]
)


def newest() -> Any:
    return PolicyVersion.objects.filter(scope="/").latest("number")


def typed_and_saved(page: Page, *, threshold: str, reason: str) -> None:
    page.locator("#save").get_by_label("Reason").fill(reason)
    page.locator(THRESHOLD).fill(threshold)
    page.get_by_role("button", name="Save as new version").click()
    expect(page.locator("#notices .notice.success").first).to_be_visible()


def test_what_was_typed_a_moment_ago_is_what_is_saved(enter: Enter) -> None:
    page = enter("operator")
    page.goto("/salience/")
    settled(page)
    typed_and_saved(page, threshold="0.11", reason="in a hurry")
    assert (newest().values["forget_salience_threshold"], newest().reason) == (0.11, "in a hurry")
    settled(page)


def test_the_effect_is_still_shown_while_save_is_pressed(enter: Enter) -> None:
    page = enter("operator")
    page.goto("/salience/")
    settled(page)
    save = page.get_by_role("button", name="Save as new version")
    page.locator("#save").get_by_label("Reason").fill("slowly")
    page.locator(THRESHOLD).fill("0.11")
    save.hover()
    page.mouse.down()
    expect(page.locator("#salience-said")).to_contain_text(re.compile(r"archives \d+ more"))
    assert "save=yes" not in page.url
    page.mouse.up()
    expect(page.locator("#notices .notice.success").first).to_be_visible()
    assert (newest().values["forget_salience_threshold"], newest().reason) == (0.11, "slowly")


def test_saves_follow_each_other_without_a_conflict(enter: Enter) -> None:
    page = enter("operator")
    page.goto("/salience/")
    settled(page)
    for threshold in ("0.11", "0.12"):
        typed_and_saved(page, threshold=threshold, reason="tuning")
        expect(page.locator(THRESHOLD)).to_have_value(threshold)
        expect(page.locator("#salience-diff")).to_contain_text("equals the current policy")
        settled(page)
    assert newest().values["forget_salience_threshold"] == 0.12


def test_a_draft_that_is_not_valid_is_explained_once_and_cannot_be_saved(enter: Enter) -> None:
    page = enter("operator")
    page.goto("/salience/?preset=balanced")
    settled(page)
    save = page.get_by_role("button", name="Save as new version")
    page.locator(THRESHOLD).fill("0.2")
    expect(save).to_be_disabled()
    expect(page.locator("#salience-form .errorlist li:visible")).to_have_count(1)
    expect(page.locator(".field:has(input[name=forget_salience_threshold]) .errorlist")).to_contain_text("0.12")
    page.locator(THRESHOLD).fill("0.11")
    expect(save).to_be_enabled()
    expect(page.locator("#salience-form .errorlist li:visible")).to_have_count(0)
    settled(page)


@pytest.mark.parametrize("address", ["/salience/", "/policies/at/"])
def test_save_is_loud_only_while_the_draft_differs(enter: Enter, address: str) -> None:
    page = enter("operator")
    page.goto(address)
    settled(page)
    save = page.get_by_role("button", name="Save as new version")
    quiet = save.evaluate("button => getComputedStyle(button).backgroundColor")
    field = page.locator("input[name=forget_salience_threshold]")
    field.fill("0.11")
    expect(save).not_to_have_css("background-color", quiet)
    field.fill("")
    expect(save).to_have_css("background-color", quiet)
    settled(page)


def test_the_words_of_a_line_follow_it_while_it_is_dragged(enter: Enter) -> None:
    page = enter("operator")
    page.goto("/salience/")
    settled(page)
    words = page.locator("#salience-form .annotation").first
    before = words.bounding_box()
    line = page.locator("#salience-form .shapelayer path").first.bounding_box()
    assert before
    assert line
    page.mouse.move(line["x"] + line["width"] / 2, line["y"] + line["height"] / 2)
    page.mouse.down()
    page.mouse.move(line["x"] - 40, line["y"] + line["height"] / 2, steps=8)
    value = page.locator(THRESHOLD).input_value()
    expect(words).to_contain_text(f"archive {float(value):g}")
    during = words.bounding_box()
    assert during
    assert during["x"] < before["x"] - 20
    page.mouse.up()
    settled(page)
    after = words.bounding_box()
    assert after
    # Their end stays in place if they look to the left, and their number may be shorter now.
    assert abs(after["x"] - during["x"]) < 25


def test_what_was_typed_is_saved_also_when_the_effect_never_comes(enter: Enter) -> None:
    page = enter("operator")
    page.goto("/salience/")
    settled(page)
    # No answer to what the lines come to.
    waiting: list[Route] = []
    page.route(re.compile(r"/salience/\?.*forget_salience_threshold"), lambda route: waiting.append(route))
    with page.expect_request(re.compile(r"forget_salience_threshold=0\.09")):
        page.locator(THRESHOLD).fill("0.09")
    typed_and_saved(page, threshold="0.11", reason="in a hurry")
    assert newest().values["forget_salience_threshold"] == 0.11


def test_without_script_the_saved_version_has_what_was_typed(enter: Enter) -> None:
    page = enter("operator", java_script_enabled=False)
    page.goto("/salience/")
    typed_and_saved(page, threshold="0.11", reason="without script")
    assert (newest().values["forget_salience_threshold"], newest().reason) == (0.11, "without script")


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_a_reason_is_not_lost_by_what_is_done_with_the_draft(enter: Enter, script: bool) -> None:
    page = enter("operator", java_script_enabled=script)
    page.goto("/salience/")
    settled(page)
    reason = page.locator("#save").get_by_label("Reason")
    reason.fill("half written")
    page.locator(THRESHOLD).fill("0.11")
    for name in ("Compare with another draft", "Swap A and B", "Load as draft", "Discard draft B"):
        page.get_by_role("button", name=name).click()
        page.wait_for_load_state()
        expect(page.locator(THRESHOLD)).to_have_value("" if name in ("Load as draft", "Discard draft B") else "0.11")
        expect(reason).to_have_value("half written")
        settled(page)
    assert "csrf" not in page.url


def test_a_save_that_is_refused_leaves_the_draft_and_an_address_that_leads_back_to_it(enter: Enter) -> None:
    page = enter("operator")
    page.goto("/salience/")
    settled(page)
    page.locator(THRESHOLD).fill("0.11")
    with enter.expects(422):
        page.get_by_role("button", name="Save as new version").click()
        expect(page.locator("#save .errorlist")).to_contain_text("required")
    expect(page.locator(THRESHOLD)).to_have_value("0.11")
    page.goto(page.url)
    expect(page).to_have_url(re.compile(r"/salience/\?"))
    expect(page.locator(THRESHOLD)).to_have_value("0.11")


def test_many_rules_are_tried_and_saved_without_an_address_of_that_length(enter: Enter) -> None:
    page = enter("operator")
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    page.goto("/policies/rules/")
    settled(page)
    page.locator(".rule-json > summary").click()
    page.locator("[name=rules]").fill(RULES)
    expect(page.locator("#policy-tried")).to_contain_text("Rule rule 0 added")
    settled(page)
    page.locator("#save").get_by_label("Reason").fill("many rules")
    page.get_by_role("button", name="Save as new version").click()
    expect(page.locator("#notices .notice.success").first).to_be_visible()
    assert len(newest().rules) == 50
    assert max(len(each.url) for each in asked) < 8000
    settled(page)


def test_a_backtest_is_of_what_was_just_typed(enter: Enter) -> None:
    page = enter("reader")
    page.goto("/salience/")
    settled(page)
    page.locator(THRESHOLD).fill("0.11")
    page.get_by_role("button", name="Backtest").click()
    expect(page).to_have_url(re.compile(r"forget_salience_threshold%3D0\.11"))
    expect(page.locator("#backtest-found table")).to_be_visible()
    page.get_by_role("link", name="Back to the draft on the curve").click()
    expect(page.locator(THRESHOLD)).to_have_value("0.11")
    settled(page)


def test_the_effect_and_the_topics_stand_beside_the_chart_above_the_fold(enter: Enter) -> None:
    page = enter("operator", viewport={"width": 1440, "height": 900})
    page.goto("/salience/?forget_salience_threshold=0.11")
    settled(page)
    chart = page.locator("[data-chart=salience-chart]").bounding_box()
    bar = page.locator("#save").bounding_box()
    assert chart
    assert bar
    assert bar["y"] + bar["height"] <= 901
    for part in ("#salience-said", "#salience-effect table >> nth=0", ".affected li >> nth=2"):
        box = page.locator(part).bounding_box()
        assert box
        assert box["x"] >= chart["x"] + chart["width"]
        assert box["y"] + box["height"] <= bar["y"], part


def test_a_bar_leads_to_the_topics_in_it(enter: Enter) -> None:
    page = enter("reader")
    page.goto("/salience/")
    settled(page)
    bars = page.locator("#salience-form .barlayer .trace").first.locator("path")
    box = max((each.bounding_box() or {} for each in bars.all()), key=lambda each: each.get("height", 0))
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 4)
    expect(page).to_have_url(re.compile(r"/lookup/\?q=.*rung.*salience"))
    settled(page)
    expect(page.locator("[data-row]").first).to_be_visible()


def test_the_words_of_the_lines_stay_in_the_plot_and_off_each_other(enter: Enter) -> None:
    page = enter("reader", viewport=NARROW)
    for query in ("", "?scale=linear", "?theta_summary=5&theta_detach=4.9&forget_salience_threshold=4.8"):
        page.goto(f"/salience/{query}")
        settled(page)
        plot = page.locator("#salience-form .plot .main-svg").first.bounding_box()
        words = [each.bounding_box() for each in page.locator("#salience-form .annotation .bg").all()]
        assert plot
        assert len(words) == 3
        rows = []
        for each in words:
            assert each
            assert plot["x"] <= each["x"]
            assert each["x"] + each["width"] <= plot["x"] + plot["width"]
            rows.append((each["y"], each["y"] + each["height"]))
        assert all(above[1] <= below[0] + 1 for above, below in itertools.pairwise(sorted(rows)))
        assert not overflow(page)
