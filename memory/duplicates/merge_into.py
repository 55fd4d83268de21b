"""Merges one topic into another without a pair, for callers that have already decided."""

import datetime as dt
import uuid

from django.db.backends.utils import CursorWrapper

from memory.access.principal import Principal
from memory.core.errors import Conflict
from memory.core.problem_codes import ProblemCode
from memory.duplicates.join import topics_join, vectors_prepare
from memory.duplicates.pair_locks import pairs_lapse, topics_lock
from memory.duplicates.plan import MergePlan, merge_plan, sides_read
from memory.embedding.base import Vectors
from memory.models import ForgetRun
from memory.policy.effective import policies_current


def merge_vectors(topic_id: uuid.UUID, into: uuid.UUID, *, now: dt.datetime) -> dict[str, Vectors]:
    """Embed the future text of ``into``. Empty if the two cannot be merged. Call this before taking locks."""
    try:
        return vectors_prepare(_plan(topic_id, into, now=now))
    except Conflict:
        return {}


def topic_merge_into(
    cursor: CursorWrapper,
    topic_id: uuid.UUID,
    into: uuid.UUID,
    *,
    principal: Principal,
    reason: str,
    now: dt.datetime,
    vectors: dict[str, Vectors],
) -> ForgetRun:
    """Merge a topic into ``into``, as ``pair_merge`` does; ``into`` keeps its kind. About forty statements.

    Runs in the transaction of the caller. The caller checks permissions; if it merges several topics, it locks all of
    them first (``topics_lock``). Returns the run by which the merge can be undone. Raises ``Conflict``, with nothing
    changed, if one of the two is inactive or their scopes differ.
    """
    states = topics_lock(cursor, [topic_id, into])
    plan = _plan(topic_id, into, now=now)
    run = topics_join(cursor, plan, states=states, vectors=vectors, principal=principal, reason=reason, now=now)
    pairs_lapse(topic_id)
    return run


def _plan(topic_id: uuid.UUID, into: uuid.UUID, *, now: dt.datetime) -> MergePlan:
    sides = sides_read([topic_id, into], now=now)
    for side_id in (topic_id, into):
        side = sides.get(side_id)
        if side is None or side.inactive_because:
            raise Conflict(
                f"Topic {side_id} {side.inactive_because if side else 'does not exist'}, so it cannot be merged.",
                code=ProblemCode.TOPICS_NOT_MERGEABLE,
            )
    survivor, loser = sides[into], sides[topic_id]
    if topic_id == into:
        raise Conflict("A topic cannot be merged into itself.", code=ProblemCode.TOPICS_NOT_MERGEABLE)
    if survivor.scope != loser.scope:
        raise Conflict(
            f"The two topics have different scopes, {loser.scope} and {survivor.scope}.",
            code=ProblemCode.TOPICS_NOT_MERGEABLE,
        )
    return merge_plan(survivor, loser, max_field_history=policies_current().knobs(survivor.scope).max_field_history)
