"""Import: a file is checked whole, and then brought batch by batch, each in one transaction with the note that it is.

So a killed worker loses the batch that it was at and repeats none, and two workers on one import do it once. The same
file started again goes on where an earlier import of it has stopped.
"""

import datetime as dt
import os
import uuid
from pathlib import Path

from django.db import transaction
from django.db.models import Q, QuerySet

from memory.access.principal import Principal
from memory.core.callbacks import Enqueue
from memory.core.errors import Conflict, NotVisible, RequestRefused, ValueRefused
from memory.core.ids import uuid7_at
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT
from memory.models import AuditEvent, ImportedTopic, ImportJob
from memory.models.locks import Lock, lock_wait
from memory.models.newest_first import newest_page
from memory.models.stalled import stalled_take
from memory.models.transfer import OPEN, UNFINISHED
from memory.policy.rekey import half_lives_stray_check
from memory.transfer.check import import_check, source_of
from memory.transfer.digest import file_digest
from memory.transfer.lines import FORMAT
from memory.transfer.report import ImportReport, Progress

# A job that has not moved for so long has lost its worker.
STALLED_AFTER = dt.timedelta(minutes=3)
MOST_STALLED = 20

Status = ImportJob.Status
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
    """Check a file and begin to bring it, or go on with an import of it that has stopped or is at work.

    Raises what ``import_check`` raises, ``ValueRefused`` with all the problems it has found, and ``Conflict`` if a
    caller of another scope brings this file; then nothing is changed. The caller does the work, or enqueues it.
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
        _turn_take()
        # The check has taken its time, in which somebody else may have begun.
        if (working := _at_work(job)) is not None:
            return _joined(working, path)
        job.save(force_insert=True)
        _begin(job, now=now)
        if enqueue is not None:
            enqueue(job.pk)
    return job


def import_offer(
    path: Path,
    *,
    principal: Principal,
    now: dt.datetime,
    enqueue: Enqueue,
    source: str = FORMAT,
    scope: str | None = None,
) -> ImportJob:
    """Have the worker check a file; nothing is brought before somebody says yes (``import_confirm``). One transaction.

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
        enqueue(job.pk)
    return job


def import_confirm(job_id: uuid.UUID, *, principal: Principal, now: dt.datetime, enqueue: Enqueue) -> ImportJob:
    """Begin to bring a file that was checked, from now on in the name of whoever says so. One transaction.

    Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` if it does not wait for that, or is being imported already.
    """
    principal.require("operator")
    import_get(job_id, principal=principal)
    with transaction.atomic():
        job = ImportJob.objects.select_for_update().get(pk=job_id)
        if job.status != Status.WAITING:
            raise Conflict(
                f"This import is {job.get_status_display().lower()}; it does not wait for a yes.",
                code=ProblemCode.WRONG_STATUS,
            )
        _turn_take()
        if _at_work(job) is not None:
            raise Conflict(_AT_WORK, code=ProblemCode.IMPORT_AT_WORK)
        job.actor, job.identity, job.role = principal.actor, principal.identity, principal.role
        _begin(job, now=now)
        enqueue(job_id)
    return job


