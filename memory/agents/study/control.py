"""Start and resume a study, and decide when it gets a worker.

One worker is kept free for other jobs, and a study has at most one worker. Each queue entry has a number: the value of
``turns`` when the entry was created. The worker that takes the entry increases ``turns`` in the same query. So of
several entries with the same number, only the first one is valid.
"""

import datetime as dt
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Count, F, Q

from memory.access.impersonation import job_writer, owner_lost_access
from memory.access.principal import Principal
from memory.agents.study.progress import Phase
from memory.core.callbacks import Enqueue
from memory.core.errors import Conflict
from memory.core.ids import uuid7_at
from memory.core.problem_codes import ProblemCode
from memory.extraction.parts import parts_cut
from memory.extraction.request import content_check
from memory.extraction.store import scope_wait, source_ensure, source_text
from memory.llm.chat_request import model_configured
from memory.llm.wire import ModelUnavailable
from memory.models import Conversation, StudyJob
from memory.models.locks import Lock, lock_wait, session_lock_release, session_lock_try
from memory.resumable import Status, job_get, job_lock, job_new, job_start, jobs_stalled, jobs_take
from memory.stores.pending import work_pending


def study_start(
    text: str,
    *,
    conversation_id: uuid.UUID,
    scope: str | None,
    model: str | None,
    principal: Principal,
    now: dt.datetime,
    enqueue: Enqueue | None,
    job_id: uuid.UUID | None = None,
    needs_model: bool = True,
) -> StudyJob:
    """Store the text as a source and enqueue its study, in one transaction. Queries do not return sources.

    Costs two batches of ingest, and about three seconds per million characters. Raises ``NotAllowed``, ``NotVisible``,
    ``ValueRefused`` for a text that is empty or longer than ``MEMSTATE_STUDY_MAX_CHARS``, ``ModelUnavailable`` if no
    model is configured, and ``Conflict`` if too many studies are open. The demo passes ``needs_model`` and ``job_id``,
    and no ``enqueue``, because it writes the topics itself, always with the same ids.
    """
    principal.require("agent")
    if needs_model and not model_configured():
        raise ModelUnavailable(
            "A long text is studied by a language model, and none is configured: set MEMSTATE_LLM_MODEL.",
            kind="not_configured",
        )
    where = principal.scope_chosen(scope)
    content_check(text, most=settings.MEMSTATE_STUDY_MAX_CHARS)
    parts = parts_cut(text, at_most=settings.MEMSTATE_CHAT_CHUNK_CHARS)
    # Storing the text takes time, so the limit is checked first without a lock. The check is repeated under a lock.
    open_limit_check(principal.identity)
    work_pending()
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
    the writes of its conversation were undone after it began, if its owner may no longer write, or if too many studies
    are open.
    """
    principal.require("agent")
    seen = job_get(StudyJob, job_id, principal=principal)
    work_pending()
    with transaction.atomic():
        # Lock the conversation before the study. An undo uses the same order.
        conversation = Conversation.objects.select_for_update(no_key=True).get(pk=seen.conversation_id)
        job = job_lock(StudyJob, job_id)
        if job.status not in (Status.CANCELLED, Status.FAILED):
            raise Conflict(f"This study is {job.get_status_display().lower()}, so there is nothing to resume.")
        if job.phase == Phase.BUILDING and source_text(job.source_id) is None:
            raise Conflict("The text was erased, so the study cannot continue.", code=ProblemCode.ERASED_MEANWHILE)
        if conversation.undone_at is not None and conversation.undone_at >= job.created_at:
            raise Conflict(
                "The writes of this conversation, and of the study, were undone. Start a new study instead.",
                code=ProblemCode.ERASED_MEANWHILE,
            )
        if job_writer(job, now=now) is None:
            raise Conflict(owner_lost_access(job.actor), code=ProblemCode.NOT_ALLOWED)
        open_limit_check(job.identity, counting=True)
        job.status, job.failure, job.tries = Status.WORKING, "", 0
        job.not_before, job.finished_at, job.moved_at, job.enqueued_at = None, None, now, now
        job_start(job, now=now, enqueue=enqueue, action="resumed", actor=principal.actor)
    return job


def open_limit_check(identity: str, *, counting: bool = False) -> None:
    """Raise ``Conflict`` if too many studies are open, of this caller or in total. One query.

    The number is limited because each study sends hundreds of requests to the model. With ``counting``, one more query
    takes a lock, so that other checks with ``counting`` wait until the transaction ends.
    """
    if counting:
        lock_wait(Lock.COUNT_STUDIES)
    working = StudyJob.objects.filter(status=StudyJob.Status.WORKING)
    found = working.aggregate(all=Count("pk"), own=Count("pk", filter=Q(identity=identity)))
    own, most = settings.MEMSTATE_STUDY_MOST_OPEN_PER_KEY, settings.MEMSTATE_STUDY_MOST_OPEN
    if found["own"] >= own:
        raise Conflict(
            f"{found['own']} of your long texts are being studied, and the limit is {own}. Wait until one is done, or "
            "cancel one.",
            code=ProblemCode.TOO_MANY_REQUESTS,
        )
    if found["all"] >= most:
        raise Conflict(
            f"{found['all']} long texts are being studied, which is the limit of this store. Try again later.",
            code=ProblemCode.TOO_MANY_REQUESTS,
        )


def slots() -> int:
    """Return how many studies may run at once: one fewer than there are workers, but at least one."""
    return max(1, int(str(settings.Q_CLUSTER["workers"])) - 1)


def study_turn(job_id: uuid.UUID) -> int:
    """Return the number for the next queue entry of a study. One query."""
    return StudyJob.objects.values_list("turns", flat=True).get(pk=job_id)


def queue_entry_take(job_id: uuid.UUID, turn: int | None) -> bool:
    """Take a queue entry. Return True if the entry is the first with its number or has no number. One query."""
    return turn is None or bool(StudyJob.objects.filter(pk=job_id, turns=turn).update(turns=F("turns") + 1))


def worker_released(job_id: uuid.UUID) -> None:
    """Store that a study has no worker. One query."""
    StudyJob.objects.filter(pk=job_id).update(enqueued_at=None)


def studies_stalled(*, now: dt.datetime) -> list[uuid.UUID]:
    """Mark as enqueued the studies that are due or have lost their worker, at most as many as there are slots.

    Return their ids; the study that has waited longest comes first. Two queries.
    """
    return jobs_stalled(StudyJob, now=now, due=_due(now), most=slots())


def study_next(*, now: dt.datetime, enqueue: Enqueue) -> None:
    """Enqueue the study that has waited longest, if one is due. At most two queries, plus those of ``enqueue``."""
    for job_id in jobs_take(StudyJob, _due(now), most=1, now=now):
        enqueue(job_id)


@contextmanager
def slot_acquired() -> Iterator[bool]:
    """Take one of the slots for running studies during the block. Yield whether a slot was free. One query per slot."""
    with ExitStack() as stack:
        yield any(stack.enter_context(study_lock(f"study-slot:{number}")) for number in range(slots()))


@contextmanager
def study_lock(name: str) -> Iterator[bool]:
    """Take the session lock ``name`` during the block. Yield whether the lock was free. Two queries."""
    taken = session_lock_try(Lock.STUDY, name)
    try:
        yield taken
    finally:
        if taken:
            # A broken connection has already released the lock.
            with suppress(DatabaseError):
                session_lock_release(Lock.STUDY, name)


def _due(now: dt.datetime) -> Q:
    return Q(Q(not_before=None) | Q(not_before__lte=now), enqueued_at=None)
