"""Finds the topics of a file that exist in the store or were erased."""

import uuid
from collections.abc import Iterable, Sequence

from django.db import connection

from memory.ingest.items import IngestItem
from memory.transfer.batches import ERASED_IDS

Ids = set[uuid.UUID]

_THERE_SQL = "SELECT id FROM memory_topic WHERE id = ANY(%s)"
_ERASED_SQL = f"SELECT DISTINCT e.id::uuid FROM {ERASED_IDS} WHERE e.id = ANY(%s)"


def ids_known(ids: Sequence[uuid.UUID]) -> tuple[Ids, Ids]:
    """Return (ids of topics in any scope, ids that a purge has erased) among ``ids``. Two queries."""
    with connection.cursor() as cursor:
        cursor.execute(_THERE_SQL, [list(ids)])
        there = {row[0] for row in cursor.fetchall()}
        cursor.execute(_ERASED_SQL, [[str(each) for each in ids]])
        return there, {row[0] for row in cursor.fetchall()}


def item_id(item: IngestItem) -> uuid.UUID:
    """Return the id of the topic that an importer's item creates."""
    assert item.topic_id is not None
    return uuid.UUID(item.topic_id)


def items_new(items: Iterable[IngestItem], *, there: Ids, erased: Ids) -> list[IngestItem]:
    """Return the items whose topics neither exist nor were erased, without links to missing topics.

    ``there`` and ``erased`` are the ids of existing and of erased topics, among the items and the targets of their
    links."""
    given: list[IngestItem] = []
    ids = set(there)
    for item in items:
        topic_id = item_id(item)
        if topic_id in ids or topic_id in erased:
            continue
        ids.add(topic_id)
        edges = [edge for edge in item.edges if edge.to_topic_id in ids]
        given.append(item if len(edges) == len(item.edges) else item.model_copy(update={"edges": edges}))
    return given
