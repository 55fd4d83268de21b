"""Merges one topic into another without a pair, for callers that have already decided to merge."""

import datetime as dt
import uuid

from django.db.backends.utils import CursorWrapper

from memory.access.principal import Principal
from memory.core.errors import Conflict
from memory.duplicates.merge_apply import topics_join, vectors_prepare
from memory.duplicates.merge_plan import MergePlan, merge_plan, sides_read
from memory.duplicates.pair_locks import pairs_lapse, topics_lock
from memory.embedding.base import Vectors
from memory.models import ForgetRun


def merge_vectors(topic_id: uuid.UUID, into: uuid.UUID, *, now: dt.datetime) -> dict[str, Vectors]:
    """Return a mapping from the hash of the text that ``into`` will have to the vector of this text. It is empty if the
    topics cannot be merged or the text stays the same. Must be called before any lock is taken."""
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
    """Merge a topic into ``into``, and return the run. The kind of ``into`` stays. About forty statements.

    Runs in the transaction of the caller, who checks permissions. A caller that merges several topics must lock all of
    them first. Raises ``Conflict`` if one of the two topics is inactive, if their scopes differ, or if ``into`` would
    have too many fields.
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
                f"Memory {side_id} {side.inactive_because if side else 'does not exist'}, so it cannot be merged."
            )
    survivor, loser = sides[into], sides[topic_id]
    if topic_id == into:
        raise Conflict("A memory cannot be merged into itself.")
    if survivor.scope != loser.scope:
        raise Conflict(f"The two memories have different scopes, {loser.scope} and {survivor.scope}.")
    return merge_plan(survivor, loser)
