"""Starts, confirms and cancels imports. A batch and its progress are one transaction, so a killed worker loses only the
current batch. Importing the same file again continues where an earlier import stopped."""

import dataclasses
import datetime as dt
import os
import uuid
from pathlib import Path

from django.db import transaction

from memory.access.principal import Principal
from memory.core.callbacks import Enqueue
from memory.core.errors import Conflict, RequestRefused, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.models import ImportedTopic, ImportJob
from memory.models.locks import Lock, lock_wait
from memory.policy.rekey import half_lives_stray_check
from memory.resumable import Status, job_cancel, job_enqueue, job_finish, job_get, job_lock, job_new, job_start
from memory.stores.pending import work_pending
from memory.transfer.check import file_digest, file_reading, import_check, importer_of
from memory.transfer.lines import FORMAT
from memory.transfer.report import ImportReport, Progress

_RUNNING_ALREADY = "This file is being imported already."


def import_start(
    path: Path,
    *,
    principal: Principal,
    now: dt.datetime,
    enqueue: Enqueue | None = None,
    source: str = FORMAT,
    scope: str | None = None,
    reason: str = "",
    progress: Progress | None = None,
) -> ImportJob:
    """Check a file and start to import it, or continue a stopped import of the same file. If an import of the file is
    running, return that import. Without ``enqueue``, the caller does the work. Raises the errors of ``import_check``,
    ``ValueRefused`` with all problems of the file, and ``Conflict`` if a caller of another scope is importing the
    file."""
    principal.require("operator")
    where = _target_scope(source, scope, principal)
    path = path.absolute()
    job = _job_made(path, Status.WAITING, source=source, scope=where, principal=principal, now=now)
    with file_reading(path):
        job.digest, job.reason = file_digest(path), reason
    if (working := _running_import(job)) is not None:
        return _joined(working, path)
    if (stopped := _stopped_import(job)) is not None:
        report = ImportReport(**stopped.report)
    else:
        report = import_check(path, principal=principal, now=now, source=source, scope=scope, progress=progress)
    if report.problems:
        raise ValueRefused("\n".join(report.problems), code=ProblemCode.INVALID_FILE)
    _checked(job, report)
    work_pending()
    with transaction.atomic():
        lock_wait(Lock.BEGIN_IMPORT)
        # Another caller may have started an import of the file during the check.
        if (working := _running_import(job)) is not None:
            return _joined(working, path)
        _begin(job, now=now, enqueue=enqueue)
    return job


def import_offer(
    path: Path,
    *,
    principal: Principal,
    now: dt.datetime,
    enqueue: Enqueue | None,
    source: str = FORMAT,
    scope: str | None = None,
) -> ImportJob:
    """Let the worker check a file; the import starts with ``import_confirm``. One transaction. Raises ``NotAllowed``,
    ``NotVisible``, ``ValueRefused`` for an unknown source, ``RequestRefused`` if a scope is passed for an export."""
    principal.require("operator")
    job = _job_made(
        path.absolute(),
        Status.CHECKING,
        source=source,
        scope=_target_scope(source, scope, principal),
        principal=principal,
        now=now,
    )
    work_pending()
    with transaction.atomic():
        job.save(force_insert=True)
        job_enqueue(job, enqueue)
    return job


def import_confirm(job_id: uuid.UUID, *, principal: Principal, now: dt.datetime, enqueue: Enqueue) -> ImportJob:
    """Start the import of a checked file, in the name of ``principal``. One transaction. Raises ``NotAllowed``,
    ``NotVisible``, and ``Conflict`` if the import does not wait for a confirmation or is already running."""
    principal.require("operator")
    job_get(ImportJob, job_id, principal=principal)
    work_pending()
    with transaction.atomic():
        job = job_lock(ImportJob, job_id)
        if job.status != Status.WAITING:
            raise Conflict(f"This import is {job.get_status_display().lower()}; it is not waiting for confirmation.")
        lock_wait(Lock.BEGIN_IMPORT)
        if _running_import(job) is not None:
            raise Conflict(_RUNNING_ALREADY, code=ProblemCode.BUSY)
        job.actor, job.identity, job.role = principal.actor, principal.identity, principal.role
        _begin(job, now=now, enqueue=enqueue)
    return job


