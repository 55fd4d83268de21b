"""Turns items into rows, without the database. Each item sees the changes of the items before it. A refused item
changes nothing."""

import datetime as dt
import functools
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, cast

from memory.access.principal import Principal
from memory.core.errors import Conflict, MemoryProblem, NotVisible, RequestRefused, ValueRefused
from memory.core.ids import uuid7_at
from memory.core.problem_codes import ProblemCode
from memory.core.text import MAX_CATEGORIES
from memory.formulas.salience import fade_key
from memory.ingest.items import EmptyField, IngestField, IngestItem, RestoringItem
from memory.ingest.load import Known, KnownField, KnownTopic
from memory.ingest.replies import IngestReply
from memory.models import Rung
from memory.policy.snapshot import EffectivePolicy, Policies

Row = tuple[Any, ...]

# The maximum number of fields of a topic.
MAX_FIELDS = 500


@dataclass(slots=True)
class ItemReply:
    """The result of one accepted item."""

    topic_id: uuid.UUID
    applied: list[str] = field(default_factory=list)
    version_ids: dict[str, str] = field(default_factory=dict)
    similar_topic_ids: list[str] = field(default_factory=list)

    def as_json(self) -> IngestReply:
        """Return the result as the API sends it."""
        return cast("IngestReply", {**asdict(self), "topic_id": str(self.topic_id)})


ItemOutcome = ItemReply | MemoryProblem


class RevisionRow(NamedTuple):
    """A row of Revision. The members are in the order of the columns in the COPY statement."""

    id: uuid.UUID
    field_id: uuid.UUID
    seq: int
    value: str
    field_type: str
    ref_topic_id: uuid.UUID | None
    valid_from: dt.datetime
    recorded_at: dt.datetime
    provenance: str
    why_changed: str
    impact_expected: str
    actor: str


@dataclass(slots=True)
class WritePlan:
    """The rows to write, with the columns in the order of ``memory.ingest.write``, and one outcome per item."""

    outcomes: list[ItemOutcome] = field(default_factory=list)
    topics: list[Row] = field(default_factory=list)
    vitalities: list[Row] = field(default_factory=list)
    fields: list[Row] = field(default_factory=list)
    revisions: list[RevisionRow] = field(default_factory=list)
    # Used only by the import of topics with their history (``history``).
    summaries: list[Row] = field(default_factory=list)
    edits: list[Row] = field(default_factory=list)
    links: list[Row] = field(default_factory=list)
    audits: list[Row] = field(default_factory=list)
    # New values of stored rows, by their ids. ``touched`` has topics: categories, time of the change, time of the use,
    # idle seconds before the use. ``versioned`` has fields: ``last_seq``, ``cold_through``. ``raised`` has fields whose
    # current revision gets another number: the number in the store, the new number.
    touched: dict[uuid.UUID, tuple[list[str], dt.datetime, dt.datetime, float]] = field(default_factory=dict)
    versioned: dict[uuid.UUID, tuple[int, int]] = field(default_factory=dict)
    raised: dict[uuid.UUID, tuple[int, int]] = field(default_factory=dict)
    pins: list[uuid.UUID] = field(default_factory=list)
    pins_by_agent: bool = False
    # Topics whose text is new or changed, in order; they are embedded and indexed.
    texts: dict[uuid.UUID, KnownTopic] = field(default_factory=dict)
    similar_wanted: list[int] = field(default_factory=list)
    scopes: set[str] = field(default_factory=set)


def item_topic_ids(item: IngestItem) -> tuple[set[uuid.UUID], set[uuid.UUID]]:
    """Return (ids of stored topics that ``item`` may change, ids that it only mentions)."""
    read = {edge.to_topic_id for edge in item.edges}
    read |= {entry.ref_topic_id for entry in item.fields if entry.ref_topic_id is not None}
    topic_id = _topic_id(item)
    if topic_id is None:
        return set(), read
    return (set(), read | {topic_id}) if item.placement == "new_topic" else ({topic_id}, read)


def item_id_chosen(item: IngestItem) -> set[uuid.UUID]:
    """Return the id that ``item`` chooses for a new topic, as a set; empty if it chooses none."""
    topic_id = _topic_id(item)
    return {topic_id} if item.placement == "new_topic" and topic_id is not None else set()


def ingest_plan(
    items: Sequence[IngestItem], *, known: Known, policies: Policies, principal: Principal, now: dt.datetime
) -> WritePlan:
    """Return the rows of ``items``. ``known`` has the stored topics; the changes of each item are added to it. No
    queries."""
    plan = WritePlan(pins_by_agent=not principal.covers("operator"))
    policy = functools.cache(policies.effective)
    for at, item in enumerate(items):
        try:
            reply = _Placing(plan, known, policy, principal, item, now).place()
        except MemoryProblem as problem:
            plan.outcomes.append(problem)
        else:
            plan.outcomes.append(reply)
            if item.suggest_similar:
                plan.similar_wanted.append(at)
    return plan


