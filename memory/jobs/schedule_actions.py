"""Actions of operators on schedules and failed jobs. Each writes an audit event with actor and reason."""

import datetime as dt
from typing import Any

from django.db import transaction
from django_q.models import Failure, Schedule
from django_q.tasks import async_task

from memory.access.principal import Principal
from memory.core.errors import Conflict, NotVisible, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT
from memory.jobs.schedule_rows import (
    FOR_EVER,
    NEVER,
    last_line,
    minutes_at_most,
    schedule_args,
    schedule_not_found,
    schedule_scope,
    schedule_title,
)
from memory.jobs.tasks import TASKS
from memory.models import AuditEvent
from memory.policy.schedules import FUNCTION
from memory.stores.queue import queued_here, schedules_here, tasks_here

# The number of newest queue entries that are searched for the same job. It is enough to find the job of a double click.
LAST_QUEUED = 100


def schedule_run(schedule_id: int, *, principal: Principal, reason: str, now: dt.datetime) -> str:
    """Enqueue the job of a schedule now, in addition to its scheduled times, and return its title. Five queries.

    Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` if the job already waits in the queue, or if it would do
    nothing, because the mode of its policy is off.
    """
    with transaction.atomic():
        row = _schedule_lock(schedule_id, principal)
        if row.func == FUNCTION and row.repeats == NEVER:
            raise Conflict(f"The mode of the policy of {schedule_scope(row)} is off, so its run would do nothing.")
        if row.func not in TASKS:
            raise Conflict(f"The job {row.func} is not one of MemState's.", code=ProblemCode.NOT_FOUND)
        _queued_refuse(row.func, schedule_args(row), now)
        row.task = async_task(row.func, *schedule_args(row), group=row.name or str(row.pk))
        row.save(update_fields=["task"])
        _audit(row, "schedule_run", principal, reason, now, {}, {"task": row.task})
    return schedule_title(row)


def schedule_pause(schedule_id: int, *, principal: Principal, reason: str, now: dt.datetime) -> str:
    """Pause a schedule until an operator resumes it, and return its title. Three queries.

    Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` if the schedule is paused already or follows a policy.
    """
    return _paused_set(schedule_id, NEVER, "schedule_paused", principal=principal, reason=reason, now=now)


def schedule_resume(schedule_id: int, *, principal: Principal, reason: str, now: dt.datetime) -> str:
    """Resume a schedule from now on, and return its title. Three queries. Raises ``NotAllowed``, ``NotVisible``, and
    ``Conflict`` if the schedule is not paused or follows a policy."""
    return _paused_set(schedule_id, FOR_EVER, "schedule_resumed", principal=principal, reason=reason, now=now)


def schedule_change(schedule_id: int, *, minutes: int, principal: Principal, reason: str, now: dt.datetime) -> str:
    """Set the minutes between two runs of a schedule. Three queries.

    Raises ``ValueRefused`` for a number out of bounds, ``NotAllowed``, ``NotVisible``, and ``Conflict`` if the schedule
    follows a policy.
    """
    with transaction.atomic():
        row = _own_schedule_lock(schedule_id, principal)
        most = minutes_at_most(row)
        if not 1 <= minutes <= most:
            raise ValueRefused(f"The interval of this schedule must be 1 to {most:,} minutes.")
        before = row.minutes
        row.schedule_type, row.minutes = Schedule.MINUTES, minutes
        row.next_run = now + dt.timedelta(minutes=minutes)
        row.save(update_fields=["schedule_type", "minutes", "next_run"])
        _audit(row, "schedule_changed", principal, reason, now, {"minutes": before}, {"minutes": minutes})
    return schedule_title(row)


def job_retry(task_id: str, *, principal: Principal, reason: str, now: dt.datetime) -> str:
    """Enqueue a failed job again, and return its title. The failure is no longer listed. Four queries.

    Raises ``NotAllowed``; ``NotVisible`` for a job that did not fail or is not one of MemState's; ``Conflict`` for a
    job that already waits in the queue.
    """
    principal.require("operator")
    with transaction.atomic():
        # On a double click, the second request waits here for the first.
        row = tasks_here(Failure).select_for_update().filter(pk=task_id).first()
        if row is None or row.func not in TASKS:
            raise NotVisible("There is no such failed job; it may have succeeded meanwhile.")
        # Optional arguments are omitted, such as the ``turn`` of a study, because the failed attempt has used it up.
        args = tuple(row.args or ())[: TASKS[row.func].needs]
        _queued_refuse(row.func, args, now)
        task = async_task(row.func, *args, group=row.group)
        AuditEvent.objects.create(
            at=now,
            actor=principal.actor,
            action="job_retried",
            scope=ROOT,
            reason=reason,
            before={"task": row.id, "error": last_line(row.result)},
            after={"job": row.func, "task": task},
        )
    return TASKS[row.func].title


def _queued_refuse(func: str, args: tuple[Any, ...], now: dt.datetime) -> None:
    # Running jobs, whose locks are in the future, do not count: they may already have passed the work of the new job.
    for job in queued_here().filter(lock__lte=now).order_by("-id")[:LAST_QUEUED]:
        if job.task.get("func") == func and tuple(job.task.get("args") or ())[: len(args)] == args:
            raise Conflict(
                f"{TASKS[func].title} waits in the queue already, so it is not queued twice.",
                code=ProblemCode.ALREADY_EXISTS,
            )


def _paused_set(
    schedule_id: int, repeats: int, action: str, *, principal: Principal, reason: str, now: dt.datetime
) -> str:
    with transaction.atomic():
        row = _own_schedule_lock(schedule_id, principal)
        paused = repeats == NEVER
        if (row.repeats == NEVER) == paused:
            raise Conflict(f"{schedule_title(row)} {'rests' if paused else 'runs'} already.")
        row.repeats = repeats
        if not paused:
            row.next_run = max(row.next_run or now, now)
        row.save(update_fields=["repeats", "next_run"])
        _audit(row, action, principal, reason, now, {"paused": not paused}, {"paused": paused})
    return schedule_title(row)


def _schedule_lock(schedule_id: int, principal: Principal) -> Schedule:
    principal.require("operator")
    # The scheduler also locks the row before it reads and writes it, so neither change is lost.
    row = schedules_here().select_for_update().filter(pk=schedule_id).first()
    if row is None:
        raise schedule_not_found()
    return row


def _own_schedule_lock(schedule_id: int, principal: Principal) -> Schedule:
    row = _schedule_lock(schedule_id, principal)
    if row.func == FUNCTION:
        raise Conflict(
            f"The schedule of {schedule_scope(row)} follows its policy: mode says whether it runs, cron when. "
            "Change them there."
        )
    return row


def _audit(
    row: Schedule,
    action: str,
    principal: Principal,
    reason: str,
    now: dt.datetime,
    before: dict[str, Any],
    after: dict[str, Any],
) -> None:
    AuditEvent.objects.create(
        at=now,
        actor=principal.actor,
        action=action,
        scope=schedule_scope(row) or ROOT,
        reason=reason,
        before=before,
        after={"schedule": row.name, **after},
    )
