"""Starts, confirms and cancels imports. A file is checked as a whole, then imported in batches.

A batch and its progress are one transaction. So a killed worker loses only the current batch, and two workers on one
import do not repeat a batch. Importing the same file again continues where an earlier import stopped.
"""

import datetime as dt
import os
import uuid
from pathlib import Path

from django.db import transaction

from memory.access.principal import Principal
from memory.core.callbacks import Enqueue
from memory.core.errors import Conflict, RequestRefused, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.jobs.resumable import Status, job_cancel, job_finish, job_get, job_lock, job_new, job_start
from memory.models import ImportedTopic, ImportJob
from memory.models.locks import Lock, lock_wait
from memory.policy.rekey import half_lives_stray_check
from memory.transfer.check import import_check, source_of
from memory.transfer.digest import file_digest
from memory.transfer.lines import FORMAT
from memory.transfer.report import ImportReport, Progress

_AT_WORK = "This file is being imported already."


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
    """Check a file and start to import it, or continue a stopped or running import of the same file.

    Raises the errors of ``import_check``, ``ValueRefused`` with all problems of the file, and ``Conflict`` if a caller
    of another scope is importing the file; then nothing is changed. The caller does the work, or enqueues it.
    """
    principal.require("operator")
    where = _where(source, scope, principal)
    path = path.absolute()
    job = _made(path, Status.WAITING, source=source, scope=where, principal=principal, now=now)
    job.digest, job.reason = _digest(path), reason
    if (working := _at_work(job)) is not None:
        return _joined(working, path)
    if (stopped := _stopped(job)) is not None:
        report = ImportReport.of(stopped.report)
    else:
        report = import_check(path, principal=principal, now=now, source=source, scope=scope, progress=progress)
    if report.problems:
        raise ValueRefused("\n".join(report.problems), code=ProblemCode.IMPORT_REFUSED)
    _checked(job, report)
    with transaction.atomic():
        lock_wait(Lock.BEGIN_IMPORT)
        # Another caller may have started an import of the file during the check.
        if (working := _at_work(job)) is not None:
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
    """Let the worker check a file. The import starts with ``import_confirm``. One transaction.

    Raises ``NotAllowed``, ``NotVisible``, ``ValueRefused`` for an unknown source.
    """
    principal.require("operator")
    job = _made(
        path.absolute(),
        Status.CHECKING,
        source=source,
        scope=_where(source, scope, principal),
        principal=principal,
        now=now,
    )
    with transaction.atomic():
        job.save(force_insert=True)
        if enqueue is not None:
            enqueue(job.pk)
    return job


def import_confirm(job_id: uuid.UUID, *, principal: Principal, now: dt.datetime, enqueue: Enqueue) -> ImportJob:
    """Start the import of a checked file, in the name of ``principal``. One transaction.

    Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` if the import does not wait for a confirmation, or if the
    file is being imported already.
    """
    principal.require("operator")
    job_get(ImportJob, job_id, principal=principal)
    with transaction.atomic():
        job = job_lock(ImportJob, job_id)
        if job.status != Status.WAITING:
            raise Conflict(
                f"This import is {job.get_status_display().lower()}; it does not wait for a yes.",
                code=ProblemCode.WRONG_STATUS,
            )
        lock_wait(Lock.BEGIN_IMPORT)
        if _at_work(job) is not None:
            raise Conflict(_AT_WORK, code=ProblemCode.IMPORT_AT_WORK)
        job.actor, job.identity, job.role = principal.actor, principal.identity, principal.role
        _begin(job, now=now, enqueue=enqueue)
    return job


def import_cancel(job_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> ImportJob:
    """Cancel a running import, or discard a file that was only checked. What is already imported stays.

    Raises like ``job_cancel``.
    """
    with transaction.atomic():
        job = job_cancel(ImportJob, job_id, principal=principal, now=now)
        half_lives_stray_check(now=now)
    return job


def import_checked(job_id: uuid.UUID, report: ImportReport, *, now: dt.datetime) -> None:
    """Store the report of the check of an offered file. If there are problems, the import has failed. One
    transaction."""
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


def _where(source: str, scope: str | None, principal: Principal) -> str:
    """Return the target scope for a file of another system, or "" for an export, whose lines contain their scopes."""
    if source_of(source) is None:
        if scope is not None and principal.scope_chosen(scope) != principal.scope:
            raise RequestRefused(
                "An export of MemState names its scopes itself. Leave out the scope.",
                code=ProblemCode.CONTRADICTORY_REQUEST,
            )
        return ""
    return principal.scope_chosen(scope)


def _made(path: Path, status: str, *, source: str, scope: str, principal: Principal, now: dt.datetime) -> ImportJob:
    size = path.stat().st_size if path.exists() else 0
    return job_new(
        ImportJob, principal=principal, now=now, file=str(path), source=source, scope=scope, status=status, size=size
    )


def _checked(job: ImportJob, report: ImportReport) -> None:
    job.report, job.digest, job.lines, job.size = report.as_json(), report.digest, report.lines, report.size


def _digest(path: Path) -> str:
    try:
        return file_digest(path).sha256
    except OSError as problem:
        raise RequestRefused(
            f"{path.name} cannot be read: {problem.strerror}.", code=ProblemCode.FILE_UNREADABLE
        ) from problem


def _at_work(job: ImportJob) -> ImportJob | None:
    """Return the running import of the same file; at most one exists. Raises ``Conflict`` if its caller is bound to
    another scope."""
    same = ImportJob.objects.filter(digest=job.digest, source=job.source, scope=job.scope, status=Status.WORKING)
    found = same.first()
    if found is not None and found.principal_scope != job.principal_scope:
        raise Conflict(_AT_WORK, code=ProblemCode.IMPORT_AT_WORK)
    return found


def _joined(working: ImportJob, path: Path) -> ImportJob:
    """Return a running import. If its own file is missing, it continues with ``path``."""
    if not os.access(working.file, os.R_OK):
        ImportJob.objects.filter(pk=working.pk, status=Status.WORKING).update(file=str(path))
    return working


def _stopped(job: ImportJob) -> ImportJob | None:
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
    """Start a checked import at the place where an earlier one has stopped. The caller's transaction must hold the lock
    ``BEGIN_IMPORT``."""
    earlier = _stopped(job)
    if earlier is not None:
        job.offset, job.done, job.counts = earlier.offset, earlier.done, earlier.counts
    job.status, job.moved_at = Status.WORKING, now
    job_start(job, now=now, enqueue=enqueue)
    if earlier is not None:
        ImportedTopic.objects.filter(job=earlier).update(job=job)
        ImportJob.objects.filter(pk=earlier.pk).update(continued_by=job.pk)
