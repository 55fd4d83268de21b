"""Writes topics with their past. Used only by the import of an export.

An ordinary item has a value that is true from now on; the store adds times, revision numbers and salience. Here all of
these are given. The rows are written by ``plan_write``, which also writes documents, mentions, vectors and the journal.
No rule or run follows, so that imported topics keep their state.
"""

import datetime as dt
import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from django.conf import settings
from django.db.backends.utils import CursorWrapper
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from memory.access.principal import Principal
from memory.core.errors import Conflict, NotVisible
from memory.core.field_values import MAX_VALUE_LENGTH
from memory.core.ids import uuid7_past
from memory.core.problem_codes import ProblemCode
from memory.embedding import embedder_get
from memory.embedding.base import Vectors
from memory.formulas.partition_time import PartitionTime
from memory.formulas.salience import fade_key, salience_effective
from memory.ingest.bulk import rows_copy
from memory.ingest.items import EARLIEST, LATEST, FieldType
from memory.ingest.load import KnownField, KnownTopic
from memory.ingest.mentions import Mentions, mentions_add
from memory.ingest.plan import MAX_FIELDS, RevisionRow, WritePlan
from memory.ingest.write import plan_write
from memory.policy.activity import activity_note
from memory.policy.effective import policies_current
from memory.policy.snapshot import Policies

ACTION = "imported"

# A time that was written by the clock of a store. The limit leaves room for calculations.
Clock = Annotated[AwareDatetime, Field(ge=EARLIEST, le=dt.datetime(2999, 12, 31, tzinfo=dt.UTC))]
AnyTime = Annotated[AwareDatetime, Field(ge=EARLIEST, le=LATEST)]
Short = Annotated[str, StringConstraints(max_length=200)]
# Twice the limit of a request: a purge may replace a text by a longer word.
Long = Annotated[str, StringConstraints(max_length=2 * MAX_VALUE_LENGTH)]
# Half of the limit of the column, because counting continues.
Count = Annotated[int, Field(ge=0, le=2**30)]
# Far above what any policy allows, and small enough that products stay finite.
Salience = Annotated[float, Field(ge=0, le=1e6)]


class Past(BaseModel):
    """A part of an export. Unknown members are refused, so that nothing is lost silently."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PastSalience(Past):
    """Salience at the last use, and the uses so far. The half-life comes from the policy in force here.

    ``counted_seconds`` is the time from ``reinforced_at`` to the end of the last active day, without idle days. For a
    clock without idle days, this is the time that has passed at the import.
    """

    salience: Salience
    reinforced_at: Clock
    counted_seconds: Annotated[float, Field(ge=-1e12, le=1e12)] | None = None
    retrieval_count: Count
    last_retrieved_at: Clock | None


class PastRevision(Past):
    """One value that a field has had. The members are in the order of the columns. References to topics are added when
    all topics are stored (``references_add``)."""

    value: Long
    field_type: FieldType
    valid_from: AnyTime
    recorded_at: Clock
    provenance: Short
    why_changed: Long
    impact_expected: Long
    actor: Short


class PastSummary(Past):
    """A summary of the cold revisions of a field. The members are in the order of the columns."""

    from_seq: Count
    through_seq: Count
    text: Long
    method: Annotated[str, StringConstraints(max_length=20)]
    depth: Annotated[int, Field(ge=0, le=100)]
    created_at: Clock
    withdrawn_at: Clock | None


class PastField(PastSalience):
    """A field with its newest revisions. The last revision has the number ``last_seq``. Older revisions may be added
    later (``revisions_add``)."""

    name: Short
    created_at: Clock
    last_seq: Annotated[int, Field(ge=1, le=2**30)]
    cold_through: Count
    detached: bool
    revisions: Annotated[list[PastRevision], Field(min_length=1)]
    summaries: list[PastSummary]

    @property
    def before(self) -> int:
        """The number of revisions before the given ones; negative if there are more revisions than ``last_seq``."""
        return self.last_seq - len(self.revisions)


class PastEdit(Past):
    """The values of a topic before an edit."""

    at: Clock
    actor: Short
    before: dict[Literal["title", "summary", "kind", "categories"], Long | list[Short]]


class PastVector(Past):
    """An embedding. It is used only if it belongs to the present text of the topic and to the model in use here."""

    model: Short
    text_hash: Annotated[str, StringConstraints(max_length=64)]
    embedding: Annotated[list[Annotated[float, Field(allow_inf_nan=False)]], Field(max_length=16_000)]


class TopicHistory(PastSalience):
    """A topic with its full history and its state."""

    type: Literal["topic"] = "topic"
    id: uuid.UUID
    scope: str
    kind: Short
    title: Annotated[str, StringConstraints(max_length=1000)]
    summary: Long
    categories: list[Short]
    provenance: Short
    created_at: Clock
    updated_at: Clock
    rung: Annotated[int, Field(ge=0, le=3)]
    released_at: Clock | None
    pinned: bool
    pin_reason: Annotated[str, StringConstraints(max_length=500)]
    fields: Annotated[list[PastField], Field(max_length=2 * MAX_FIELDS)]
    edits: list[PastEdit]
    vector: PastVector | None


class OlderRevisions(Past):
    """Revisions of a field of a stored topic, numbered from ``after + 1``."""

    type: Literal["history"] = "history"
    topic: uuid.UUID
    field: Short
    after: Count
    revisions: Annotated[list[PastRevision], Field(min_length=1)]


class Reference(Past):
    """A revision's reference to the topic ``to``."""

    type: Literal["reference"] = "reference"
    topic: uuid.UUID
    field: Short
    seq: Count
    to: uuid.UUID


