"""The undo of an import: a planned run that releases the topics that the import created. Topics that were changed after
the import are skipped. Imported policies stay."""

import datetime as dt
import uuid

from django.db.models import F, Q
from django.db.models.lookups import GreaterThan

from memory.access.principal import Principal
from memory.core.errors import Conflict
from memory.forgetting.manual_actions import MAX_PLANNED, MoveResult, topics_plan
from memory.models import ForgetRun, ImportedTopic, ImportJob
from memory.resumable import job_get

_IN_USE = Q(topic__released_at__isnull=True, topic__merged_into__isnull=True)
_APPLIED = (ForgetRun.Status.APPLYING, ForgetRun.Status.DONE)


def import_undo_plan(job_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> MoveResult:
    """Plan the release of the topics of an import, at most ``MAX_PLANNED``, those that were changed since last;
    ``run_begin`` applies the run. ``job.run`` names it, unless it names a run that was applied and not undone. About
    nine queries. Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` if the import is unfinished."""
    principal.require("operator")
    job = job_get(ImportJob, job_id, principal=principal)
    if job.status in job.UNFINISHED or job.finished_at is None:
        raise Conflict(
            f"This import is {job.get_status_display().lower()}. Its memories can be released when it is finished."
        )
    changed = GreaterThan(F("topic__updated_at"), job.finished_at)
    topics = ImportedTopic.objects.filter(_IN_USE, job=job).order_by(changed, "topic_id")
    ids = list(topics.values_list("topic_id", flat=True)[:MAX_PLANNED])
    planned = topics_plan("release", ids, principal=principal, now=now, seen_at=job.finished_at)
    if planned.run is not None and (job.run is None or job.run.status not in _APPLIED):
        job.run = planned.run
        job.save(update_fields=["run"])
    return planned


def import_left(job: ImportJob) -> bool:
    """Return whether an undo of a finished import would release topics. One query."""
    unchanged = Q(topic__updated_at__lte=job.finished_at)
    return ImportedTopic.objects.filter(_IN_USE, unchanged, job=job).exists()
