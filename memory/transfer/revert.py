"""Reverts an import: releases the topics that the import created, except topics that were changed after the import.

Nothing is deleted. Each step is a manual change with a run of its own, which can be undone. Imported policies stay.
"""

import datetime as dt
import uuid
from typing import NamedTuple

from django.db import transaction
from django.db.models import Count, Q

from memory.access.principal import Principal
from memory.core.errors import Conflict
from memory.core.problem_codes import ProblemCode
from memory.forgetting.manual_actions import MAX_AT_ONCE, topics_move
from memory.jobs.resumable import job_get, job_lock
from memory.models import AuditEvent, ForgetRun, ImportedTopic, ImportJob
from memory.models.labels import labels_read

# The largest number of kept topics that a preview names.
NAMED = 20
_IN_USE = Q(topic__released_at__isnull=True, topic__merged_into__isnull=True)


class RevertPreview(NamedTuple):
    """Numbers of topics of an import: ``standing`` can be released, ``written`` stay because they were changed after
    the import, ``gone`` are released or merged already. ``left`` has the id and label of the first topics that stay."""

    standing: int
    written: int
    gone: int
    left: list[tuple[uuid.UUID, str]]

    @property
    def next(self) -> int:
        """The number of topics that one step releases."""
        return min(self.standing, MAX_AT_ONCE)


class RevertStep(NamedTuple):
    """The result of a step: the number of released topics, the run (None if no topic was released), and a new
    preview."""

    released: int
    run: ForgetRun | None
    rest: RevertPreview


def import_revert_preview(job_id: uuid.UUID, *, principal: Principal) -> RevertPreview:
    """Return which topics of an import can be released. Three queries, one of which reads a row for each topic. Raises
    ``NotAllowed`` unless the caller is an operator, ``NotVisible``."""
    principal.require("operator")
    return _preview(job_get(ImportJob, job_id, principal=principal))


def import_release(
    job_id: uuid.UUID, *, principal: Principal, reason: str, now: dt.datetime, expected: int | None = None
) -> RevertStep:
    """Release at most ``MAX_AT_ONCE`` topics of an import in one transaction; call it again for the remainder.
    ``expected`` is the number that the preview showed. Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` if the
    import is unfinished or the number is not ``expected``."""
    principal.require("operator")
    job_get(ImportJob, job_id, principal=principal)
    with transaction.atomic():
        job = job_lock(ImportJob, job_id)
        if job.status in job.UNFINISHED or job.finished_at is None:
            raise Conflict(
                f"This import is {job.get_status_display().lower()}. Its memories can be released when it is finished.",
                code=ProblemCode.WRONG_STATUS,
            )
        topics = ImportedTopic.objects.filter(_IN_USE, ~_changed_since(job), job=job).order_by("topic_id")
        ids = list(topics.values_list("topic_id", flat=True)[:MAX_AT_ONCE])
        if expected is not None and expected != len(ids):
            raise Conflict(
                f"This would release {len(ids):,} memories now, not {expected:,}. Preview it again.",
                code=ProblemCode.CHANGED_MEANWHILE,
            )
        moved = topics_move("release", ids, seen_at=job.finished_at, principal=principal, reason=reason, now=now)
        released = moved.run.applied if moved.run is not None else 0
        if moved.run is not None:
            job.run = moved.run
            job.save(update_fields=["run"])
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
    written = _changed_since(job)
    topics = ImportedTopic.objects.filter(job=job)
    counts = topics.aggregate(
        standing=Count("topic", filter=_IN_USE & ~written),
        written=Count("topic", filter=_IN_USE & written),
        gone=Count("topic", filter=~_IN_USE),
    )
    left = topics.filter(_IN_USE & written).order_by("topic_id").values_list("topic_id", flat=True)[:NAMED]
    return RevertPreview(**counts, left=list(labels_read(left).items()))


def _changed_since(job: ImportJob) -> Q:
    """Return the condition that a topic was changed after the import."""
    return Q(topic__updated_at__gt=job.finished_at)
