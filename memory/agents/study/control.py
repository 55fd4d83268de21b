"""The doors of a study: begun, found, cancelled, resumed, and brought to its end with its journal."""

import datetime as dt
import uuid

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from memory.access.impersonation import job_writer, owner_lost_access
from memory.access.principal import Principal
from memory.agents.study.ids import Phase
from memory.agents.study.queue import room_check
from memory.core.callbacks import Enqueue
from memory.core.errors import Conflict, NotVisible, ValueRefused
from memory.core.ids import uuid7_at
from memory.core.problem_codes import ProblemCode
from memory.extraction.parts import parts_cut
from memory.extraction.store import scope_wait, source_ensure, source_text
from memory.llm.client import ModelUnavailable, model_configured
from memory.models import AuditEvent, Conversation, StudyJob
from memory.predicates.binding import path_q

Status = StudyJob.Status
ERASED = "The text was erased before it was read to its end."


def study_start(
    text: str,
    *,
    conversation_id: uuid.UUID,
    scope: str | None,
    model: str | None,
    principal: Principal,
    now: dt.datetime,
    enqueue: Enqueue,
) -> StudyJob:
    """Keep the text as a source, outside every query, and ask the worker to study it. One transaction.

    Twice a batch of ingest, and time that grows with the text: about three seconds for a million characters. Raises
    ``NotAllowed`` without an agent's key, ``NotVisible`` for a foreign scope, ``ValueRefused`` for an empty text or one
    beyond ``MEMSTATE_STUDY_MAX_CHARS``, ``ModelUnavailable`` if no model is configured,
    ``Conflict`` if as many are open as may be.
    """
    principal.require("agent")
    if not model_configured():
        raise ModelUnavailable(
            "A long text is studied by a language model, and none is configured: set MEMSTATE_LLM_MODEL.",
            kind="not_configured",
        )
    return study_keep(
        text, conversation_id=conversation_id, scope=scope, model=model, principal=principal, now=now, enqueue=enqueue
    )


def study_keep(
    text: str,
    *,
    conversation_id: uuid.UUID,
    scope: str | None,
    model: str | None,
    principal: Principal,
    now: dt.datetime,
    enqueue: Enqueue,
    job_id: uuid.UUID | None = None,
) -> StudyJob:
    """Do what ``study_start`` does, whether there is a model or not: the demo takes its notes by itself. ``job_id`` is
    for who wants the study, and with it all its topics, to be the same each time."""
    principal.require("agent")
    where = principal.scope_chosen(scope)
    parts = parts_cut(_checked(text), at_most=settings.MEMSTATE_CHAT_CHUNK_CHARS)
    # Before the text is kept, which takes its time; and once more when nobody else can come in between.
    room_check(principal.identity)
    with transaction.atomic():
        scope_wait(where)
        source = source_ensure(text, scope=where, principal=principal, now=now)
        room_check(principal.identity, counting=True)
        job = StudyJob.objects.create(
            id=job_id or uuid7_at(now),
            conversation_id=conversation_id,
            scope=where,
            actor=principal.actor,
            identity=principal.identity,
            role=principal.role,
            principal_scope=principal.scope,
            model=model or "",
            source_id=source,
            part_chars=settings.MEMSTATE_CHAT_CHUNK_CHARS,
            segments=len(parts),
            created_at=now,
            moved_at=now,
            handed_at=now,
        )
        study_journal(job, "study_started", job.actor, now)
        enqueue(job.id)
    return job


def study_get(job_id: uuid.UUID, *, principal: Principal) -> StudyJob:
    """Return one study, without the record of its steps. One query.

    Raises ``NotVisible`` for those of others: whoever began it sees it, and operators do.
    """
    job = studies_visible(principal).filter(pk=job_id).first()
    if job is None:
        raise NotVisible(f"There is no study {job_id}.", code=ProblemCode.STUDY_NOT_FOUND)
    return job


def studies_visible(principal: Principal) -> QuerySet[StudyJob]:
    """Return the studies that the caller began, or oversees as an operator, without the record of their steps, which
    grows with the text. No query."""
    rows = StudyJob.objects.defer("told").filter(path_q(principal.scope))
    return rows if principal.role == "operator" else rows.filter(identity=principal.identity)


def study_cancel(job_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> StudyJob:
    """Stop a study; what it has stored stays, and it can be resumed. Its worker notices before it asks the model again.

    Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` if it is at its end.
    """
    principal.require("agent")
    study_get(job_id, principal=principal)
    with transaction.atomic():
        job = StudyJob.objects.defer("told").select_for_update().get(pk=job_id)
        if job.status != Status.WORKING:
            raise Conflict(
                f"This study is {job.get_status_display().lower()}, so it cannot be cancelled.",
                code=ProblemCode.WRONG_STATUS,
            )
        return study_finish(job, Status.CANCELLED, now=now, actor=principal.actor)


def study_resume(job_id: uuid.UUID, *, principal: Principal, now: dt.datetime, enqueue: Enqueue) -> StudyJob:
    """Let a study that was cancelled, or has failed, go on where it was.

    Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` if it is at work or done, if its text was erased, if what
    its conversation wrote was taken back since, if whoever began it may write no longer, or if as many are open as may
    be.
    """
    principal.require("agent")
    seen = study_get(job_id, principal=principal)
    with transaction.atomic():
        # Before the study, as an undo locks them: it finds each study at work, or is seen here.
        talk = Conversation.objects.select_for_update(no_key=True).get(pk=seen.conversation_id)
        job = StudyJob.objects.defer("told").select_for_update().get(pk=job_id)
        if job.status not in (Status.CANCELLED, Status.FAILED):
            raise Conflict(
                f"This study is {job.get_status_display().lower()}, so there is nothing to resume.",
                code=ProblemCode.WRONG_STATUS,
            )
        if job.phase == Phase.BUILDING and source_text(job.source_id) is None:
            raise Conflict("The text was erased, so there is nothing to go on with.", code=ProblemCode.ERASED_MEANWHILE)
        if talk.undone_at is not None and talk.undone_at >= job.created_at:
            raise Conflict(
                "What this conversation wrote was taken back, and the study with it; to learn the text after all, send "
                "it again.",
                code=ProblemCode.ERASED_MEANWHILE,
            )
        if job_writer(job, now=now) is None:
            raise Conflict(owner_lost_access(job.actor), code=ProblemCode.AUTHOR_NOT_ALLOWED)
        room_check(job.identity, counting=True)
        job.status, job.failure, job.tries = Status.WORKING, "", 0
        job.not_before, job.finished_at, job.moved_at, job.handed_at = None, None, now, now
        job.save()
        study_journal(job, "study_resumed", principal.actor, now)
        enqueue(job.id)
    return job


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
        at=now,
        actor=actor,
        action=action,
        topic_id=job.source_id,
        scope=job.scope,
        reason="",
        after={
            "study": str(job.id),
            "conversation": str(job.conversation_id),
            "segments": job.segments,
            "done": job.done,
            "topics": job.topics,
            "linked": job.linked,
        },
    )


def _checked(text: str) -> str:
    most = settings.MEMSTATE_STUDY_MAX_CHARS
    if len(text) > most:
        raise ValueRefused(
            f"The text has {len(text):,} characters; at most {most:,} are studied at once. Send it in parts.",
            code=ProblemCode.TEXT_TOO_LONG,
        )
    if not text.strip():
        raise ValueRefused("There is no text to study.", code=ProblemCode.EMPTY_TEXT)
    return text
