"""Agents: the callers that have or had a key, and what they wrote, queried and forgot. Read-only.

Keys with the same name belong to one agent.
"""

import datetime as dt
from dataclasses import dataclass
from typing import Literal

from memory.access.keys import caller_identities
from memory.access.principal import Principal
from memory.core.callers import caller_names
from memory.core.cursors import cursor_make, cursor_number, cursor_parse
from memory.core.days import day_begin, days_begin, utc_days
from memory.models import ApiKey
from memory.models.formulas_sql import agent_sql, written_sql
from memory.models.statements import rows_read
from memory.predicates.binding import Bound, path_q, path_sql

Sort = Literal["name", "written", "recalls", "forgotten"]
DAYS = 30
# At most this many keys of an agent are listed, and at most this many of the scopes of its keys.
MAX_KEYS = 50
MAX_SCOPES = 3

_WRITTEN = written_sql("e")
_FORGOTTEN = "e.action IN ('archived', 'released', 'purged')"
_AGENT = agent_sql("actor")

_AGENTS_SQL = f"""
WITH keys AS (
    SELECT 'key:' || name AS actor, count(*) AS keys, count(*) FILTER (WHERE valid) AS valid,
           count(revoked_at) AS revoked,
           (array_agg(DISTINCT scope))[:{MAX_SCOPES:d}] AS scopes, bool_or(may_forget AND valid) AS may_forget,
           max(last_used_at) AS last_used_at
    FROM (SELECT *, revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %(now)s) AS valid FROM memory_apikey) k
    WHERE {{within}} GROUP BY 1
), recalls AS (
    SELECT coalesce('key:' || k.name, l.actor) AS actor, sum(l.times) AS recalls, max(l.last_at) AS last_at
    FROM (
        SELECT actor, count(*) AS times, max(at) AS last_at FROM memory_accesslog
        WHERE at >= %(since)s AND kind = 'query' AND {_AGENT} AND {{within}} GROUP BY 1
    ) l LEFT JOIN memory_apikey k ON l.actor = 'key:' || k.id::text GROUP BY 1
), changes AS (
    SELECT e.actor, count(*) FILTER (WHERE {_WRITTEN}) AS written, count(*) FILTER (WHERE {_FORGOTTEN}) AS forgotten,
           max(e.at) AS last_at
    FROM memory_auditevent e WHERE e.at >= %(since)s AND {_AGENT} AND {{within}} GROUP BY 1
), agents AS (
    SELECT actor, coalesce(keys, 0) AS keys, coalesce(valid, 0) AS valid, coalesce(revoked, 0) AS revoked,
           coalesce(scopes, '{{{{}}}}') AS scopes, coalesce(may_forget, false) AS may_forget,
           coalesce(written, 0)::bigint AS written,
           coalesce(recalls, 0)::bigint AS recalls, coalesce(forgotten, 0)::bigint AS forgotten,
           greatest(last_used_at, r.last_at, c.last_at) AS last_at, 0::bigint AS name
    FROM keys FULL JOIN recalls r USING (actor) FULL JOIN changes c USING (actor)
)
"""
_PAGE_SQL = """
SELECT actor, keys, valid, revoked, scopes, may_forget, written, recalls, forgotten, last_at, {sort}
FROM agents WHERE {after}
ORDER BY {sort} DESC, actor LIMIT {limit:d}
"""
_COUNT_SQL = "SELECT count(*) FROM (SELECT 1 FROM agents LIMIT {most:d}) x"

