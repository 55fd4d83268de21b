"""What the browser complains about. A test that ends with a complaint has failed."""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import BrowserContext, ConsoleMessage, Error, Page, Request, Response
from playwright.sync_api import TimeoutError as TookTooLong

# Waiting is for functions, not for expressions: those would be evaluated in the page, which its policy forbids.

# Told to the watch by every page from its first moment on; shifts of the layout are kept for those who ask.
LISTENER = """
document.addEventListener('securitypolicyviolation', (event) => window.policyViolated(
  [event.violatedDirective, event.blockedURI, event.sample, event.sourceFile, event.lineNumber].join(' ')));
window.layoutShifts = [];
new PerformanceObserver((list) => { for (const entry of list.getEntries()) if (!entry.hadRecentInput)
  window.layoutShifts.push([entry.value, entry.sources.map((source) => source.node?.outerHTML?.slice(0, 160))]); })
  .observe({ type: 'layout-shift', buffered: true });
"""
# A request that a newer one replaces is given up; htmx calls that an error.
_GIVEN_UP = ("htmx:sendAbort", "htmx:afterRequest")
_STATUS = re.compile(r"(?:status of |Status Error Code )(\d{3})")


def executable() -> str | None:
    """Return the path of the browser; None stands for Playwright's own."""
    return os.environ.get("MEMSTATE_TEST_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")


class Watch:
    """Listens to everything that happens in a browser context."""

    def __init__(self, context: BrowserContext) -> None:
        self.troubles: list[str] = []
        self._expected: set[int] = set()
        context.expose_binding("policyViolated", lambda _source, said: self._hear(f"policy violated: {said}"))
        context.add_init_script(LISTENER)
        context.on("console", self._console)
        context.on("weberror", lambda error: self._hear(f"script failed: {error.error}"))
        context.on("response", self._response)
        context.on("requestfailed", self._failed)

    @contextlib.contextmanager
    def expects(self, *statuses: int) -> Iterator[None]:
        """Let answers with these statuses pass."""
        self._expected |= set(statuses)
        yield
        self._expected -= set(statuses)

    def _hear(self, trouble: str) -> None:
        self.troubles.append(trouble)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning") or message.text.startswith(_GIVEN_UP):
            return
        found = _STATUS.search(message.text)
        # That a status came back is reported by `_response`, and by the browser and htmx once more each.
        if found is None:
            self._hear(f"console {message.type}: {message.text} ({message.location.get('url')})")

    def _response(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self._expected:
            self._hear(f"{response.status} from {response.request.method} {response.url}")

    def _failed(self, request: Request) -> None:
        # What a newer request or a next page has made superfluous is given up on purpose.
        if request.failure != "net::ERR_ABORTED":
            self._hear(f"failed: {request.method} {request.url}: {request.failure}")

    def check(self) -> None:
        """Fail with everything that was heard."""
        troubles, self.troubles = self.troubles, []
        assert not troubles, "\n".join(["The browser complains:", *troubles])


_SETTLED = """(drawn) => !document.querySelector('.htmx-request, .htmx-settling, .htmx-swapping') &&
  [...document.querySelectorAll('[data-chart]')].every(
    (chart) => chart.querySelector(drawn) || !chart.checkVisibility()) &&
  document.getAnimations().every(
    (each) => each.playState !== 'running' || each.effect.getComputedTiming().iterations === Infinity)"""


def settled(page: Page, *, drawn: str = ".main-svg") -> None:
    """Wait until parts that load by themselves have loaded, charts are drawn and animations have ended, also if another
    page is on its way. With ``drawn="svg"`` the picture of a chart suffices."""
    for is_last in (False, False, True):
        page.wait_for_load_state("load")
        try:
            if page.evaluate("document.documentElement.classList.contains('script')"):
                page.wait_for_function(_SETTLED, arg=drawn)
        except Error as problem:
            if is_last or "context was destroyed" not in problem.message:
                raise
        else:
            return


def overflow(page: Page) -> list[str]:
    """Return what sticks out of the document to the right; nothing if it does not scroll sideways. Charts have a moment
    to follow a window that has become narrower."""
    with contextlib.suppress(TookTooLong):
        page.wait_for_function(
            "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth", timeout=2000
        )
    found: Any = page.evaluate(
        """() => {
          const width = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= width) return [];
          const out = [...document.querySelectorAll('body *')].filter((each) => {
            if (each.getBoundingClientRect().right <= width + 1) return false;
            for (let above = each.parentElement; above && above !== document.body; above = above.parentElement)
              if (getComputedStyle(above).overflowX !== 'visible') return false;
            return true;
          }).map((each) => each.outerHTML.slice(0, 120));
          return [`${document.documentElement.scrollWidth} > ${width}`, ...out.slice(0, 5)];
        }"""
    )
    return list(found)


def cut_off(page: Page) -> list[str]:
    """Return the last cells of rows that are not in sight without scrolling their table sideways."""
    found: Any = page.evaluate(
        """() => [...document.querySelectorAll('table tr > :last-child')].filter((cell) => {
          if (!cell.checkVisibility()) return false;
          for (let above = cell.parentElement; above !== document.body; above = above.parentElement)
            if (getComputedStyle(above).overflowX !== 'visible')
              return cell.getBoundingClientRect().right > above.getBoundingClientRect().right + 1;
          return false;
        }).map((cell) => cell.parentElement.outerHTML.slice(0, 160)).slice(0, 5)"""
    )
    return list(found)


def shifts(page: Page) -> tuple[float, list[Any]]:
    """Return by how much things have jumped since the page began to load, and what."""
    found: Any = page.evaluate("window.layoutShifts")
    return sum(value for value, _nodes in found), found
