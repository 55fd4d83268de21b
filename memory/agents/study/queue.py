"""Which study has a worker, and when: so many at once, fewer than there are workers, each in its turn, one at a time.

An entry of the queue bears the number of turns that its study has had. Whoever takes it up counts that turn, if nobody
did before; so of copies, which a net under lost calls makes now and then, one counts and the others end at once.
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


def room_check(identity: str, *, counting: bool = False) -> None:
    """Make sure that one more study may be open. One query; with ``counting`` two, and nobody else counts until the
    transaction ends.

    Raises ``Conflict``: each study asks the model hundreds of times, and many at once would all take for ever.
    """
    if counting:
        lock_wait(Lock.COUNT_STUDIES)
    working = StudyJob.objects.filter(status=StudyJob.Status.WORKING)
    found = working.aggregate(all=Count("pk"), own=Count("pk", filter=Q(identity=identity)))
    own, most = settings.MEMSTATE_STUDY_MOST_OPEN_PER_KEY, settings.MEMSTATE_STUDY_MOST_OPEN
    if found["own"] >= own:
        raise Conflict(
            f"{found['own']} of your long texts are being studied already, and {own} may be at once; wait until one is "
            "done, or cancel one.",
            code=ProblemCode.TOO_MANY_STUDIES,
        )
    if found["all"] >= most:
        raise Conflict(
            f"{found['all']} long texts are being studied already, which is as many as this store takes on at once; "
            "try again later.",
            code=ProblemCode.TOO_MANY_STUDIES,
        )


def places() -> int:
    """Return how many studies may be at work at once: a worker is kept for everything else, if there are two."""
    return max(1, int(str(settings.Q_CLUSTER["workers"])) - 1)


def study_turn(job_id: uuid.UUID) -> int:
    """Return the number that the next entry of the queue has to bear. One query."""
    return StudyJob.objects.values_list("turns", flat=True).get(pk=job_id)


def turn_taken(job_id: uuid.UUID, turn: int | None) -> bool:
    """Take up an entry of the queue; tell whether it is the first of its number. One query. None always counts."""
    return turn is None or bool(StudyJob.objects.filter(pk=job_id, turns=turn).update(turns=F("turns") + 1))


def turn_over(job_id: uuid.UUID) -> None:
    """Note that no worker has a study any more. One query."""
    StudyJob.objects.filter(pk=job_id).update(enqueued_at=None)


def studies_stalled(*, now: dt.datetime) -> list[uuid.UUID]:
    """Return studies that are due and those that have lost their worker, marked as enqueued.

    At most as many as there are places, the longest waiting first. Two queries. This is a safety net: usually the
    worker of one study enqueues the next.
    """
    return jobs_stalled(StudyJob, now=now, due=_due(now), most=places())


def study_next(*, now: dt.datetime, enqueue: Enqueue) -> None:
    """Enqueue the study that has waited longest, if one is due. At most two queries and those of ``enqueue``."""
    with transaction.atomic():
        for job_id in jobs_take(StudyJob, _due(now), most=1, now=now):
            enqueue(job_id)


@contextmanager
def place_taken() -> Iterator[bool]:
    """Take one of the places for studies at work, for the block; tell whether one was free. A query each."""
    for number in range(places()):
        with alone(f"study-place:{number}") as taken:
            if taken:
                yield True
                return
    yield False


@contextmanager
def alone(name: str) -> Iterator[bool]:
    """Keep other processes from what has this name, for the block; tell whether none was there. Two queries.

    A killed process loses this with its connection.
    """
    taken = session_lock_try(Lock.STUDY, name)
    try:
        yield taken
    finally:
        if taken:
            # A connection that broke has let go of it.
            with suppress(DatabaseError):
                session_lock_release(Lock.STUDY, name)


def _due(now: dt.datetime) -> Q:
    return Q(Q(not_before=None) | Q(not_before__lte=now), enqueued_at=None)
