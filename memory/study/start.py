"""The doors of a study: begun, found, cancelled, resumed, and brought to its end with its journal."""

import datetime as dt
import uuid
from collections.abc import Callable

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from memory.access.principal import Principal
from memory.domain.errors import Conflict, NotVisible, ValueRefused
from memory.domain.identifiers import uuid7
from memory.domain.reading.parts import parts_cut
from memory.extraction.store import scope_wait, source_ensure, source_text
from memory.llm.client import ModelUnavailable, model_configured
from memory.models import AuditEvent, StudyJob
from memory.study.numbers import Phase, entries_of, total

Status = StudyJob.Status
HandOver = Callable[[uuid.UUID], None]

# A job that has not moved for so long has lost its worker; no step lasts as long (``work``).
STALLED_AFTER = dt.timedelta(minutes=3)
_MOST_STALLED = 20
ERASED = "The text was erased before it was read to its end."


def study_start(
    text: str, *, conversation_id: uuid.UUID, scope: str | None, model: str | None, principal: Principal,
    now: dt.datetime, hand_over: HandOver,
) -> StudyJob:  # fmt: skip
    """Keep the text as a source, outside every query, and ask the worker to study it. One transaction.

    Twice a batch of ingest, and time that grows with the text: about three seconds for a million characters. Raises
    ``NotAllowed`` without an agent's key, ``NotVisible`` for a foreign scope, ``ValueRefused`` for an empty text or one
    beyond ``MEMSTATE_STUDY_MAX_CHARS``, ``ModelUnavailable`` if no model is configured.
    """
    principal.require("agent")
    where = principal.scope_chosen(scope)
    parts = parts_cut(_checked(text), at_most=settings.MEMSTATE_CHAT_CHUNK_CHARS)
    with transaction.atomic():
        scope_wait(where)
        source = source_ensure(text, scope=where, principal=principal, now=now)
        job = StudyJob.objects.create(
            id=uuid7(now_ms=int(now.timestamp() * 1000)), conversation_id=conversation_id, scope=where,
            actor=principal.actor, identity=principal.identity, role=principal.role, principal_scope=principal.scope,
            model=model or "", source_id=source, part_chars=settings.MEMSTATE_CHAT_CHUNK_CHARS, segments=len(parts),
            created_at=now, moved_at=now,
        )  # fmt: skip
        study_journal(job, "study_started", job.actor, now)
        hand_over(job.id)
    return job


def study_get(job_id: uuid.UUID, *, principal: Principal) -> StudyJob:
    """Return one study. One query. Raises ``NotVisible`` if its scope lies outside the caller's."""
    job = StudyJob.objects.filter(pk=job_id).first()
    if job is None or not principal.sees(job.scope):
        raise NotVisible(f"There is no study {job_id}.")
    return job


def study_cancel(job_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> StudyJob:
    """Stop a study; what it has stored stays, and it can be resumed. Its worker notices before it asks the model again.

    Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` if it is at its end.
    """
    principal.require("agent")
    study_get(job_id, principal=principal)
    with transaction.atomic():
        job = StudyJob.objects.select_for_update().get(pk=job_id)
        if job.status != Status.WORKING:
            raise Conflict(f"This study is {job.get_status_display().lower()}, so it cannot be cancelled.")
        return study_finish(job, Status.CANCELLED, now=now, actor=principal.actor)


def study_resume(job_id: uuid.UUID, *, principal: Principal, now: dt.datetime, hand_over: HandOver) -> StudyJob:
    """Let a study that was cancelled, or has failed, go on where it was.

    Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` if it is at work or done, or if its text was erased.
    """
    principal.require("agent")
    study_get(job_id, principal=principal)
    with transaction.atomic():
        job = StudyJob.objects.select_for_update().get(pk=job_id)
        if job.status not in (Status.CANCELLED, Status.FAILED):
            raise Conflict(f"This study is {job.get_status_display().lower()}, so there is nothing to resume.")
        if job.phase == Phase.BUILDING and source_text(job.source_id) is None:
            raise Conflict("The text was erased, so there is nothing to go on with.")
        job.status, job.failure, job.tries = Status.WORKING, "", 0
        job.not_before, job.finished_at, job.moved_at = None, None, now
        job.save()
        study_journal(job, "study_resumed", principal.actor, now)
        hand_over(job.id)
    return job


def studies_stalled(*, now: dt.datetime) -> list[uuid.UUID]:
    """Return the studies whose time to go on has come, and those whose worker was lost. One query."""
    due = Q(not_before__lte=now) | Q(not_before=None, moved_at__lt=now - STALLED_AFTER)
    rows = StudyJob.objects.filter(due, status=Status.WORKING)
    return list(rows.order_by("moved_at").values_list("id", flat=True)[:_MOST_STALLED])


def study_finish(
    job: StudyJob, status: Status, *, now: dt.datetime, failure: str = "", actor: str | None = None
) -> StudyJob:
    """Bring a study, whose row the caller has locked, to its end, and journal it. Two statements."""
    job.status, job.finished_at, job.not_before, job.failure = status, now, None, failure
    job.save()
    study_journal(job, f"study_{status}", actor or job.actor, now)
    return job


def study_journal(job: StudyJob, action: str, actor: str, now: dt.datetime) -> None:
    """Write down what happened to a study. One statement."""
    AuditEvent.objects.create(
        at=now, actor=actor, action=action, topic_id=job.source_id, scope=job.scope, reason="",
        after={"study": str(job.id), "conversation": str(job.conversation_id), "segments": job.segments,
               "done": job.done, "topics": total(entries_of(job, Phase.BUILDING), "made"), "linked": job.linked},
    )  # fmt: skip


def _checked(text: str) -> str:
    most = settings.MEMSTATE_STUDY_MAX_CHARS
    if len(text) > most:
        raise ValueRefused(
            f"The text has {len(text):,} characters; at most {most:,} are studied at once. Send it in parts."
        )
    if not text.strip():
        raise ValueRefused("There is no text to study.")
    if not model_configured():
        raise ModelUnavailable(
            "A long text is studied by a language model, and none is configured: set MEMSTATE_LLM_MODEL.",
            kind="not_configured",
        )
    return text
