"""Writes topics with their history, for the import of an export. The import starts no rule and no run."""

import datetime as dt
import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
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
from memory.ingest.write import TOPIC, plan_write
from memory.policy.activity import activity_note
from memory.policy.effective import policies_current
from memory.policy.snapshot import Policies

ACTION = "imported"

# A time from the clock of a store. The upper limit leaves room for calculations.
Clock = Annotated[AwareDatetime, Field(ge=EARLIEST, le=dt.datetime(2999, 12, 31, tzinfo=dt.UTC))]
AnyTime = Annotated[AwareDatetime, Field(ge=EARLIEST, le=LATEST)]
Short = Annotated[str, StringConstraints(max_length=200)]
# Twice the limit of a request: a purge may replace a text by a longer word.
Long = Annotated[str, StringConstraints(max_length=2 * MAX_VALUE_LENGTH)]
# Half of the limit of the column, because the store continues to count.
Count = Annotated[int, Field(ge=0, le=2**30)]
# Far above what any policy allows, and small enough that products stay finite.
Salience = Annotated[float, Field(ge=0, le=1e6)]


class Past(BaseModel):
    """A part of an export. Unknown members are refused, so that nothing is lost silently."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PastSalience(Past):
    """Salience at the last use, and the uses so far. ``counted_seconds`` is the time from ``reinforced_at`` to the end
    of the last active day, without idle days; None if the exporting store had no record of active days."""

    salience: Salience
    reinforced_at: Clock
    counted_seconds: Annotated[float, Field(ge=-1e12, le=1e12)] | None = None
    retrieval_count: Count
    last_retrieved_at: Clock | None


class PastRevision(Past):
    """A value of a field. Members are in the order of the columns. References are added later (``references_add``)."""

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
    """A field with its newest revisions, up to ``last_seq``. Older ones may be added later (``revisions_add``)."""

    name: Short
    created_at: Clock
    last_seq: Annotated[int, Field(ge=1, le=2**30)]
    cold_through: Count
    detached: bool
    revisions: Annotated[list[PastRevision], Field(min_length=1)]
    summaries: list[PastSummary]

    @property
    def before(self) -> int:
        """The number of revisions before those in ``revisions``; negative if ``revisions`` has more than
        ``last_seq``."""
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
    """Write topics with their past. None of the topics may exist already. Needs a transaction. At most fifteen
    statements. Topics without a usable vector stay pending. Raises ``NotAllowed`` unless the caller is an operator,
    ``NotVisible`` outside the caller's scope, ``IntegrityError`` if another process writes one of the topics."""
    principal.require("operator")
    for topic in topics:
        if not principal.sees(topic.scope):
            raise NotVisible(f"Scope {topic.scope} does not exist.")
    if not topics:
        return
    policies = policies_current()
    plan = _plan(topics, policies=policies, actor=principal.actor, reason=reason, now=now)
    activity_note(policies, plan.scopes, now=now)
    texts = {topic_id: known.text() for topic_id, known in plan.texts.items()}
    model = embedder_get().model_name
    plan_write(plan, texts=texts, model=model, vectors=_vectors(topics, model=model))


def revisions_add(parts: Sequence[OlderRevisions], *, cursor: CursorWrapper) -> None:
    """Write older revisions of stored fields, and their mentions. Three statements. Needs a transaction. Raises
    ``Conflict`` if a topic has no such field, ``IntegrityError`` if a revision with the same number exists."""
    cursor.execute(
        "SELECT topic_id, name, id FROM memory_field WHERE topic_id = ANY(%s)", [[part.topic for part in parts]]
    )
    fields = {(topic_id, name): field_id for topic_id, name, field_id in cursor.fetchall()}
    rows: list[RevisionRow] = []
    by_topic: dict[uuid.UUID, Mentions] = {}
    for part in parts:
        if (field_id := fields.get((part.topic, part.field))) is None:
            raise Conflict(f"Topic {part.topic} no longer has a field {part.field!r}.", code=ProblemCode.NOT_FOUND)
        rows += _revision_rows(field_id, part.revisions, after=part.after)
        mentions = by_topic.setdefault(part.topic, Mentions())
        mentions.read({text for row in part.revisions for text in (row.value, row.why_changed, row.impact_expected)})
    if rows:
        rows_copy(cursor, "memory_revision", " ".join(RevisionRow._fields), rows)
        mentions_add(cursor, by_topic)


def references_add(references: Sequence[Reference], *, cursor: CursorWrapper) -> None:
    """Store which topics the revisions refer to. One statement."""
    cursor.execute(_REFERENCES_SQL, _columns(references, "topic", "field", "seq", "to"))


def merges_add(merges: Sequence[PastMerge], *, cursor: CursorWrapper) -> None:
    """Mark topics as merged into other topics, and add the mentions of the merged topics to the others. Two
    statements."""
    wanted = _columns(merges, "topic", "into", "released_at")
    cursor.execute(_MERGED_SQL, wanted)
    cursor.execute(_MERGED_MENTIONS_SQL, wanted)


def links_add(links: Sequence[PastLink], *, cursor: CursorWrapper) -> None:
    """Write links between stored topics. Existing links are not changed. One statement."""
    cursor.execute(_LINKS_SQL, _columns(links, "source", "target", "kind", "created_at", "actor"))


def _columns(rows: Iterable[Past], *names: str) -> dict[str, list[Any]]:
    return {name: [getattr(row, name) for row in rows] for name in names}


# Returns the members of a topic that are columns of its row.
_topic_row = attrgetter(*TOPIC.replace("scope_id", "scope").split())

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
        plan.topics.append(_topic_row(topic))
        # The key that set the pin may be unknown in this store, so ``pinned_by_agent`` is False.
        pin = topic.pinned, topic.pin_reason, False
        uses = topic.retrieval_count, topic.last_retrieved_at
        state = *fading.columns(topic), *pin, topic.kind, topic.created_at, *uses, topic.rung, known.live
        plan.vitalities.append((topic.id, topic.scope, *state))
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
        valid_from=last.valid_from,
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
    """Computes the fade keys of one scope. ``time`` is the partition time after the import."""

    half_life: float
    time: PartitionTime

    def idle_before(self, given: PastSalience) -> float:
        """Return the idle seconds before the last use. They are computed from ``counted_seconds``, which is the active
        time after that use."""
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
    # ``verify_erasure`` reads the age of a text from the id.
    return uuid7_past(at_ms=int(at.timestamp() * 1000))


def _vectors(topics: Sequence[TopicHistory], *, model: str) -> dict[str, Vectors]:
    return {
        each.vector.text_hash: np.array(each.vector.embedding, dtype=np.float32)
        for each in topics
        if each.vector is not None
        and each.vector.model == model
        and len(each.vector.embedding) == settings.MEMSTATE_EMBEDDING_DIMENSION
    }
