"""The tree of scopes, level by level: how large each scope is, how it grew and how often it was queried. Read-only.

Topics are counted by the id of their scope before paths are compared, so that each path is compared only once.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.db import connection

from memory.access.principal import Principal
from memory.console.queries.daily_counts import BORN_LIVE_SQL
from memory.core.cursors import cursor_make, cursor_number, cursor_parse
from memory.core.days import days_begin
from memory.core.scopes import ROOT
from memory.forgetting.topic_state import MADE
from memory.models import Rung
from memory.models.statements import rows_read
from memory.predicates.binding import Bound, path_sql

Sort = Literal["size", "name", "growth", "recalls"]
DAYS = 30
# At most this many agents are named for a scope.
NAMED = 2

# ``child`` is the path one level below the parent. For topics directly in the parent, it is the path of the parent.
_CHILDREN_SQL = """
WITH scopes AS MATERIALIZED (
    SELECT id, path, {child_of_path} AS child FROM memory_scope WHERE {within}
), children AS (
    SELECT child, count(*) FILTER (WHERE path <> child) AS below FROM scopes GROUP BY 1
), sizes AS (
    SELECT p.child, sum(v.times) FILTER (WHERE v.rung = 0) AS active, sum(v.times) AS live,
           sum(v.times) FILTER (WHERE v.rung = 1) AS summarized, sum(v.times) FILTER (WHERE v.rung = 2) AS detached,
           sum(v.used) AS used
    FROM (
        SELECT scope_id, rung, count(*) AS times, count(*) FILTER (WHERE last_retrieved_at >= %(since)s) AS used
        FROM memory_vitality WHERE live GROUP BY 1, 2
    ) v JOIN scopes p ON p.id = v.scope_id GROUP BY 1
), changes AS (
    SELECT p.child, sum(c.change) AS growth FROM (
        SELECT t.scope_id, count(*) AS change FROM memory_topic t WHERE t.created_at >= %(since)s AND {born_live}
        GROUP BY 1
        UNION ALL
        SELECT v.scope_id, sum((a.after->>'live')::boolean::int - (a.before->>'live')::boolean::int)
        FROM memory_forgetaction a JOIN memory_vitality v ON v.topic_id = a.topic_id
        WHERE a.at >= %(since)s AND a.state IN ('applied', 'conflict') AND a.after IS NOT NULL GROUP BY 1
        UNION ALL
        SELECT t.scope_id, -count(*) FROM memory_forgetaction a JOIN memory_topic t ON t.id = a.topic_id
        WHERE a.at >= %(since)s AND a.action IN {made} AND t.created_at >= %(since)s GROUP BY 1
    ) c JOIN scopes p ON p.id = c.scope_id GROUP BY 1
), recalls AS (
    SELECT {child_of_scope} AS child, sum(times) AS recalls FROM (
        SELECT scope, count(*) AS times FROM memory_accesslog WHERE at >= %(since)s AND kind = 'query' GROUP BY 1
    ) l WHERE {asked_within} GROUP BY 1
), figures AS (
    SELECT child, below, coalesce(active, 0)::bigint AS active, coalesce(summarized, 0)::bigint AS summarized,
           coalesce(detached, 0)::bigint AS detached, coalesce(live, 0)::bigint AS size,
           coalesce(used, 0)::bigint AS used, coalesce(growth, 0)::bigint AS growth,
           coalesce(recalls, 0)::bigint AS recalls, 0::bigint AS name
    FROM children LEFT JOIN sizes USING (child) LEFT JOIN changes USING (child) LEFT JOIN recalls USING (child)
)
SELECT child, below, active, summarized, detached, used, growth, recalls, most, {sort}
FROM (SELECT *, max(size) OVER () AS most FROM figures) f WHERE {after}
ORDER BY {sort} DESC, child LIMIT {limit:d}
"""

_COUNT_SQL = """
SELECT count(*) FROM (SELECT DISTINCT {child_of_path} FROM memory_scope WHERE {within} LIMIT {most:d}) x
"""

# The agents with a key that covers a whole scope, by name.
_WRITERS_SQL = """
SELECT s.path, count(DISTINCT k.name), (array_agg(DISTINCT k.name))[:{named:d}]
FROM unnest(%(paths)s::text[]) AS s (path)
JOIN memory_apikey k ON k.scope = '/' OR k.scope = s.path OR starts_with(s.path, k.scope || '/')
WHERE k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > %(now)s) AND k.role <> 'reader'
      AND k.scope <> ALL(%(excluded)s)
GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class ScopeFigures:
    """The figures of a scope, including the scopes below it. ``rungs`` counts the live topics by rung. ``below`` counts
    the scopes below. For the last ``DAYS`` days, ``used`` counts the live topics that queries returned, ``recalls``
    counts the queries, and ``growth`` is the change of the number of live topics. ``share`` is the number of live
    topics relative to the largest scope of the level."""

    path: str
    below: int
    rungs: dict[str, int]
    used: int
    growth: int
    recalls: int
    share: float

    @property
    def live(self) -> int:
        """The number of topics that queries return."""
        return sum(self.rungs.values())

    @property
    def used_share(self) -> float | None:
        """The share of the live topics that queries returned; None if there are no live topics."""
        return self.used / self.live if self.live else None


@dataclass(frozen=True, slots=True)
class Writers:
    """How many agents have a key that may write in the whole scope, and the first of their names."""

    count: int = 0
    names: tuple[str, ...] = ()

    @property
    def more(self) -> int:
        """The number of agents that are not named."""
        return self.count - len(self.names)


def scope_children(
    parent: str, *, sort: Sort, principal: Principal, now: dt.datetime, cursor: str | None, limit: int
) -> tuple[list[ScopeFigures], str | None]:
    """Return the scopes one level below ``parent`` in the order of ``sort``, and the cursor of the next page.
    ``parent`` is included if it contains topics directly. One query, which takes 45 ms for 100,000 topics in 2,000
    scopes. Raises ``NotVisible`` and ``ValueRefused``."""
    chosen = principal.scope_chosen(parent)
    bound, after = Bound(), "true"
    if cursor is not None:
        value, path = map(bound.bind, cursor_parse(cursor, cursor_number, str))
        after = f"({sort} < {value} OR {sort} = {value} AND child > {path})"
    bound.values["since"] = days_begin(DAYS, now=now)
    statement = _CHILDREN_SQL.format(
        child_of_path=_child_sql("path", chosen, bound),
        child_of_scope=_child_sql("l.scope", chosen, bound),
        born_live=BORN_LIVE_SQL,
        made=MADE,
        within=path_sql("path", chosen, bound.bind),
        asked_within=path_sql("l.scope", chosen, bound.bind),
        sort=sort,
        after=after,
        limit=limit + 1,
    )
    rows = rows_read(statement, bound.values)
    following = cursor_make(rows[limit - 1][-1], rows[limit - 1][0]) if len(rows) > limit else None
    return [_figures(*row[:-1]) for row in rows[:limit]], following


def scope_children_count(parent: str, *, principal: Principal, at_most: int) -> int:
    """Return the number of rows of ``scope_children``, at most ``at_most`` + 1. One query."""
    chosen = principal.scope_chosen(parent)
    bound = Bound()
    statement = _COUNT_SQL.format(
        child_of_path=_child_sql("path", chosen, bound), within=path_sql("path", chosen, bound.bind), most=at_most + 1
    )
    return int(rows_read(statement, bound.values)[0][0])


def scope_writers(paths: Sequence[str], *, now: dt.datetime, excluded: Sequence[str] = ()) -> dict[str, Writers]:
    """Return the agents that may write everywhere in each scope, by path. Keys whose scope is in ``excluded`` are left
    out. One query, which compares every key with each path. Does not check whether the caller may see the scopes."""
    with connection.cursor() as database:
        parameters: dict[str, Any] = {"paths": list(paths), "now": now, "excluded": list(excluded)}
        database.execute(_WRITERS_SQL.format(named=NAMED), parameters)
        found = {path: Writers(count, tuple(names)) for path, count, names in database.fetchall()}
    return {path: found.get(path, Writers()) for path in paths}


def _child_sql(column: str, parent: str, bound: Bound) -> str:
    """Return an expression for the path one level below ``parent`` that contains the scope in ``column``."""
    base = "" if parent == ROOT else parent
    whole, start = f"{bound.bind(parent)}::text", f"{bound.bind(base + '/')}::text"
    below = f"{start} || split_part({column}, '/', {base.count('/') + 2})"
    return f"CASE WHEN {column} = {whole} THEN {whole} ELSE {below} END"


def _figures(path: str, below: int, active: int, summarized: int, detached: int, *rest: Any) -> ScopeFigures:
    used, growth, recalls, most = rest
    labels = (str(rung.label) for rung in (Rung.ACTIVE, Rung.SUMMARIZED, Rung.DETACHED))
    rungs = dict(zip(labels, (active, summarized, detached), strict=True))
    return ScopeFigures(path, below, rungs, used, growth, recalls, sum(rungs.values()) / (most or 1))
