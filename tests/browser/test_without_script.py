"""With script switched off, lists, forms and actions are links and forms and do the same."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from memory.models import ForgetRun, PolicyVersion, Topic
from memory.policy.save import policy_save
from tests.browser.conftest import Enter
from tests.browser.test_tour import RUN, sign_in


@pytest.fixture
def page(enter: Enter) -> Page:
    return enter("operator", java_script_enabled=False)


def test_signing_in_and_out(enter: Enter) -> None:
    page = enter(None, java_script_enabled=False)
    sign_in(page, "operator", "/audit/")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_a_list_is_filtered_paged_and_counted(page: Page) -> None:
    page.goto("/audit/?range=30d")
    page.get_by_label("Who").fill("demo")
    page.get_by_role("button", name="Filter").click()
    expect(page).to_have_url(re.compile(r"actor=demo"))
    first = page.locator("tbody tr").first.inner_text()
    page.get_by_role("link", name="Next page").click()
    expect(page).to_have_url(re.compile(r"cursor="))
    assert page.locator("tbody tr").first.inner_text() != first
    page.get_by_role("link", name="Count them").click()
    expect(page.locator("main")).to_contain_text(re.compile(r"[\d,]+ changes"))


def test_the_parts_of_a_topic_are_behind_links(page: Page) -> None:
    page.goto("/lookup/?q=rung:archived")
    page.locator("[data-row] [data-open]").first.click()
    expect(page.locator("#why .topic-sentence").first).to_be_visible()
    page.get_by_role("link", name="Show salience over time").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.locator("table, dl, li").count() > 0


def test_a_policy_is_drafted_tried_and_saved(page: Page) -> None:
    page.goto("/policies/at/?scope=/")
    page.locator("[name=forget_salience_threshold]").fill("0.1")
    page.get_by_role("button", name="Check the effect").last.click()
    expect(page.locator("[name=forget_salience_threshold]")).to_have_value("0.1")
    expect(page.locator("#policy-tried table").first).to_be_visible()
    page.get_by_label("Reason").fill("without script")
    page.get_by_role("button", name="Save as new version").click()
    expect(page).to_have_url(re.compile(r"/policies/at/"))
    version = PolicyVersion.objects.filter(scope="/").latest("number")
    assert (version.reason, version.values["forget_salience_threshold"]) == ("without script", 0.1)


def test_a_threshold_is_typed_and_previewed(page: Page) -> None:
    page.goto("/salience/")
    page.locator("#salience-form input[name=forget_salience_threshold]").fill("0.11")
    page.locator("#salience-form").get_by_role("button", name="Preview").last.click()
    expect(page).to_have_url(re.compile(r"forget_salience_threshold=0\.11"))
    now, draft = (
        int(
            page.locator("#salience-effect tr:has(.rung-archived)")
            .first.locator("td")
            .nth(place)
            .inner_text()
            .replace(",", "")
        )
        for place in (0, 1)
    )
    assert draft > now


def test_a_run_is_planned_applied_and_undone(page: Page) -> None:
    policy_save(
        "/",
        preset=None,
        values={"forget_salience_threshold": 0.11},
        author="test",
        reason="so that something is due",
        now=timezone.now(),
    )
    page.goto("/runs/")
    page.get_by_role("button", name="Dry run").click()
    expect(page).to_have_url(RUN)
    run = ForgetRun.objects.get(pk=page.url.rstrip("/").rpartition("/")[2])
    assert run.planned > 0
    page.get_by_label("Reason").fill("without script")
    page.get_by_role("form", name="Apply this plan").get_by_role("button").click()
    expect(page).to_have_url(RUN)
    run.refresh_from_db()
    assert run.status == "done"
    page.get_by_role("link", name="Undo", exact=True).click()
    page.get_by_label("Reason").fill("without script")
    page.locator("section[aria-label=Confirm] button.primary").click()
    expect(page).to_have_url(RUN)
    run.refresh_from_db()
    assert run.status == "undone"


def test_all_that_match_are_restored_after_a_confirmation_and_put_back(page: Page) -> None:
    archived = set(Topic.objects.filter(rung=3).values_list("pk", flat=True))
    assert len(archived) > 50, "more than one page"
    page.goto("/archived/")
    page.get_by_role("checkbox", name="on every page").check()
    page.get_by_role("button", name="Restore", exact=True).last.click()
    expect(page).to_have_url(RUN)
    page.get_by_label("Reason").fill("all of them")
    page.get_by_role("form", name="Apply this plan").get_by_role("button").click()
    expect(page.get_by_role("link", name="Undo", exact=True)).to_be_visible()
    assert not Topic.objects.filter(rung=3).exists()
    page.get_by_role("link", name="Undo", exact=True).click()
    page.get_by_label("Reason").fill("too many")
    page.locator("section[aria-label=Confirm] button.primary").click()
    expect(page).to_have_url(RUN)
    assert set(Topic.objects.filter(rung=3).values_list("pk", flat=True)) == archived
