"""The first minute of an installation: an empty store, and a worker that has not reported yet."""

import time
from typing import Any

import pytest
from playwright.sync_api import expect

from memory import health
from memory.jobs import tasks
from memory.stores.models import WorkerHeartbeat
from tests.browser.conftest import Enter
from tests.browser.store import tables_put_back
from tests.browser.watch import settled
from tests.console.people import account_make


@pytest.mark.parametrize(("seconds", "alarms"), [(5, 0), (3600, 1)])
def test_a_worker_that_has_not_reported_yet_is_no_alarm_in_the_first_minute(
    enter: Enter, settings: Any, monkeypatch: pytest.MonkeyPatch, seconds: float, alarms: int
) -> None:
    tables_put_back("kept_before")
    tasks.schedules_ensure()
    WorkerHeartbeat.objects.all().delete()
    account_make("operator", name="operator")
    # This process serves, and has done so for as long.
    settings.MEMSTATE_PROCESS = "web"
    monkeypatch.setattr(health, "_LOADED", time.monotonic() - seconds)
    page = enter("operator")
    page.goto("/")
    settled(page)
    expect(page.get_by_role("heading", name="First steps")).to_be_visible()
    expect(page.locator("#health-well")).to_be_attached()
    expect(page.locator(".health-dot.is-bad")).to_have_count(alarms)
    if not alarms:
        expect(page.locator(":is(.badge, .notice).bad, .notice.error, .notice.warning")).to_have_count(0)
