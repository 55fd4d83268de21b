"""The work of an import: one batch after the other, each in one transaction with the note how far it came."""

import datetime as dt
import time
import uuid
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from django.db import DatabaseError, connection, transaction

from memory.access.impersonation import principal_recheck
from memory.access.principal import Principal
from memory.core.callbacks import Clock, Enqueue
from memory.core.errors import MemoryProblem, failure_sentence
from memory.erasure.receipts import purges_wait
from memory.ingest.apply import ingest_apply, ingest_prepare
from memory.ingest.items import IngestItem
from memory.ingest.plan import ItemReply
from memory.models import ImportedTopic, ImportJob
from memory.models.transfer import OPEN
from memory.transfer.batches import lines_import
from memory.transfer.check import import_check, source_of
from memory.transfer.digest import Digest, file_digest, file_is
from memory.transfer.importers.known import ids_known, item_id, items_new
from memory.transfer.importing import Status, import_checked, import_finish
from memory.transfer.lines import FORMAT, MODELS, Lines, line_parse, lines_batches
from memory.transfer.report import BROUGHT, ERASED, THERE, Progress, counts_add

Counts = dict[str, dict[str, int]]

_CHANGED = "The file is not the one that was checked any more."
_GONE = "The file is not there any more; import it again, and it goes on where it stopped."
_UNCHECKED = (
    "Its check was begun twice and did not come to its end: the worker gives up what takes longer than "
    "MEMSTATE_JOB_TIMEOUT. manage.py import FILE takes as long as it needs."
)
_MAY_NOT = (
    "It was begun by {actor}, who may not import here any more. Whoever may goes on where it stopped, by importing the "
    "same file."
)
# A check starts over with each attempt.
MOST_CHECKS = 2
# A large purge takes longer than others have to wait for a lock.
_WAIT_SECONDS = 300
# How often a check says how far it is.
_SAY_SECONDS = 1.0


class ImportStep(NamedTuple):
    """A batch: bytes and lines of the file up to its end, and the work, which returns what became of its lines."""

    offset: int
    done: int
    work: Callable[[ImportJob], Counts]


def import_work(
    job_id: uuid.UUID, *, clock: Clock, seconds: float, enqueue: Enqueue | None = None, progress: Progress | None = None
) -> ImportJob:
    """Bring batches of a file until it is done or ``seconds`` have passed, and return the import. One that was offered
    is checked, all of it.

    Safe to call from several processes at once, and again after a kill at any moment. A step that fails is tried once
    more at the next call; an import that then comes no further has failed. ``progress`` is told bytes.
    """
    until = time.monotonic() + seconds
    job = ImportJob.objects.get(pk=job_id)
    if job.status == Status.CHECKING:
        return _check(job, clock=clock, progress=progress)
    if job.status != Status.WORKING:
        return job
    path = Path(job.file)
    try:
        seen = file_digest(path)
        if seen.sha256 != job.digest:
            return import_finish(job_id, Status.FAILED, now=clock(), failure=_CHANGED)
        more = True
        while more and time.monotonic() < until:
            more = _steps(job_id, path, seen, clock=clock, until=until, progress=progress)
    except OSError:
        return import_finish(job_id, Status.FAILED, now=clock(), failure=_GONE)
    except Exception as problem:
        _failure_note(job_id, problem, now=clock())
        raise
    if more and enqueue is not None:
        enqueue(job_id)
    return ImportJob.objects.get(pk=job_id)


def _check(job: ImportJob, *, clock: Clock, progress: Progress | None) -> ImportJob:
    if _importer(job, now=clock()) is None:
        return import_finish(job.pk, Status.FAILED, now=clock(), failure=_MAY_NOT.format(actor=job.actor))
    if not _check_begin(job.pk, now=clock()):
        return ImportJob.objects.get(pk=job.pk)
    said = time.monotonic()

    def say(done: int, size: int) -> None:
        nonlocal said
        if progress is not None:
            progress(done, size)
        if time.monotonic() - said > _SAY_SECONDS:
            said = time.monotonic()
            ImportJob.objects.filter(pk=job.pk).update(read=done, moved_at=clock())

    try:
        report = import_check(
            Path(job.file),
            principal=_principal(job),
            now=job.created_at,
            source=job.source,
            scope=job.scope or None,
            progress=say,
        )
    except MemoryProblem as problem:
        return import_finish(job.pk, Status.FAILED, now=clock(), failure=problem.sentence)
    except Exception as problem:
        _failure_note(job.pk, problem, now=clock())
        raise
    return import_checked(job.pk, report, now=clock())


def _check_begin(job_id: uuid.UUID, *, now: dt.datetime) -> bool:
    """Count a check that begins; one too many ends the import, as the worker kills what takes too long."""
    with transaction.atomic():
        job = ImportJob.objects.select_for_update().get(pk=job_id)
        if job.status != Status.CHECKING:
            return False
        if job.checks < MOST_CHECKS:
            job.checks, job.moved_at = job.checks + 1, now
            job.save(update_fields=["checks", "moved_at"])
            return True
        import_finish(job_id, Status.FAILED, now=now, failure=job.failure or _UNCHECKED)
        return False


