"""What an undo of a conversation would change, and what it would keep and why. Read-only.

The undo itself calls the same functions again after it has locked the rows. Fields and links that a merge has moved
count as written by the conversation.
"""

import datetime as dt
import hashlib
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Literal, NamedTuple, get_args

from django.db.backends.utils import CursorWrapper

from memory.agents.chat.turns import AT_WORK
from memory.core.truncate import line_cut
from memory.models import Conversation, ConversationWrite
from memory.models.labels import label_sql

What = Literal["topic", "value", "field", "link", "merge"]

# The maximum number of characters of a value in a sentence.
MAX_VALUE = 80

_WRITES_SQL = f"""
SELECT w.id, w.topic_id, w.what, w.revision_id, w.link_id, w.run_id, w.undone_at IS NOT NULL, {label_sql()},
       t.released_at IS NOT NULL, t.merged_into_id IS NOT NULL, v.pinned
FROM memory_conversationwrite w
JOIN memory_topic t ON t.id = w.topic_id JOIN memory_vitality v ON v.topic_id = t.id
WHERE w.conversation_id = %(conversation)s ORDER BY w.id
"""

_RUNS_SQL = f"""
SELECT r.id, array_agg(a.topic_id ORDER BY a.place), array_agg({label_sql()} ORDER BY a.place)
FROM memory_forgetrun r JOIN memory_forgetaction a ON a.run_id = r.id JOIN memory_topic t ON t.id = a.topic_id
WHERE r.id = ANY(%(runs)s::uuid[]) AND r.status <> 'undone' GROUP BY r.id ORDER BY r.created_at DESC, r.id DESC
"""

# Says for each topic that the conversation created whether others changed it after its creation. There is one column
# for each reason in ``_CHANGED_BY_OTHERS``.
_CHANGED_BY_OTHERS_SQL = """
WITH made AS MATERIALIZED (
    SELECT id, created_at FROM memory_topic WHERE id = ANY(%(made)s::uuid[])
), own AS MATERIALIZED (SELECT unnest(%(revisions)s::uuid[]) AS id),
linked AS MATERIALIZED (SELECT unnest(%(links)s::bigint[]) AS id)
SELECT m.id,
    EXISTS (SELECT 1 FROM memory_field f JOIN memory_revision r ON r.field_id = f.id
            WHERE f.topic_id = m.id AND r.recorded_at > m.created_at AND r.id NOT IN (SELECT id FROM own)),
    EXISTS (SELECT 1 FROM memory_topicedit e
            WHERE e.topic_id = m.id AND e.at > m.created_at AND e.actor <> 'system' AND e.actor NOT LIKE 'rule %%'),
    EXISTS (SELECT 1 FROM memory_link l
            WHERE l.target_id = m.id AND l.id NOT IN (SELECT id FROM linked)
              AND l.source_id NOT IN (SELECT id FROM made))
    OR EXISTS (SELECT 1 FROM memory_link l
               WHERE l.source_id = m.id AND l.created_at > m.created_at AND l.id NOT IN (SELECT id FROM linked)
                 AND l.target_id NOT IN (SELECT id FROM made)),
    EXISTS (SELECT 1 FROM memory_topic o WHERE o.merged_into_id = m.id AND o.id NOT IN (SELECT id FROM made)),
    EXISTS (SELECT 1 FROM memory_revision r JOIN memory_field f ON f.id = r.field_id AND f.last_seq = r.seq
            WHERE r.ref_topic_id = m.id AND f.topic_id NOT IN (SELECT id FROM made)
              AND r.id NOT IN (SELECT id FROM own))
FROM made m
"""
_CHANGED_BY_OTHERS = (
    "It was written to from outside this conversation.",
    "It was edited afterwards.",
    "It was linked from outside this conversation.",
    "Another memory was merged into it afterwards.",
    "A field of another memory refers to it.",
)

# The fields to which the conversation wrote, each with its current value and its last value from another source.
_VALUES_SQL = f"""
WITH own AS MATERIALIZED (SELECT unnest(%(revisions)s::uuid[]) AS id)
SELECT x.written, f.topic_id, {label_sql()}, f.name, cur.id IN (SELECT id FROM own),
       (coalesce(prev.value, ''), coalesce(prev.field_type, 'string'), prev.ref_topic_id)
           IS NOT DISTINCT FROM (cur.value, cur.field_type, cur.ref_topic_id),
       prev.id IS NULL, prev.value, prev.field_type, prev.ref_topic_id, prev.valid_from
FROM (
    SELECT r.field_id, array_agg(r.id) AS written FROM memory_revision r WHERE r.id = ANY(%(rest_revisions)s::uuid[])
    GROUP BY r.field_id
) x
JOIN memory_field f ON f.id = x.field_id
JOIN memory_topic t ON t.id = f.topic_id
JOIN memory_revision cur ON cur.field_id = f.id AND cur.seq = f.last_seq
LEFT JOIN LATERAL (
    SELECT r.* FROM memory_revision r
    WHERE r.field_id = f.id AND r.seq < f.last_seq AND r.id NOT IN (SELECT id FROM own)
    ORDER BY r.seq DESC LIMIT 1
) prev ON true
ORDER BY f.topic_id, f.created_at, f.id
"""

