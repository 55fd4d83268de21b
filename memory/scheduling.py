"""Schedules, queue and worker as people see them, and what they may do with them: run now, pause, change, try again.

The schedules of policies are written by the policy room and follow its policies; those of upkeep belong to nobody else
and are an operator's to change. docs/jobs.md says what each job does.
"""

import ast
import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import Count, Min, Q
from django_q.models import Failure, OrmQ, Schedule, Task
from django_q.tasks import async_task

from memory.access.principal import Principal
from memory.domain.cursors import cursor_make, cursor_parse
from memory.domain.errors import Conflict, NotVisible, ValueRefused
from memory.domain.scopes import ROOT
from memory.forgetting.run_lookup import runs_scheduled_last
from memory.forgetting.run_words import run_sentence
from memory.health import Finding, worker_check
from memory.models import AuditEvent, WakeUp
from memory.policy.cron import cron_next
from memory.policy.cron_words import cron_words, minutes_words
from memory.policy.schedules import FUNCTION

NEXT_TIMES = 3
# What a page lists of the queue; the numbers beside it are of all.
LISTED = 20
# A second click comes soon after the first, so the job it asks for again is among the last ones queued.
LAST_QUEUED = 100
FAILURES_LISTED = 10
FAILURES_WITHIN = dt.timedelta(days=7)
MOST_MINUTES = 24 * 60
# As health sees it, the worker has gone missing if upkeep comes less often.
MOST_MINUTES_UPKEEP = 2
UPKEEP = "memory.jobs.upkeep"
# How many times a schedule still fires.
_FOR_EVER, _NEVER = -1, 0

_JOBS = {
    UPKEEP: ("Upkeep", "Counts retrievals into salience, embeds what waits, and answers what happened with runs."),
    "memory.jobs.shadow": ("Shadow search", "Asks a sample of questions again, to find what is missed in the archive."),
    "memory.jobs.tidy": ("Tidying", "Removes receipts of requests that are older than a week."),
    FUNCTION: ("Scheduled run", "Forgets what is due."),
    "memory.jobs.run_continue": ("Work on a run", "Goes on with a run that takes longer than a request."),
}


@dataclass(frozen=True, slots=True)
class ScheduleTold:
    """One schedule in words. ``scope`` is that of the policy it follows, None for upkeep and the like."""

    id: int
    title: str
    what: str
    often: str
    scope: str | None
    minutes: int | None
    paused: bool
    overdue: bool
    times: list[dt.datetime]
    last: dict[str, Any] | None
    most_minutes: int


@dataclass(frozen=True, slots=True)
class QueueTold:
    """What waits and what is in hand. ``first`` are the jobs that come next, ``happened`` is for the reasoner."""

    worker: Finding
    waiting: int
    oldest: dt.datetime | None
    in_hand: int
    first: list[dict[str, Any]]
    wake_ups: int
    wake_up_oldest: dt.datetime | None
    happened: list[dict[str, Any]] = field(default_factory=list)


def schedules_upkeep(*, now: dt.datetime) -> list[ScheduleTold]:
    """Return the schedules that follow no policy, each with its next times and its last run. Two queries."""
    rows = list(Schedule.objects.exclude(func=FUNCTION).order_by("id")[:LISTED])
    last = _tasks_last([row.task for row in rows if row.task])
    return [_told(row, last.get(row.task), now) for row in rows]