def _steps(
    job_id: uuid.UUID, path: Path, seen: Digest, *, clock: Clock, until: float, progress: Progress | None
) -> bool:
    """Do steps from where the import stands; return whether there is more to do, by somebody who looks anew. The file
    has to stay what was ``seen``."""
    job = ImportJob.objects.get(pk=job_id)
    steps = (_export_steps if job.source == FORMAT else _foreign_steps)(job, path, clock=clock)
    try:
        offset = job.offset
        for step in steps:
            # After it was read, so that what was checked is what is brought.
            if not file_is(path, seen):
                break
            if not _step_do(job_id, step, after=offset, now=clock()):
                # Somebody else was here, or it is at its end.
                return ImportJob.objects.filter(pk=job_id, status=Status.WORKING).exists()
            offset = step.offset
            if progress is not None:
                progress(offset, job.size)
            if time.monotonic() >= until:
                return True
        changed = not file_is(path, seen)
    finally:
        steps.close()
    if changed:
        import_finish(job_id, Status.FAILED, now=clock(), failure=_CHANGED)
    else:
        import_finish(job_id, Status.DONE, now=clock())
    return False


def _step_do(job_id: uuid.UUID, step: ImportStep, *, after: int, now: dt.datetime) -> bool:
    """Do one step, unless it is done; return whether it was done here."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{_WAIT_SECONDS}s'")
        # Before the import, as a purge locks them: what it erases must not come back behind it.
        purges_wait()
        job = ImportJob.objects.select_for_update().get(pk=job_id)
        if job.status != Status.WORKING or job.offset != after:
            return False
        if _importer(job, now=now) is None:
            import_finish(job_id, Status.FAILED, now=now, failure=_MAY_NOT.format(actor=job.actor))
            return False
        counts_add(job.counts, step.work(job))
        job.offset, job.done, job.moved_at, job.failure = step.offset, step.done, now, ""
        job.save()
    return True


def _export_steps(job: ImportJob, path: Path, *, clock: Clock) -> Generator[ImportStep, None, None]:
    with path.open("rb") as file:
        for batch in lines_batches(file, offset=job.offset, done=job.done):
            yield ImportStep(batch.offset, batch.first + len(batch.lines) - 1, partial(_lines_work, batch, now=clock()))


def _lines_work(batch: Lines, job: ImportJob, *, now: dt.datetime) -> Counts:
    if batch.kind not in MODELS:
        return {}
    lines = [line_parse(MODELS[batch.kind], line) for line in batch.lines]
    return {batch.kind: lines_import(lines, job=job, principal=_principal(job), now=now)}


def _foreign_steps(job: ImportJob, path: Path, *, clock: Clock) -> Generator[ImportStep, None, None]:
    source = source_of(job.source)
    assert source is not None
    for items, offset, lines in source.batches(path, scope=job.scope, now=job.created_at, offset=job.offset):
        yield ImportStep(offset, lines, partial(_items_work, items, now=clock()))


def _items_work(given: Sequence[IngestItem], job: ImportJob, *, now: dt.datetime) -> Counts:
    """Ingest items of another system's file; topics that are there, or were erased, are left."""
    counts: Counts = {}
    named = {item_id(item) for item in given}
    there, erased = ids_known(list(named | {edge.to_topic_id for item in given for edge in item.edges}))
    counts_add(counts, {"topic": {THERE: len(named & there - erased), ERASED: len(named & erased)}})
    principal = _principal(job)
    items = items_new(given, there=there, erased=erased)
    prepared = ingest_prepare(items, principal=principal, now=now, defer=True)
    made: list[uuid.UUID] = []
    for item, outcome in zip(items, ingest_apply(prepared, principal=principal, now=now, defer=True), strict=True):
        if isinstance(outcome, ItemReply):
            made.append(outcome.topic_id)
            counts_add(counts, {"field": {BROUGHT: len(item.fields)}, "link": {BROUGHT: len(item.edges)}})
        else:
            counts_add(counts, {"topic": {_refused(outcome): 1}})
    counts_add(counts, {"topic": {BROUGHT: len(made)}})
    ImportedTopic.objects.bulk_create(ImportedTopic(topic_id=topic_id, job=job) for topic_id in dict.fromkeys(made))
    return {kind: {why: times for why, times in own.items() if times} for kind, own in counts.items()}


def _refused(outcome: object) -> str:
    said = outcome.sentence if isinstance(outcome, MemoryProblem) else str(outcome)
    return f"left out: {said.rstrip('.')}"


def _principal(job: ImportJob) -> Principal:
    return Principal(identity=job.identity, actor=job.actor, role=job.role, scope=job.principal_scope)


def _importer(job: ImportJob, *, now: dt.datetime) -> Principal | None:
    """Return in whose name an import works; None if he may not import any more. Two queries at most."""
    found = principal_recheck(_principal(job), now=now)
    return found if found is not None and found.covers("operator") else None


def _failure_note(job_id: uuid.UUID, problem: Exception, *, now: dt.datetime) -> None:
    sentence = failure_sentence(problem)
    if isinstance(problem, DatabaseError) and str(problem):
        sentence = str(problem).splitlines()[0]
    job = ImportJob.objects.get(pk=job_id)
    told = f"After {job.done:,} of {job.lines:,} lines the import failed: {sentence}"
    if job.failure == told:
        import_finish(job_id, Status.FAILED, now=now, failure=told)
    else:
        ImportJob.objects.filter(OPEN, pk=job_id).update(failure=told, moved_at=now)
