"""Taking an import back: the topics that it has brought are released, but for those that somebody has written to since.

Nothing is removed. Each step is a change by hand with a run of its own, which undo takes back; policies that came with
the file stay.
"""

import datetime as dt
import uuid
from typing import NamedTuple

from django.db import transaction
from django.db.models import Count, Q, QuerySet

from memory.access.principal import Principal
from memory.core.errors import Conflict
from memory.core.problem_codes import ProblemCode
from memory.forgetting.manual_actions import MOST_AT_ONCE, topics_move
from memory.jobs.resumable import job_get, job_lock
from memory.models import AuditEvent, ForgetRun, ImportedTopic, ImportJob

# So many of those that are left are named.
NAMED = 20


class RevertPreview(NamedTuple):
    """What an import has brought, as it stands: how many topics can be released, how many were written to since and
    are left, and how many have left retrieval already; of those that are left, the first, with their titles."""

    standing: int
    written: int
    gone: int
    left: list[tuple[uuid.UUID, str]]

    @property
    def next(self) -> int:
        """How many one step releases."""
        return min(self.standing, MOST_AT_ONCE)


class RevertStep(NamedTuple):
    """What a step has released, with the run that takes it back (None for nothing), and what stands after it."""

    released: int
    run: ForgetRun | None
    rest: RevertPreview


def import_revert_preview(job_id: uuid.UUID, *, principal: Principal) -> RevertPreview:
    """Return what an import has brought, as it stands. Three queries, one of which reads a row for each topic.

    Raises ``NotAllowed`` below operator, ``NotVisible``.
    """
    principal.require("operator")
    return _preview(job_get(ImportJob, job_id, principal=principal))


def import_release(
    job_id: uuid.UUID, *, principal: Principal, reason: str, now: dt.datetime, expected: int | None = None
) -> RevertStep:
    """Release topics that an import has brought, ``MOST_AT_ONCE`` at most, in one transaction; call it again for the
    remainder. ``expected`` is the number that the preview showed (``RevertPreview.next``). Runs a few SQL statements
    more than a manual change, however many topics.

    Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` if the import is not at its end, or if it would be another
    number than ``expected``.
    """
    principal.require("operator")
    job_get(ImportJob, job_id, principal=principal)
    with transaction.atomic():
        job = job_lock(ImportJob, job_id)
        if job.status in job.UNFINISHED or job.finished_at is None:
            raise Conflict(
                f"This import is {job.get_status_display().lower()}; what it brings can be released once it has ended.",
                code=ProblemCode.WRONG_STATUS,
            )
        ids = list(_standing(job).order_by("topic_id").values_list("topic_id", flat=True)[:MOST_AT_ONCE])
        if expected is not None and expected != len(ids):
            raise Conflict(
                f"This would release {len(ids):,} topics now, not {expected:,}. Preview it again.",
                code=ProblemCode.CHANGED_MEANWHILE,
            )
        moved = topics_move("release", ids, seen_at=job.finished_at, principal=principal, reason=reason, now=now)
        released = moved.run.applied if moved.run is not None else 0
        if moved.run is not None:
            AuditEvent.objects.create(
                at=now,
                actor=principal.actor,
                action="import_released",
                scope=job.scope or job.principal_scope,
                reason=reason,
                after={"job": str(job.pk), "run": str(moved.run.pk), "topics": released},
            )
        return RevertStep(released, moved.run, _preview(job))


def _preview(job: ImportJob) -> RevertPreview:
    if job.finished_at is None:
        return RevertPreview(0, 0, 0, [])
    written = _written(job)
    counts = _topics(job).aggregate(
        standing=Count("topic", filter=_HERE & ~written),
        written=Count("topic", filter=_HERE & written),
        gone=Count("topic", filter=~_HERE),
    )
    left = _topics(job).filter(_HERE & written).order_by("topic_id").values_list("topic_id", "topic__title")
    return RevertPreview(**counts, left=list(left[:NAMED]))


_HERE = Q(topic__released_at__isnull=True, topic__merged_into__isnull=True)


def _topics(job: ImportJob) -> QuerySet[ImportedTopic]:
    return ImportedTopic.objects.filter(job=job)


def _standing(job: ImportJob) -> QuerySet[ImportedTopic]:
    return _topics(job).filter(_HERE, ~_written(job))


def _written(job: ImportJob) -> Q:
    """What somebody has written to since the import has ended."""
    return Q(topic__updated_at__gt=job.finished_at)
