"""Schedules, queue and worker for pages. Read only."""

import dataclasses
import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Case, Count, Min, Q, When
from django_q.models import Schedule, Task

from memory.core.cursors import cursor_make, cursor_parse
from memory.core.scopes import scope_within
from memory.forgetting.pause import paused_scopes
from memory.forgetting.run_list import runs_scheduled_last
from memory.forgetting.run_text import run_sentence
from memory.health import Finding, failures_open, worker_check
from memory.jobs.schedule_rows import (
    NEVER,
    last_line,
    minutes_at_most,
    schedule_not_found,
    schedule_scope,
    schedule_title,
)
from memory.jobs.tasks import TASKS, TaskKind
from memory.models import WakeUp
from memory.policy.cron_words import cron_words, minutes_words
from memory.policy.effective import policies_current
from memory.policy.schedules import FUNCTION
from memory.stores.queue import queued_here, schedules_here

# The number of listed entries of the queue. Counts include all entries.
LISTED = 20
FAILURES_LISTED = 10
FAILURES_WITHIN = dt.timedelta(days=7)


@dataclass(frozen=True, slots=True)
class ScheduleSummary:
    """One schedule. ``scope`` is the scope of the policy that it follows, or None if it follows none. ``mode`` is the
    mode of this policy. ``braked`` is true if forgetting is paused in the scope and runs therefore do nothing. Only the
    lists of schedules of policies set ``mode`` and ``braked``."""

    id: int
    title: str
    what: str
    often: str
    scope: str | None
    mode: str | None
    minutes: int | None
    paused: bool
    braked: bool
    overdue: bool
    next: dt.datetime | None
    last: dict[str, Any] | None
    most_minutes: int


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """Waiting and running jobs. ``in_hand`` is the number of jobs that run or wait for a retry. ``first`` lists the
    next jobs, and ``happened`` lists the events that wait for the reasoner. ``wake_ups`` is the number of these
    events."""

    worker: Finding
    waiting: int
    oldest: dt.datetime | None
    in_hand: int
    first: list[dict[str, Any]]
    wake_ups: int
    wake_up_oldest: dt.datetime | None
    happened: list[dict[str, Any]] = field(default_factory=list)


def schedules_upkeep(*, now: dt.datetime) -> list[ScheduleSummary]:
    """Return the schedules that follow no policy, each with its next time and its last run. Two queries."""
    rows = list(schedules_here().exclude(func=FUNCTION).order_by("id")[:LISTED])
    last = _tasks_last([row.task for row in rows if row.task])
    return [_summary(row, last.get(row.task), now) for row in rows]


def schedules_policies(*, now: dt.datetime, cursor: str | None, limit: int) -> tuple[list[ScheduleSummary], str | None]:
    """Return the schedules of policies by scope, and the cursor of the next page. Five queries.

    Raises ``ValueRefused`` for an invalid cursor.
    """
    rows = schedules_here().filter(func=FUNCTION).order_by("args")
    if cursor is not None:
        (after,) = cursor_parse(cursor, str)
        rows = rows.filter(args__gt=after)
    found = list(rows[: limit + 1])
    shown = found[:limit]
    return _with_runs(shown, now), cursor_make(shown[-1].args) if len(found) > limit else None


def schedules_soonest(*, now: dt.datetime, most: int) -> tuple[list[ScheduleSummary], bool]:
    """Return at most ``most`` schedules of policies, and whether there are more. The schedules are ordered by their
    next time. Paused schedules come last. Five queries."""
    rows = schedules_here().filter(func=FUNCTION)
    found = list(rows.order_by(Case(When(repeats=NEVER, then=1), default=0), "next_run", "args")[: most + 1])
    return _with_runs(found[:most], now), len(found) > most


def _with_runs(shown: list[Schedule], now: dt.datetime) -> list[ScheduleSummary]:
    policies, braked = policies_current(), paused_scopes(now)
    runs = runs_scheduled_last([schedule_scope(row) for row in shown])
    failed = {
        task: result
        for task, result in _tasks_last([row.task for row in shown if row.task]).items()
        if not result["good"]
    }
    summaries = []
    for row in shown:
        run = runs.get(schedule_scope(row))
        last = None if run is None else {"at": run.created_at, "good": True, "run": run, "sentence": run_sentence(run)}
        failure = failed.get(row.task)
        if failure is not None and (last is None or failure["at"] > last["at"]):
            last = failure
        scope = schedule_scope(row)
        summaries.append(
            dataclasses.replace(
                _summary(row, last, now),
                mode=policies.knobs(scope).mode,
                braked=any(scope_within(scope, path) for path in braked),
            )
        )
    return summaries