class PastMerge(Past):
    """A topic that was merged into another one."""

    type: Literal["merged"] = "merged"
    topic: uuid.UUID
    into: uuid.UUID
    released_at: Clock | None


class PastLink(Past):
    """A link between two topics."""

    type: Literal["link"] = "link"
    source: uuid.UUID
    target: uuid.UUID
    kind: Short
    created_at: Clock
    actor: Short


def history_ingest(topics: Sequence[TopicHistory], *, principal: Principal, reason: str, now: dt.datetime) -> None:
    """Write topics with their past. None of them may exist. At most fifteen statements for any number.

    Needs a transaction. Topics without a usable vector stay pending. Each topic gets an audit event with ``reason`` and
    its salience at ``now``. Raises ``NotAllowed`` below operator, ``NotVisible`` outside the caller's scope, and
    ``IntegrityError`` if another process writes one of the topics at the same time.
    """
    principal.require("operator")
    for topic in topics:
        if not principal.sees(topic.scope):
            raise NotVisible(f"Scope {topic.scope} does not exist.", code=ProblemCode.SCOPE_NOT_FOUND)
    if not topics:
        return
    policies = policies_current()
    plan = _plan(topics, policies=policies, actor=principal.actor, reason=reason, now=now)
    activity_note(policies, plan.scopes, now=now)
    texts = {topic_id: known.text() for topic_id, known in plan.texts.items()}
    model = embedder_get().model_name
    plan_write(plan, texts=texts, model=model, vectors=_vectors(topics, model=model))


def revisions_add(parts: Sequence[OlderRevisions], *, cursor: CursorWrapper) -> None:
    """Write older revisions of stored fields, and their mentions. Three statements.

    Needs a transaction. Raises ``Conflict`` if a topic has no such field, ``IntegrityError`` if a number is taken.
    """
    fields = _field_ids(cursor, [part.topic for part in parts])
    rows: list[RevisionRow] = []
    by_topic: dict[uuid.UUID, Mentions] = {}
    for part in parts:
        if (field_id := fields.get((part.topic, part.field))) is None:
            raise Conflict(
                f"Topic {part.topic} no longer has a field {part.field!r}.", code=ProblemCode.FIELD_NOT_FOUND
            )
        rows += _revision_rows(field_id, part.revisions, after=part.after)
        mentions = by_topic.setdefault(part.topic, Mentions())
        mentions.read({text for row in part.revisions for text in (row.value, row.why_changed, row.impact_expected)})
    if rows:
        rows_copy(cursor, "memory_revision", RevisionRow._fields, rows)
        mentions_add(cursor, by_topic)


def references_add(references: Sequence[Reference], *, cursor: CursorWrapper) -> None:
    """Set the references of revisions to topics. One statement."""
    cursor.execute(_REFERENCES_SQL, _columns(references, "topic", "field", "seq", "to"))


def merges_add(merges: Sequence[PastMerge], *, cursor: CursorWrapper) -> None:
    """Mark topics as merged into others, and add their mentions to the others. Two statements."""
    wanted = _columns(merges, "topic", "into", "released_at")
    cursor.execute(_MERGED_SQL, wanted)
    cursor.execute(_MERGED_MENTIONS_SQL, wanted)


