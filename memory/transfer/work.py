"""Imports a file batch by batch. A batch and its progress are written in one transaction."""

import datetime as dt
import time
import uuid
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from django.db import DatabaseError, connection, transaction

from memory.access.principal import Principal
from memory.core.callbacks import Clock, Enqueue
from memory.core.errors import MemoryProblem, failure_sentence
from memory.erasure.receipts import purges_wait
from memory.ingest.apply import ingest_apply, ingest_prepare
from memory.ingest.items import IngestItem
from memory.ingest.plan import ItemReply
from memory.models import ImportedTopic, ImportJob
from memory.policy.rekey import half_lives_stray_check
from memory.resumable import JobFailed, Status, job_at_work, job_end, job_hold, job_principal, job_step, job_work
from memory.transfer.batches import lines_import
from memory.transfer.check import file_digest, import_check
from memory.transfer.importers import IMPORTERS
from memory.transfer.importers.new_items import item_counts, items_new
from memory.transfer.importing import import_checked
from memory.transfer.lines import FORMAT, MODELS, Lines, line_parse, lines_batches
from memory.transfer.report import Counts, Progress, counts_add

_CHANGED = "The file has changed since it was checked."
_MISSING = "The file no longer exists. Import it again to continue."
_UNCHECKED = (
    "Its check was started twice and did not finish: the worker stops a job after MEMSTATE_JOB_TIMEOUT. Use "
    "manage.py import FILE, which has no time limit."
)
# A check is attempted at most this number of times. Each attempt starts at the beginning of the file.
MAX_CHECKS = 2
# A large purge takes longer than the usual wait for a lock.
_WAIT_SECONDS = 300


class ImportStep(NamedTuple):
    """One batch. ``offset`` and ``done`` are the bytes and lines of the file up to the end of the batch. ``work``
    imports the batch and returns counts by kind and outcome."""

    offset: int
    done: int
    work: Callable[[ImportJob, Principal], Counts]


def import_work(
    job_id: uuid.UUID, *, clock: Clock, seconds: float, enqueue: Enqueue | None = None, progress: Progress | None = None
) -> ImportJob:
    """Import batches of a file until the file ends or ``seconds`` have passed, and return the import (see
    ``job_work``). A file that was only offered is checked instead, without a time limit. ``progress`` is called with
    the processed bytes and the size of the file."""
    job = ImportJob.objects.get(pk=job_id)
    if job.status == Status.CHECKING:
        job_step(ImportJob, job_id, partial(_check, job, clock=clock), clock=clock, cause=_cause)
        return ImportJob.objects.get(pk=job_id)
    until = time.monotonic() + seconds
    path = Path(job.file)

    def step() -> bool:
        job = job_at_work(ImportJob, job_id)
        try:
            _unchanged(job, path)
            with closing(_steps(job, path, clock=clock)) as batches:
                for batch in batches:
                    # The file is compared again after reading, so that only checked content is imported.
                    _unchanged(job, path)
                    job = _step_do(job, batch, now=clock())
                    if progress is not None:
                        progress(job.offset, job.size)
                    if time.monotonic() >= until:
                        return True
            _unchanged(job, path)
        except OSError as problem:
            raise JobFailed(_MISSING) from problem
        job_end(ImportJob, job_id, Status.DONE, now=clock())
        return False

    job = job_work(ImportJob, job_id, step, clock=clock, seconds=seconds, enqueue=enqueue, cause=_cause)
    if job.status not in job.UNFINISHED:
        half_lives_stray_check(now=clock())
    return job


def _check(job: ImportJob, *, clock: Clock) -> bool:
    """Check an offered file. Return False, because no step remains: an operator must confirm the import."""
    principal = job_principal(job, now=clock())
    with transaction.atomic():
        held = job_hold(job)
        # Attempts are counted when they start, because the worker kills a check that takes too long.
        if held.checks >= MAX_CHECKS:
            raise JobFailed(held.failure or _UNCHECKED)
        held.checks, held.moved_at = held.checks + 1, clock()
        held.save(update_fields=["checks", "moved_at"])

    def progress_save(done: int, _size: int) -> None:
        ImportJob.objects.filter(pk=job.pk).update(read=done, moved_at=clock())

    try:
        report = import_check(
            Path(job.file),
            principal=principal,
            now=job.created_at,
            source=job.source,
            scope=job.scope or None,
            progress=progress_save,
        )
    except MemoryProblem as problem:
        raise JobFailed(problem.sentence) from problem
    import_checked(job.pk, report, now=clock())
    return False


def _unchanged(job: ImportJob, path: Path) -> None:
    if file_digest(path) != job.digest:
        raise JobFailed(_CHANGED)


def _steps(job: ImportJob, path: Path, *, clock: Clock) -> Generator[ImportStep, None, None]:
    if job.source != FORMAT:
        importer = IMPORTERS[job.source]
        for items, offset, lines in importer.batches(path, scope=job.scope, now=job.created_at, done=job.done):
            yield ImportStep(offset, lines, partial(_items_work, items, now=clock()))
        return
    with path.open("rb") as file:
        for batch in lines_batches(file, offset=job.offset, done=job.done):
            yield ImportStep(batch.offset, batch.first + len(batch.lines) - 1, partial(_lines_work, batch, now=clock()))


def _step_do(job: ImportJob, step: ImportStep, *, now: dt.datetime) -> ImportJob:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{_WAIT_SECONDS}s'")
        # This is the first lock, as in a purge, so that the two cannot deadlock. It blocks purges until the commit, so
        # that no erased text is imported after its purge.
        purges_wait()
        job = job_hold(job)
        counts_add(job.counts, step.work(job, job_principal(job, now=now)))
        job.offset, job.done, job.moved_at, job.failure = step.offset, step.done, now, ""
        job.save()
    return job


def _lines_work(batch: Lines, job: ImportJob, principal: Principal, *, now: dt.datetime) -> Counts:
    if batch.kind not in MODELS:
        return {}
    lines = [line_parse(MODELS[batch.kind], line) for line in batch.lines]
    return {batch.kind: lines_import(lines, job=job, principal=principal, now=now)}


def _items_work(given: Sequence[IngestItem], job: ImportJob, principal: Principal, *, now: dt.datetime) -> Counts:
    """Ingest items of another system's file, except items whose topics exist or were erased."""
    counts, items = items_new(given)
    made: list[uuid.UUID] = []
    prepared = ingest_prepare(items, principal=principal, now=now, defer=True)
    for item, outcome in zip(items, ingest_apply(prepared, principal=principal, now=now, defer=True), strict=True):
        if isinstance(outcome, ItemReply):
            made += [outcome.topic_id] if item.placement == "new_topic" else []
            counts_add(counts, item_counts(item))
        else:
            counts_add(counts, {"topic": {_refused(outcome): 1}})
    ImportedTopic.objects.bulk_create(ImportedTopic(topic_id=topic_id, job=job) for topic_id in dict.fromkeys(made))
    return counts


def _refused(outcome: object) -> str:
    sentence = outcome.sentence if isinstance(outcome, MemoryProblem) else str(outcome)
    return f"left out: {sentence.rstrip('.')}"


def _cause(problem: Exception) -> str:
    """Return the cause of a failure. Errors of the database are quoted, because only operators can import."""
    if isinstance(problem, DatabaseError) and str(problem):
        return str(problem).splitlines()[0]
    return failure_sentence(problem)
