"""Functions for all resumable jobs: start, step, failure, cancel, stalled check, list and audit event.

A step is one transaction that stores its result together with the progress of the job. So a worker that is killed loses
only its current step, and two workers on one job store each step only once.
"""

import datetime as dt
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Q, QuerySet

from memory.access.impersonation import job_writer, owner_lost_access
from memory.access.principal import Principal
from memory.core.callbacks import Clock, Enqueue
from memory.core.errors import Conflict, NotVisible, failure_sentence
from memory.core.ids import uuid7_at
from memory.models import AuditEvent, Job
from memory.models.newest_first import newest_page
from memory.notifications.outbox import occurrence_note
from memory.predicates.binding import path_q
from memory.stores.pending import after_commit

AnyJob = TypeVar("AnyJob", bound=Job)
Status = Job.Status
# After this long without progress, the worker of a job is considered dead.
STALLED_AFTER = dt.timedelta(minutes=3)
MAX_STALLED = 20


class JobFailed(Exception):
    """Raised by a step: the job cannot continue. The message becomes its ``failure``."""


class JobCancelled(Exception):
    """Raised by a step: what the job worked on was erased, so there is nothing left to do. That is no failure. The
    message becomes its ``failure``."""


class StepTaken(Exception):
    """Raised by a step: another process has stored this step, or the job has ended."""


def job_new(model: type[AnyJob], /, *, principal: Principal, now: dt.datetime, **columns: Any) -> AnyJob:
    """Return a new job of the caller without saving it. No query."""
    owner = {
        "actor": principal.actor,
        "identity": principal.identity,
        "role": principal.role,
        "principal_scope": principal.scope,
    }
    return model(**{"id": uuid7_at(now), **owner, "created_at": now, "moved_at": now, **columns})


def job_start(
    job: Job, *, now: dt.datetime, enqueue: Enqueue | None, action: str = "started", actor: str | None = None
) -> None:
    """Save a job that starts or continues, write its audit event, and enqueue it after the commit. Two queries, plus
    those of ``enqueue``. Needs a transaction, before which the caller must call ``work_pending``. If the process dies
    after the commit, the check for stalled jobs then enqueues the job."""
    job.save(force_insert=job._state.adding)
    job_audit(job, action, now=now, actor=actor)
    job_enqueue(job, enqueue)


def job_enqueue(job: Job, enqueue: Enqueue | None) -> None:
    """Enqueue a job after the commit of the running transaction. Queries as in ``enqueue``; none if it is None."""
    if enqueue is not None:
        after_commit(partial(enqueue, job.pk))


def jobs_visible(model: type[AnyJob], principal: Principal) -> QuerySet[AnyJob]:
    """Return the jobs that the caller may see, without their large columns. No query."""
    rows = model._default_manager.filter(path_q(principal.scope, model.scope_column)).defer(*model.large_columns)
    return rows.filter(identity=principal.identity) if model.private and principal.role != "operator" else rows


def job_get(model: type[AnyJob], job_id: uuid.UUID, *, principal: Principal) -> AnyJob:
    """Return one job, without its large columns. One query. Raises ``NotVisible`` if the caller may not see it."""
    job = jobs_visible(model, principal).filter(pk=job_id).first()
    if job is None:
        raise NotVisible(f"{model.noun.capitalize()} {job_id} does not exist.")
    return job


def jobs_list(
    model: type[AnyJob], *, principal: Principal, cursor: str | None, limit: int, **filters: Any
) -> tuple[list[AnyJob], str | None]:
    """Return a page of the jobs that the caller may see, newest first, and the cursor of the next page. One query.

    Raises ``ValueRefused`` for an invalid cursor.
    """
    return newest_page(jobs_visible(model, principal).filter(**filters), cursor=cursor or None, limit=limit)


def jobs_count(model: type[Job], *, principal: Principal, at_most: int) -> int:
    """Return the number of jobs that the caller may see, but at most ``at_most`` + 1. One query."""
    return jobs_visible(model, principal)[: at_most + 1].count()


