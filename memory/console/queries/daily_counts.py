"""Activity by day: how many topics were ingested, archived and restored, and how many queries ran. Read-only."""

import datetime as dt
from dataclasses import dataclass

from memory.access.principal import Principal
from memory.core.days import day_begin, utc_days
from memory.core.scopes import ROOT
from memory.forgetting.topic_state import MADE
from memory.models.statements import rows_read
from memory.predicates.binding import Bound, path_sql, scope_sql
from memory.predicates.sql import written_by_sql

# Each part of the SQL statement uses an index by time. Archivings are read from the journal of runs, which marks
# archivings that were undone. Restores are read from the audit events, because the console links from their number to
# the audit events.
_DAYS_SQL = """
SELECT (e.at AT TIME ZONE 'UTC')::date, CASE WHEN e.action LIKE 'ingest\\_%%' THEN 'ingested' ELSE e.action END,
       count(*), 0
FROM memory_auditevent e
WHERE e.at >= %(since)s AND e.at < %(until)s AND {audit_within}
  AND (e.action LIKE 'ingest\\_%%' OR e.action = 'restored')
GROUP BY 1, 2
UNION ALL
SELECT (l.at AT TIME ZONE 'UTC')::date, 'queries', count(*), 0 FROM memory_accesslog l
WHERE l.at >= %(since)s AND l.at < %(until)s AND l.kind = 'query' AND {access_within}
GROUP BY 1
UNION ALL
SELECT (a.at AT TIME ZONE 'UTC')::date, 'archived', count(*), count(*) FILTER (WHERE a.why->>'by' = 'hand')
FROM memory_forgetaction a {action_join}
WHERE a.at >= %(since)s AND a.at < %(until)s AND a.action = 'archived' AND a.state IN ('applied', 'conflict')
  AND {action_within}
GROUP BY 1
"""

# The texts from which facts were extracted are released when they are stored, and no run releases them.
BORN_LIVE_SQL = "NOT (t.kind = 'source' AND t.provenance = 'extract')"
# How the number of live topics changed per day. Purged topics and undone changes are not counted. A topic that a run
# has made counts as a change of the run, and not as created.
_LIVE_SQL = """
SELECT day, sum(change)::bigint, sum(created)::bigint, sum(archived)::bigint FROM (
    SELECT (t.created_at AT TIME ZONE 'UTC')::date AS day, count(*) AS change, count(*) AS created, 0 AS archived
    FROM memory_topic t WHERE t.created_at >= %(since)s AND {born_live} AND {topic_within} GROUP BY 1
    UNION ALL
    SELECT (a.at AT TIME ZONE 'UTC')::date, sum((a.after->>'live')::boolean::int - (a.before->>'live')::boolean::int),
           0, count(*) FILTER (WHERE a.action = 'archived')
    FROM memory_forgetaction a {action_join}
    WHERE a.at >= %(since)s AND a.state IN ('applied', 'conflict') AND a.after IS NOT NULL AND {action_within}
    GROUP BY 1
    UNION ALL
    SELECT (t.created_at AT TIME ZONE 'UTC')::date, -count(*), -count(*), 0
    FROM memory_forgetaction a JOIN memory_topic t ON t.id = a.topic_id
    WHERE a.at >= %(since)s AND a.action IN {made} AND t.created_at >= %(since)s AND {topic_within}
    GROUP BY 1
) changes GROUP BY 1
"""
# Actions of runs do not store a scope; it is read from their topics.
_ACTION_JOIN = "JOIN memory_vitality v ON v.topic_id = a.topic_id"


@dataclass(slots=True)
class ActivityDay:
    """What happened on one day in UTC. ``archived`` includes ``by_hand``."""

    day: dt.date
    ingested: int = 0
    queries: int = 0
    archived: int = 0
    by_hand: int = 0
    restored: int = 0


def activity_days(scope: str, *, days: int, principal: Principal, now: dt.datetime) -> list[ActivityDay]:
    """Return the last ``days`` days in UTC, earliest first. Today and days without activity are included. One query
    over the rows of these days. Raises ``NotVisible``."""
    chosen = principal.scope_chosen(scope)
    found = {day: ActivityDay(day) for day in utc_days(days, now=now)}
    bound = Bound()
    sql = _DAYS_SQL.format(
        audit_within=path_sql("e.scope", chosen, bound.bind),
        access_within=path_sql("l.scope", chosen, bound.bind),
        action_join="" if chosen == ROOT else _ACTION_JOIN,
        action_within=scope_sql("v.scope_id", chosen, bound.bind),
    )
    bound.values["since"] = day_begin(min(found))
    bound.values["until"] = day_begin(max(found)) + dt.timedelta(days=1)
    for day, what, count, by_hand in rows_read(sql, bound.values):
        setattr(found[day], what, getattr(found[day], what) + count)
        found[day].by_hand += by_hand
    return list(found.values())


@dataclass(frozen=True, slots=True)
class LiveDay:
    """One day in UTC: the number of live topics at its end, the change of this number, and how many topics were created
    and archived."""

    live: int
    change: int
    created: int
    archived: int


def live_days(live: int, *, days: int, now: dt.datetime, scope: str = ROOT, writer: str | None = None) -> list[LiveDay]:
    """Return how many topics were live, created and archived on each of the last ``days`` days in UTC, earliest first.
    Only topics at or below ``scope`` are counted. ``writer`` restricts them to topics that the caller with this name
    has ever written. ``live`` is the present number of live topics, from which the earlier numbers are computed. One
    query, whose cost grows with the rows of these days. Does not check whether the caller may see the scope."""
    every = utc_days(days, now=now)
    bound = Bound()
    topic_within, action_within = (scope_sql(f"{row}.scope_id", scope, bound.bind) for row in "tv")
    if writer is not None:
        topic_within += f" AND {written_by_sql('t.id', writer, bound.bind)}"
        action_within += f" AND {written_by_sql('a.topic_id', writer, bound.bind)}"
    sql = _LIVE_SQL.format(
        born_live=BORN_LIVE_SQL,
        made=MADE,
        topic_within=topic_within,
        action_join="" if scope == ROOT else _ACTION_JOIN,
        action_within=action_within,
    )
    bound.values["since"] = day_begin(every[0])
    changes = {row[0]: row[1:] for row in rows_read(sql, bound.values)}
    found = []
    for day in every[::-1]:
        change, created, archived = changes.get(day, (0, 0, 0))
        change = change or 0
        found.append(LiveDay(live, change, created, archived))
        live = max(0, live - change)
    return found[::-1]
