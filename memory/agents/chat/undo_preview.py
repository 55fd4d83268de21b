"""What an undo of a conversation would change, and what it would keep and why. Read-only.

The confirmation page, the dry run of the API and the undo itself use the same functions; the undo calls them again
after locking. Merges move links and fields, so all other writes are examined after the merges have been undone. What a
merge has moved counts as written by the conversation.
"""

import datetime as dt
import hashlib
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from django.db.backends.utils import CursorWrapper

from memory.agents.chat.turns import AT_WORK
from memory.core.truncate import line_cut
from memory.models import Conversation, ConversationWrite, ForgetRun

What = Literal["topic", "value", "field", "link", "merge"]

# The most characters of a value in a sentence.
MOST_VALUE = 80

_WRITES_SQL = """
SELECT w.id, w.topic_id, w.what, w.revision_id, w.link_id, w.run_id, w.undone_at IS NOT NULL, t.title, s.path,
       t.released_at IS NOT NULL, t.merged_into_id IS NOT NULL, v.pinned
FROM memory_conversationwrite w
JOIN memory_topic t ON t.id = w.topic_id JOIN memory_scope s ON s.id = t.scope_id
JOIN memory_vitality v ON v.topic_id = t.id
WHERE w.conversation_id = %(conversation)s ORDER BY w.id
"""

_RUNS_SQL = """
SELECT r.id, r.status, array_agg(a.topic_id ORDER BY a.place), array_agg(t.title ORDER BY a.place)
FROM memory_forgetrun r JOIN memory_forgetaction a ON a.run_id = r.id JOIN memory_topic t ON t.id = a.topic_id
WHERE r.id = ANY(%(runs)s) GROUP BY r.id ORDER BY r.created_at DESC, r.id DESC
"""

# What others did to topics that the conversation created. Changes at the time of the creation belong to the creation.
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
    "Another topic was merged into it afterwards.",
    "A field of another topic refers to it.",
)

# The fields with revisions of the conversation, with their current value and their last value from outside the
# conversation.
_VALUES_SQL = """
WITH own AS MATERIALIZED (SELECT unnest(%(revisions)s::uuid[]) AS id)
SELECT x.written, f.topic_id, t.title, f.name, cur.id IN (SELECT id FROM own),
       cur.value, cur.field_type, cur.ref_topic_id,
       prev.value, prev.field_type, prev.ref_topic_id, prev.valid_from
FROM (
    SELECT r.field_id, array_agg(r.id) AS written FROM memory_revision r WHERE r.id = ANY(%(wanted)s::uuid[])
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

# A link that is older than the conversation is not undone, even if it is logged for the conversation.
_LINKS_SQL = """
SELECT l.id, l.source_id, l.target_id, l.kind, one.title, other.title
FROM memory_link l JOIN memory_topic one ON one.id = l.source_id JOIN memory_topic other ON other.id = l.target_id
WHERE l.id = ANY(%(links)s::bigint[]) AND l.created_at >= %(since)s ORDER BY l.id
"""


@dataclass(frozen=True, slots=True)
class Former:
    """The former value of a field, with its ``valid_from``. The value of a new field is empty."""

    name: str
    value: str = ""
    field_type: str = "string"
    ref_topic_id: uuid.UUID | None = None
    valid_from: dt.datetime | None = None


@dataclass(slots=True)
class UndoItem:
    """One thing that a conversation wrote.

    ``told`` is the effect of the undo in a few words. ``why`` is the reason if the item is kept. ``topic_id`` and
    ``title`` of a link are those of its source. The digest of a preview covers these members. The other members are
    for the undo: ``writes`` are the ids of the rows of ConversationWrite, ``run_id`` and ``topics`` belong to a merge,
    ``former`` to a value, ``link`` to a link.
    """

    what: What
    topic_id: uuid.UUID
    title: str
    told: str
    why: str = ""
    writes: list[int] = field(default_factory=list, repr=False)
    run_id: uuid.UUID | None = field(default=None, repr=False)
    topics: tuple[uuid.UUID, ...] = field(default=(), repr=False)
    former: Former | None = field(default=None, repr=False)
    link: int | None = field(default=None, repr=False)


@dataclass(slots=True)
class ConversationUndone:
    """What an undo did or would do, in order. ``run_id`` is the run that released topics, if any.

    ``settled`` are the ids of writes that need no change, because the former value is already restored or the row no
    longer exists. ``cancelled`` counts the running studies. ``at_work`` is true while the assistant answers a message;
    an undo is refused then.
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
        """How many items of each type are undone."""
        return {what: len(self.of(what)) for what in get_args(What)}

    @property
    def digest(self) -> str:
        """A hash of all items and of the number of running studies. Two previews with the same effect have the same
        hash."""
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
    scope: str
    released: bool
    merged: bool
    pinned: bool