def import_cancel(job_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> ImportJob:
    """Stop an import, or put a checked file aside; what it has brought stays. Raises ``NotAllowed``, ``NotVisible``,
    ``Conflict`` if it is at its end."""
    principal.require("operator")
    import_get(job_id, principal=principal)
    with transaction.atomic():
        job = ImportJob.objects.select_for_update().get(pk=job_id)
        if job.status not in UNFINISHED:
            raise Conflict(
                f"This import is {job.get_status_display().lower()}, so it cannot be cancelled.",
                code=ProblemCode.WRONG_STATUS,
            )
        return import_finish(job_id, Status.CANCELLED, now=now, actor=principal.actor)


def import_get(job_id: uuid.UUID, *, principal: Principal) -> ImportJob:
    """Return one import. One query. Raises ``NotVisible`` if it writes outside the caller's scope."""
    job = ImportJob.objects.filter(pk=job_id).first()
    if job is None or not principal.sees(job.principal_scope):
        raise NotVisible(f"There is no import {job_id}.", code=ProblemCode.IMPORT_NOT_FOUND)
    return job


def imports_list(*, principal: Principal, cursor: str | None, limit: int) -> tuple[list[ImportJob], str | None]:
    """Return imports, newest first, and the cursor of the next page. One query. Raises ``ValueRefused`` for a foreign
    cursor."""
    return newest_page(_visible(principal), cursor=cursor or None, limit=limit)


def imports_count(*, principal: Principal, at_most: int) -> int:
    """Return how many imports there are; counting stops one after ``at_most``. One query."""
    return _visible(principal)[: at_most + 1].count()


def imports_stalled(*, now: dt.datetime) -> list[uuid.UUID]:
    """Return the imports whose worker was lost, noted as given to the worker: however long the queue is, each is given
    once in ``STALLED_AFTER``. Two queries."""
    jobs = ImportJob.objects.filter(OPEN, moved_at__lt=now - STALLED_AFTER)
    return stalled_take(jobs, most=MOST_STALLED, moved_at=now)


def import_checked(job_id: uuid.UUID, report: ImportReport, *, now: dt.datetime) -> ImportJob:
    """Note what the check of an offered file has found. A file with problems has failed. One transaction."""
    with transaction.atomic():
        job = ImportJob.objects.select_for_update().get(pk=job_id)
        if job.status == Status.CHECKING:
            _checked(job, report)
            job.status, job.moved_at, job.read = Status.WAITING, now, report.size
            job.save()
            if report.problems:
                return import_finish(job_id, Status.FAILED, now=now, failure=report.problems[0])
    return job


def import_finish(
    job_id: uuid.UUID, status: str, *, now: dt.datetime, failure: str = "", actor: str | None = None
) -> ImportJob:
    """Bring an import to its end, once; if it had begun, the journal tells, and rows whose half-life no policy wants
    any more are put right. Four statements."""
    with transaction.atomic():
        job = ImportJob.objects.select_for_update().get(pk=job_id)
        if job.status in UNFINISHED:
            begun = job.status == Status.WORKING
            job.status, job.finished_at, job.failure = status, now, failure or job.failure
            if status == Status.DONE:
                job.done = job.lines
            job.save(update_fields=["status", "finished_at", "failure", "done"])
            if begun:
                half_lives_stray_check(now=now)
                import_audit(job, f"import_{status}", actor or job.actor, now)
    return job


def import_audit(job: ImportJob, action: str, actor: str, now: dt.datetime) -> None:
    """Write down the beginning or the end of an import. One statement."""
    AuditEvent.objects.create(
        at=now,
        actor=actor,
        action=action,
        scope=job.scope or job.principal_scope,
        reason=job.reason,
        after={
            "job": str(job.pk),
            "source": job.source,
            "digest": job.digest,
            "lines": job.lines,
            "done": job.done,
            "counts": job.counts,
        },
    )


def _where(source: str, scope: str | None, principal: Principal) -> str:
    """Return where a file of another system goes. What MemState has written says so itself."""
    if source_of(source) is None:
        if scope is not None and principal.scope_chosen(scope) != principal.scope:
            raise RequestRefused(
                "An export of MemState says itself where its topics lie; a scope is for other files.",
                code=ProblemCode.CONTRADICTORY_REQUEST,
            )
        return ""
    return principal.scope_chosen(scope)


def _made(path: Path, status: str, *, source: str, scope: str, principal: Principal, now: dt.datetime) -> ImportJob:
    return ImportJob(
        id=uuid7_at(now),
        file=str(path),
        source=source,
        scope=scope,
        status=status,
        actor=principal.actor,
        identity=principal.identity,
        role=principal.role,
        principal_scope=principal.scope,
        created_at=now,
        moved_at=now,
        size=path.stat().st_size if path.exists() else 0,
    )


def _checked(job: ImportJob, report: ImportReport) -> None:
    job.report, job.digest, job.lines, job.size = report.told(), report.digest, report.lines, report.size


def _digest(path: Path) -> str:
    try:
        return file_digest(path).sha256
    except OSError as problem:
        raise RequestRefused(
            f"{path.name} cannot be read: {problem.strerror}.", code=ProblemCode.FILE_UNREADABLE
        ) from problem


def _turn_take() -> None:
    """Wait until no other import begins, and keep it so until the transaction ends."""
    lock_wait(Lock.BEGIN_IMPORT)


def _at_work(job: ImportJob) -> ImportJob | None:
    """Return the import of the same file that is at work; there is one at most. Raises ``Conflict`` if its caller is
    bound to another scope."""
    same = ImportJob.objects.filter(digest=job.digest, source=job.source, scope=job.scope, status=Status.WORKING)
    found = same.first()
    if found is not None and found.principal_scope != job.principal_scope:
        raise Conflict(_AT_WORK, code=ProblemCode.IMPORT_AT_WORK)
    return found


def _joined(working: ImportJob, path: Path) -> ImportJob:
    """Return an import that is at work already; it reads on in ``path`` if its own file is not there any more."""
    if not os.access(working.file, os.R_OK):
        ImportJob.objects.filter(pk=working.pk, status=Status.WORKING).update(file=str(path))
    return working


def _stopped(job: ImportJob) -> ImportJob | None:
    """Return the last import of the same file, by callers of the same scope, that has stopped before its end and that
    no other has continued."""
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


def _begin(job: ImportJob, *, now: dt.datetime) -> None:
    """Set a checked import to work: in the transaction of the caller, who has ``_turn_take``n. Goes on where an earlier
    one has stopped."""
    earlier = _stopped(job)
    if earlier is not None:
        job.offset, job.done, job.counts = earlier.offset, earlier.done, earlier.counts
    job.status, job.moved_at = Status.WORKING, now
    job.save()
    if earlier is not None:
        ImportedTopic.objects.filter(job=earlier).update(job=job)
        ImportJob.objects.filter(pk=earlier.pk).update(continued_by=job.pk)
    import_audit(job, "import_started", job.actor, now)


def _visible(principal: Principal) -> QuerySet[ImportJob]:
    if principal.scope == ROOT:
        return ImportJob.objects.all()
    below = Q(principal_scope__startswith=f"{principal.scope}/")
    return ImportJob.objects.filter(Q(principal_scope=principal.scope) | below)