def import_cancel(job_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> ImportJob:
    """Cancel a running import, or discard a file that was only checked. What is already imported stays. Raises the
    errors of ``job_cancel``."""
    with transaction.atomic():
        job = job_cancel(ImportJob, job_id, principal=principal, now=now)
        half_lives_stray_check(now=now)
    return job


def import_checked(job_id: uuid.UUID, report: ImportReport, *, now: dt.datetime) -> None:
    """Store the report on an offered file. If the report has problems, the import fails. One transaction."""
    with transaction.atomic():
        job = job_lock(ImportJob, job_id)
        if job.status != Status.CHECKING:
            return
        _checked(job, report)
        job.moved_at, job.read = now, report.size
        if report.problems:
            job_finish(job, Status.FAILED, now=now, failure=report.problems[0])
        else:
            job.status = Status.WAITING
            job.save()


def _target_scope(source: str, scope: str | None, principal: Principal) -> str:
    """Return the target scope for a file of another system, or "" for an export, whose lines contain their scopes."""
    if importer_of(source) is None:
        if scope is not None and principal.scope_chosen(scope) != principal.scope:
            raise RequestRefused("An export of MemState names its scopes itself. Leave out the scope.", member="scope")
        return ""
    return principal.scope_chosen(scope)


def _job_made(path: Path, status: str, *, source: str, scope: str, principal: Principal, now: dt.datetime) -> ImportJob:
    size = path.stat().st_size if path.exists() else 0
    return job_new(
        ImportJob, principal=principal, now=now, file=str(path), source=source, scope=scope, status=status, size=size
    )


def _checked(job: ImportJob, report: ImportReport) -> None:
    job.report, job.digest, job.lines, job.size = dataclasses.asdict(report), report.digest, report.lines, report.size


def _running_import(job: ImportJob) -> ImportJob | None:
    """Return the running import of the same file, if any. Raises ``Conflict`` if a caller of another scope runs it."""
    same = ImportJob.objects.filter(digest=job.digest, source=job.source, scope=job.scope, status=Status.WORKING)
    found = same.first()
    if found is not None and found.principal_scope != job.principal_scope:
        raise Conflict(_RUNNING_ALREADY, code=ProblemCode.BUSY)
    return found


def _joined(working: ImportJob, path: Path) -> ImportJob:
    """Return the import ``working``. If its own file cannot be read, it continues with ``path``."""
    if not os.access(working.file, os.R_OK):
        ImportJob.objects.filter(pk=working.pk, status=Status.WORKING).update(file=str(path))
    return working


def _stopped_import(job: ImportJob) -> ImportJob | None:
    """Return the last failed or cancelled import of the same file by a caller of the same scope, unless it was
    continued already."""
    rows = ImportJob.objects.filter(
        status__in=[Status.FAILED, Status.CANCELLED],
        done__gt=0,
        continued_by=None,
        digest=job.digest,
        source=job.source,
        scope=job.scope,
        principal_scope=job.principal_scope,
    )
    return rows.order_by("-created_at").first()


def _begin(job: ImportJob, *, now: dt.datetime, enqueue: Enqueue | None) -> None:
    """Start a checked import. If an earlier import of the file stopped, continue at the place where it stopped. The
    caller's transaction must hold the lock ``BEGIN_IMPORT``."""
    earlier = _stopped_import(job)
    if earlier is not None:
        job.offset, job.done, job.counts = earlier.offset, earlier.done, earlier.counts
    job.status, job.moved_at = Status.WORKING, now
    job_start(job, now=now, enqueue=enqueue)
    if earlier is not None:
        ImportedTopic.objects.filter(job=earlier).update(job=job)
        ImportJob.objects.filter(pk=earlier.pk).update(continued_by=job.pk)