Wrote = ConversationWrite.What


def writes_read(cursor: CursorWrapper, conversation_id: uuid.UUID) -> list[Write]:
    """Return the writes of a conversation in order, except what was purged. One query."""
    cursor.execute(_WRITES_SQL, {"conversation": conversation_id})
    return [Write(*row) for row in cursor.fetchall()]


def merges_of(cursor: CursorWrapper, writes: Sequence[Write]) -> ConversationUndone:
    """Return the merges to undo, the last one first. Merges that are undone already are settled.

    One query; none without a merge. Whether a merge can be undone is known only after the later merges are undone.
    """
    found = ConversationUndone()
    by_run: dict[uuid.UUID, list[int]] = {}
    for write in writes:
        if write.what == Wrote.MERGED and write.run_id is not None and not write.undone:
            by_run.setdefault(write.run_id, []).append(write.id)
    if not by_run:
        return found
    cursor.execute(_RUNS_SQL, {"runs": list(by_run)})
    for run_id, status, topics, titles in cursor.fetchall():
        rows = by_run.pop(run_id)
        if status == ForgetRun.Status.UNDONE:
            found.settled += rows
        else:
            told = f"merged into “{titles[-1]}”" if len(titles) > 1 else "merged"
            found.items.append(
                UndoItem("merge", topics[0], titles[0], told, writes=rows, run_id=run_id, topics=tuple(topics))
            )
    # The actions of purged topics no longer exist.
    found.settled += [row for rows in by_run.values() for row in rows]
    return found


def writes_classify(
    cursor: CursorWrapper, conversation: Conversation, writes: Sequence[Write], found: ConversationUndone
) -> None:
    """Add the topics, values and links to ``found``, which already contains the merges. At most four queries."""
    # If a merge is kept, the values and links of the merged topic are in the other topic.
    joined = {topic_id for item in found.left for topic_id in item.topics}
    made = {write.topic_id: write for write in writes if write.what == Wrote.TOPIC}
    parameters: dict[str, Any] = {
        "made": list(made),
        "since": conversation.created_at,
        "revisions": [write.revision_id for write in writes if write.revision_id],
        "links": [write.link_id for write in writes if write.link_id],
    }
    moved = {topic_id for topic_id, write in made.items() if write.merged and topic_id in joined}
    of_made: dict[uuid.UUID, list[int]] = {}
    for write in writes:
        # Writes to a topic that the conversation created are undone with the topic, unless it stays merged.
        if write.what == Wrote.TOPIC or (write.topic_id in made.keys() - moved and write.what != Wrote.MERGED):
            of_made.setdefault(write.topic_id, []).append(write.id)
    _topics_classify(cursor, found, made, of_made, parameters)
    rest = [write for write in writes if (write.topic_id not in made or write.topic_id in moved) and not write.undone]
    _values_classify(cursor, found, rest, parameters, moved)
    _links_classify(cursor, found, rest, parameters, made)


