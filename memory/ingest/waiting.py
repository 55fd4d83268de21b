"""What replies say of topics that wait for the worker, because they have no vector yet."""

import datetime as dt
from typing import Annotated

from memory.core.replies import TypedDict, doc
from memory.embedding import embedder_get
from memory.models import TopicVector

# The worker needs about this time until it begins.
WORKER_BEGINS = dt.timedelta(seconds=5)


class Waiting(TypedDict):
    """Topics that are found by their words, but not yet by their meaning."""

    topics: int
    until: Annotated[dt.datetime, doc("About when the worker will have embedded all topics that wait in the store.")]


def waiting_told(topics: int, *, now: dt.datetime) -> Waiting | None:
    """Return the member ``waiting`` of a reply, or None if ``topics``, the number of waiting topics that the reply is
    about, is 0. The time follows from what this process has needed for a passage. One query on the index of waiting
    topics, or none."""
    if not topics:
        return None
    ahead = TopicVector.objects.filter(embedding__isnull=True).count()
    seconds = ahead * embedder_get().seconds_per_passage
    return {"topics": topics, "until": now + WORKER_BEGINS + dt.timedelta(seconds=seconds)}
