"""Finds the topics of a file that exist in the store or were erased."""

import uuid
from collections.abc import Sequence

from django.db import connection

from memory.ingest.items import IngestItem
from memory.models import Link, Topic
from memory.transfer.batches import ERASED_SQL

Ids = set[uuid.UUID]


def ids_known(ids: Sequence[uuid.UUID]) -> tuple[Ids, Ids]:
    """Return two parts of ``ids``: the ids of existing topics in any scope, and the ids that a purge has erased. Two
    queries."""
    there = set(Topic.objects.filter(pk__in=ids).values_list("pk", flat=True))
    with connection.cursor() as cursor:
        cursor.execute(ERASED_SQL, [[str(each) for each in ids]])
        return there, {row[0] for row in cursor.fetchall()}


def item_id(item: IngestItem) -> uuid.UUID:
    """Return the id of the topic that an importer's item creates or extends."""
    assert item.topic_id is not None
    return uuid.UUID(item.topic_id)


def items_new(items: Sequence[IngestItem], *, there: Ids, erased: Ids) -> list[IngestItem]:
    """Return the items whose topics are neither ``there`` nor ``erased``, without links to missing topics. An item that
    extends a topic needs the topic and links that are not stored yet. At most one query."""
    given: list[IngestItem] = []
    ids = set(there)
    extending = [item_id(item) for item in items if item.placement != "new_topic"]
    stored: set[tuple[uuid.UUID, uuid.UUID, str]] = set()
    if extending:
        links = Link.objects.filter(source_id__in=extending)
        stored = set(links.values_list("source_id", "target_id", "kind"))
    for item in items:
        topic_id = item_id(item)
        is_new = item.placement == "new_topic"
        if topic_id in erased or (topic_id in ids) is is_new:
            continue
        ids.add(topic_id)
        edges = [
            edge
            for edge in item.edges
            if edge.to_topic_id in ids and (topic_id, edge.to_topic_id, edge.kind) not in stored
        ]
        if not is_new and not edges:
            continue
        given.append(item if len(edges) == len(item.edges) else item.model_copy(update={"edges": edges}))
    return given
