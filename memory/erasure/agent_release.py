"""Limits for agents that may forget. They cannot release protected topics, and can release only a share of the topics
in their scope per day."""

import datetime as dt
import math
import uuid
from collections.abc import Sequence

from django.db import connection

from memory.access.principal import Principal
from memory.core.errors import NotAllowed
from memory.core.policy_values import Knobs
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import scope_within
from memory.forgetting.pause import paused_scopes
from memory.models.locks import Lock, lock_wait
from memory.policy.effective import policies_current
from memory.predicates.binding import Bound, scope_sql

# The rolling period of ``agent_forget_share``. With calendar days, an agent could release two shares around midnight.
DAY = dt.timedelta(hours=24)

_PROTECTION_SQL = """
SELECT t.id, s.path, t.kind, v.pinned AND NOT v.pinned_by_agent
FROM memory_topic t JOIN memory_scope s ON s.id = t.scope_id JOIN memory_vitality v ON v.topic_id = t.id
WHERE t.id = ANY(%s)
"""

# A list can be executed only within an hour after its creation. The condition on ``created_at`` therefore excludes no
# list. It lets the planner use the index.
_RELEASED_SQL = """
WITH released AS (
    SELECT t.scope_id, a.from_rung < 3 AS was_live
    FROM memory_forgetlisting l
    JOIN memory_apikey k ON k.may_forget AND l.identity = 'key:' || k.id
    JOIN memory_forgetaction a ON a.run_id = l.run_id AND a.state = 'applied' AND a.action = 'released'
    JOIN memory_topic t ON t.id = a.topic_id
    WHERE l.created_at > {since}::timestamptz - interval '2 hours' AND l.executed_at > {since}::timestamptz
), wanted AS (SELECT scope_id FROM memory_topic WHERE id = ANY({ids}::uuid[]))
"""
_COUNTS_SQL = """
SELECT {number}, (SELECT count(*) FROM memory_vitality WHERE live AND {within}),
       (SELECT count(*) FROM released WHERE {within}),
       (SELECT count(*) FROM released WHERE was_live AND {within}),
       (SELECT count(*) FROM wanted WHERE {within})
"""


def forget_require(principal: Principal, verb: str) -> None:
    """Raise ``NotAllowed`` unless the caller may forget topics of its scope. ``verb`` is "release" or "purge"."""
    if verb != "release":
        principal.require("operator")
    elif not principal.may_forget:
        principal.require("operator", other="an agent key that may forget")


def topics_protected(ids: Sequence[uuid.UUID], *, now: dt.datetime) -> set[uuid.UUID]:
    """Return those of ``ids`` that an agent may not release. Three queries.

    Agents may not release topics that an operator or a rule has pinned, or topics of an exempt kind. The same applies
    to topics in a scope that is exempt or in which forgetting is paused.
    """
    policies, paused = policies_current(), paused_scopes(now)
    with connection.cursor() as cursor:
        cursor.execute(_PROTECTION_SQL, [list(ids)])
        return {
            topic_id
            for topic_id, path, kind, pinned in cursor.fetchall()
            if pinned or _is_exempt(policies.knobs(path), path, kind, paused)
        }


def agent_release_check(ids: Sequence[uuid.UUID], *, principal: Principal, now: dt.datetime) -> None:
    """Raise ``NotAllowed`` if the release of ``ids`` would exceed ``agent_forget_share``. This is the share of the live
    topics that all agents together may release within ``DAY``.

    The share is checked in the agent's scope, and in each scope below it that sets a share of its own. Three queries.
    Releases by other agents wait until the transaction ends.
    """
    lock_wait(Lock.AGENT_RELEASE)
    policies = policies_current()
    share_of = {principal.scope: policies.knobs(principal.scope).agent_forget_share}
    for node in policies.nodes(principal.scope):
        if node.sources["agent_forget_share"].source == node.scope:
            share_of[node.scope] = node.knobs.agent_forget_share
    bound = Bound()
    released_sql = _RELEASED_SQL.format(since=bound.bind(now - DAY), ids=bound.bind(list(ids)))
    counts_sql = [
        _COUNTS_SQL.format(number=number, within=scope_sql("scope_id", place, bound.bind))
        for number, place in enumerate(share_of)
    ]
    with connection.cursor() as cursor:
        cursor.execute(released_sql + " UNION ALL ".join(counts_sql), bound.values)
        counts = sorted(cursor.fetchall())
    for (place, share), (_number, live, released, were_live, wanted) in zip(share_of.items(), counts, strict=True):
        # Without the small addition, rounding errors could make 5 % of 60 equal to 2.
        most = math.floor(share * (live + were_live) + 1e-9)
        if wanted and released + wanted > most:
            raise NotAllowed(
                f"In {place}, agents may release {100 * share:.3g}% of the live memories in 24 hours "
                f"(agent_forget_share): {most:,} of {live + were_live:,}. They have released {released:,} so far, and "
                f"this list has {wanted:,} more. Nothing was done. Name fewer memories, wait, or ask an operator to "
                "release them.",
                code=ProblemCode.AGENT_FORGET_LIMIT,
            )


def _is_exempt(knobs: Knobs, path: str, kind: str, paused: Sequence[str]) -> bool:
    return kind in knobs.exempt_kinds or any(scope_within(path, place) for place in (*knobs.exempt_scopes, *paused))
