"""Extracts facts in the background, segment by segment."""

import datetime as dt
import uuid
from collections import Counter

from django.db import transaction

from memory.access.principal import Principal
from memory.core.callbacks import Clock, Enqueue
from memory.extraction.request import content_checked, kind_checked
from memory.extraction.segments import GatheredFacts, Segments
from memory.extraction.store import facts_store, scope_wait, source_ensure, source_lock, source_text
from memory.jobs.resumable import (
    JobFailed,
    Status,
    job_at_work,
    job_finish,
    job_hold,
    job_new,
    job_principal,
    job_start,
    job_work,
)
from memory.models import ExtractionJob

_ERASED = "The text was erased before the extraction finished."


def extraction_start(
    content: str,
    *,
    scope: str | None,
    kind: str | None,
    principal: Principal,
    now: dt.datetime,
    enqueue: Enqueue | None,
) -> ExtractionJob:
    """Store the text as a source, and enqueue the extraction of its facts. One transaction.

    Raises ``NotAllowed`` without an agent's key, ``ValueRefused`` and ``NotVisible`` as ``extract`` does.
    """
    principal.require("agent")
    path = principal.scope_chosen(scope)
    content, kind = content_checked(content), kind_checked(kind)
    job = job_new(ExtractionJob, principal=principal, now=now, scope=path, kind=kind, segments=len(Segments(content)))
    with transaction.atomic():
        scope_wait(path)
        job.source_id = source_ensure(content, scope=path, principal=principal, now=now)
        job_start(job, now=now, enqueue=enqueue)
    return job


def extraction_work(
    job_id: uuid.UUID, *, clock: Clock, seconds: float, enqueue: Enqueue | None = None
) -> ExtractionJob:
    """Extract segments until the job is done or ``seconds`` have passed, and return the job (see ``job_work``)."""
    segments: Segments | None = None

    def step() -> bool:
        nonlocal segments
        job = job_at_work(ExtractionJob, job_id)
        if segments is None:
            segments = _segments(job)
        return _step(job, segments, clock=clock)

    return job_work(ExtractionJob, job_id, step, clock=clock, seconds=seconds, enqueue=enqueue)


def _segments(job: ExtractionJob) -> Segments:
    content = source_text(job.source_id)
    if content is None:
        raise JobFailed(_ERASED)
    return Segments(content)


def _step(job: ExtractionJob, segments: Segments, *, clock: Clock) -> bool:
    """Do the next segment of a job; return whether there is more to do."""
    # Checked first, so that the model is not asked in vain.
    job_principal(job, now=clock())
    gathered = GatheredFacts()
    if job.done < len(segments):
        # The model may be slow, so nothing is locked here.
        gathered.add(segments.facts(job.done))
    now = clock()
    with transaction.atomic():
        scope_wait(job.scope)
        # The source is locked before the job, as in a purge.
        exists = source_lock(job.source_id)
        job = job_hold(job)
        if not exists or job.source_id is None:
            # The source was erased during the extraction, so nothing of it may be stored.
            raise JobFailed(_ERASED)
        writer = job_principal(job, now=now)
        if gathered.facts:
            _store(job, gathered, segments.content, writer=writer, now=now)
        job.methods = [*job.methods, *gathered.methods]
        job.dropped = dict(sorted((Counter(job.dropped) + gathered.dropped).items()))
        job.warning, job.failure = job.warning or gathered.warning, ""
        job.done, job.moved_at = min(job.done + 1, job.segments), now
        if job.done >= len(segments):
            job_finish(job, Status.DONE, now=now)
            return False
        job.save()
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
