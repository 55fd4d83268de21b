"""Extracts facts in the background, segment by segment."""

import datetime as dt
import uuid
from collections import Counter

from django.conf import settings
from django.db import transaction

from memory.access.principal import Principal
from memory.core.callbacks import Clock, Enqueue
from memory.extraction.request import content_check, kind_checked
from memory.extraction.segments import GatheredFacts, Segments
from memory.extraction.store import facts_store, scope_wait, source_ensure, source_lock, source_text
from memory.models import ExtractionJob
from memory.resumable import (
    JobCancelled,
    Status,
    job_at_work,
    job_finish,
    job_hold,
    job_new,
    job_principal,
    job_start,
    job_work,
)
from memory.stores.pending import work_pending

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

    Raises ``NotAllowed`` for readers, ``ValueRefused`` and ``NotVisible`` in the same cases as ``extract``, and the
    errors of ingest.
    """
    principal.require("agent")
    path = principal.scope_chosen(scope)
    content_check(content, most=settings.MEMSTATE_EXTRACT_MAX_CHARS)
    kind = kind_checked(kind)
    job = job_new(ExtractionJob, principal=principal, now=now, scope=path, kind=kind, segments=len(Segments(content)))
    work_pending()
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
            content = source_text(job.source_id)
            if content is None:
                raise JobCancelled(_ERASED)
            segments = Segments(content)
        return _step(job, segments, clock=clock)

    return job_work(ExtractionJob, job_id, step, clock=clock, seconds=seconds, enqueue=enqueue)


def _step(job: ExtractionJob, segments: Segments, *, clock: Clock) -> bool:
    """Do the next segment of a job. Return whether there is more to do."""
    # Checked before the model is called, because a job without a valid principal cannot store the answer.
    job_principal(job, now=clock())
    gathered = GatheredFacts()
    if job.done < len(segments):
        # The model may be slow, so nothing is locked here.
        gathered.add(segments.facts(job.done))
    now = clock()
    with transaction.atomic():
        scope_wait(job.scope)
        # The source is locked before the job, in the same order as in a purge.
        exists = source_lock(job.source_id)
        job = job_hold(job)
        if not exists or job.source_id is None:
            # The source was erased during the extraction, so nothing of it may be stored.
            raise JobCancelled(_ERASED)
        writer = job_principal(job, now=now)
        stored, known = facts_store(
            gathered.facts,
            segments.content,
            scope=job.scope,
            kind=job.kind,
            principal=writer,
            now=now,
            source=job.source_id,
        )
        job.stored = [*job.stored, *map(str, stored)]
        skipped = [{"start": fact.start, "end": fact.end, "topic_id": str(topic)} for fact, topic in known]
        job.skipped = [*job.skipped, *skipped]
        job.methods = [*job.methods, *gathered.methods]
        job.dropped = dict(sorted((Counter(job.dropped) + gathered.dropped).items()))
        job.warning, job.failure = job.warning or gathered.warning, ""
        job.done, job.moved_at = min(job.done + 1, job.segments), now
        if job.done >= len(segments):
            job_finish(job, Status.DONE, now=now)
            return False
        job.save()
    return True