def links_add(links: Sequence[PastLink], *, cursor: CursorWrapper) -> None:
    """Write links between stored topics. Existing links are not changed. One statement."""
    cursor.execute(_LINKS_SQL, _columns(links, "source", "target", "kind", "created_at", "actor"))


def _columns(rows: Iterable[Past], *names: str) -> dict[str, list[Any]]:
    return {name: [getattr(row, name) for row in rows] for name in names}


_REFERENCES_SQL = """
UPDATE memory_revision r SET ref_topic_id = d.target
FROM unnest(%(topic)s::uuid[], %(field)s::text[], %(seq)s::int[], %(to)s::uuid[]) AS d (topic, field, seq, target)
JOIN memory_field f ON f.topic_id = d.topic AND f.name = d.field
WHERE r.field_id = f.id AND r.seq = d.seq AND r.ref_topic_id IS NULL
"""
_MERGED_SQL = """
UPDATE memory_topic t SET merged_into_id = d.target, released_at = d.released_at
FROM unnest(%(topic)s::uuid[], %(into)s::uuid[], %(released_at)s::timestamptz[]) AS d (id, target, released_at)
JOIN memory_topic i ON i.id = d.target
WHERE t.id = d.id AND t.merged_into_id IS NULL AND i.merged_into_id IS DISTINCT FROM t.id
"""
# Adds the mentions of merged topics to the topics into which they were merged, directly or through others.
_MERGED_MENTIONS_SQL = """
WITH RECURSIVE pair (low, high) AS (
    SELECT id, merged_into_id FROM memory_topic WHERE id = ANY(%(topic)s) AND merged_into_id IS NOT NULL
), up (low, high) AS (
    SELECT low, high FROM pair
    UNION
    SELECT up.low, t.merged_into_id FROM up JOIN memory_topic t ON t.id = up.high WHERE t.merged_into_id IS NOT NULL
), down (low, high) AS (
    SELECT low, high FROM up
    UNION
    SELECT t.id, down.high FROM down JOIN memory_topic t ON t.merged_into_id = down.low
), said AS (
    SELECT d.high, array_agg(DISTINCT m.topic_id) AS those FROM down d JOIN memory_topicmention m ON m.topic_id = d.low
    GROUP BY d.high
)
UPDATE memory_topicmention m SET
    identifiers = ARRAY(SELECT DISTINCT z COLLATE "C" FROM memory_topicmention o, unnest(o.identifiers) z
                        WHERE o.topic_id = ANY(said.those || m.topic_id) ORDER BY 1),
    words = ARRAY(SELECT DISTINCT z COLLATE "C" FROM memory_topicmention o, unnest(o.words) z
                  WHERE o.topic_id = ANY(said.those || m.topic_id) ORDER BY 1),
    aliases = ARRAY(SELECT DISTINCT z COLLATE "C" FROM memory_topicmention o, unnest(o.aliases) z
                    WHERE o.topic_id = ANY(said.those || m.topic_id) ORDER BY 1)
FROM said WHERE m.topic_id = said.high
"""
_LINKS_SQL = """
INSERT INTO memory_link (source_id, target_id, kind, created_at, actor)
SELECT * FROM unnest(%(source)s::uuid[], %(target)s::uuid[], %(kind)s::text[], %(created_at)s::timestamptz[],
                     %(actor)s::text[])
ON CONFLICT (source_id, target_id, kind) DO NOTHING
"""


