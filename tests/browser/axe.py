"""What is wrong with a page as it is looked at: what axe finds, and what sticks out or is cut off."""

import importlib.resources
from typing import Any

from playwright.sync_api import Page

from tests.browser.conftest import NARROW, WIDE
from tests.browser.watch import cut_off, overflow, settled


def axe_script() -> str:
    """Return a script to load with a page, which only defines a function that starts axe. Sending half a million
    characters to each page later would take longer than the check."""
    source = (importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text()
    return "window.axeBegin = () => {" + source + "};"


AXE_SCRIPT = axe_script()


def findings(page: Page) -> list[str]:
    """Return what axe finds, of any impact."""
    if not page.evaluate("() => 'axe' in window || 'axeBegin' in window"):
        page.evaluate(AXE_SCRIPT + "; 0")
    page.evaluate("() => void (window.axe || window.axeBegin())")
    found: Any = page.evaluate("axe.run(document, { resultTypes: ['violations'] }).then((result) => result.violations)")
    return [
        f"{each['impact']}: {each['id']}: {each['help']}: " + " ".join(node["html"][:160] for node in each["nodes"][:4])
        for each in found
    ]


VIEWS = [(size, scheme) for size in ("wide", "narrow") for scheme in ("light", "dark")]


def wrong_in(page: Page, views: list[tuple[str, Any]]) -> dict[tuple[str, str], list[str]]:
    """Return what is wrong with a page as it is looked at, by size of the window and colour scheme. The page is loaded
    once."""
    wrong = {}
    for size, scheme in views:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(WIDE if size == "wide" else NARROW)
        settled(page)
        wrong[size, scheme] = overflow(page) + (cut_off(page) if size == "wide" else []) + findings(page)
    return {view: found for view, found in wrong.items() if found}
