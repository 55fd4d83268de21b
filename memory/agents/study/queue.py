"""Decides when a study gets a worker. One worker is kept free for other jobs, and a study has at most one worker.

Each queue entry has a number: the value of ``turns`` when the entry was created. The worker that takes the entry
increases ``turns`` in the same query. So of several entries with the same number, only the first one is valid.
"""

import datetime as dt
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.conf import settings
from django.db import DatabaseError
from django.db.models import Count, F, Q

from memory.core.callbacks import Enqueue
from memory.core.errors import Conflict
from memory.core.problem_codes import ProblemCode
from memory.jobs.resumable import jobs_stalled, jobs_take
from memory.models import StudyJob
from memory.models.locks import Lock, lock_wait, session_lock_release, session_lock_try


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
            code=ProblemCode.TOO_MANY_STUDIES,
        )
    if found["all"] >= most:
        raise Conflict(
            f"{found['all']} long texts are being studied, which is the limit of this store. Try again later.",
            code=ProblemCode.TOO_MANY_STUDIES,
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
    for number in range(slots()):
        with study_lock(f"study-slot:{number}") as taken:
            if taken:
                yield True
                return
    yield False


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
