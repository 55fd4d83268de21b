"""Extraction in the background: segment by segment, each stored in one transaction with the progress of the job.

A killed worker loses only its current segment and repeats none, and two workers on one job store each segment once.
"""

import datetime as dt
import time
import uuid
from collections import Counter

import structlog
from django.db import transaction

from memory.access.impersonation import job_writer, owner_lost_access
from memory.access.principal import Principal
from memory.core.callbacks import Clock, Enqueue
from memory.core.errors import Conflict, NotVisible, failure_sentence
from memory.core.ids import uuid7_at
from memory.core.problem_codes import ProblemCode
from memory.extraction.request import content_checked, kind_checked
from memory.extraction.segments import EXTRACTIVE, LLM, GatheredFacts, Segments
from memory.extraction.store import facts_store, scope_wait, source_ensure, source_hold, source_text
from memory.models import AuditEvent, ExtractionJob
from memory.models.stalled import stalled_take

logger = structlog.get_logger(__name__)

# A job without progress for this long has lost its worker.
STALLED_AFTER = dt.timedelta(minutes=3)
_ERASED = "The text was erased before the extraction finished."

Status = ExtractionJob.Status


def extraction_start(
    content: str, *, scope: str | None, kind: str | None, principal: Principal, now: dt.datetime, enqueue: Enqueue
) -> ExtractionJob:
    """Store the text as a source, and enqueue the extraction of its facts. One transaction.

    Raises ``NotAllowed`` without an agent's key, ``ValueRefused`` and ``NotVisible`` as ``extract`` does.
    """
    principal.require("agent")
    where = principal.scope_chosen(scope)
    content, kind = content_checked(content), kind_checked(kind)
    segments = len(Segments(content))
    with transaction.atomic():
        scope_wait(where)
        source = source_ensure(content, scope=where, principal=principal, now=now)
        job = ExtractionJob.objects.create(
            id=uuid7_at(now),
            scope=where,
            kind=kind,
            actor=principal.actor,
            identity=principal.identity,
            role=principal.role,
            principal_scope=principal.scope,
            source_id=source,
            segments=segments,
            created_at=now,
            moved_at=now,
        )
        _audit(job, "extraction_started", job.actor, now)
        enqueue(job.id)
    return job


def extraction_work(
    job_id: uuid.UUID, *, clock: Clock, seconds: float, enqueue: Enqueue | None = None
) -> ExtractionJob:
    """Extract segments of a job until it is done or ``seconds`` have passed, and return it.

    Safe to call from several processes at once, and again after a kill at any time. A failed step is retried once at
    the next call; if it fails again without progress, the job fails.
    """
    until = time.monotonic() + seconds
    job = ExtractionJob.objects.get(pk=job_id)
    content = source_text(job.source_id)
    if content is None:
        return _finish(job_id, Status.FAILED, now=clock(), failure=_ERASED)
    segments = Segments(content)
    more = True
    while more and time.monotonic() < until:
        try:
            more = _step(job_id, segments, clock=clock)
        except Exception as problem:
            _failure_note(job_id, problem, now=clock())
            raise
    if more and enqueue is not None:
        enqueue(job_id)
    return ExtractionJob.objects.get(pk=job_id)


