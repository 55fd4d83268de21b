"""What an undo of a conversation would take back, and what it would leave and why. Nothing here changes anything.

The same judgement serves the page that asks for a yes, the dry run of the API, and the undo itself, which judges again
what it has locked. The rest is judged with merges taken apart, since they move links and fields: what they have moved
counts as the conversation's own writing.
"""

import datetime as dt
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from django.db.backends.utils import CursorWrapper

from memory.core.truncate import line_cut
from memory.models import Conversation, ConversationWrite, ForgetRun

What = Literal["topic", "value", "field", "link", "merge"]

# So much of a value is told in a sentence.
MOST_VALUE = 80

# What becomes of a merge that is taken apart.
AGAIN = "; two topics again"

_WRITES = """
SELECT w.id, w.topic_id, w.what, w.revision_id, w.link_id, w.run_id, w.undone_at IS NOT NULL, t.title, s.path,
       t.released_at IS NOT NULL, t.merged_into_id IS NOT NULL, v.pinned
FROM memory_conversationwrite w
JOIN memory_topic t ON t.id = w.topic_id JOIN memory_scope s ON s.id = t.scope_id
JOIN memory_vitality v ON v.topic_id = t.id
WHERE w.conversation_id = %(conversation)s ORDER BY w.id
"""

_RUNS = """
SELECT r.id, r.status, array_agg(a.topic_id ORDER BY a.place), array_agg(t.title ORDER BY a.place)
FROM memory_forgetrun r JOIN memory_forgetaction a ON a.run_id = r.id JOIN memory_topic t ON t.id = a.topic_id
WHERE r.id = ANY(%(runs)s) GROUP BY r.id ORDER BY r.created_at DESC, r.id DESC
"""

# What others did to topics that the conversation has made. In the moment of its making, everything is its maker's.
_TOUCHED = """
WITH made AS MATERIALIZED (
    SELECT id, created_at FROM memory_topic WHERE id = ANY(%(made)s::uuid[])
), ours AS MATERIALIZED (SELECT unnest(%(revisions)s::uuid[]) AS id),
linked AS MATERIALIZED (SELECT unnest(%(links)s::bigint[]) AS id)
SELECT m.id,
    EXISTS (SELECT 1 FROM memory_field f JOIN memory_revision r ON r.field_id = f.id
            WHERE f.topic_id = m.id AND r.recorded_at > m.created_at AND r.id NOT IN (SELECT id FROM ours)),
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
              AND r.id NOT IN (SELECT id FROM ours))
FROM made m
"""
_TOUCHED_WORDS = (
    "Somebody else has written to it since.",
    "It was edited since.",
    "Somebody else has linked it since.",
    "Another topic was merged into it since.",
    "A field of another topic refers to it since.",
)

# The fields that hold revisions of the conversation, what each says now, and what it said before any of them.
_VALUES = """
WITH ours AS MATERIALIZED (SELECT unnest(%(revisions)s::uuid[]) AS id)
SELECT x.written, f.topic_id, t.title, f.name, cur.id IN (SELECT id FROM ours),
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
    WHERE r.field_id = f.id AND r.seq < f.last_seq AND r.id NOT IN (SELECT id FROM ours)
    ORDER BY r.seq DESC LIMIT 1
) prev ON true
ORDER BY f.topic_id, f.created_at, f.id
"""

# What was there before the conversation began is not its own, whoever wrote it down so.
_LINKS = """
SELECT l.id, l.source_id, l.target_id, l.kind, one.title, other.title
FROM memory_link l JOIN memory_topic one ON one.id = l.source_id JOIN memory_topic other ON other.id = l.target_id
WHERE l.id = ANY(%(links)s::bigint[]) AND l.created_at >= %(since)s ORDER BY l.id
"""