def _topics_classify(
    cursor: CursorWrapper,
    found: ConversationUndone,
    made: Mapping[uuid.UUID, Write],
    of_made: Mapping[uuid.UUID, list[int]],
    parameters: dict[str, Any],
) -> None:
    touched: dict[uuid.UUID, str] = {}
    if any(not write.released for write in made.values()):
        cursor.execute(_CHANGED_BY_OTHERS_SQL, parameters)
        touched = {
            row[0]: " ".join(words for words, so in zip(_CHANGED_BY_OTHERS, row[1:], strict=True) if so)
            for row in cursor.fetchall()
        }
    for topic_id, write in made.items():
        rows = of_made[topic_id]
        if write.released:
            # Another undo or a person has already released the topic.
            found.settled += rows
            continue
        if write.merged:
            why = "It is merged into another topic."
        elif write.pinned:
            why = "It is pinned."
        else:
            why = touched.get(topic_id, "")
        found.items.append(
            UndoItem("topic", topic_id, write.title, "created" if why else "created; released", why, rows)
        )


def _values_classify(
    cursor: CursorWrapper,
    found: ConversationUndone,
    rest: Sequence[Write],
    parameters: dict[str, Any],
    moved: Collection[uuid.UUID],
) -> None:
    by_revision, made = {write.revision_id: write for write in rest if write.revision_id}, parameters["made"]
    if not by_revision:
        return
    cursor.execute(_VALUES_SQL, {**parameters, "wanted": list(by_revision)})
    for row in cursor.fetchall():
        written, topic_id, title, name, is_own, value, value_type, ref, *before = row
        writes = [by_revision[revision] for revision in written]
        rows = [each.id for each in writes]
        new = before[0] is None
        former = Former(name) if new else Former(name, *before)
        if (former.value, former.field_type, former.ref_topic_id) == (value, value_type, ref) or topic_id in made:
            # The field has its former value, or it is released with the topic into which it was merged.
            found.settled += rows
            continue
        if any(each.topic_id != topic_id or each.merged for each in writes if each.topic_id not in moved):
            told, why = name, "Its topic was merged into another one."
        elif any(each.released for each in writes):
            told, why = name, "Its topic was released."
        elif not is_own:
            told, why = name, "It has a newer value from outside this conversation."
        else:
            restored = "emptied" if new else f"“{line_cut(former.value, MOST_VALUE)}” restored"
            told, why = f"{name}: {restored}", ""
        what: What = "field" if any(each.what == Wrote.FIELD for each in writes) else "value"
        found.items.append(UndoItem(what, topic_id, title, told, why, rows, former=former))


def _links_classify(
    cursor: CursorWrapper,
    found: ConversationUndone,
    rest: Sequence[Write],
    parameters: dict[str, Any],
    made: Collection[uuid.UUID],
) -> None:
    by_link = {write.link_id: write.id for write in rest if write.link_id}
    if not by_link:
        return
    cursor.execute(_LINKS_SQL, {"links": list(by_link), "since": parameters["since"]})
    for link_id, source, target, kind, title, other in cursor.fetchall():
        row = by_link.pop(link_id)
        if source in made or target in made:
            # A released topic hides its links. If the topic is kept, its links are kept, too.
            found.settled.append(row)
            continue
        told = f"{kind} → “{other}”; link removed"
        found.items.append(UndoItem("link", source, title, told, writes=[row], link=link_id))
    # These links were removed by others, or their other topic was purged.
    found.settled += by_link.values()


# For each type: singular, plural, and the effect of the undo.
_TYPE_LABELS = {
    "topic": ("topic", "topics", "released"),
    "value": ("value", "values", "restored"),
    "field": ("new field", "new fields", "emptied"),
    "link": ("link", "links", "removed"),
    "merge": ("merge", "merges", "undone"),
}


def undo_summary(undone: ConversationUndone, *, done: bool) -> str:
    """Return one or two sentences: ``Undone: 2 topics are released, 1 value is restored. 1 change is kept.``"""
    parts = [
        f"{number:,} {_TYPE_LABELS[what][number != 1]} {'is' if number == 1 else 'are'} {_TYPE_LABELS[what][2]}"
        for what, number in undone.counts.items()
        if number
    ]
    left = len(undone.left)
    kept = "" if not left else " 1 change is kept." if left == 1 else f" {left:,} changes are kept."
    if undone.at_work:
        kept += f" {AT_WORK}"
    if not parts:
        return f"There is nothing to undo.{kept}"
    return f"{'Undone' if done else 'To be undone'}: {', '.join(parts)}.{kept}"
