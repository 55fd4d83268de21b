"""What an agent with a key that may forget may release: no protected topic, and a share of its scope a day."""

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

# The period that agent_forget_share is about: rolling, so that no midnight doubles it.
DAY = dt.timedelta(hours=24)

_PROTECTION_SQL = """
SELECT t.id, s.path, t.kind, v.pinned AND NOT v.pinned_by_agent
FROM memory_topic t JOIN memory_scope s ON s.id = t.scope_id JOIN memory_vitality v ON v.topic_id = t.id
WHERE t.id = ANY(%s)
"""

# A list is executed within an hour of its creation; the index is on the creation.
_TALLY_SQL = """
WITH released AS (
    SELECT t.scope_id, a.from_rung < 3 AS was_live
    FROM memory_forgetlisting l
    JOIN memory_apikey k ON k.may_forget AND l.identity = 'key:' || k.id
    JOIN memory_forgetaction a ON a.run_id = l.run_id AND a.state = 'applied'
    JOIN memory_topic t ON t.id = a.topic_id
    WHERE l.created_at > {since}::timestamptz - interval '2 hours' AND l.executed_at > {since}::timestamptz
), wanted AS (SELECT scope_id FROM memory_topic WHERE id = ANY({ids}::uuid[]))
"""
_PLACE_SQL = """
SELECT {number}, (SELECT count(*) FROM memory_vitality WHERE live AND {within}),
       (SELECT count(*) FROM released WHERE {within}),
       (SELECT count(*) FROM released WHERE was_live AND {within}),
       (SELECT count(*) FROM wanted WHERE {within})
"""


def forget_require(principal: Principal, verb: str) -> None:
    """Raise ``NotAllowed`` unless the caller may ``verb`` (``release`` or ``purge``) topics of its scope."""
    if verb != "release":
        principal.require("operator")
    elif not principal.may_forget:
        principal.require("operator", other="an agent key that may forget")


def topics_protected(ids: Sequence[uuid.UUID], *, now: dt.datetime) -> set[uuid.UUID]:
    """Return those of ``ids`` that an agent may not release: pinned by an operator or a rule, of an exempt kind, in an
    exempt scope, or where forgetting is paused. Three queries."""
    policies, paused = policies_current(), paused_scopes(now)
    with connection.cursor() as cursor:
        cursor.execute(_PROTECTION_SQL, [list(ids)])
        return {
            topic_id
            for topic_id, path, kind, pinned in cursor.fetchall()
            if pinned or _is_exempt(policies.knobs(path), path, kind, paused)
        }


def agent_release_check(ids: Sequence[uuid.UUID], *, principal: Principal, now: dt.datetime) -> None:
    """Raise if an agent may not release so many topics today. Three queries, in the transaction of the release.

    Releases by agents wait for each other from here to the end of their transactions. Raises ``NotAllowed`` above
    ``agent_forget_share`` of the agent's scope, or of a scope below it that sets the share.
    """
    lock_wait(Lock.AGENT_RELEASE)
    policies = policies_current()
    share_of = {principal.scope: policies.knobs(principal.scope).agent_forget_share}
    for node in policies.nodes(principal.scope):
        if node.sources["agent_forget_share"].source == node.scope:
            share_of[node.scope] = node.knobs.agent_forget_share
    bound = Bound()
    tally = _TALLY_SQL.format(since=bound.bind(now - DAY), ids=bound.bind(list(ids)))
    places = [
        _PLACE_SQL.format(number=number, within=scope_sql("scope_id", place, bound.bind))
        for number, place in enumerate(share_of)
    ]
    with connection.cursor() as cursor:
        cursor.execute(tally + " UNION ALL ".join(places), bound.values)
        counts = sorted(cursor.fetchall())
    for (place, share), (_number, live, released, were_live, wanted) in zip(share_of.items(), counts, strict=True):
        # The epsilon keeps 5 % of 60 at 3.
        most = math.floor(share * (live + were_live) + 1e-9)
        if wanted and released + wanted > most:
            raise NotAllowed(
                f"In {place}, agents may release {100 * share:.3g}% of the live topics in 24 hours "
                f"(agent_forget_share): {most:,} of {live + were_live:,}. They have released {released:,} so far, and "
                f"this list has {wanted:,} more. Nothing was done. Name fewer topics, wait, or ask an operator to "
                "release them.",
                code=ProblemCode.AGENT_FORGET_LIMIT,
            )


def _is_exempt(knobs: Knobs, path: str, kind: str, paused: Sequence[str]) -> bool:
    return kind in knobs.exempt_kinds or any(scope_within(path, place) for place in (*knobs.exempt_scopes, *paused))
