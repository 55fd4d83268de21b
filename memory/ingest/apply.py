"""The entry point of ingest: turns items into rows and replies, in one transaction."""

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import IntegrityError, transaction

from memory.access.principal import SYSTEM, Principal
from memory.core.text import TopicText
from memory.embedding import embedder_get, text_hash
from memory.embedding.base import Vectors
from memory.forgetting.ingest_rules import ingest_rules_apply
from memory.ingest.items import IngestItem
from memory.ingest.load import Known, known_load
from memory.ingest.nearest import NearPair, topics_near
from memory.ingest.plan import ItemOutcome, ItemReply, WritePlan, ingest_plan, item_id_chosen, item_topic_ids
from memory.ingest.write import plan_write, wake_ups_write
from memory.models import Topic
from memory.policy.activity import activity_note
from memory.policy.effective import policies_current
from memory.policy.snapshot import Policies

# A plan can conflict with a commit that was made between reading and writing. The retry reads that commit.
TRIES = 5
MAX_SIMILAR = 5


@dataclass(frozen=True, slots=True)
class PreparedItems:
    """Items with everything that is computed before a lock is taken. ``vectors`` maps the hash of a text to its vector.
    ``plan`` is None if the plan must be made again under a lock. ``incomplete`` is true if some topics have no vector
    yet, because embedding all texts would take too long. The worker embeds these topics."""

    items: Sequence[IngestItem]
    vectors: dict[str, Vectors]
    policies: Policies
    plan: WritePlan | None = None
    incomplete: bool = False


def ingest_prepare(
    items: Sequence[IngestItem],
    *,
    principal: Principal,
    now: dt.datetime,
    defer: bool,
    vectors: dict[str, Vectors] | None = None,
) -> PreparedItems:
    """Plan and embed the items before a lock is taken, because embedding takes long. At most six queries. ``vectors``
    maps the hash of a text to its known vector. The vectors of the items are added to it."""
    known = _load(items, principal, lock=False)
    policies = policies_current()
    plan = ingest_plan(items, known=known, policies=policies, principal=principal, now=now)
    vectors = {} if vectors is None else vectors
    complete = defer or _vectors_complete(vectors, _texts(plan))
    # New topics need no lock: if another writer takes one of their ids, the write fails, and a new plan is made.
    only_new = not any(item_topic_ids(item)[0] for item in items)
    return PreparedItems(items, vectors, policies, plan if only_new else None, incomplete=not complete)


def ingest_apply(
    prepared: PreparedItems, *, principal: Principal, now: dt.datetime, defer: bool = False
) -> list[ItemOutcome]:
    """Write the items in one transaction and return one outcome for each: a reply, or the problem for which the item
    was refused. At most 25 statements, and more for rules on ingest and ``suggest_similar``. Raises
    ``EmbeddingFailed``; in this case nothing is written."""
    plan = prepared.plan
    for retries_left in reversed(range(TRIES)):
        try:
            with transaction.atomic():
                return _apply(prepared, plan, principal=principal, now=now, defer=defer)
        except IntegrityError:
            if not retries_left:
                raise
            plan = None
    raise AssertionError("unreachable")


def _apply(
    prepared: PreparedItems, plan: WritePlan | None, *, principal: Principal, now: dt.datetime, defer: bool
) -> list[ItemOutcome]:
    if plan is None:
        known = _load(prepared.items, principal, lock=True)
        plan = ingest_plan(prepared.items, known=known, policies=policies_current(), principal=principal, now=now)
    if not plan.scopes:
        return plan.outcomes
    if principal.identity != SYSTEM.identity:
        activity_note(prepared.policies, plan.scopes, now=now)
    texts = _texts(plan)
    if not defer and plan is not prepared.plan:
        _vectors_complete(prepared.vectors, texts)
    scopes = plan_write(plan, texts=texts, model=embedder_get().model_name, vectors=prepared.vectors)
    # Every accepted item has an audit row.
    changed = {topic_id: scope for _at, _actor, _action, topic_id, scope, *_rest in plan.audits}
    ingest_rules_apply(changed, policies=prepared.policies, actor=principal.actor, now=now)
    if plan.similar_wanted:
        _similar_add(plan, prepared.policies)
    if any(item.created_at is None for item in prepared.items):
        # Items with a past ``created_at`` raise no event: a run would evaluate them before their use is known.
        wake_ups_write(scopes, event="ingest_complete", now=now)
    return plan.outcomes


def _load(items: Sequence[IngestItem], principal: Principal, *, lock: bool) -> Known:
    changed: set[uuid.UUID] = set()
    chosen: set[uuid.UUID] = set()
    read: set[uuid.UUID] = set()
    for item in items:
        item_changed, item_read = item_topic_ids(item)
        changed |= item_changed
        read |= item_read
        chosen |= item_id_chosen(item)
    return known_load(changed=changed, read=read, lock=lock, within=principal.scope, chosen=chosen)


def _texts(plan: WritePlan) -> dict[uuid.UUID, TopicText]:
    return {topic_id: topic.text() for topic_id, topic in plan.texts.items()}


def _vectors_complete(vectors: dict[str, Vectors], texts: Mapping[uuid.UUID, TopicText]) -> bool:
    """Embed the missing texts, as far as the processor time of the request allows. Return whether ``vectors`` is now
    complete."""
    needed = {text_hash(embedded): embedded for embedded in (text.embedded() for text in texts.values())}
    missing = {digest: embedded for digest, embedded in needed.items() if digest not in vectors}
    if missing:
        vectors.update(zip(missing, embedder_get().embed_affordable(list(missing.values())), strict=False))
    return all(digest in vectors for digest in missing)


def _similar_add(plan: WritePlan, policies: Policies) -> None:
    """Add similar topics of the same scope, most similar first, to the replies of items with ``suggest_similar``."""
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
        reply.similar_topic_ids = [str(topic_id) for topic_id in found[:MAX_SIMILAR]]