# A link that is older than the conversation is not undone, even if the log of the conversation contains it. Nor is a
# link of a topic that the conversation created: it is hidden if the topic is released, and kept if the topic is kept.
_LINKS_SQL = f"""
SELECT l.id, l.source_id, {label_sql("one")}, l.kind || ' → “' || {label_sql("other")} || '”; link removed'
FROM memory_link l JOIN memory_topic one ON one.id = l.source_id JOIN memory_topic other ON other.id = l.target_id
WHERE l.id = ANY(%(rest_links)s::bigint[]) AND l.created_at >= %(since)s
  AND NOT l.source_id = ANY(%(made)s::uuid[]) AND NOT l.target_id = ANY(%(made)s::uuid[])
ORDER BY l.id
"""


@dataclass(frozen=True, slots=True)
class Former:
    """The value of a field before the conversation. For a new field, it is empty."""

    name: str
    value: str = ""
    field_type: str = "string"
    ref_topic_id: uuid.UUID | None = None
    valid_from: dt.datetime | None = None


@dataclass(slots=True)
class UndoItem:
    """One thing that a conversation wrote.

    ``told`` is the effect of the undo. If the item is kept, ``why`` is the reason. For a link, topic and title are
    those of its source. The other members are not shown. ``writes`` are ids of ConversationWrite. A merge has
    ``run_id`` and ``topics``, a value or field has ``former``, and a link has ``link``.
    """

    what: What
    topic_id: uuid.UUID
    title: str
    told: str
    why: str = ""
    writes: list[int] = field(default_factory=list, repr=False)
    run_id: uuid.UUID | None = field(default=None, repr=False)
    topics: Sequence[uuid.UUID] = field(default=(), repr=False)
    former: Former | None = field(default=None, repr=False)
    link: int | None = field(default=None, repr=False)


@dataclass(slots=True)
class ConversationUndone:
    """What an undo did or would do. ``run_id`` is the run that released topics, if any.

    ``settled`` are the ids of writes that need no change: the former value is already restored, or the row no longer
    exists. ``cancelled`` is the number of studies that the undo cancels. If ``at_work`` is true, the assistant is
    answering a message, so an undo is refused.
    """

    items: list[UndoItem] = field(default_factory=list)
    settled: list[int] = field(default_factory=list)
    run_id: uuid.UUID | None = None
    cancelled: int = 0
    at_work: bool = False

    @property
    def taken_back(self) -> list[UndoItem]:
        """The items that are undone."""
        return [item for item in self.items if not item.why]

    @property
    def left(self) -> list[UndoItem]:
        """The items that are kept, each with the reason."""
        return [item for item in self.items if item.why]

    def of(self, what: What) -> list[UndoItem]:
        """Return the undone items of one type."""
        return [item for item in self.taken_back if item.what == what]

    @property
    def counts(self) -> dict[str, int]:
        """The number of undone items of each type."""
        return {what: len(self.of(what)) for what in get_args(What)}

    @property
    def digest(self) -> str:
        """A hash of the effect: all items and the number of cancelled studies."""
        return hashlib.sha256(repr([sorted(map(repr, self.items)), self.cancelled]).encode()).hexdigest()[:32]


class Write(NamedTuple):
    """A row of ConversationWrite with the state of its topic."""

    id: int
    topic_id: uuid.UUID
    what: str
    revision_id: uuid.UUID | None
    link_id: int | None
    run_id: uuid.UUID | None
    undone: bool
    title: str
    released: bool
    merged: bool
    pinned: bool


Wrote = ConversationWrite.What


def writes_read(cursor: CursorWrapper, conversation_id: uuid.UUID) -> list[Write]:
    """Return the writes of a conversation in order, without purged topics. One query."""
    cursor.execute(_WRITES_SQL, {"conversation": conversation_id})
    return [Write(*row) for row in cursor.fetchall()]


def merges_of(cursor: CursorWrapper, writes: Sequence[Write]) -> ConversationUndone:
    """Return the merges to undo, the last one first. Merges that are already undone are ``settled``. One query."""
    found = ConversationUndone()
    rows: dict[uuid.UUID, list[int]] = {}
    for write in writes:
        if write.what == Wrote.MERGED and write.run_id is not None and not write.undone:
            rows.setdefault(write.run_id, []).append(write.id)
    cursor.execute(_RUNS_SQL, {"runs": list(rows)})
    for run_id, topics, titles in cursor.fetchall():
        told = f"merged into “{titles[-1]}”" if len(titles) > 1 else "merged"
        found.items.append(
            UndoItem("merge", topics[0], titles[0], told, writes=rows.pop(run_id), run_id=run_id, topics=topics)
        )
    found.settled = [row for each in rows.values() for row in each]
    return found