def schedules_policies(
    *, now: dt.datetime, cursor: str | None, limit: int
) -> tuple[list[ScheduleTold], str | None]:  # fmt: skip
    """Return the schedules of policies by scope, and the cursor of the next page. Three queries, however many.

    Raises ``ValueRefused`` for a foreign cursor.
    """
    rows = Schedule.objects.filter(func=FUNCTION).order_by("args")
    if cursor is not None:
        (after,) = cursor_parse(cursor, str)
        rows = rows.filter(args__gt=after)
    found = list(rows[: limit + 1])
    shown = found[:limit]
    runs = runs_scheduled_last([_scope(row) for row in shown])
    failed = {task: said for task, said in _tasks_last([row.task for row in shown if row.task]).items()
              if not said["good"]}  # fmt: skip
    told = []
    for row in shown:
        run = runs.get(_scope(row))
        last = None if run is None else {"at": run.created_at, "good": True, "run": run, "sentence": run_sentence(run)}
        failure = failed.get(row.task)
        if failure is not None and (last is None or failure["at"] > last["at"]):
            last = failure
        told.append(_told(row, last, now))
    return told, cursor_make(shown[-1].args) if len(found) > limit else None


def queue_told(*, now: dt.datetime) -> QueueTold:
    """Return the state of worker and queue. Five queries on small tables."""
    # A job in hand has its lock in the future, and so has one that waits for another try.
    due = OrmQ.objects.filter(lock__lte=now)
    first = list(due.order_by("lock", "id")[:LISTED])
    oldest = first[0].lock if first else None
    counted = OrmQ.objects.aggregate(
        waiting=Count("id", filter=Q(lock__lte=now)), in_hand=Count("id", filter=Q(lock__gt=now))
    )
    wake_ups = list(WakeUp.objects.select_related("scope").order_by("first_at", "id")[:LISTED])
    waiting = WakeUp.objects.aggregate(count=Count("id"), oldest=Min("first_at"))
    return QueueTold(
        worker=worker_check(now), waiting=counted["waiting"], oldest=oldest, in_hand=counted["in_hand"],
        first=[_job_told(each.task, since=each.lock) for each in first],
        wake_ups=waiting["count"], wake_up_oldest=waiting["oldest"],
        happened=[
            {"scope": each.scope.path, "event": each.event, "since": each.first_at, "times": each.times}
            for each in wake_ups
        ],
    )  # fmt: skip


def failures_told(*, now: dt.datetime) -> list[dict[str, Any]]:
    """Return the last jobs that failed within a week, each with the last line of its error. One query."""
    rows = Failure.objects.filter(stopped__gte=now - FAILURES_WITHIN).order_by("-stopped")[:FAILURES_LISTED]
    return [
        {
            **_job_told({"func": row.func, "args": row.args}, since=row.stopped),
            "id": row.id, "at": row.stopped, "attempts": row.attempt_count, "error": _last_line(row.result),
            "may_retry": row.func in _JOBS,
        }
        for row in rows
    ]  # fmt: skip


def schedule_get(schedule_id: int, *, now: dt.datetime) -> ScheduleTold:
    """Return one schedule without its last run. One query. Raises ``NotVisible``."""
    row = Schedule.objects.filter(pk=schedule_id).first()
    if row is None:
        raise _gone()
    return _told(row, None, now)


def schedule_run(schedule_id: int, *, principal: Principal, reason: str, now: dt.datetime) -> str:
    """Queue the job of a schedule now, beside its times, and return what it is called. Five queries.

    Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` for a job that waits in the queue already, and for the run
    of a policy whose mode is off: it would do nothing.
    """
    with transaction.atomic():
        row = _taken(schedule_id, principal)
        if row.func == FUNCTION and row.repeats == _NEVER:
            raise Conflict(f"The mode of the policy of {_scope(row)} is off, so its run would do nothing.")
        if row.func not in _JOBS:
            raise Conflict(f"The job {row.func} is not one of MemState's.")
        _waiting_refuse(row.func, _args(row), now)
        row.task = async_task(row.func, *_args(row), group=row.name or str(row.pk))
        row.save(update_fields=["task"])
        _audit(row, "schedule_run", principal, reason, now, {}, {"task": row.task})
    return _title(row)


def schedule_pause(schedule_id: int, *, principal: Principal, reason: str, now: dt.datetime) -> str:
    """Let a schedule rest until it is resumed, through restarts too. Three queries.

    Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` if it rests already or follows a policy.
    """
    return _repeats_set(schedule_id, _NEVER, "schedule_paused", principal=principal, reason=reason, now=now)


