"""Recalls by a person's steps."""

import re

import pytest
from playwright.sync_api import expect

from memory.models import Topic
from tests.browser.clicks import Clicks
from tests.browser.conftest import Enter
from tests.browser.watch import settled
from tests.cast import Caller, in_process, secret_of


def test_a_chosen_range_and_filter_stay_together(enter: Enter) -> None:
    page = enter("reader")
    page.goto("/recalls/")
    page.get_by_role("link", name="30 d", exact=True).click()
    page.get_by_label("Who").fill("assistant")
    page.get_by_role("button", name="Filter").click()
    expect(page).to_have_url(re.compile(r"actor=assistant.*range=30d"))
    expect(page.get_by_role("link", name="30 d", exact=True)).to_have_attribute("aria-current", "true")


@pytest.mark.parametrize("script", [True, False])
def test_the_archive_is_searched_when_a_recall_is_opened(enter: Enter, script: bool) -> None:
    agent = Caller(in_process, secret_of("agent"))
    topic = Topic.objects.filter(rung=3, released_at=None, merged_into=None).order_by("pk").first()
    assert topic is not None
    agent.query(topic.title)
    page = enter("reader", java_script_enabled=script)
    page.goto("/recalls/")
    page.get_by_role("link", name=topic.title, exact=True).first.click()
    if not script:
        page.get_by_role("link", name="Search the archive for this recall").click()
    expect(page.locator(f"main a[href='/topics/{topic.pk}/']")).to_be_visible()


def test_what_was_returned_for_a_question_is_found_and_asked_again_in_three_clicks(enter: Enter) -> None:
    agent = Caller(in_process, secret_of("agent"))
    then = agent.found("penicillin", kinds=["identity"], top_k=2)
    page = enter("operator")
    page.goto("/")
    clicks = Clicks(page)
    clicks.click(page.get_by_role("link", name="Recalls").first)
    page.get_by_label("Question contains").fill("penicillin")
    page.get_by_label("Question contains").press("Enter")
    settled(page)
    clicks.click(page.get_by_role("link", name="penicillin", exact=True).first)
    rows = page.get_by_role("region", name="Memories returned then, best first").locator("tbody tr")
    expect(rows).to_have_count(len(then))
    clicks.click(page.get_by_role("link", name="Ask again now"))
    # The request is asked as it was, with its filter and its limit.
    now = page.get_by_role("region", name="Memories returned now, best first").locator("tbody tr")
    assert [row.get_by_role("link").first.get_attribute("href") for row in now.all()] == [
        f"/topics/{topic_id}/" for topic_id in then
    ]
    assert clicks.count == 3