@dataclass(frozen=True, slots=True)
class UndoPart:
    """One thing that a conversation wrote: what it is, the topic it is about, what becomes of it in a few words, and
    why it is left, if it is. ``topic_id`` and ``title`` of a link are those of its source."""

    what: What
    topic_id: uuid.UUID
    title: str
    told: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Former:
    """What a field said before, and since when that was true; None stands for a field that was not there."""

    name: str
    value: str
    field_type: str
    ref_topic_id: uuid.UUID | None
    valid_from: dt.datetime | None


@dataclass(frozen=True, slots=True)
class UndoStep:
    """A part that can be taken back: the rows of ConversationWrite that it settles, and what its undo works with; of a
    merge the run and both topics, of a value what it was before, of a link its id."""

    part: UndoPart
    writes: list[int]
    run_id: uuid.UUID | None = None
    former: Former | None = None
    link: int | None = None
    topics: tuple[uuid.UUID, ...] = ()


@dataclass(slots=True)
class Undoable:
    """What can be taken back, in the order in which it is, and what cannot, with the rows of each."""

    steps: list[UndoStep] = field(default_factory=list)
    left: list[tuple[UndoPart, list[int]]] = field(default_factory=list)
    # Rows of what is settled without anything to do: it says already what it said before, or is gone.
    settled: list[int] = field(default_factory=list)
    # The topics of merges that stay.
    joined: set[uuid.UUID] = field(default_factory=set)

    def of(self, what: What) -> list[UndoStep]:
        """Return the steps of one sort."""
        return [step for step in self.steps if step.part.what == what]


class Write(NamedTuple):
    """A row of ConversationWrite with where its topic stands."""

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
    """Return everything that a conversation wrote and that was not erased since, in order. One query."""
    cursor.execute(_WRITES, {"conversation": conversation_id})
    return [Write(*row) for row in cursor.fetchall()]


def merges_of(cursor: CursorWrapper, writes: Sequence[Write]) -> Undoable:
    """Return the merges that are to be taken apart, the last one first, and those that are already. One query, none
    without a merge. Whether one can be taken apart shows when that is done: it may hang on one above it."""
    found = Undoable()
    by_run: dict[uuid.UUID, list[int]] = {}
    for write in writes:
        if write.what == Wrote.MERGED and write.run_id is not None and not write.undone:
            by_run.setdefault(write.run_id, []).append(write.id)
    if not by_run:
        return found
    cursor.execute(_RUNS, {"runs": list(by_run)})
    for run_id, status, topics, titles in cursor.fetchall():
        rows = by_run.pop(run_id)
        if status == ForgetRun.Status.UNDONE:
            found.settled += rows
        else:
            told = f"merged into “{titles[-1]}”" if len(titles) > 1 else "merged"
            part = UndoPart("merge", topics[0], titles[0], told + AGAIN)
            found.steps.append(UndoStep(part, rows, run_id=run_id, topics=tuple(topics)))
    # Of what was erased since, no action is left.
    found.settled += [row for rows in by_run.values() for row in rows]
    return found


def writes_judge(
    cursor: CursorWrapper, conversation: Conversation, writes: Sequence[Write], *, joined: Collection[uuid.UUID]
) -> Undoable:
    """Return what is to be done about topics, values and links, once merges are taken apart. Four queries at most.

    ``joined`` are the topics of merges that stay: what one of them brought into the other is looked for there.
    """
    found = Undoable()
    made = {write.topic_id: write for write in writes if write.what == Wrote.TOPIC}
    wanted: dict[str, Any] = {
        "made": list(made),
        "since": conversation.created_at,
        "revisions": [write.revision_id for write in writes if write.revision_id],
        "links": [write.link_id for write in writes if write.link_id],
    }
    moved = {topic_id for topic_id, write in made.items() if write.merged and topic_id in joined}
    of_made: dict[uuid.UUID, list[int]] = {}
    for write in writes:
        # What goes with its topic; of one that stays merged, the rest is judged where it stands now.
        if write.what == Wrote.TOPIC or (write.topic_id in made.keys() - moved and write.what != Wrote.MERGED):
            of_made.setdefault(write.topic_id, []).append(write.id)
    if any(not write.released for write in made.values()):
        cursor.execute(_TOUCHED, wanted)
        touched = {
            row[0]: [words for words, so in zip(_TOUCHED_WORDS, row[1:], strict=True) if so]
            for row in cursor.fetchall()
        }
        _topics_judge(found, made, touched, of_made)
    rest = [write for write in writes if (write.topic_id not in made or write.topic_id in moved) and not write.undone]
    _values_judge(cursor, found, rest, wanted, moved)
    _links_judge(cursor, found, rest, wanted, made)
    return found