def queue_status(*, now: dt.datetime) -> QueueStatus:
    """Return the state of worker and queue. Five queries on small tables."""
    # The lock of a running job is in the future, as is the lock of a job that waits for a retry.
    due = queued_here().filter(lock__lte=now)
    first = list(due.order_by("lock", "id")[:LISTED])
    oldest = first[0].lock if first else None
    counted = queued_here().aggregate(
        waiting=Count("id", filter=Q(lock__lte=now)), in_hand=Count("id", filter=Q(lock__gt=now))
    )
    wake_ups = list(WakeUp.objects.select_related("scope").order_by("first_at", "id")[:LISTED])
    waiting = WakeUp.objects.aggregate(count=Count("id"), oldest=Min("first_at"))
    return QueueStatus(
        worker=worker_check(now),
        waiting=counted["waiting"],
        oldest=oldest,
        in_hand=counted["in_hand"],
        first=[_entry_as_dict(each.task, since=each.lock) for each in first],
        wake_ups=waiting["count"],
        wake_up_oldest=waiting["oldest"],
        happened=[
            {"scope": each.scope.path, "event": each.event, "since": each.first_at, "times": each.times}
            for each in wake_ups
        ],
    )


def failures_list(*, now: dt.datetime) -> list[dict[str, Any]]:
    """Return the latest jobs that failed within a week and were not retried, each with the last line of its error. One
    query."""
    failed = failures_open(since=now - FAILURES_WITHIN).order_by("-stopped")
    return [
        {
            **_entry_as_dict({"func": row.func, "args": row.args}, since=row.stopped),
            "id": row.id,
            "at": row.stopped,
            "attempts": row.attempt_count,
            "error": last_line(row.result),
            "may_retry": row.func in TASKS,
        }
        for row in failed[:FAILURES_LISTED]
    ]


def schedule_get(schedule_id: int, *, now: dt.datetime) -> ScheduleSummary:
    """Return one schedule without its last run. One query. Raises ``NotVisible``."""
    row = schedules_here().filter(pk=schedule_id).first()
    if row is None:
        raise schedule_not_found()
    return _summary(row, None, now)


def _summary(row: Schedule, last: dict[str, Any] | None, now: dt.datetime) -> ScheduleSummary:
    paused = row.repeats == NEVER
    return ScheduleSummary(
        id=row.pk,
        title=schedule_title(row),
        what=TASKS[row.func].what if row.func in TASKS else "",
        often=_often(row),
        scope=schedule_scope(row) or None,
        mode=None,
        minutes=row.minutes,
        paused=paused,
        braked=False,
        overdue=not paused and row.next_run is not None and row.next_run < now - dt.timedelta(minutes=1),
        next=None if paused or row.next_run is None else max(row.next_run, now),
        last=last,
        most_minutes=minutes_at_most(row),
    )


def _often(row: Schedule) -> str:
    if row.schedule_type == Schedule.CRON:
        return cron_words(row.cron)
    if row.schedule_type == Schedule.MINUTES:
        return minutes_words(row.minutes or 1)
    return str(row.get_schedule_type_display()).lower()


def _tasks_last(ids: list[str]) -> dict[str, dict[str, Any]]:
    rows = Task.objects.filter(pk__in=ids).only("started", "stopped", "success", "result")
    return {
        row.pk: {
            "at": row.stopped,
            "good": row.success,
            "took": _took((row.stopped - row.started).total_seconds()),
            "error": "" if row.success else last_line(row.result),
        }
        for row in rows
    }


def _took(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.0f} s"


def _entry_as_dict(task: dict[str, Any], *, since: dt.datetime) -> dict[str, Any]:
    func, args = str(task.get("func", "")), task.get("args") or ()
    kind = TASKS.get(func) or TaskKind(func, func or "A job that cannot be read", "")
    return {
        "title": kind.title,
        "what": kind.what,
        "since": since,
        "scope": args[0] if func == FUNCTION and args else None,
        "run_id": args[0] if func == "memory.jobs.tasks.run_continue" and args else None,
    }
