"""Start and resume a study."""

import datetime as dt
import uuid

from django.conf import settings
from django.db import transaction

from memory.access.impersonation import job_writer, owner_lost_access
from memory.access.principal import Principal
from memory.agents.study.ids import Phase
from memory.agents.study.queue import open_limit_check
from memory.core.callbacks import Enqueue
from memory.core.errors import Conflict, ValueRefused
from memory.core.ids import uuid7_at
from memory.core.problem_codes import ProblemCode
from memory.extraction.parts import parts_cut
from memory.extraction.store import scope_wait, source_ensure, source_text
from memory.jobs.resumable import Status, job_get, job_lock, job_new, job_start
from memory.llm.client import ModelUnavailable, model_configured
from memory.models import Conversation, StudyJob


def study_start(
    text: str,
    *,
    conversation_id: uuid.UUID,
    scope: str | None,
    model: str | None,
    principal: Principal,
    now: dt.datetime,
    enqueue: Enqueue,
    job_id: uuid.UUID | None = None,
    needs_model: bool = True,
) -> StudyJob:
    """Store the text as a source, which queries do not return, and enqueue its study. One transaction.

    Costs two batches of ingest, and about three seconds per million characters. Raises ``NotAllowed`` for a reader's
    key, ``NotVisible`` for a scope outside the caller's scope, ``ValueRefused`` for an empty text or a text longer than
    ``MEMSTATE_STUDY_MAX_CHARS``, ``ModelUnavailable`` if no model is configured, and ``Conflict`` if too many studies
    are open. Only the demo passes ``needs_model`` and ``job_id``: it writes the topics itself, and the ids of its study
    and topics must always be the same.
    """
    principal.require("agent")
    if needs_model and not model_configured():
        raise ModelUnavailable(
            "A long text is studied by a language model, and none is configured: set MEMSTATE_LLM_MODEL.",
            kind="not_configured",
        )
    where = principal.scope_chosen(scope)
    parts = parts_cut(_checked(text), at_most=settings.MEMSTATE_CHAT_CHUNK_CHARS)
    # The limit is checked before the text is stored, because storing takes time, and again under a lock.
    open_limit_check(principal.identity)
    with transaction.atomic():
        scope_wait(where)
        source = source_ensure(text, scope=where, principal=principal, now=now)
        open_limit_check(principal.identity, counting=True)
        job = job_new(
            StudyJob,
            principal=principal,
            now=now,
            id=job_id or uuid7_at(now),
            conversation_id=conversation_id,
            scope=where,
            model=model or "",
            source_id=source,
            part_chars=settings.MEMSTATE_CHAT_CHUNK_CHARS,
            segments=len(parts),
            enqueued_at=now,
        )
        job_start(job, now=now, enqueue=enqueue)
    return job


def study_resume(job_id: uuid.UUID, *, principal: Principal, now: dt.datetime, enqueue: Enqueue) -> StudyJob:
    """Continue a cancelled or failed study at the step where it stopped.

    Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` if the study is working or done, if its text was erased, if
    the writes of its conversation were undone since, if its owner may no longer write, or if too many studies are open.
    """
    principal.require("agent")
    seen = job_get(StudyJob, job_id, principal=principal)
    with transaction.atomic():
        # Like an undo, lock the conversation before the study.
        conversation = Conversation.objects.select_for_update(no_key=True).get(pk=seen.conversation_id)
        job = job_lock(StudyJob, job_id)
        if job.status not in (Status.CANCELLED, Status.FAILED):
            raise Conflict(
                f"This study is {job.get_status_display().lower()}, so there is nothing to resume.",
                code=ProblemCode.WRONG_STATUS,
            )
        if job.phase == Phase.BUILDING and source_text(job.source_id) is None:
            raise Conflict("The text was erased, so the study cannot continue.", code=ProblemCode.ERASED_MEANWHILE)
        if conversation.undone_at is not None and conversation.undone_at >= job.created_at:
            raise Conflict(
                "The writes of this conversation, and of the study, were undone. Start a new study instead.",
                code=ProblemCode.ERASED_MEANWHILE,
            )
        if job_writer(job, now=now) is None:
            raise Conflict(owner_lost_access(job.actor), code=ProblemCode.AUTHOR_NOT_ALLOWED)
        open_limit_check(job.identity, counting=True)
        job.status, job.failure, job.tries = Status.WORKING, "", 0
        job.not_before, job.finished_at, job.moved_at, job.enqueued_at = None, None, now, now
        job_start(job, now=now, enqueue=enqueue, action="resumed", actor=principal.actor)
    return job


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