def extraction_cancel(job_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> ExtractionJob:
    """Stop a job; what it has stored stays. Raises ``NotAllowed``, ``NotVisible``, ``Conflict`` if it has ended."""
    principal.require("agent")
    extraction_get(job_id, principal=principal)
    with transaction.atomic():
        job = ExtractionJob.objects.select_for_update().get(pk=job_id)
        if job.status != Status.WORKING:
            raise Conflict(
                f"This extraction is {job.get_status_display().lower()}, so it cannot be cancelled.",
                code=ProblemCode.WRONG_STATUS,
            )
        return _finish(job_id, Status.CANCELLED, now=now, actor=principal.actor)


def extraction_get(job_id: uuid.UUID, *, principal: Principal) -> ExtractionJob:
    """Return one job. One query. Raises ``NotVisible`` if its scope lies outside the caller's."""
    job = ExtractionJob.objects.filter(pk=job_id).first()
    if job is None or not principal.sees(job.scope):
        raise NotVisible(f"Extraction {job_id} does not exist.", code=ProblemCode.EXTRACTION_NOT_FOUND)
    return job


def extractions_stalled(*, now: dt.datetime) -> list[uuid.UUID]:
    """Return the stalled jobs and mark them as enqueued: however long the queue is, each is returned once in
    ``STALLED_AFTER``. Two queries."""
    jobs = ExtractionJob.objects.filter(status=Status.WORKING, moved_at__lt=now - STALLED_AFTER)
    return stalled_take(jobs, most=20, moved_at=now)


def method_of(job: ExtractionJob) -> str:
    """Return the method of a job: llm only if the model read every segment."""
    return LLM if job.methods and set(job.methods) == {LLM} else EXTRACTIVE


def _step(job_id: uuid.UUID, segments: Segments, *, clock: Clock) -> bool:
    """Do the next segment of a job; return whether there is more to do."""
    job = ExtractionJob.objects.get(pk=job_id)
    if job.status != Status.WORKING:
        return False
    if job_writer(job, now=clock()) is None:
        # Checked first, so that the model is not asked in vain.
        _finish(job_id, Status.FAILED, now=clock(), failure=owner_lost_access(job.actor))
        return False
    number, gathered = job.done, GatheredFacts()
    if number < len(segments):
        # The model may be slow, so nothing is locked here.
        gathered.add(segments.facts(number))
    now = clock()
    with transaction.atomic():
        scope_wait(job.scope)
        # Before the job: the order in which a purge locks them.
        exists = source_hold(job.source_id)
        job = ExtractionJob.objects.select_for_update().get(pk=job_id)
        if job.status != Status.WORKING or job.done != number:
            # Another process did this segment, or the job was cancelled.
            return job.status == Status.WORKING
        if not exists or job.source_id is None:
            # Erased during the extraction, so nothing of it may be stored.
            _finish(job_id, Status.FAILED, now=now, failure=_ERASED)
            return False
        writer = job_writer(job, now=now)
        if writer is None:
            _finish(job_id, Status.FAILED, now=now, failure=owner_lost_access(job.actor))
            return False
        if gathered.facts:
            _store(job, gathered, segments.content, writer=writer, now=now)
        job.methods = [*job.methods, *gathered.methods]
        job.dropped = dict(sorted((Counter(job.dropped) + gathered.dropped).items()))
        job.warning, job.failure = job.warning or gathered.warning, ""
        job.done, job.moved_at = min(number + 1, job.segments), now
        job.save()
        if job.done >= len(segments):
            _finish(job_id, Status.DONE, now=now)
            return False
    return True


def _store(job: ExtractionJob, gathered: GatheredFacts, content: str, *, writer: Principal, now: dt.datetime) -> None:
    stored = facts_store(
        gathered.facts, content, scope=job.scope, kind=job.kind, principal=writer, now=now, source=job.source_id
    )
    job.stored = [*job.stored, *map(str, stored.topics)]
    job.skipped = [
        *job.skipped,
        *({"start": each.start, "end": each.end, "topic_id": str(each.topic_id)} for each in stored.duplicates),
    ]


def _finish(
    job_id: uuid.UUID, status: str, *, now: dt.datetime, failure: str = "", actor: str | None = None
) -> ExtractionJob:
    """End a job, once, and write an audit event."""
    with transaction.atomic():
        job = ExtractionJob.objects.select_for_update().get(pk=job_id)
        if job.status == Status.WORKING:
            job.status, job.finished_at, job.failure = status, now, failure or job.failure
            job.save(update_fields=["status", "finished_at", "failure"])
            _audit(job, f"extraction_{status}", actor or job.actor, now)
    return job


def _failure_note(job_id: uuid.UUID, problem: Exception, *, now: dt.datetime) -> None:
    sentence = failure_sentence(problem)
    job = ExtractionJob.objects.get(pk=job_id)
    failure = f"Failed after {job.done} of {job.segments} parts: {sentence}"
    if job.failure == failure:
        _finish(job_id, Status.FAILED, now=now, failure=failure)
    else:
        ExtractionJob.objects.filter(pk=job_id, status=Status.WORKING).update(failure=failure, moved_at=now)


def _audit(job: ExtractionJob, action: str, actor: str, now: dt.datetime) -> None:
    AuditEvent.objects.create(
        at=now,
        actor=actor,
        action=action,
        topic_id=job.source_id,
        scope=job.scope,
        reason="",
        after={
            "job": str(job.id),
            "segments": job.segments,
            "done": job.done,
            "stored": len(job.stored),
            "skipped_duplicates": len(job.skipped),
        },
    )
