"""When a study gets a worker. Fewer studies run at once than there are workers, and each has one worker at most.

A queue entry has the number of turns that its study has had. The worker that takes it increases that number in the same
query. So of several entries with one number, which the check for stalled studies may create, only the first counts.
"""

import datetime as dt
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Count, F, Q

from memory.core.callbacks import Enqueue
from memory.core.errors import Conflict
from memory.core.problem_codes import ProblemCode
from memory.jobs.resumable import jobs_stalled, jobs_take
from memory.models import StudyJob
from memory.models.locks import Lock, lock_wait, session_lock_release, session_lock_try


def open_limit_check(identity: str, *, counting: bool = False) -> None:
    """Check that one more study may be open. One query. ``counting`` locks out other checks until the transaction ends,
    for one more query.

    Raises ``Conflict``. Each study sends hundreds of requests to the model, so many at once would all be slow.
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
    """Return how many studies may run at once: all workers but one, which is kept for other tasks, and at least one."""
    return max(1, int(str(settings.Q_CLUSTER["workers"])) - 1)


def study_turn(job_id: uuid.UUID) -> int:
    """Return the turn number for the next queue entry of a study. One query."""
    return StudyJob.objects.values_list("turns", flat=True).get(pk=job_id)


def turn_acquire(job_id: uuid.UUID, turn: int | None) -> bool:
    """Take a queue entry; return True if it is the first with its number, or has none. One query."""
    return turn is None or bool(StudyJob.objects.filter(pk=job_id, turns=turn).update(turns=F("turns") + 1))


def turn_release(job_id: uuid.UUID) -> None:
    """Save that a study has no worker. One query."""
    StudyJob.objects.filter(pk=job_id).update(enqueued_at=None)


def studies_stalled(*, now: dt.datetime) -> list[uuid.UUID]:
    """Return studies that are due and those that have lost their worker, marked as enqueued.

    At most as many as there are slots, the longest waiting first. Two queries. Usually the worker of one study enqueues
    the next; this finds those that were lost.
    """
    return jobs_stalled(StudyJob, now=now, due=_due(now), most=slots())


def study_next(*, now: dt.datetime, enqueue: Enqueue) -> None:
    """Enqueue the study that has waited longest, if one is due. At most two queries and those of ``enqueue``."""
    with transaction.atomic():
        for job_id in jobs_take(StudyJob, _due(now), most=1, now=now):
            enqueue(job_id)


@contextmanager
def slot_acquired() -> Iterator[bool]:
    """Hold one of the slots for running studies during the block; yield True if one was free. A query per slot."""
    for number in range(slots()):
        with study_lock(f"study-slot:{number}") as taken:
            if taken:
                yield True
                return
    yield False


@contextmanager
def study_lock(name: str) -> Iterator[bool]:
    """Hold the session lock of this name during the block; yield True if it was free. Two queries.

    A killed process loses the lock with its connection.
    """
    taken = session_lock_try(Lock.STUDY, name)
    try:
        yield taken
    finally:
        if taken:
            # A broken connection has released it.
            with suppress(DatabaseError):
                session_lock_release(Lock.STUDY, name)


def _due(now: dt.datetime) -> Q:
    return Q(Q(not_before=None) | Q(not_before__lte=now), enqueued_at=None)
