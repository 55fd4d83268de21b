"""Jobs whose worker was lost: enqueued again, each once."""

import uuid
from typing import Any

from django.db import models, transaction


def stalled_take(jobs: "models.QuerySet[Any]", *, most: int, **noted: Any) -> list[uuid.UUID]:
    """Return the ids of at most ``most`` of ``jobs``, those first that moved longest ago, and write ``noted`` on them.

    What is noted has to take a job out of ``jobs``: then each is enqueued once, however long the queue is. Jobs that
    another transaction holds are passed over. Two queries, one if there is none.
    """
    with transaction.atomic():
        rows = jobs.select_for_update(skip_locked=True, no_key=True).order_by("moved_at")
        found = list(rows.values_list("pk", flat=True)[:most])
        if found:
            jobs.model.objects.filter(pk__in=found).update(**noted)
    return found
