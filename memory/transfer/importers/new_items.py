"""Decides which items of a file are imported: those whose topics neither exist in the store nor were erased."""

import uuid
from collections.abc import Sequence

from django.db import connection

from memory.ingest.items import IngestItem
from memory.models import Link, Topic
from memory.transfer.batches import ERASED_SQL
from memory.transfer.report import BROUGHT, ERASED, THERE, Counts, counts_add

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


def items_new(items: Sequence[IngestItem], *, check: bool = False) -> tuple[Counts, list[IngestItem]]:
    """Return (counts of the items that are not imported, the items that are). Links to missing topics and stored links
    are left out; an item that extends a topic needs the topic and a new link. A check keeps all links, because the
    items before it are not stored. At most three queries."""
    given: list[IngestItem] = []
    counts: Counts = {}
    ids = {item_id(item) for item in items} | {edge.to_topic_id for item in items for edge in item.edges}
    here, erased = ids_known(list(ids))
    extending = [] if check else [item_id(item) for item in items if item.placement != "new_topic"]
    links = Link.objects.filter(source_id__in=extending) if extending else Link.objects.none()
    stored = set(links.values_list("source_id", "target_id", "kind"))
    for item in items:
        topic_id, edges = item_id(item), item.edges
        is_new = item.placement == "new_topic"
        if is_new and (topic_id in here or topic_id in erased):
            counts_add(counts, {"topic": {ERASED if topic_id in erased else THERE: 1}})
            continue
        if not check:
            here.update([topic_id] if is_new else [])
            edges = [
                edge
                for edge in edges
                if edge.to_topic_id in here and (topic_id, edge.to_topic_id, edge.kind) not in stored
            ]
        if is_new or (edges and (check or topic_id in here)):
            given.append(item if len(edges) == len(item.edges) else item.model_copy(update={"edges": edges}))
    return counts, given


def item_counts(item: IngestItem) -> Counts:
    """Return the counts of an imported item."""
    new = {"topic": {BROUGHT: int(item.placement == "new_topic")}, "field": {BROUGHT: len(item.fields)}}
    return new | {"link": {BROUGHT: len(item.edges)}}