def schedule_resume(schedule_id: int, *, principal: Principal, reason: str, now: dt.datetime) -> str:
    """Let a schedule go on, with its next time from now. Three queries. Raises as ``schedule_pause`` does."""
    return _repeats_set(schedule_id, _FOR_EVER, "schedule_resumed", principal=principal, reason=reason, now=now)


def schedule_change(
    schedule_id: int, *, minutes: int, principal: Principal, reason: str, now: dt.datetime
) -> str:  # fmt: skip
    """Set how many minutes lie between two times of a schedule. Three queries.

    Raises ``ValueRefused`` out of bounds, ``NotAllowed``, ``NotVisible``, and ``Conflict`` if it follows a policy.
    """
    with transaction.atomic():
        row = _own(schedule_id, principal)
        most = _most_minutes(row)
        if not 1 <= minutes <= most:
            raise ValueRefused(f"Between two times of this schedule lie 1 to {most:,} minutes.")
        before = row.minutes
        row.schedule_type, row.minutes = Schedule.MINUTES, minutes
        row.next_run = now + dt.timedelta(minutes=minutes)
        row.save(update_fields=["schedule_type", "minutes", "next_run"])
        _audit(row, "schedule_changed", principal, reason, now, {"minutes": before}, {"minutes": minutes})
    return _title(row)


def job_retry(task_id: str, *, principal: Principal, reason: str, now: dt.datetime) -> str:
    """Queue a job again that failed, and return what it is called. The failure stays on record. Four queries.

    Raises ``NotAllowed``, ``NotVisible`` for a job that did not fail or is not one of MemState's, and ``Conflict`` for
    one that waits in the queue already.
    """
    principal.require("operator")
    with transaction.atomic():
        # Of two clicks, the second waits for the first.
        row = Failure.objects.select_for_update().filter(pk=task_id).first()
        if row is None or row.func not in _JOBS:
            raise NotVisible("There is no such failed job; it may have gone through by now.")
        _waiting_refuse(row.func, tuple(row.args or ()), now)
        task = async_task(row.func, *(row.args or ()), group=row.group)
        AuditEvent.objects.create(
            at=now, actor=principal.actor, action="job_retried", scope=ROOT, reason=reason,
            before={"task": row.id, "error": _last_line(row.result)}, after={"job": row.func, "task": task},
        )  # fmt: skip
    return _JOBS[row.func][0]


def _waiting_refuse(func: str, args: tuple[Any, ...], now: dt.datetime) -> None:
    # What is in hand has its lock in the future: it may have passed by what the second one is wanted for.
    for job in OrmQ.objects.filter(lock__lte=now).order_by("-id")[:LAST_QUEUED]:
        if job.task.get("func") == func and tuple(job.task.get("args") or ()) == args:
            raise Conflict(f"{_JOBS[func][0]} waits in the queue already, so it is not queued twice.")


def _repeats_set(
    schedule_id: int, repeats: int, action: str, *, principal: Principal, reason: str, now: dt.datetime
) -> str:
    with transaction.atomic():
        row = _own(schedule_id, principal)
        paused = repeats == _NEVER
        if (row.repeats == _NEVER) == paused:
            raise Conflict(f"{_title(row)} {'rests' if paused else 'runs'} already.")
        row.repeats = repeats
        if not paused:
            row.next_run = max(row.next_run or now, now)
        row.save(update_fields=["repeats", "next_run"])
        _audit(row, action, principal, reason, now, {"paused": not paused}, {"paused": paused})
    return _title(row)


def _taken(schedule_id: int, principal: Principal) -> Schedule:
    principal.require("operator")
    # The scheduler writes the whole row back when it fires; it waits for this lock, and reads the row after it.
    row = Schedule.objects.select_for_update().filter(pk=schedule_id).first()
    if row is None:
        raise _gone()
    return row


