"""What a person waits for in Chromium: the first Home and the first Tuning with an empty cache, and each main page with
what the browser keeps, beside the sign-in page in the same run. From the request until parts and charts can be seen; of
Tuning also until plotly.js has drawn the chart, so that its lines can be dragged."""

import json
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from django.urls import reverse
from playwright.sync_api import Page, sync_playwright

from memory.console.navigation import PLACES
from memstate_site.folder import CHECKOUT
from tests.benchmarks.conftest import Client
from tests.benchmarks.report import p50, p95, table
from tests.browser.pictures import sign_in
from tests.browser.watch import executable, settled

TIMES = 7
SIZE = {"width": 1440, "height": 900}
BARE = "/sign-in/"
DRAGGED = "/salience/#drag"
# With the goal in seconds.
FIRST: dict[str, tuple[str, float | None]] = {
    "/": ("Home", 0.8),
    "/salience/": ("Tuning", 1.5),
    DRAGGED: ("Tuning, until lines can be dragged", None),
}


@pytest.mark.bench
def test_the_first_pages_and_the_main_pages_in_a_browser(installed: Callable[..., Client]) -> None:
    installation = installed(MEMSTATE_EMBEDDER="instant").installation
    program = [sys.executable, CHECKOUT / "manage.py", "demo"]
    subprocess.run(program, env=installation.environment, check=True, capture_output=True, timeout=1800)
    account = json.loads((installation.folder / "credentials.json").read_text())
    tabs = [(place.label, tab) for place in PLACES for tab in place.tabs]
    main = {reverse(f"console:{tab.name}"): f"{label}: {tab.label}" for label, tab in tabs}
    first: dict[str, list[float]] = {url: [] for url in (BARE, *FIRST)}
    kept: dict[str, list[float]] = {url: [] for url in (BARE, *main)}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=["--no-sandbox", "--disable-gpu"])
        # Each context has a cache of its own.
        place = {"base_url": f"http://127.0.0.1:{installation.port}", "viewport": SIZE}
        anybody, admin = (browser.new_context(**place).new_page() for _ in range(2))
        sign_in(admin, account["administrator"], account["admin_password"])
        state = admin.context.storage_state()
        # In turns, so that a neighbour on the machine slows all of them. The first time does not count.
        for turn in range(TIMES + 1):
            for url, taken in first.items():
                context = browser.new_context(**place, **({} if url == BARE else {"storage_state": state}))
                seconds = _seconds(context.new_page(), url)
                context.close()
                taken += [seconds] if turn else []
            for url, taken in kept.items():
                seconds = _seconds(anybody if url == BARE else admin, url)
                taken += [seconds] if turn else []
        browser.close()
    bare = p50(first.pop(BARE))
    table(
        f"First look with an empty cache, {TIMES} times (s); the sign-in page takes {bare:.2f}",
        ["page", "p50", "p95", "times the sign-in page", "goal"],
        [[*_row(FIRST[url][0], taken, bare), FIRST[url][1] or "–"] for url, taken in first.items()],
    )
    bare = p50(kept.pop(BARE))
    middle = p50([p50(taken) for taken in kept.values()])
    table(
        f"Main pages, {TIMES} times (s); the sign-in page takes {bare:.2f}, the median of the pages is {middle:.2f}",
        ["page", "p50", "p95", "times the sign-in page"],
        [_row(main[url], taken, bare) for url, taken in kept.items()],
    )


def _seconds(page: Page, url: str) -> float:
    began = time.perf_counter()
    page.goto(url)
    settled(page, drawn=".main-svg" if url == DRAGGED else "svg")
    return time.perf_counter() - began


def _row(name: str, taken: list[float], bare: float) -> list[object]:
    return [name, p50(taken), p95(taken), p50(taken) / bare]
