"""Writes the items of a conversation, and logs what it wrote. An undo reads this log.

Each write is journaled like any ingest. In addition, ``ConversationWrite`` has one row for each topic, value and link
that a conversation wrote. The row is created in the transaction of the write and has the same time.
"""

import datetime as dt
import uuid
from collections.abc import Callable, Collection, Sequence

from django.db import connection, transaction

from memory.access.principal import Principal
from memory.core.errors import Conflict, MemoryProblem, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.ingest.apply import PreparedItems, ingest_apply, ingest_prepare
from memory.ingest.items import IngestItem
from memory.ingest.metrics import items_count
from memory.ingest.plan import ItemReply, item_topic_ids
from memory.models import ConversationWrite

What = ConversationWrite.What

# A link is logged only if the written items created it. Older links, and links that a conversation has already logged,
# are skipped.
_INSERT_WRITES_SQL = """
WITH rows (conversation_id, topic_id, at, what, revision_id, link_id, "left") AS MATERIALIZED (
    SELECT %(conversation)s, d.topic, %(now)s, d.what, d.revision, l.id, ''
    FROM unnest(%(topics)s::uuid[], %(whats)s::text[], %(revisions)s::uuid[], %(targets)s::uuid[], %(kinds)s::text[])
         WITH ORDINALITY AS d (topic, what, revision, target, kind, place)
    LEFT JOIN memory_link l ON l.source_id = d.topic AND l.target_id = d.target AND l.kind = d.kind
        AND l.created_at = %(now)s
        AND NOT EXISTS (SELECT 1 FROM memory_conversationwrite w WHERE w.topic_id = l.source_id AND w.link_id = l.id)
    WHERE d.target IS NULL OR l.id IS NOT NULL
    ORDER BY d.place
)
INSERT INTO memory_conversationwrite (conversation_id, topic_id, at, what, revision_id, link_id, "left")
SELECT * FROM rows
"""
_LOCK_TOPICS_SQL = "SELECT id FROM memory_topic WHERE id = ANY(%(ids)s) ORDER BY id FOR KEY SHARE"

Row = tuple[uuid.UUID, str, uuid.UUID | None, uuid.UUID | None, str | None]


def writes_log(conversation_id: uuid.UUID, pairs: Sequence[tuple[IngestItem, ItemReply]], *, now: dt.datetime) -> None:
    """Log which topics, values and links a conversation wrote. ``pairs`` has each accepted item with its reply.

    Must be called in the transaction that wrote the items, with the same ``now``. At most one SQL statement.
    """
    rows = [row for item, reply in pairs for row in _rows(item, reply)]
    if not rows:
        return
    # Several items may contain the same link.
    names = ("topics", "whats", "revisions", "targets", "kinds")
    columns = dict(zip(names, map(list, zip(*dict.fromkeys(rows), strict=True)), strict=True))
    with connection.cursor() as cursor:
        cursor.execute(_INSERT_WRITES_SQL, {"conversation": conversation_id, "now": now, **columns})


def item_write(
    item: IngestItem,
    *,
    principal: Principal,
    now: dt.datetime,
    conversation_id: uuid.UUID | None = None,
    unlogged: Collection[uuid.UUID] = (),
    check: Callable[[], None] = lambda: None,
) -> ItemReply:
    """Ingest one item with the rights of ``principal``, in a separate transaction, and log it for the conversation.

    ``unlogged`` are topics that the model has read and that the log of the turn does not contain yet. If one of them
    was erased, nothing is written, because the item may repeat its text. ``check`` is called at the end of the
    transaction. Raises ``ValueRefused`` for a kind that a model may not choose, ``Conflict`` if one of ``unlogged`` was
    erased, and the errors of ingest and of ``check``.
    """
    principal.require("agent")
    prepared = ingest_prepare([item], principal=principal, now=now, defer=False)
    if conversation_id is not None:
        _check_kind(item, prepared, principal=principal)
    with transaction.atomic():
        # To prevent deadlocks, the topics that were read are locked together with the topics of the item, in the order
        # of their ids and before any stronger lock.
        read, (changed, named) = set(unlogged), item_topic_ids(item)
        if read and read & topics_lock_shared(read | changed | named):
            raise Conflict(
                "A memory that was read in this conversation has been erased, so nothing was written.",
                code=ProblemCode.ERASED_MEANWHILE,
            )
        (outcome,) = ingest_apply(prepared, principal=principal, now=now)
        if isinstance(outcome, MemoryProblem):
            items_count(accepted=0, refused=1)
            raise outcome
        if conversation_id is not None:
            writes_log(conversation_id, [(item, outcome)], now=now)
        check()
    items_count(accepted=1, refused=0)
    return outcome


def _check_kind(item: IngestItem, prepared: PreparedItems, *, principal: Principal) -> None:
    """Refuse kinds that are exempt from forgetting, because a model must not decide what is kept forever."""
    exempt = prepared.policies.effective(principal.scope_chosen(item.scope)).knobs.exempt_kinds
    if item.placement == "new_topic" and item.topic_kind in exempt:
        raise ValueRefused(
            f"Memories of kind {item.topic_kind!r} are never forgotten, so only people can create them. Choose another "
            "kind.",
            member="topic_kind",
        )


def topics_lock_shared(ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Lock topics against a purge until the transaction ends. Return the ids that no longer exist.

    At most one SQL statement. Must run in a transaction.
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
    rows += [
        (reply.topic_id, What.FIELD if name in made else What.VERSION, uuid.UUID(revision), None, None)
        for name, revision in reply.version_ids.items()
    ]
    rows += [(reply.topic_id, What.LINK, None, edge.to_topic_id, edge.kind) for edge in item.edges]
    return rows