def _own(schedule_id: int, principal: Principal) -> Schedule:
    row = _taken(schedule_id, principal)
    if row.func == FUNCTION:
        raise Conflict(
            f"The schedule of {_scope(row)} follows its policy: mode says whether it runs, cron when. "
            "Change them there."
        )
    return row


def _gone() -> NotVisible:
    return NotVisible("There is no such schedule; it may have gone with its policy.")


def _audit(
    row: Schedule, action: str, principal: Principal, reason: str, now: dt.datetime, before: dict[str, Any],
    after: dict[str, Any],
) -> None:  # fmt: skip
    AuditEvent.objects.create(
        at=now, actor=principal.actor, action=action, scope=_scope(row) or ROOT, reason=reason, before=before,
        after={"schedule": row.name, **after},
    )  # fmt: skip


def _told(row: Schedule, last: dict[str, Any] | None, now: dt.datetime) -> ScheduleTold:
    paused = row.repeats == _NEVER
    return ScheduleTold(
        id=row.pk, title=_title(row), what=_JOBS.get(row.func, ("", ""))[1], often=_often(row),
        scope=_scope(row) or None, minutes=row.minutes, paused=paused,
        overdue=not paused and row.next_run is not None and row.next_run < now - dt.timedelta(minutes=1),
        times=[] if paused else _times(row, now), last=last, most_minutes=_most_minutes(row),
    )  # fmt: skip


def _title(row: Schedule) -> str:
    return _JOBS[row.func][0] if row.func in _JOBS else str(row.name or row.func)


def _often(row: Schedule) -> str:
    if row.schedule_type == Schedule.CRON:
        return cron_words(row.cron)
    if row.schedule_type == Schedule.MINUTES:
        return minutes_words(row.minutes or 1)
    return str(row.get_schedule_type_display()).lower()


def _times(row: Schedule, now: dt.datetime) -> list[dt.datetime]:
    if row.next_run is None:
        return []
    times = [max(row.next_run, now)]
    if row.schedule_type == Schedule.CRON:
        while len(times) < NEXT_TIMES:
            times.append(cron_next(row.cron, now=times[-1]))
    elif row.schedule_type == Schedule.MINUTES:
        every = dt.timedelta(minutes=row.minutes or 1)
        times += [times[0] + place * every for place in range(1, NEXT_TIMES)]
    return times


def _most_minutes(row: Schedule) -> int:
    return MOST_MINUTES_UPKEEP if row.func == UPKEEP else MOST_MINUTES


def _args(row: Schedule) -> tuple[Any, ...]:
    # As the scheduler reads them: a Python literal.
    read = ast.literal_eval(row.args) if row.args else ()
    return read if isinstance(read, tuple) else (read,)


def _scope(row: Schedule) -> str:
    return str(_args(row)[0]) if row.func == FUNCTION else ""


def _tasks_last(ids: list[str]) -> dict[str, dict[str, Any]]:
    rows = Task.objects.filter(pk__in=ids).only("started", "stopped", "success", "result")
    return {
        row.pk: {
            "at": row.stopped, "good": row.success, "took": _took((row.stopped - row.started).total_seconds()),
            "error": "" if row.success else _last_line(row.result),
        }
        for row in rows
    }  # fmt: skip


def _took(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.0f} s"


def _job_told(task: dict[str, Any], *, since: dt.datetime) -> dict[str, Any]:
    func, args = str(task.get("func", "")), task.get("args") or ()
    title, what = _JOBS.get(func, (func or "A job that cannot be read", ""))
    return {
        "title": title, "what": what, "since": since,
        "scope": args[0] if func == FUNCTION and args else None,
        "run_id": args[0] if func == "memory.jobs.run_continue" and args else None,
    }  # fmt: skip


def _last_line(result: object) -> str:
    # The queue keeps the words of an exception, a colon, and its traceback.
    lines = [line.strip() for line in str(result or "").strip().splitlines() if line.strip()]
    return lines[-1][:500] if lines else "It left no word."