_DAYS_SQL = f"""
SELECT day, sum(written)::bigint, sum(recalls)::bigint, sum(forgotten)::bigint FROM (
    SELECT (e.at AT TIME ZONE 'UTC')::date AS day, count(*) FILTER (WHERE {_WRITTEN}) AS written, 0 AS recalls,
           count(*) FILTER (WHERE {_FORGOTTEN}) AS forgotten
    FROM memory_auditevent e WHERE e.at >= %(since)s AND e.actor = ANY(%(names)s) AND {{within}} GROUP BY 1
    UNION ALL
    SELECT (at AT TIME ZONE 'UTC')::date, 0, count(*), 0 FROM memory_accesslog
    WHERE at >= %(since)s AND kind = 'query' AND actor = ANY(%(identities)s) AND {{within}} GROUP BY 1
) each_journal GROUP BY day
"""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent. ``name`` is its name in the journals. ``keys`` is the number of its keys; ``valid`` and ``revoked`` are
    the numbers of valid and of revoked keys. ``scopes`` are the first ``MAX_SCOPES`` scopes of the keys. ``written``,
    ``recalls`` and ``forgotten`` count its writes, its queries and the topics that it forgot in the last ``DAYS`` days
    in UTC."""

    name: str
    keys: int
    valid: int
    revoked: int
    scopes: list[str]
    may_forget: bool
    written: int
    recalls: int
    forgotten: int
    last_at: dt.datetime | None

    @property
    def is_key(self) -> bool:
        """Whether the name belongs to a key."""
        return self.name.startswith("key:")


@dataclass(slots=True)
class AgentDay:
    """What a caller did on one day in UTC."""

    day: dt.date
    written: int = 0
    recalls: int = 0
    forgotten: int = 0


def agents_list(
    *, sort: Sort, principal: Principal, now: dt.datetime, cursor: str | None, limit: int
) -> tuple[list[Agent], str | None]:
    """Return the agents, sorted by name or by one of their numbers, and the cursor of the next page. One query over all
    keys and over the recalls and changes of the last ``DAYS`` days. Raises ``ValueRefused``."""
    statement, bound = _agents(principal, now)
    after = "true"
    if cursor is not None:
        value, actor = map(bound.bind, cursor_parse(cursor, cursor_number, str))
        after = f"({sort} < {value} OR {sort} = {value} AND actor > {actor})"
    rows = rows_read(statement + _PAGE_SQL.format(sort=sort, after=after, limit=limit + 1), bound.values)
    following = cursor_make(rows[limit - 1][-1], rows[limit - 1][0]) if len(rows) > limit else None
    return [Agent(*row[:-1]) for row in rows[:limit]], following


def agents_count(*, principal: Principal, now: dt.datetime, at_most: int) -> int:
    """Return the number of agents, at most ``at_most`` + 1. One query."""
    statement, bound = _agents(principal, now)
    return int(rows_read(statement + _COUNT_SQL.format(most=at_most + 1), bound.values)[0][0])


def agent_days(name: str, *, days: int, principal: Principal, now: dt.datetime) -> list[AgentDay]:
    """Return what the caller with this name did on each of the last ``days`` days in UTC, earliest first. One query
    over the rows of these days, and at most two queries for the keys and accounts of this name."""
    every = utc_days(days, now=now)
    bound = Bound()
    statement = _DAYS_SQL.format(within=path_sql("scope", principal.scope, bound.bind))
    bound.values |= {"names": caller_names(name), "identities": caller_identities(name), "since": day_begin(every[0])}
    found = {row[0]: AgentDay(*row) for row in rows_read(statement, bound.values)}
    return [found.get(day, AgentDay(day)) for day in every]


def agent_keys(name: str, *, principal: Principal) -> list[ApiKey]:
    """Return the newest keys with this name, at most ``MAX_KEYS``. One query."""
    keys = ApiKey.objects.filter(path_q(principal.scope), name=name.removeprefix("key:"))
    return list(keys.order_by("-created_at", "-id")[:MAX_KEYS])


def _agents(principal: Principal, now: dt.datetime) -> tuple[str, Bound]:
    bound = Bound()
    statement = _AGENTS_SQL.format(within=path_sql("scope", principal.scope, bound.bind))
    bound.values |= {"now": now, "since": days_begin(DAYS, now=now)}
    return statement, bound
