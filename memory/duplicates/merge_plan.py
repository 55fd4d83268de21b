"""The plan of a merge, computed from the rows of two topics. It is shown as a preview and then executed."""

import datetime as dt
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import NamedTuple, TypeVar

from django.db import connection

from memory.core.errors import Conflict
from memory.core.problem_codes import ProblemCode
from memory.core.text import MAX_CATEGORIES, TopicText
from memory.ingest.plan import MAX_FIELDS
from memory.models import Revision, Rung, Topic
from memory.models.formulas_sql import salience_now_sql
from memory.policy.effective import knobs_effective
from memory.text.likeness import ComparedTexts

_TOPICS_SQL = f"""
SELECT t.id, s.path, t.kind, t.title, t.summary, t.categories, t.provenance, t.created_at, t.updated_at, t.rung,
       t.released_at IS NOT NULL, t.merged_into_id, v.pinned,
       {salience_now_sql("v", "%(now)s::timestamptz", scope="v.scope_id")}, coalesce(x.text_hash, ''),
       (SELECT count(*) FROM memory_link l WHERE l.source_id = t.id OR l.target_id = t.id)
FROM memory_topic t JOIN memory_scope s ON s.id = t.scope_id JOIN memory_vitality v ON v.topic_id = t.id
LEFT JOIN memory_topicvector x ON x.topic_id = t.id
WHERE t.id = ANY(%(ids)s)
"""
_FIELDS_SQL = """
SELECT f.id, f.topic_id, f.name, f.last_seq, f.cold_through, f.created_at, r.value, r.field_type, r.valid_from
FROM memory_field f JOIN memory_revision r ON r.field_id = f.id AND r.seq = f.last_seq
WHERE f.topic_id = ANY(%(ids)s) ORDER BY f.created_at, f.id
"""
# Links of the loser that move to the survivor. A link stays if it would connect the survivor with itself, or if the
# survivor already has the same link.
LINKS_MOVED = """
SELECT l.id, 'source' FROM memory_link l
WHERE l.source_id = %(loser)s AND l.target_id NOT IN (%(survivor)s, %(loser)s) AND NOT EXISTS (
    SELECT 1 FROM memory_link x WHERE x.source_id = %(survivor)s AND x.target_id = l.target_id AND x.kind = l.kind)
UNION ALL
SELECT l.id, 'target' FROM memory_link l
WHERE l.target_id = %(loser)s AND l.source_id NOT IN (%(survivor)s, %(loser)s) AND NOT EXISTS (
    SELECT 1 FROM memory_link x WHERE x.target_id = %(survivor)s AND x.source_id = l.source_id AND x.kind = l.kind)
ORDER BY 1
"""


class Side(NamedTuple):
    """One of two topics, as stored."""

    id: uuid.UUID
    scope: str
    kind: str
    title: str
    summary: str
    categories: list[str]
    provenance: str
    created_at: dt.datetime
    updated_at: dt.datetime
    rung: int
    released: bool
    merged_into: uuid.UUID | None
    pinned: bool
    salience: float
    text_hash: str
    links: int

    @property
    def inactive_because(self) -> str:
        """The reason why no query returns the topic, as the end of a sentence; empty for an active topic."""
        if self.merged_into is not None:
            return "was merged into another memory"
        if self.released:
            return "was released"
        return "is archived" if self.rung == Rung.ARCHIVED else ""


T = TypeVar("T", Side, Topic)


class FieldRow(NamedTuple):
    """A field with its current value."""

    id: uuid.UUID
    topic_id: uuid.UUID
    name: str
    last_seq: int
    cold_through: int
    created_at: dt.datetime
    value: str
    field_type: str
    valid_from: dt.datetime


@dataclass(frozen=True, slots=True)
class Joined:
    """Two fields with the same name that become one. ``order`` is the joined history; its first ``cold`` revisions are
    cold. ``refold`` is true if the summaries of the survivor's field no longer match their revisions."""

    of_survivor: FieldRow
    of_loser: FieldRow
    order: list[Revision]
    cold: int
    refold: bool

    @property
    def value(self) -> str:
        """The current value after the merge."""
        return self.of_survivor.value if self.order[-1].field_id == self.of_survivor.id else self.of_loser.value


@dataclass(frozen=True, slots=True)
class MergePlan:
    """The result of merging two topics."""

    survivor: Side
    loser: Side
    moved: list[FieldRow]
    joined: list[Joined]
    links: list[tuple[int, str]]
    categories: list[str]
    rung: int
    text: TopicText
    fields: Mapping[uuid.UUID, list[FieldRow]]

    @property
    def text_before(self) -> TopicText:
        """The survivor's present text."""
        values = [each.value for each in self.fields[self.survivor.id]]
        return TopicText(self.survivor.title, self.survivor.summary, values)


