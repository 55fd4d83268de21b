"""Recalls by a person's steps: each task in at most two clicks from Home."""

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Enter
from tests.browser.watch import settled
from tests.cast import Caller, in_process, secret_of


class Clicks:
    """Clicks links by their names and counts the clicks."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.count = 0

    def __call__(self, name: str) -> None:
        self.page.get_by_role("link", name=name, exact=True).first.click()
        settled(self.page)
        self.count += 1


def test_what_a_query_returned_is_two_clicks_away(enter: Enter) -> None:
    found = Caller(in_process, secret_of("agent")).query("Where does Mara live?", top_k=3)["candidates"]
    page = enter("reader")
    page.goto("/")
    click = Clicks(page)
    click("Recalls")
    click("Where does Mara live?")
    titles = page.locator("section[aria-labelledby=then] td.title a").all_inner_texts()
    assert titles == [candidate["title"] for candidate in found]
    assert click.count == 2
    # A third shows then and now.
    click("Ask again now")
    again = page.locator("section[aria-labelledby=now] td.title a").all_inner_texts()
    assert again == titles


def test_all_that_an_agent_wrote_is_two_clicks_away(enter: Enter) -> None:
    agent = Caller(in_process, secret_of("agent"))
    agent.remember("The agent wrote this")
    agent.query("What did the agent write?")
    page = enter("reader")
    page.goto("/")
    click = Clicks(page)
    click("Recalls")
    click("key:agent")
    assert click.count == 2
    expect(page).to_have_url(re.compile(r"/callers/\?name=key%3Aagent"))
    expect(page.locator("section#wrote")).to_contain_text("The agent wrote this")
    expect(page.locator("section#asked")).to_contain_text("What did the agent write?")


def test_a_chosen_range_and_filter_stay_together(enter: Enter) -> None:
    page = enter("reader")
    page.goto("/recalls/")
    page.get_by_role("link", name="30 d", exact=True).click()
    page.get_by_label("Who").fill("assistant")
    page.get_by_role("button", name="Filter").click()
    expect(page).to_have_url(re.compile(r"actor=assistant.*range=30d"))
    expect(page.get_by_role("link", name="30 d", exact=True)).to_have_attribute("aria-current", "true")
