"""Counts the clicks of a task, as a person does it; typing and dragging are not counted."""

from playwright.sync_api import Locator, Page

from tests.browser.watch import settled


class Clicks:
    """The clicks on a page since the task began."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.count = 0

    def click(self, target: Locator) -> None:
        """Click on ``target`` and wait for the page."""
        target.click()
        self.count += 1
        settled(self.page)
