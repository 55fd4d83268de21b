"""A browser, and a site with the demo behind it. Each test begins with the same store and ends without complaints.

``enter("operator")`` returns a page in which someone is signed in; ``enter(None)`` one of no one. What the browser
complains about fails the test (``watch.py``); ``enter.expects(409)`` says what is meant to be refused.
"""

import contextlib
import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.conf import settings as site_settings
from django.contrib.auth.models import User
from django.core.handlers.wsgi import WSGIHandler
from django.db import connections
from django.test.testcases import LiveServerThread
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.store import HASHERS, demo_make, tables_keep, tables_put_back
from tests.browser.watch import Watch, executable
from tests.console.people import client_of

WIDE = {"width": 1440, "height": 900}
NARROW = {"width": 390, "height": 800}
# Milliseconds.
PATIENCE = 10_000


expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    # Playwright keeps a loop in this thread, which Django takes for asynchronous code.
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        started = playwright.chromium.launch(
            executable_path=executable(),
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"],
        )
        yield started
        started.close()


@pytest.fixture(scope="package")
def demo(django_db_setup: None, django_db_blocker: Any) -> Iterator[dt.datetime]:
    """The demo in the store while the tests of this folder run, and the time at which it was loaded."""
    with django_db_blocker.unblock():
        tables_keep("kept_before")
        # Also when the demo could not be loaded: its rows are in the way of the tests after these.
        try:
            loaded_at = demo_make()
            tables_keep("kept_demo")
            yield loaded_at
        finally:
            tables_put_back("kept_before")
            connections.close_all()


@pytest.fixture(scope="package")
def site(demo: dt.datetime) -> Iterator[str]:
    """Where the site is, served by threads of this process; static files come as in production."""
    with site_served() as address:
        yield address


@contextlib.contextmanager
def site_served() -> Iterator[str]:
    thread = LiveServerThread("127.0.0.1", lambda _media: WSGIHandler())
    thread.daemon = True
    thread.start()
    assert thread.is_ready.wait(60)
    if thread.error:
        raise thread.error
    yield f"http://127.0.0.1:{thread.port}"
    thread.terminate()


@dataclass
class Enter:
    """Opens the door of the site; every call is a browser of its own."""

    browser: Browser
    address: str
    seat: dict[str, tuple[Watch, Page]]
    watches: list[Watch] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)

    def __call__(self, name: str | None, **options: Any) -> Page:
        """Return a page of a new context, with whoever has this name signed in."""
        watch, page = self._open(**options)
        self.contexts.append(page.context)
        self.watches.append(watch)
        if name is not None:
            self._sign_in(page, name)
        return page

    def again(self, name: str, *, script: str) -> Page:
        """Return the one page that the tests of a file share, wide and light as at first, with ``name`` signed in and
        ``script`` in it from its beginning. A browser of its own costs more than most pages do: this is for tests that
        only look, each at another page."""
        if "page" not in self.seat:
            self.seat["page"] = self._open()
            page = self.seat["page"][1]
            page.add_init_script(script)
            # As in a browser that has never been here: what loads late makes things jump.
            network = page.context.new_cdp_session(page)
            network.send("Network.enable")
            network.send("Network.setCacheDisabled", {"cacheDisabled": True})
        watch, page = self.seat["page"]
        self.watches.append(watch)
        page.context.clear_cookies()
        page.set_viewport_size(WIDE)
        page.emulate_media(color_scheme="light")
        self._sign_in(page, name)
        return page

    def _open(self, **options: Any) -> tuple[Watch, Page]:
        context = self.browser.new_context(base_url=self.address, **{"viewport": WIDE, **options})
        context.set_default_timeout(PATIENCE)
        return Watch(context), context.new_page()

    def _sign_in(self, page: Page, name: str) -> None:
        cookie = site_settings.SESSION_COOKIE_NAME
        session = client_of(User.objects.get(username=name)).cookies[cookie].value
        page.context.add_cookies([{"name": cookie, "value": session, "url": self.address}])

    def leave(self) -> None:
        """Close what is open, so that nothing is asked of the store any more, and check."""
        for context in self.contexts:
            context.close()
        for _watch, page in self.seat.values():
            page.goto("about:blank")
        self.check()

    @contextlib.contextmanager
    def expects(self, *statuses: int) -> Iterator[None]:
        """Let answers with these statuses pass, in every browser that is open."""
        with contextlib.ExitStack() as stack:
            for watch in self.watches:
                stack.enter_context(watch.expects(*statuses))
            yield

    def check(self) -> None:
        """Fail with what the browsers have complained about until now."""
        for watch in self.watches:
            watch.check()


@pytest.fixture(autouse=True)
def _quick_hashes(settings: Any) -> None:
    settings.PASSWORD_HASHERS = HASHERS


@pytest.fixture
def db(site: str, demo: dt.datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo as it was loaded, at the time at which it was loaded. Replaces the fixture of this name elsewhere, whose
    transaction no server sees."""
    tables_put_back("kept_demo")
    real, passed = timezone.now, timezone.now() - demo
    monkeypatch.setattr(timezone, "now", lambda: real() - passed)


@pytest.fixture(scope="package")
def seat(browser: Browser) -> dict[str, tuple[Watch, Page]]:
    """The page that ``enter.again`` returns, once it has been opened."""
    return {}


@pytest.fixture
def enter(browser: Browser, site: str, seat: dict[str, tuple[Watch, Page]], db: None) -> Iterator[Enter]:
    door = Enter(browser, site, seat)
    yield door
    door.leave()