def _plan(
    topics: Sequence[TopicHistory], *, policies: Policies, actor: str, reason: str, now: dt.datetime
) -> WritePlan:
    plan = WritePlan()
    fadings = {
        scope: _Fading(policy.knobs.half_life, policy.time.active_at(now))
        for scope in {topic.scope for topic in topics}
        if (policy := policies.effective(scope))
    }
    for topic in topics:
        fading = fadings[topic.scope]
        known = KnownTopic(
            id=topic.id,
            scope=topic.scope,
            title=topic.title,
            summary=topic.summary,
            categories=topic.categories,
            created_at=topic.created_at,
            rung=topic.rung,
            released=topic.released_at is not None,
            pinned=topic.pinned,
            is_new=True,
        )
        plan.scopes.add(topic.scope)
        plan.texts[topic.id] = known
        plan.topics.append(
            (
                topic.id,
                topic.scope,
                topic.kind,
                topic.title,
                topic.summary,
                topic.categories,
                topic.provenance,
                topic.created_at,
                topic.updated_at,
                topic.rung,
                topic.released_at,
            )
        )
        plan.vitalities.append(
            (
                topic.id,
                topic.scope,
                *fading.columns(topic),
                topic.pinned,
                topic.pin_reason,
                # The key that set the pin may be unknown here.
                False,
                topic.kind,
                topic.created_at,
                topic.retrieval_count,
                topic.last_retrieved_at,
                topic.rung,
                known.live,
            )
        )
        plan.edits += [(topic.id, edit.at, edit.before, edit.actor) for edit in topic.edits]
        # Fields are sorted by time and id, so ascending ids keep the order of the file.
        ids = sorted(_id_of(each.created_at) for each in topic.fields)
        for field_id, each in zip(ids, topic.fields, strict=True):
            _field_plan(plan, known, each, field_id=field_id, fading=fading)
        salience = salience_effective(
            topic.salience,
            reinforced_at=topic.reinforced_at.timestamp(),
            half_life=fading.half_life,
            now=now.timestamp(),
            skipped=fading.time.skipped(fading.idle_before(topic), now.timestamp()),
        )
        after = json.dumps({"salience": salience, "rung": topic.rung, "released": known.released})
        plan.audits.append((now, actor, ACTION, topic.id, topic.scope, reason, "{}", after))
    return plan


def _field_plan(
    plan: WritePlan, topic: KnownTopic, given: PastField, *, field_id: uuid.UUID, fading: "_Fading"
) -> None:
    last = given.revisions[-1]
    known = KnownField(
        id=field_id,
        name=given.name,
        last_seq=given.last_seq,
        cold_through=given.cold_through,
        value=last.value,
        field_type=last.field_type,
        ref_topic_id=None,
        recorded_at=last.recorded_at,
        is_new=True,
    )
    topic.fields[given.name] = known
    salience, reinforced_at, *keys = fading.columns(given)
    uses = given.retrieval_count, given.last_retrieved_at, given.detached
    plan.fields.append((known, topic.id, salience, reinforced_at, given.created_at, *keys, *uses))
    plan.revisions += _revision_rows(known.id, given.revisions, after=given.before)
    plan.summaries += [(known.id, *dict(summary).values()) for summary in given.summaries]


@dataclass(frozen=True, slots=True)
class _Fading:
    """The values of a scope from which fade keys are computed. ``time`` is the partition time after the import."""

    half_life: float
    time: PartitionTime

    def idle_before(self, given: PastSalience) -> float:
        """Return idle seconds before the last use such that ``counted_seconds`` have passed since then."""
        used, end = given.reinforced_at.timestamp(), self.time.active_until
        if given.counted_seconds is None:
            return float(self.time.idle(used))
        return float(used - (end - self.time.idle(end)) + given.counted_seconds)

    def columns(self, given: PastSalience) -> tuple[Any, ...]:
        """Return the columns from ``salience`` to ``fade_floor``."""
        idle = self.idle_before(given)
        counted = self.time.counted(given.reinforced_at.timestamp(), idle)
        fade = fade_key(given.salience, reinforced_at=counted, half_life=self.half_life)
        return given.salience, given.reinforced_at, self.half_life, idle, self.time.wall, fade, fade


def _revision_rows(field_id: uuid.UUID, revisions: Sequence[PastRevision], *, after: int) -> list[RevisionRow]:
    return [
        RevisionRow(_id_of(row.recorded_at), field_id, seq, ref_topic_id=None, **dict(row))
        for seq, row in enumerate(revisions, start=after + 1)
    ]


def _id_of(at: dt.datetime) -> uuid.UUID:
    """Return a new id for a row that was written at ``at``. ``verify_erasure`` reads the age of a text from the id."""
    return uuid7_past(at_ms=int(at.timestamp() * 1000))


def _field_ids(cursor: CursorWrapper, topics: Sequence[uuid.UUID]) -> dict[tuple[uuid.UUID, str], uuid.UUID]:
    cursor.execute("SELECT topic_id, name, id FROM memory_field WHERE topic_id = ANY(%s)", [list(topics)])
    return {(topic_id, name): field_id for topic_id, name, field_id in cursor.fetchall()}


def _vectors(topics: Sequence[TopicHistory], *, model: str) -> dict[str, Vectors]:
    return {
        each.vector.text_hash: np.array(each.vector.embedding, dtype=np.float32)
        for each in topics
        if each.vector is not None
        and each.vector.model == model
        and len(each.vector.embedding) == settings.MEMSTATE_EMBEDDING_DIMENSION
    }
