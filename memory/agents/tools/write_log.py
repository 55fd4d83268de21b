"""What a conversation writes, and the note of it: rows that an undo finds everything by, made with the write itself.

The journal of a write is the one that every ingest leaves, with the actor who spoke. Which conversation it was is told
by ConversationWrite: a row for each topic, value and link, in the same transaction and of the same moment.
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

# A link is noted by who made it: the one that was there before, or was noted by another, is not this conversation's.
_NOTE = """
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
_THERE = "SELECT id FROM memory_topic WHERE id = ANY(%(ids)s) ORDER BY id FOR KEY SHARE"

Row = tuple[uuid.UUID, str, uuid.UUID | None, uuid.UUID | None, str | None]


def writes_note(conversation_id: uuid.UUID, pairs: Sequence[tuple[IngestItem, ItemReply]], *, now: dt.datetime) -> None:
    """Note what items wrote, as belonging to a conversation: new topics, values, and links that were not there before.

    ``pairs`` are accepted items with their replies, written in this same transaction with this same ``now``. One
    statement, whatever the number of items.
    """
    rows = [row for item, reply in pairs for row in _rows(item, reply)]
    if not rows:
        return
    # One link may be named by several items.
    topics, whats, revisions, targets, kinds = map(list, zip(*dict.fromkeys(rows), strict=True))
    with connection.cursor() as cursor:
        cursor.execute(
            _NOTE,
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
    heard: Callable[[], Collection[uuid.UUID]] = tuple,
    check: Callable[[], None] = lambda: None,
) -> Writer:
    """Return what takes one item into the store in the name of ``principal``, and notes it for the conversation.

    Each item is written at once and by itself: embedded before its transaction, noted within it. ``heard`` tells which
    topics were read and are not on record as that: if one of these was erased since, nothing is written any more, for
    it may be what is being written. ``check`` is called at the end of the transaction; if it raises, nothing was
    written. The writer raises what ingest refuses an item with, ``ValueRefused`` for a kind that is never forgotten,
    ``Conflict`` after an erasure, and what ``check`` raises.
    """

    def write(item: IngestItem) -> ItemReply:
        now = clock()
        prepared = ingest_prepare([item], principal=principal, now=now, defer=False)
        _kind_check(item, prepared, principal=principal)
        with transaction.atomic():
            # With the topics of the item, in one order with all writers, before any of them is locked harder.
            read, (changed, named) = set(heard()), item_topic_ids(item)
            if read and read & topics_vanished(read | changed | named):
                raise Conflict(
                    "Something that was read in this conversation has been erased; nothing is written.",
                    code=ProblemCode.ERASED_MEANWHILE,
                )
            (outcome,) = ingest_apply(prepared, principal=principal, now=now)
            if isinstance(outcome, MemoryProblem):
                items_count(accepted=0, refused=1)
                raise outcome
            writes_note(conversation_id, [(item, outcome)], now=now)
            check()
        items_count(accepted=1, refused=0)
        return outcome

    return write


def _kind_check(item: IngestItem, prepared: PreparedItems, *, principal: Principal) -> None:
    """A kind that is exempt from forgetting is as good as a pin, and whether something is kept for ever is not for a
    model to say."""
    exempt = prepared.policies.effective(principal.scope_chosen(item.scope)).knobs.exempt_kinds
    if item.placement == "new_topic" and item.topic_kind in exempt:
        raise ValueRefused(
            f"Topics of the kind {item.topic_kind!r} are never forgotten, so people make them; choose another kind.",
            code=ProblemCode.RESERVED_KIND,
        )


def topics_vanished(ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Return which of these topics are no more, and keep the others from being erased until the transaction ends.

    One statement; none for no topics. Needs a transaction.
    """
    wanted = set(ids)
    if not wanted:
        return wanted
    with connection.cursor() as cursor:
        cursor.execute(_THERE, {"ids": sorted(wanted)})
        return wanted - {row[0] for row in cursor.fetchall()}


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
