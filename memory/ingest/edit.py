"""Edits a topic: title, summary, kind, categories, and, for operators, salience."""

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Max

from memory.access.principal import Principal
from memory.core.errors import Conflict, NotAllowed, NotVisible, RequestRefused, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.embedding import embedder_get, text_hash
from memory.embedding.base import Vectors
from memory.forgetting.ingest_rules import ingest_rules_apply
from memory.formulas.partition_time import PartitionTime
from memory.formulas.salience import fade_key
from memory.ingest.load import KnownTopic, known_load
from memory.ingest.plan import WritePlan
from memory.ingest.write import plan_write
from memory.models import AuditEvent, Topic, TopicEdit, Vitality
from memory.policy.activity import activity_note
from memory.policy.effective import policies_current


@dataclass(frozen=True, slots=True)
class TopicChange:
    """The members to change; None means no change."""

    title: str | None = None
    summary: str | None = None
    kind: str | None = None
    categories: list[str] | None = None
    salience: float | None = None


def topic_edit(
    topic_id: uuid.UUID,
    change: TopicChange,
    *,
    principal: Principal,
    reason: str,
    now: dt.datetime,
    seen_at: dt.datetime | None = None,
    vectors: dict[str, Vectors] | None = None,
) -> None:
    """Change a topic, keep the former values for ``as_of``, write an audit event, and apply the rules on ingest. About
    fifteen queries without such rules. ``seen_at`` is the ``updated_at`` of the version that the caller edited; if it
    is None, later changes are not detected. The text is embedded before the lock, unless ``vectors`` has its vector.
    Raises ``NotVisible``, ``RequestRefused`` for a released or merged topic, ``Conflict`` for a change after
    ``seen_at``, ``EmbeddingFailed``, ``NotAllowed`` if an agent sets a salience or changes an exempt kind."""
    if change.salience is not None:
        principal.require("operator")
    vectors = {} if vectors is None else vectors
    # Checked before any work or lock, so that the duration of a refusal reveals nothing about other scopes.
    topic = _topic_read(topic_id, principal, lock=False)
    if change.title is not None or change.summary is not None:
        _text_change(topic, change)
        _embed(topic.text().embedded(), vectors)
    with transaction.atomic():
        stored = _topic_read(topic_id, principal, lock=True)
        if stored.released or stored.merged:
            raise RequestRefused(
                f"Topic {topic_id} is released or merged. Restore it before changing it.", code=ProblemCode.TOPIC_GONE
            )
        row = Topic.objects.get(pk=topic_id)
        policies = policies_current()
        exempt = policies.knobs(stored.scope).exempt_kinds
        if row.kind in exempt and change.kind not in (None, *exempt) and not principal.covers("operator"):
            raise NotAllowed(
                f"Topics of the kind {row.kind!r} are never forgotten; only an operator key can change the kind.",
                code=ProblemCode.ROLE_TOO_LOW,
            )
        if seen_at is not None and row.updated_at > seen_at:
            raise Conflict(
                "This topic was changed while you were editing it. Your changes were not saved.",
                code=ProblemCode.CHANGED_MEANWHILE,
            )
        changes: dict[str, Any] = {
            "title": change.title.strip() if change.title is not None else None,
            "summary": change.summary,
            "kind": change.kind,
            "categories": sorted(set(change.categories)) if change.categories is not None else None,
        }
        after = {name: value for name, value in changes.items() if value is not None and getattr(row, name) != value}
        before = {name: getattr(row, name) for name in after}
        if after:
            for name, value in after.items():
                setattr(row, name, value)
            row.updated_at = max(now, row.updated_at)
            row.save(update_fields=[*after, "updated_at"])
            if "kind" in after:
                Vitality.objects.filter(pk=topic_id).update(kind=row.kind)
            # The times of two concurrent edits may be in the wrong order, but ``as_of`` needs the order of the writes.
            last = TopicEdit.objects.filter(topic_id=topic_id).aggregate(last=Max("at"))["last"]
            at = now if last is None else max(now, last + dt.timedelta(microseconds=1))
            TopicEdit.objects.create(topic_id=topic_id, at=at, before=before, actor=principal.actor)
        if after.keys() & {"title", "summary"}:
            _text_change(stored, change)
            text = stored.text()
            if not text.whole().strip():
                raise ValueRefused(
                    "The topic would have no title, no summary and no value. Release it instead.",
                    code=ProblemCode.MISSING_MEMBER,
                )
            _embed(text.embedded(), vectors)
            plan = WritePlan(texts={topic_id: stored}, scopes={stored.scope})
            plan_write(plan, texts={topic_id: text}, model=embedder_get().model_name, vectors=vectors)
        if change.salience is not None:
            time = policies.effective(stored.scope).time.active_at(now)
            before["salience"] = _salience_write(topic_id, change.salience, time, now)
            after["salience"] = change.salience
        if after:
            activity_note(policies, [stored.scope], now=now)
            AuditEvent.objects.create(
                at=now,
                actor=principal.actor,
                action="edited",
                topic_id=topic_id,
                scope=stored.scope,
                reason=reason,
                before=before,
                after=after,
            )
            ingest_rules_apply({topic_id: stored.scope}, policies=policies, actor=principal.actor, now=now)


def _topic_read(topic_id: uuid.UUID, principal: Principal, *, lock: bool) -> KnownTopic:
    known = known_load(changed=[topic_id], read=[], lock=lock, within=principal.scope)
    topic = known.topics.get(topic_id)
    if topic is None or not principal.sees(topic.scope):
        raise NotVisible(f"Topic {topic_id} does not exist.")
    return topic


def _text_change(topic: KnownTopic, change: TopicChange) -> None:
    if change.title is not None:
        topic.title = change.title.strip()
    if change.summary is not None:
        topic.summary = change.summary


def _embed(text: str, vectors: dict[str, Vectors]) -> None:
    digest = text_hash(text)
    if digest not in vectors:
        vectors[digest] = embedder_get().embed_passages([text])[0]


def _salience_write(topic_id: uuid.UUID, salience: float, time: PartitionTime, now: dt.datetime) -> float:
    row = Vitality.objects.select_for_update(no_key=True).get(pk=topic_id)
    before = row.salience
    row.salience, row.reinforced_at, row.idle_before = salience, now, float(time.idle(now.timestamp()))
    counted = now.timestamp() - (0.0 if row.wall else row.idle_before)
    row.fade = row.fade_floor = fade_key(salience, reinforced_at=counted, half_life=row.half_life)
    row.save(update_fields=["salience", "reinforced_at", "idle_before", "fade", "fade_floor"])
    return before
