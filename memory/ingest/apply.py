"""The door of the write path: items in, rows and replies out, all in one transaction."""

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import IntegrityError, transaction

from memory.access.principal import Principal
from memory.core.text import TopicText
from memory.embedding import embedder_get, text_hash
from memory.embedding.base import Vectors
from memory.forgetting.ingest_rules import ingest_rules_apply
from memory.ingest.items import IngestItem
from memory.ingest.load import Known, known_load
from memory.ingest.nearest import NearPair, topics_near
from memory.ingest.plan import ItemOutcome, ItemReply, WritePlan, ingest_plan, item_topic_ids
from memory.ingest.write import plan_write, wake_ups_write
from memory.models import Topic
from memory.policy.effective import policies_current
from memory.policy.snapshot import Policies

# A plan can collide with a commit that came between reading and writing; the next try sees it. More than a few tries
# would mean something else is wrong.
TRIES = 5
MOST_SIMILAR = 5


@dataclass(frozen=True, slots=True)
class PreparedItems:
    """Items together with what was computed before any lock was taken: their vectors, by the hash of the text, and
    the plan, if it holds without a lock. ``policies`` are those in force when the request came."""

    items: Sequence[IngestItem]
    vectors: dict[str, Vectors]
    policies: Policies
    plan: WritePlan | None = None


def ingest_prepare(
    items: Sequence[IngestItem],
    *,
    principal: Principal,
    now: dt.datetime,
    defer: bool,
    vectors: dict[str, Vectors] | None = None,
) -> PreparedItems:
    """Plan and embed what the items will most likely amount to, outside any transaction. At most four queries.

    ``vectors`` are known already, by the hash of their text; those of the items are added.

    Embedding takes far longer than writing. Done under the locks of the write, it would make every other writer of the
    same topics wait; done here, the write only has to embed again what somebody else changed in between.
    """
    known = _load(items, lock=False)
    policies = policies_current()
    plan = ingest_plan(items, known=known, policies=policies, principal=principal, now=now)
    vectors = {} if vectors is None else vectors
    if not defer:
        _vectors_complete(vectors, _texts(plan))
    # New topics depend on nobody's lock: what they name is never taken away, and an id that somebody else used in the
    # meantime is refused by the database, whereupon the plan is made anew.
    alone = not any(item_topic_ids(item)[0] for item in items)
    return PreparedItems(items, vectors, policies, plan if alone else None)


def ingest_apply(
    prepared: PreparedItems, *, principal: Principal, now: dt.datetime, defer: bool = False
) -> list[ItemOutcome]:
    """Write the items and return one outcome for each: a reply, or the problem for which it was refused.

    What is written is written in one transaction (the caller's, if it has opened one), at most 25 statements for any
    number of items, and more where rules answer an ingest (``ingest_rules_apply``) and for ``suggest_similar``. Raises
    ``EmbeddingFailed``, in which case nothing is written.
    """
    plan = prepared.plan
    for left in reversed(range(TRIES)):
        try:
            with transaction.atomic():
                return _apply(prepared, plan, principal=principal, now=now, defer=defer)
        except IntegrityError:
            if not left:
                raise
            plan = None
    raise AssertionError("unreachable")


def _apply(
    prepared: PreparedItems, plan: WritePlan | None, *, principal: Principal, now: dt.datetime, defer: bool
) -> list[ItemOutcome]:
    if plan is None:
        known = _load(prepared.items, lock=True)
        plan = ingest_plan(prepared.items, known=known, policies=policies_current(), principal=principal, now=now)
    if not plan.scopes:
        return plan.outcomes
    texts = _texts(plan)
    if not defer and plan is not prepared.plan:
        _vectors_complete(prepared.vectors, texts)
    scopes = plan_write(plan, texts=texts, model=embedder_get().model_name, vectors=prepared.vectors)
    ingest_rules_apply(_changed(plan), policies=prepared.policies, actor=principal.actor, now=now)
    if plan.similar_wanted:
        _similar_add(plan, prepared.policies)
    if any(item.created_at is None for item in prepared.items):
        # What is brought in with its age wakes nobody, or it would be judged before its use is known.
        wake_ups_write(scopes, event="ingest_complete", now=now)
    return plan.outcomes


def _changed(plan: WritePlan) -> dict[uuid.UUID, str]:
    # Every accepted item has one row in the journal.
    return {topic_id: scope for _at, _actor, _action, topic_id, scope, *_rest in plan.audits}


def _load(items: Sequence[IngestItem], *, lock: bool) -> Known:
    changed: set[uuid.UUID] = set()
    read: set[uuid.UUID] = set()
    for item in items:
        item_changed, item_read = item_topic_ids(item)
        changed |= item_changed
        read |= item_read
    return known_load(changed=changed, read=read, lock=lock)


def _texts(plan: WritePlan) -> dict[uuid.UUID, TopicText]:
    return {topic_id: topic.text() for topic_id, topic in plan.texts.items()}


def _vectors_complete(vectors: dict[str, Vectors], texts: Mapping[uuid.UUID, TopicText]) -> None:
    wanted = {text_hash(embedded): embedded for embedded in (text.embedded() for text in texts.values())}
    missing = {digest: embedded for digest, embedded in wanted.items() if digest not in vectors}
    if missing:
        vectors.update(zip(missing, embedder_get().embed_passages(list(missing.values())), strict=True))


def _similar_add(plan: WritePlan, policies: Policies) -> None:
    """Tell the replies that asked for it which topics of the same scope are near, nearest first."""
    replies = [outcome for at in plan.similar_wanted if isinstance(outcome := plan.outcomes[at], ItemReply)]
    by_scope: dict[tuple[int, str], list[uuid.UUID]] = {}
    scopes = Topic.objects.filter(pk__in=[reply.topic_id for reply in replies])
    for topic_id, scope_id, path in scopes.values_list("id", "scope_id", "scope__path"):
        by_scope.setdefault((scope_id, path), []).append(topic_id)
    pairs: list[NearPair] = []
    for (scope_id, path), ids in by_scope.items():
        knobs = policies.knobs(path)
        pairs += topics_near(
            ids,
            scope_id=scope_id,
            exact_below=knobs.recall_exact_below,
            above=knobs.suggest_similar_above,
            any_kind=True,
        )
    pairs.sort(key=lambda pair: (not pair.same_title, -(pair.cosine or 0)))
    for reply in replies:
        found = [pair.other if pair.one == reply.topic_id else pair.one for pair in pairs if reply.topic_id in pair[:2]]
        reply.similar_topic_ids = [str(topic_id) for topic_id in found[:MOST_SIMILAR]]
