"""Recalls by a person's steps."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import Enter


def test_a_chosen_range_and_filter_stay_together(enter: Enter) -> None:
    page = enter("reader")
    page.goto("/recalls/")
    page.get_by_role("link", name="30 d", exact=True).click()
    page.get_by_label("Who").fill("assistant")
    page.get_by_role("button", name="Filter").click()
    expect(page).to_have_url(re.compile(r"actor=assistant.*range=30d"))
    expect(page.get_by_role("link", name="30 d", exact=True)).to_have_attribute("aria-current", "true")