def _topics_judge(
    found: Undoable,
    made: Mapping[uuid.UUID, Write],
    touched: Mapping[uuid.UUID, list[str]],
    of_made: Mapping[uuid.UUID, list[int]],
) -> None:
    for topic_id, write in made.items():
        rows = of_made[topic_id]
        if write.released:
            # Whether by this undo or by somebody else: it is where it would be put.
            found.settled += rows
        elif write.merged:
            found.left.append(
                (UndoPart("topic", topic_id, write.title, "made", "It is merged into another topic."), rows)
            )
        elif write.pinned:
            why = "It is pinned, so somebody wants to keep it."
            found.left.append((UndoPart("topic", topic_id, write.title, "made", why), rows))
        elif touched.get(topic_id):
            found.left.append((UndoPart("topic", topic_id, write.title, "made", " ".join(touched[topic_id])), rows))
        else:
            found.steps.append(UndoStep(UndoPart("topic", topic_id, write.title, "made, and released"), rows))


def _values_judge(
    cursor: CursorWrapper, found: Undoable, rest: Sequence[Write], wanted: dict[str, Any], moved: Collection[uuid.UUID]
) -> None:
    by_revision, made = {write.revision_id: write for write in rest if write.revision_id}, wanted["made"]
    if not by_revision:
        return
    cursor.execute(_VALUES, {**wanted, "wanted": list(by_revision)})
    for row in cursor.fetchall():
        written, topic_id, title, name, is_ours, value, value_type, ref, *before = row
        writes = [by_revision[revision] for revision in written]
        rows = [each.id for each in writes]
        new = any(each.what == Wrote.FIELD for each in writes)
        what: What = "field" if new else "value"
        former = Former(name, *before) if before[0] is not None else Former(name, "", "string", None, None)
        if (former.value, former.field_type, former.ref_topic_id) == (value, value_type, ref) or topic_id in made:
            # It says that already, or it goes with the topic that it was merged into.
            found.settled += rows
            continue
        if any(each.topic_id != topic_id or each.merged for each in writes if each.topic_id not in moved):
            why = "Its topic was merged into another since."
        elif any(each.released for each in writes):
            why = "Its topic was released since."
        elif not is_ours:
            why = "Somebody else has written a newer value since."
        else:
            told = (
                f"{name}: says nothing any more"
                if before[0] is None
                else f"{name}: “{line_cut(former.value, MOST_VALUE)}” again"
            )
            found.steps.append(UndoStep(UndoPart(what, topic_id, title, told), rows, former=former))
            continue
        found.left.append((UndoPart(what, topic_id, title, name, why), rows))


def _links_judge(
    cursor: CursorWrapper, found: Undoable, rest: Sequence[Write], wanted: dict[str, Any], made: Collection[uuid.UUID]
) -> None:
    by_link = {write.link_id: write.id for write in rest if write.link_id}
    if not by_link:
        return
    cursor.execute(_LINKS, {"links": list(by_link), "since": wanted["since"]})
    for link_id, source, target, kind, title, other in cursor.fetchall():
        row = by_link.pop(link_id)
        if source in made or target in made:
            # It goes out of sight with the topic, and comes back with it; where that stays, so does its link.
            found.settled.append(row)
            continue
        part = UndoPart("link", source, title, f"{kind} → “{other}”; not linked any more")
        found.steps.append(UndoStep(part, [row], link=link_id))
    # Somebody has removed it, or its other end was erased.
    found.settled += by_link.values()