def _topic_id(item: IngestItem) -> uuid.UUID | None:
    if not item.topic_id:
        return None
    try:
        return uuid.UUID(item.topic_id)
    except ValueError:
        return None


class _Placing:
    """Adds one item to the plan. All checks come before the first change."""

    def __init__(
        self,
        plan: WritePlan,
        known: Known,
        policy: Callable[[str], EffectivePolicy],
        principal: Principal,
        item: IngestItem,
        now: dt.datetime,
    ) -> None:
        self.plan, self.known, self.policy, self.principal, self.item = plan, known, policy, principal, item
        if item.created_at is not None:
            principal.require("operator")
            if item.created_at > now:
                raise ValueRefused("created_at must not be in the future.", member="created_at")
        self.at = item.created_at or now
        self.now = now
        # A memory with a past ``created_at`` counts as used when it arrives, unless the item has ``last_used_at``.
        self.used_at = item.last_used_at or now
        if item.last_used_at is not None:
            principal.require("operator")
            if not self.at <= item.last_used_at <= now:
                raise ValueRefused(
                    "last_used_at must not be before created_at, or in the future.", member="last_used_at"
                )

    def place(self) -> ItemReply:
        self._references_check()
        if self.item.placement == "new_topic":
            self._types_check({})
            self._emptied_check({})
            topic, reply = self._new_topic()
        else:
            topic = self._stored_topic()
            self._types_check(topic.fields)
            self._emptied_check(topic.fields)
            if self.item.placement == "version_field" and len(self.item.fields) != 1:
                raise RequestRefused(
                    f"version_field requires exactly one field; this item has {len(self.item.fields)}.",
                    member="version_field",
                )
            self._created_at_check(topic)
            self._limits_check(topic)
            reply = ItemReply(topic.id)
        for entry in (*self.item.fields, *self._emptied(topic)):
            self._field(topic, entry, reply)
        for edge in self.item.edges:
            self._link(topic, edge.to_topic_id, edge.kind, reply)
        if not topic.is_new:
            self._touch(topic)
        self.plan.scopes.add(topic.scope)
        reason = next((entry.why_changed for entry in self.item.fields if entry.why_changed), "")
        after: dict[str, Any] = {"applied": reply.applied}
        if topic.is_new and topic.pinned:
            after["pinned"] = True
        if topic.is_new and self.item.salience != 1.0:
            # A backtest starts with this salience, which Vitality does not keep.
            after["salience"] = self.item.salience
        if topic.is_new and self.item.created_at is not None:
            after["used_at"] = self.used_at.isoformat()
        self._journal(f"ingest_{self.item.placement}", topic, reason, {}, after)
        return reply

    def _emptied(self, topic: KnownTopic) -> list[IngestField]:
        """Return an empty value for each field to empty that has a value."""
        names = dict.fromkeys(self.item.empty_fields)
        return [EmptyField(name=name) for name in names if topic.fields[name].value]

    def _emptied_check(self, fields: Mapping[str, KnownField]) -> None:
        if self.item.empty_fields and self.item.placement != "extend_topic":
            raise RequestRefused("empty_fields requires extend_topic.", member="empty_fields")
        for name in self.item.empty_fields:
            if name not in fields:
                raise ValueRefused(
                    f"The topic has no field {name!r} to empty.", code=ProblemCode.NOT_FOUND, member="empty_fields"
                )
            if name in {entry.name for entry in self.item.fields}:
                raise RequestRefused(f"Field {name!r} is both given a value and emptied.", member="empty_fields")

    def _journal(
        self, action: str, topic: KnownTopic, reason: str, before: dict[str, Any], after: dict[str, Any]
    ) -> None:
        states = (json.dumps(state, ensure_ascii=False) for state in (before, after))
        self.plan.audits.append((self.now, self.principal.actor, action, topic.id, topic.scope, reason, *states))

    def _types_check(self, fields: Mapping[str, KnownField]) -> None:
        types = {name: known.field_type for name, known in fields.items()}
        for entry in self.item.fields:
            _text, types[entry.name] = entry.typed(types.get(entry.name))

    def _created_at_check(self, topic: KnownTopic) -> None:
        # Revisions must be numbered in the order of their times, because ``as_of`` relies on this order.
        if self.item.created_at is None:
            return
        if self.at < topic.created_at:
            raise ValueRefused(f"created_at must not be before topic {topic.id} was created.", member="created_at")
        for entry in self.item.fields:
            present = topic.fields.get(entry.name)
            if present is not None and self.at < present.recorded_at:
                raise ValueRefused(
                    f"created_at must not be before the last change of field {entry.name!r}.", member="created_at"
                )

    def _limits_check(self, topic: KnownTopic) -> None:
        # The limits apply to the whole topic, so that its bundle stays readable.
        fields = topic.fields.keys() | {entry.name for entry in self.item.fields}
        categories = {*topic.categories, *self.item.categories}
        if len(fields) > MAX_FIELDS:
            raise ValueRefused(
                f"Topic {topic.id} would have {len(fields)} fields; the limit is {MAX_FIELDS}.",
                code=ProblemCode.TOO_LARGE,
                member="fields",
            )
        if len(categories) > MAX_CATEGORIES:
            raise ValueRefused(
                f"Topic {topic.id} would have {len(categories)} categories; the limit is {MAX_CATEGORIES}.",
                code=ProblemCode.TOO_LARGE,
                member="categories",
            )

    def _references_check(self) -> None:
        changed, read = item_topic_ids(self.item)
        own = _topic_id(self.item) if self.item.placement == "new_topic" else None
        for topic_id in sorted(read - changed - ({own} if own else set())):
            topic = self.known.topics.get(topic_id)
            if topic is None or not self.principal.sees(topic.scope):
                raise self._not_found(topic_id)

    def _not_found(self, topic_id: object) -> MemoryProblem:
        # A key bound to a scope gets the same answer for a topic that does not exist and for one outside its scope.
        if self.principal.sees("/"):
            return RequestRefused(f"Topic {topic_id} does not exist.", code=ProblemCode.NOT_FOUND)
        return NotVisible(f"Topic {topic_id} does not exist.")

    def _new_topic(self) -> tuple[KnownTopic, ItemReply]:
        item = self.item
        topic_id = _topic_id(item)
        if item.topic_id and topic_id is None:
            raise ValueRefused("topic_id must be a UUID.", member="topic_id")
        if topic_id is not None and (topic_id in self.known.topics or topic_id in self.known.taken):
            # The same answer in all cases, because a key must not learn anything about an id outside its scope.
            raise Conflict(f"The id {topic_id} is in use already.", code=ProblemCode.ALREADY_EXISTS)
        if topic_id is None:
            topic_id = uuid7_at(self.now)
        scope = self.principal.scope_chosen(item.scope)
        values = (entry.typed(None)[0] or entry.ref_topic_id for entry in item.fields)
        if not any(str(part or "").strip() for part in (item.title, item.summary, *values)):
            raise ValueRefused(
                "The topic has no title, no summary and no value, so there is nothing to remember.",
                code=ProblemCode.MISSING_MEMBER,
            )
        topic = KnownTopic(
            id=topic_id,
            scope=scope,
            title=item.title.strip(),
            summary=item.summary or "",
            categories=sorted(set(item.categories)),
            created_at=self.at,
            pinned=item.pinned,
            is_new=True,
        )
        self.known.topics[topic_id] = topic
        kind, provenance = item.topic_kind or "", item.fields[0].provenance if item.fields else "api"
        texts = kind, topic.title, topic.summary, topic.categories
        self.plan.topics.append((topic_id, scope, *texts, provenance, self.at, self.at, Rung.ACTIVE, None))
        salience = item.salience, self.used_at, *self._fade_columns(scope)
        by_agent = item.pinned and not self.principal.covers("operator")
        pin = item.pinned, "asked for on ingest" if item.pinned else "", by_agent
        last_used = self.used_at if self.used_at > self.at else None
        self.plan.vitalities.append((topic_id, scope, *salience, *pin, kind, self.at, 0, last_used, Rung.ACTIVE, True))
        self.plan.texts[topic_id] = topic
        return topic, ItemReply(topic_id, applied=[f"created_topic:{topic_id}"])

    def _idle_seconds(self, scope: str, at: dt.datetime) -> float:
        """Return the idle seconds of the scope before ``at``. The day of this write counts as active."""
        return float(self.policy(scope).time.active_at(self.now).idle(at.timestamp()))

    def _fade_columns(self, scope: str) -> Row:
        """Return the columns from ``half_life`` to ``fade_floor``. The item counts as a use."""
        policy, idle, used_at = self.policy(scope), self._idle_seconds(scope, self.used_at), self.used_at.timestamp()
        half_life = policy.knobs.half_life
        fade = fade_key(self.item.salience, reinforced_at=policy.time.counted(used_at, idle), half_life=half_life)
        return half_life, idle, policy.time.wall, fade, fade

    def _stored_topic(self) -> KnownTopic:
        item = self.item
        if not item.topic_id:
            raise RequestRefused(
                f"{item.placement} requires a topic_id.", code=ProblemCode.MISSING_MEMBER, member="topic_id"
            )
        topic_id = _topic_id(item)
        topic = self.known.topics.get(topic_id) if topic_id is not None else None
        if topic is None or not self.principal.sees(topic.scope):
            raise self._not_found(item.topic_id)
        if item.scope is not None and self.principal.scope_chosen(item.scope) != topic.scope:
            raise RequestRefused(
                f"Topic {topic.id} is in scope {topic.scope}; ingest cannot move it to another one.", member="scope"
            )
        if topic.merged:
            raise RequestRefused(
                f"Topic {topic.id} was merged into another one. Write to that one.", code=ProblemCode.TOPIC_GONE
            )
        if topic.released:
            raise RequestRefused(
                f"Topic {topic.id} is released. Restore it before writing to it.", code=ProblemCode.TOPIC_GONE
            )
        return topic

    def _field(self, topic: KnownTopic, entry: IngestField, reply: ItemReply) -> None:
        present = topic.fields.get(entry.name)
        text, field_type = entry.typed(present.field_type if present is not None else None)
        knobs = self.policy(topic.scope).knobs
        if present is None:
            present = KnownField(
                id=uuid7_at(self.now),
                name=entry.name,
                last_seq=0,
                cold_through=0,
                value="",
                field_type=field_type,
                ref_topic_id=None,
                recorded_at=self.at,
                valid_from=self.item.valid_from or self.at,
                is_new=True,
            )
            topic.fields[entry.name] = present
            # ``last_seq`` and ``cold_through`` are set when the plan is written, because later items may add revisions.
            self.plan.fields.append(
                (
                    present,
                    topic.id,
                    self.item.salience,
                    self.used_at,
                    self.at,
                    *self._fade_columns(topic.scope),
                    0,
                    None,
                    False,
                )
            )
            reply.applied.append(f"field:{entry.name}")
            if self.item.placement == "version_field":
                reply.applied.append(f"version:{entry.name}")
        else:
            reply.applied.append(f"version:{entry.name}")
        # Two concurrent writers may have their times in the wrong order.
        present.recorded_at = max(present.recorded_at, self.at)
        valid_from = self.item.valid_from or present.recorded_at
        seq, reference = present.last_seq + 1, present.ref_topic_id if entry.keeps_reference else entry.ref_topic_id
        is_older = self.item.valid_from is not None and valid_from < present.valid_from
        if present.last_seq and is_older and not isinstance(self.item, RestoringItem):
            # The order of learning is not the order of facts: a value from 2019 does not replace one from 2024.
            self._current_raise(present, seq)
            seq = present.last_seq
            reply.applied.append(f"stays_current:{entry.name}")
        else:
            present.value, present.field_type, present.ref_topic_id = text, field_type, reference
            present.valid_from, present.row = valid_from, len(self.plan.revisions)
        present.last_seq += 1
        present.cold_through = max(present.cold_through, present.last_seq - knobs.max_field_history)
        revision_id = uuid7_at(self.now)
        self.plan.revisions.append(
            RevisionRow(
                revision_id,
                present.id,
                seq,
                text,
                field_type,
                reference,
                valid_from,
                present.recorded_at,
                entry.provenance,
                entry.why_changed or "",
                entry.impact_expected or "",
                self.principal.actor,
            )
        )
        if not present.is_new:
            self.plan.versioned[present.id] = (present.last_seq, present.cold_through)
        reply.version_ids[entry.name] = str(revision_id)
        self.plan.texts.setdefault(topic.id, topic)

    def _current_raise(self, present: KnownField, seq: int) -> None:
        """Give the current revision of a field the number ``seq``, so that another can be stored below it."""
        if present.row is not None:
            self.plan.revisions[present.row] = self.plan.revisions[present.row]._replace(seq=seq)
        else:
            stored, _seq = self.plan.raised.get(present.id, (present.last_seq, 0))
            self.plan.raised[present.id] = stored, seq

    def _link(self, topic: KnownTopic, target: uuid.UUID, kind: str, reply: ItemReply) -> None:
        reply.applied.append(f"edge:{target}")
        if (target, kind) in topic.links:
            return
        topic.links.add((target, kind))
        self.plan.links.append((topic.id, target, kind, self.at, self.principal.actor))

    def _touch(self, topic: KnownTopic) -> None:
        topic.categories = sorted({*topic.categories, *self.item.categories})
        _categories, at, used_at, _idle_seconds = self.plan.touched.get(topic.id, (None, self.at, self.used_at, 0.0))
        used_at = max(used_at, self.used_at)
        idle = self._idle_seconds(topic.scope, used_at)
        self.plan.touched[topic.id] = (topic.categories, max(at, self.at), used_at, idle)
        by_operator = self.principal.covers("operator")
        if self.item.pinned and (not topic.pinned or (by_operator and topic.pinned_by_agent)):
            before = {"pinned": topic.pinned}
            topic.pinned, topic.pinned_by_agent = True, not by_operator
            self.plan.pins.append(topic.id)
            self._journal("pinned", topic, "asked for on ingest", before, {"pinned": True})
