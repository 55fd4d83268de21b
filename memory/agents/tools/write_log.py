"""The writes of a conversation, and their log. An undo finds the writes by this log.

Each write is journaled like any ingest. In addition, ``ConversationWrite`` stores which conversation wrote it: one row
for each topic, value and link, in the same transaction and with the same time.
"""

import datetime as dt
import uuid
from collections.abc import Callable, Collection, Sequence

from django.db import connection, transaction

from memory.access.principal import Principal
from memory.agents.tools.write_tools import Writer
from memory.core.errors import Conflict, MemoryProblem, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.ingest.apply import PreparedItems, ingest_apply, ingest_prepare
from memory.ingest.items import IngestItem
from memory.ingest.metrics import items_count
from memory.ingest.plan import ItemReply, item_topic_ids
from memory.models import ConversationWrite

What = ConversationWrite.What

# Only links that this item created are logged: neither older links nor links that another conversation has logged.
_INSERT_WRITES_SQL = """
INSERT INTO memory_conversationwrite (conversation_id, topic_id, at, what, revision_id, link_id, "left")
SELECT %(conversation)s, d.topic, %(now)s, d.what, d.revision, l.id, ''
FROM unnest(%(topics)s::uuid[], %(whats)s::text[], %(revisions)s::uuid[], %(targets)s::uuid[], %(kinds)s::text[])
     WITH ORDINALITY AS d (topic, what, revision, target, kind, place)
LEFT JOIN memory_link l ON l.source_id = d.topic AND l.target_id = d.target AND l.kind = d.kind
    AND l.created_at = %(now)s
    AND NOT EXISTS (SELECT 1 FROM memory_conversationwrite w WHERE w.topic_id = l.source_id AND w.link_id = l.id)
WHERE d.target IS NULL OR l.id IS NOT NULL
ORDER BY d.place
"""
_LOCK_TOPICS_SQL = "SELECT id FROM memory_topic WHERE id = ANY(%(ids)s) ORDER BY id FOR KEY SHARE"

Row = tuple[uuid.UUID, str, uuid.UUID | None, uuid.UUID | None, str | None]


def writes_log(conversation_id: uuid.UUID, pairs: Sequence[tuple[IngestItem, ItemReply]], *, now: dt.datetime) -> None:
    """Log the writes of items for a conversation: new topics, values, and new links.

    ``pairs`` are accepted items with their replies. Must be called in the transaction that wrote the items, with the
    same ``now``. One statement for any number of items.
    """
    rows = [row for item, reply in pairs for row in _rows(item, reply)]
    if not rows:
        return
    # Several items may contain the same link.
    topics, whats, revisions, targets, kinds = map(list, zip(*dict.fromkeys(rows), strict=True))
    with connection.cursor() as cursor:
        cursor.execute(
            _INSERT_WRITES_SQL,
            {
                "conversation": conversation_id,
                "now": now,
                "topics": topics,
                "whats": whats,
                "revisions": revisions,
                "targets": targets,
                "kinds": kinds,
            },
        )


def writer_make(
    principal: Principal,
    conversation_id: uuid.UUID,
    clock: Callable[[], dt.datetime],
    *,
    unlogged: Callable[[], Collection[uuid.UUID]] = tuple,
    check: Callable[[], None] = lambda: None,
) -> Writer:
    """Return a function that ingests one item with the rights of ``principal`` and logs it for the conversation.

    Each item has its own transaction and is embedded before it. ``unlogged`` returns the topics that the model has read
    but that are not in the log of the turn yet. If one of these was erased since, nothing is written, because the item
    may repeat its text. ``check`` is called at the end of the transaction; if it raises, nothing is written. The writer
    raises the errors of ingest, ``ValueRefused`` for a kind that is never forgotten, ``Conflict`` after an erasure, and
    the errors of ``check``.
    """

    def write(item: IngestItem) -> ItemReply:
        now = clock()
        prepared = ingest_prepare([item], principal=principal, now=now, defer=False)
        _check_kind(item, prepared, principal=principal)
        with transaction.atomic():
            # The topics that were read are locked together with the topics of the item and before any stronger lock, in
            # the same order by all writers.
            read, (changed, named) = set(unlogged()), item_topic_ids(item)
            if read and read & topics_lock_shared(read | changed | named):
                raise Conflict(
                    "A topic that was read in this conversation has been erased, so nothing was written.",
                    code=ProblemCode.ERASED_MEANWHILE,
                )
            (outcome,) = ingest_apply(prepared, principal=principal, now=now)
            if isinstance(outcome, MemoryProblem):
                items_count(accepted=0, refused=1)
                raise outcome
            writes_log(conversation_id, [(item, outcome)], now=now)
            check()
        items_count(accepted=1, refused=0)
        return outcome

    return write


def _check_kind(item: IngestItem, prepared: PreparedItems, *, principal: Principal) -> None:
    """Refuse kinds that are exempt from forgetting, because a model must not decide what is kept forever."""
    exempt = prepared.policies.effective(principal.scope_chosen(item.scope)).knobs.exempt_kinds
    if item.placement == "new_topic" and item.topic_kind in exempt:
        raise ValueRefused(
            f"Topics of kind {item.topic_kind!r} are never forgotten, so only people can create them. Choose another "
            "kind.",
            code=ProblemCode.RESERVED_KIND,
        )


def topics_lock_shared(ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Lock these topics against a purge until the transaction ends. Return the ids of topics that no longer exist.

    One statement; none without ids. Must run in a transaction.
    """
    topic_ids = set(ids)
    if not topic_ids:
        return topic_ids
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_TOPICS_SQL, {"ids": sorted(topic_ids)})
        return topic_ids - {row[0] for row in cursor.fetchall()}


def _rows(item: IngestItem, reply: ItemReply) -> list[Row]:
    rows: list[Row] = []
    made = {name for kind, _colon, name in (each.partition(":") for each in reply.applied) if kind == "field"}
    if any(each.startswith("created_topic:") for each in reply.applied):
        rows.append((reply.topic_id, What.TOPIC, None, None, None))
    for name, revision in reply.version_ids.items():
        what = What.FIELD if name in made else What.VERSION
        rows.append((reply.topic_id, what, uuid.UUID(revision), None, None))
    rows += [(reply.topic_id, What.LINK, None, edge.to_topic_id, edge.kind) for edge in item.edges]
    return rows