def writes_classify(
    cursor: CursorWrapper, conversation: Conversation, writes: Sequence[Write], found: ConversationUndone
) -> None:
    """Add the topics, values and links to ``found``, which already has the merges. Three queries."""
    made = {write.topic_id: write for write in writes if write.what == Wrote.TOPIC}
    # If a merge is kept, the values and links of the merged topic belong to the topic into which it was merged.
    joined = {topic_id for item in found.left for topic_id in item.topics}
    moved = {topic_id for topic_id, write in made.items() if write.merged and topic_id in joined}
    rest = [write for write in writes if (write.topic_id not in made or write.topic_id in moved) and not write.undone]
    of_made: dict[uuid.UUID, list[int]] = {}
    for write in writes:
        # Writes to a topic that the conversation created are undone with the topic, unless the topic stays merged.
        if write.what == Wrote.TOPIC or (write.topic_id in made.keys() - moved and write.what != Wrote.MERGED):
            of_made.setdefault(write.topic_id, []).append(write.id)
    parameters: dict[str, Any] = {
        "made": list(made),
        "since": conversation.created_at,
        "revisions": [write.revision_id for write in writes if write.revision_id],
        "links": [write.link_id for write in writes if write.link_id],
        "rest_revisions": [write.revision_id for write in rest if write.revision_id],
        "rest_links": [write.link_id for write in rest if write.link_id],
    }
    cursor.execute(_CHANGED_BY_OTHERS_SQL, parameters)
    changed = {row[0]: row[1:] for row in cursor.fetchall()}
    for topic_id, write in made.items():
        if write.released:
            # The topic is already released, by another undo or by a person.
            found.settled += of_made[topic_id]
            continue
        if write.merged:
            why = "It is merged into another memory."
        elif write.pinned:
            why = "It is pinned."
        else:
            why = " ".join(compress(_CHANGED_BY_OTHERS, changed[topic_id]))
        told = "created" if why else "created; released"
        found.items.append(UndoItem("topic", topic_id, write.title, told, why, of_made[topic_id]))
    cursor.execute(_VALUES_SQL, parameters)
    _values_classify(cursor, found, {write.revision_id: write for write in rest}, made, moved)
    by_link = {write.link_id: write.id for write in rest if write.link_id}
    cursor.execute(_LINKS_SQL, parameters)
    for link_id, source, title, told in cursor.fetchall():
        found.items.append(UndoItem("link", source, title, told, writes=[by_link.pop(link_id)], link=link_id))
    # The remaining links need no change. Some no longer exist. The others belong to topics that the conversation
    # created, and are released or kept with these topics.
    found.settled += by_link.values()


def _values_classify(
    cursor: CursorWrapper,
    found: ConversationUndone,
    by_revision: Mapping[uuid.UUID | None, Write],
    made: Collection[uuid.UUID],
    moved: Collection[uuid.UUID],
) -> None:
    for written, topic_id, title, name, is_own, is_former, new, *former in cursor.fetchall():
        writes = [by_revision[revision] for revision in written]
        rows = [each.id for each in writes]
        if is_former or topic_id in made:
            # The field already has its former value, or its topic is released as a whole.
            found.settled += rows
            continue
        before = Former(name) if new else Former(name, *former)
        why = ""
        if any(each.topic_id != topic_id or each.merged for each in writes if each.topic_id not in moved):
            why = "Its memory was merged into another one."
        elif any(each.released for each in writes):
            why = "Its memory was released."
        elif not is_own:
            why = "It has a newer value from outside this conversation."
        restored = "emptied" if new else f"“{line_cut(before.value, MAX_VALUE)}” restored"
        what: What = "field" if any(each.what == Wrote.FIELD for each in writes) else "value"
        found.items.append(
            UndoItem(what, topic_id, title, name if why else f"{name}: {restored}", why, rows, former=before)
        )


# Maps each type to its singular, its plural, and the effect of the undo.
_TYPE_LABELS = {
    "topic": ("memory", "memories", "released"),
    "value": ("value", "values", "restored"),
    "field": ("new field", "new fields", "emptied"),
    "link": ("link", "links", "removed"),
    "merge": ("merge", "merges", "undone"),
}


def undo_summary(undone: ConversationUndone, *, done: bool) -> str:
    """Return the effect in words: ``Undone: 2 memories are released, 1 value is restored. 1 change is kept.``"""
    parts = [
        f"{number:,} {_TYPE_LABELS[what][number != 1]} {'is' if number == 1 else 'are'} {_TYPE_LABELS[what][2]}"
        for what, number in undone.counts.items()
        if number
    ]
    verb = "Undone" if done else "To be undone"
    sentences = [f"{verb}: {', '.join(parts)}." if parts else "There is nothing to undo."]
    if left := len(undone.left):
        sentences.append("1 change is kept." if left == 1 else f"{left:,} changes are kept.")
    if undone.at_work:
        sentences.append(AT_WORK)
    return " ".join(sentences)