def sides_read(ids: Sequence[uuid.UUID], *, now: dt.datetime) -> dict[uuid.UUID, Side]:
    """Return topics as stored. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_TOPICS_SQL, {"ids": list(ids), "now": now})
        return {row[0]: Side(*row) for row in cursor.fetchall()}


def fields_read(ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, list[FieldRow]]:
    """Return for each topic id the fields in their order, each with its current value. One query."""
    found: dict[uuid.UUID, list[FieldRow]] = {topic_id: [] for topic_id in ids}
    with connection.cursor() as cursor:
        cursor.execute(_FIELDS_SQL, {"ids": list(ids)})
        for row in map(FieldRow._make, cursor.fetchall()):
            found[row.topic_id].append(row)
    return found


def compared_texts(side: Side, fields: Sequence[FieldRow]) -> ComparedTexts:
    """Return the texts of a topic for a comparison."""
    return ComparedTexts(side.title, side.summary, {each.name: each.value for each in fields})


def survivor_first(sides: Sequence[T]) -> tuple[T, T]:
    """Return (the topic that a merge would keep, the other topic). A merge keeps the topic that was written to last."""
    newer, older = sorted(sides, key=lambda side: (side.updated_at, side.id), reverse=True)
    return newer, older


def merge_plan(survivor: Side, loser: Side) -> MergePlan:
    """Return the plan for merging ``loser`` into ``survivor``. At most four queries.

    Raises ``Conflict`` if the survivor would have more fields than a topic may have.
    """
    fields = fields_read([survivor.id, loser.id])
    own = {each.name: each for each in fields[survivor.id]}
    moved = [each for each in fields[loser.id] if each.name not in own]
    both = [(own[each.name], each) for each in fields[loser.id] if each.name in own]
    if len(own) + len(moved) > MAX_FIELDS:
        raise Conflict(
            f"Together the two memories have more than {MAX_FIELDS} fields, the limit of one memory.",
            code=ProblemCode.TOO_LARGE,
        )
    revisions = Revision.objects.filter(field__in=[each.id for pair in both for each in pair]).order_by("field", "seq")
    histories: dict[uuid.UUID, list[Revision]] = defaultdict(list)
    for revision in revisions.only("field", "seq", "recorded_at", "valid_from"):
        histories[revision.field_id].append(revision)
    with connection.cursor() as cursor:
        cursor.execute(LINKS_MOVED, {"survivor": survivor.id, "loser": loser.id})
        links = [(int(link), str(side)) for link, side in cursor.fetchall()]
    max_field_history = knobs_effective(survivor.scope).max_field_history
    joined = [
        _join(of_survivor, of_loser, histories[of_survivor.id], histories[of_loser.id], max_field_history)
        for of_survivor, of_loser in both
    ]
    values = {each.of_survivor.id: each.value for each in joined}
    kept = sorted([*own.values(), *moved], key=lambda each: (each.created_at, each.id))
    categories = sorted({*survivor.categories, *loser.categories})
    if len(categories) > MAX_CATEGORIES:
        categories = sorted({*survivor.categories, *sorted(loser.categories)[:MAX_CATEGORIES]})[:MAX_CATEGORIES]
    refold = any(each.refold for each in joined)
    return MergePlan(
        survivor,
        loser,
        moved,
        joined,
        links,
        categories,
        rung=int(Rung.ACTIVE) if refold else min(survivor.rung, loser.rung),
        text=TopicText(survivor.title, survivor.summary, [values.get(each.id, each.value) for each in kept]),
        fields=fields,
    )


def _join(
    of_survivor: FieldRow,
    of_loser: FieldRow,
    own: Sequence[Revision],
    other: Sequence[Revision],
    max_field_history: int,
) -> Joined:
    # In the order in which the revisions were recorded. Of two values with the same times, the survivor's value comes
    # last, so that it is the current one.
    order = list(merge(other, own, key=lambda each: (each.recorded_at, each.valid_from)))
    cold = of_survivor.cold_through
    # Summaries cover the first ``cold`` revisions. They are valid only if these revisions are still the first.
    refold = cold > 0 and [each.id for each in order[:cold]] != [each.id for each in own[:cold]]
    least = max(0, len(order) - max_field_history)
    return Joined(of_survivor, of_loser, order, cold=least if refold else max(cold, least), refold=refold)
