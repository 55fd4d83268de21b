"""What is notified: one message when it begins, one when it is over."""

import datetime as dt
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from django_q.models import Task

from memory import health
from memory.access.principal import SYSTEM
from memory.jobs import watch
from memory.models import ForgetRun, ImportJob, NotificationDelivery, NotificationTarget
from memory.notifications.targets import EVENTS, target_add
from memory.resumable import job_finish
from memory.stores.models import WorkerHeartbeat
from tests.cast import Caller, worker_turn
from tests.forgetting.shop import policy_put, run, topics_make

pytestmark = pytest.mark.django_db


@pytest.fixture
def target(settings: Any) -> NotificationTarget:
    settings.MEMSTATE_NOTIFY_PRIVATE_ADDRESSES = True
    made, _secret = target_add(
        kind="webhook",
        name="pager",
        address="http://127.0.0.1:9/",
        events=list(EVENTS),
        regret_above=0.1,
        reason="for the test",
        principal=SYSTEM,
        now=timezone.now(),
    )
    return made


def events_written() -> list[tuple[str, str]]:
    rows = NotificationDelivery.objects.order_by("created_at", "id")
    return [(row.message["event"], row.message["phase"]) for row in rows]


def held(operator: Caller) -> str:
    policy_put(operator, mode="review", topic_count_soft_limit=0, prune_after_days=0)
    topics_make(operator, 3, days=400)
    run_id: str = run(operator, dry_run=False)["run_id"]
    return run_id


def test_a_held_run_is_reported_once_and_when_it_is_over(operator: Caller, target: NotificationTarget) -> None:
    run_id = held(operator)
    worker_turn()
    assert run(operator, dry_run=False)["run_id"] == run_id
    worker_turn()
    assert events_written() == [("run_held", "begun")]
    message = NotificationDelivery.objects.get().message
    assert (message["scope"], message["page"]) == ("/", f"/runs/{run_id}/")
    assert "topic 0" not in str(message)
    operator.post(f"/v1/runs/{run_id}/approve", {"reason": "fine"}).ok()
    worker_turn()
    worker_turn()
    assert events_written() == [("run_held", "begun"), ("run_held", "over")]


def test_the_message_is_written_in_the_transaction_of_the_run(operator: Caller, target: NotificationTarget) -> None:
    with transaction.atomic():
        held(operator)
        assert events_written() == [("run_held", "begun")]
        transaction.set_rollback(True)
    assert not ForgetRun.objects.exists()
    assert events_written() == []


def test_without_a_target_that_wants_it_nothing_is_written(operator: Caller, target: NotificationTarget) -> None:
    target.events = ["regret"]
    target.save()
    held(operator)
    target.events, target.enabled = ["run_held"], False
    target.save()
    worker_turn()
    assert events_written() == []


def task_done(success: bool, minute: int, func: str = "memory.jobs.tasks.tidy", *args: str) -> None:
    at = timezone.now() - dt.timedelta(minutes=60 - minute)
    Task.objects.create(
        id=f"{minute:032}",
        name=str(minute),
        func=func,
        args=args,
        started=at,
        stopped=at,
        success=success,
        result="secret",
    )


def test_a_job_that_fails_every_minute_is_reported_once(target: NotificationTarget) -> None:
    for minute in (1, 2):
        task_done(False, minute)
        worker_turn()
    assert events_written() == [("job_failed", "begun")]
    assert "secret" not in str(NotificationDelivery.objects.get().message)
    # Of another scope, so it does not end the first.
    task_done(True, 3, "memory.jobs.tasks.forget_scheduled", "/user/mara")
    worker_turn()
    assert len(events_written()) == 1
    task_done(True, 4)
    worker_turn()
    worker_turn()
    assert events_written() == [("job_failed", "begun"), ("job_failed", "over")]
    task_done(False, 5)
    worker_turn()
    assert events_written()[2:] == [("job_failed", "begun")]


def test_an_import_that_fails_is_reported_in_its_transaction(target: NotificationTarget) -> None:
    now = timezone.now()
    job = ImportJob.objects.create(
        id="00000000-0000-7000-8000-000000000001",
        scope="/shop",
        status="working",
        actor="a",
        identity="a",
        role="operator",
        principal_scope="/",
        created_at=now,
        moved_at=now,
    )
    with transaction.atomic():
        job_finish(job, "failed", now=now, failure="quotes a memory")
    worker_turn()
    assert events_written() == [("job_failed", "begun")]
    message = NotificationDelivery.objects.get().message
    assert (message["scope"], message["text"]) == ("/shop", "An import failed.")


def test_a_stopped_worker_is_reported_by_the_web_process_once(
    target: NotificationTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker_turn()
    assert watch.worker_absence_check(now=timezone.now()) is None
    WorkerHeartbeat.objects.update(seen_at=timezone.now() - dt.timedelta(minutes=10))
    for _minute in range(2):
        assert watch.worker_absence_check(now=timezone.now()) == ""
    assert events_written() == [("worker_stopped", "begun")]
    # No one else sends it, so the web process does.
    assert NotificationDelivery.objects.get().attempts == 1
    worker_turn()
    worker_turn()
    assert events_written() == [("worker_stopped", "begun"), ("worker_stopped", "over")]
    assert health.worker_check(timezone.now()).ok


def test_regret_is_reported_above_its_value_and_over_well_below(
    target: NotificationTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    for regretted in (1, 15, 20, 9, 8, 8):
        monkeypatch.setattr(watch, "regret_recent", lambda now, count=regretted: (100, count))
        watch.regret_check(now=timezone.now())
    assert events_written() == [("regret", "begun"), ("regret", "over")]
    monkeypatch.setattr(watch, "regret_recent", lambda now: (10, 10))
    watch.regret_check(now=timezone.now())
    assert len(events_written()) == 2