def job_cancel(model: type[AnyJob], job_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> AnyJob:
    """Stop a job, but keep what it has stored. Its worker notices this before it stores the next step.

    Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` if the job has ended.
    """
    principal.require(model.least_role)
    job_get(model, job_id, principal=principal)
    with transaction.atomic():
        job = job_lock(model, job_id)
        if job.status not in job.UNFINISHED:
            raise Conflict(f"This {job.noun} is {job.get_status_display().lower()}, so it cannot be cancelled.")
        job_finish(job, Status.CANCELLED, now=now, actor=principal.actor)
    return job


def job_lock(model: type[AnyJob], job_id: uuid.UUID) -> AnyJob:
    """Return a job, locked until the transaction ends. One query."""
    return model._default_manager.select_for_update().get(pk=job_id)


def job_finish(job: Job, status: str, *, now: dt.datetime, failure: str = "", actor: str | None = None) -> None:
    """Save the final status of a locked job. If the job was working, write an audit event. Two queries, plus those of
    ``occurrence_note`` if the job failed."""
    working = job.status == Status.WORKING
    job.status, job.finished_at, job.failure = status, now, failure
    job.prepare_finish()
    job.save()
    if working:
        job_audit(job, status, now=now, actor=actor)
    if status == Status.FAILED:
        text = f"An {job.noun} failed." if job.noun[0] in "aeiou" else f"A {job.noun} failed."
        scope = job.scope or job.principal_scope
        occurrence_note("job_failed", str(job.pk), text=text, page="/schedules/", scope=scope, now=now)


def job_end(model: type[AnyJob], job_id: uuid.UUID, status: str, *, now: dt.datetime, failure: str = "") -> None:
    """End a job unless it has ended. Three queries."""
    with transaction.atomic():
        job = job_lock(model, job_id)
        if job.status in job.UNFINISHED:
            job_finish(job, status, now=now, failure=failure)


def job_audit(job: Job, action: str, *, now: dt.datetime, actor: str | None = None) -> None:
    """Write the audit event ``<noun>_<action>`` of a job. One query."""
    AuditEvent.objects.create(
        at=now,
        actor=actor or job.actor,
        action=f"{job.noun}_{action}",
        scope=job.scope or job.principal_scope,
        **job.audit_members(),
    )


def job_at_work(model: type[AnyJob], job_id: uuid.UUID) -> AnyJob:
    """Return a job for its next step. One query. Raises ``StepTaken`` unless the job is working."""
    job = model._default_manager.get(pk=job_id)
    if job.status != Status.WORKING:
        raise StepTaken
    return job


def job_hold(job: AnyJob) -> AnyJob:
    """Read ``job`` again, locked until the transaction ends, to store its current step.

    One query. Raises ``StepTaken`` if the status or the position has changed since ``job`` was read.
    """
    held = job_lock(type(job), job.pk)
    if (held.status, held.position) != (job.status, job.position):
        raise StepTaken
    return held


def job_principal(job: Job, *, now: dt.datetime) -> Principal:
    """Return the principal in whose name a job writes. At most two queries. Raises ``JobFailed`` if the principal may
    no longer write."""
    writer = job_writer(job, now=now)
    if writer is None:
        raise JobFailed(owner_lost_access(job.actor))
    return writer


def _without_progress(job: Job, failure: str) -> bool:
    return job.failure == failure


def job_step(
    model: type[Job],
    job_id: uuid.UUID,
    step: Callable[[], bool],
    *,
    clock: Clock,
    gives_up: Callable[[Any, str], bool] = _without_progress,
    cause: Callable[[Exception], str] = failure_sentence,
) -> bool:
    """Do one step, and return the result of ``step``: whether more steps remain.

    An unexpected exception is stored as ``failure`` and raised again. The next call retries the step, until
    ``gives_up`` returns True. By default, the job is given up when the step fails twice in the same way without
    progress. ``cause`` describes the exception.
    """
    try:
        return step()
    except StepTaken:
        return model._default_manager.filter(pk=job_id, status=Status.WORKING).exists()
    except JobCancelled as problem:
        job_end(model, job_id, Status.CANCELLED, now=clock(), failure=str(problem))
        return False
    except JobFailed as problem:
        job_end(model, job_id, Status.FAILED, now=clock(), failure=str(problem))
        return False
    except Exception as problem:
        with transaction.atomic():
            job = job_lock(model, job_id)
            if job.status in job.AT_WORK:
                failure = f"Failed after {job.progress_text}: {cause(problem)}"
                if gives_up(job, failure):
                    job_finish(job, Status.FAILED, now=clock(), failure=failure)
                else:
                    job.failure, job.moved_at = failure, clock()
                    job.save()
        raise


def job_work(
    model: type[AnyJob],
    job_id: uuid.UUID,
    step: Callable[[], bool],
    *,
    clock: Clock,
    seconds: float,
    enqueue: Enqueue | None = None,
    cause: Callable[[Exception], str] = failure_sentence,
) -> AnyJob:
    """Do steps until the job is done or ``seconds`` have passed, enqueue the remainder, and return the job.

    Safe to call from several processes at once, and again after a process was killed. Raises an unexpected exception of
    ``step`` again.
    """
    until = time.monotonic() + seconds
    more = True
    while more and time.monotonic() < until:
        more = job_step(model, job_id, step, clock=clock, cause=cause)
    if more and enqueue is not None:
        enqueue(job_id)
    return model._default_manager.get(pk=job_id)


def jobs_take(model: type[Job], which: Q, *, most: int, now: dt.datetime) -> list[uuid.UUID]:
    """Mark at most ``most`` working jobs that meet ``which`` as enqueued, and return their ids. The jobs that have been
    without progress for the longest time come first.

    ``which`` must be false for a marked job, so that a job is not enqueued again while it waits in a long queue. Jobs
    that another transaction has locked are skipped. Two queries, one if no job is found.
    """
    with transaction.atomic():
        rows = model._default_manager.filter(which, status__in=model.AT_WORK).order_by("moved_at")
        found = list(rows.select_for_update(skip_locked=True, no_key=True).values_list("pk", flat=True)[:most])
        if found:
            model._default_manager.filter(pk__in=found).update(**{model.enqueued_column: now})
    return found


def jobs_stalled(
    model: type[Job], *, now: dt.datetime, due: Q | None = None, most: int = MAX_STALLED
) -> list[uuid.UUID]:
    """Return the ids of jobs whose worker died or that meet the condition ``due``, and mark these jobs as enqueued. A
    stalled job is returned at most once within ``STALLED_AFTER``. Two queries."""
    latest = now - STALLED_AFTER
    stalled = Q(moved_at__lt=latest) & Q(**{f"{model.enqueued_column}__lt": latest})
    return jobs_take(model, stalled if due is None else stalled | due, most=most, now=now)
