"""While the worker is stopped, web processes notify every store that was used, a limited number of them each minute."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.jobs import tasks, watch
from memory.jobs.stores import store_create, store_drop
from memory.models import NotificationDelivery
from memory.notifications.targets import target_add
from memory.stores.current import MAIN, store_use
from memory.stores.models import Store, WorkerHeartbeat
from tests.cast import worker_turn

pytestmark = pytest.mark.django_db

NAMES = ["a", "b", "c"]


@pytest.fixture
def stopped(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str | None]:
    """Used stores of a worker that has stopped, each with a target. Returns what a web process does each minute, which
    is for two stores at most."""
    settings.MEMSTATE_NOTIFY_PRIVATE_ADDRESSES = True
    monkeypatch.setattr(watch, "STORES_A_MINUTE", 2)
    worker_turn()
    now = timezone.now()
    for name in NAMES:
        store_create(name)
    for name in (MAIN, *NAMES):
        with store_use(name):
            target_add(
                kind="webhook",
                name="pager",
                address="http://127.0.0.1:9/",
                events=["worker_stopped"],
                regret_above=None,
                reason="for the test",
                principal=SYSTEM,
                now=now,
            )
    Store.objects.exclude(pk=MAIN).update(used_at=now)
    WorkerHeartbeat.objects.update(seen_at=now - dt.timedelta(minutes=10))
    return lambda after: watch.worker_absence_check(now=timezone.now(), after=after)


def _notified() -> list[tuple[str, str]]:
    found = []
    for name in (MAIN, *NAMES):
        with store_use(name):
            messages = NotificationDelivery.objects.order_by("created_at", "id").values_list("message", flat=True)
            found += [(name, message["phase"]) for message in messages]
    return found


def test_each_store_has_its_turn(stopped: Callable[[str], str | None]) -> None:
    after, turns = "", []
    for _minute in range(4):
        after = stopped(after) or ""
        turns.append((after, len(_notified())))
    # After the last store, the first ones are next; nothing is notified twice.
    assert turns == [("b", 3), ("", 4), ("b", 4), ("", 4)]
    assert _notified() == [(name, "begun") for name in (MAIN, *NAMES)]


def test_a_minute_costs_no_more_with_more_stores(stopped: Callable[[str], str | None]) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as asked:
            stopped("")
        return len(asked)

    statements()
    before = statements()
    for name in ("d", "e"):
        store_create(name)
    Store.objects.exclude(pk=MAIN).update(used_at=timezone.now())
    assert statements() == before


@pytest.mark.django_db(transaction=True)
def test_a_store_that_cannot_be_read_holds_up_no_other(stopped: Callable[[str], str | None]) -> None:
    try:
        with store_use("a"), connection.cursor() as cursor:
            cursor.execute("ALTER TABLE memory_notificationtarget RENAME TO renamed")
        assert stopped("") == "b"
        with store_use("b"):
            assert NotificationDelivery.objects.count() == 1
    finally:
        for name in NAMES:
            store_drop(name, actor="x")


def test_the_event_ends_in_each_store_when_the_worker_runs_again(stopped: Callable[[str], str | None]) -> None:
    assert stopped("") == "b"
    tasks.upkeep()
    later = timezone.now() + dt.timedelta(minutes=2)
    Store.objects.filter(pending_at__isnull=False).update(pending_at=later - dt.timedelta(minutes=5))
    waiting = set(Store.objects.filter(pending_at__isnull=False).values_list("pk", flat=True))
    assert waiting == {"a", "b"}
    for name in sorted(waiting):
        tasks.upkeep(store=name)  # type: ignore[call-arg]
    assert [found for found in _notified() if found[1] == "over"] == [("main", "over"), ("a", "over"), ("b", "over")]
