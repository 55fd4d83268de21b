"""Activity by day: how many topics were ingested, archived and restored, and how many queries ran. Read-only."""

import datetime as dt
from dataclasses import dataclass

from django.db import connection

from memory.access.principal import Principal
from memory.core.scopes import ROOT
from memory.predicates.binding import Bound, path_sql, scope_sql

# Each part uses an index by time. Archivings are read from the journal of runs, which marks archivings that were
# undone. Restores are read from the audit events, because the page to which the number links lists these.
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

# How the number of live topics changed per day. Purged topics have no row and are not counted; changes that were undone
# are not counted either.
_LIVE_SQL = """
SELECT day, sum(change)::bigint, sum(created)::bigint FROM (
    SELECT (t.created_at AT TIME ZONE 'UTC')::date AS day, count(*) AS change, count(*) AS created FROM memory_topic t
    WHERE t.created_at >= %(since)s AND {topic_within} GROUP BY 1
    UNION ALL
    SELECT (a.at AT TIME ZONE 'UTC')::date, sum((a.after->>'live')::boolean::int - (a.before->>'live')::boolean::int), 0
    FROM memory_forgetaction a {action_join}
    WHERE a.at >= %(since)s AND a.state IN ('applied', 'conflict') AND a.after IS NOT NULL AND {action_within}
    GROUP BY 1
) changes GROUP BY 1
"""
# Archivings have no scope, but their topics have one.
_ACTION_JOIN = "JOIN memory_vitality v ON v.topic_id = a.topic_id"


@dataclass(slots=True)
class ActivityDay:
    """What happened on one day in UTC. ``by_hand`` is a part of ``archived``."""

    day: dt.date
    ingested: int = 0
    queries: int = 0
    archived: int = 0
    by_hand: int = 0
    restored: int = 0


def utc_days(days: int, *, now: dt.datetime) -> list[dt.date]:
    """Return the last ``days`` days in UTC, earliest first, including today."""
    today = now.astimezone(dt.UTC).date()
    return [today - dt.timedelta(days=before) for before in range(days - 1, -1, -1)]


def day_begin(day: dt.date) -> dt.datetime:
    """Return the midnight with which a day in UTC begins."""
    return dt.datetime.combine(day, dt.time(), tzinfo=dt.UTC)


def days_begin(days: int, *, now: dt.datetime) -> dt.datetime:
    """Return the begin of the first of the last ``days`` days in UTC, including today."""
    return day_begin(utc_days(days, now=now)[0])


def activity_days(scope: str, *, days: int, principal: Principal, now: dt.datetime) -> list[ActivityDay]:
    """Return the last ``days`` days in UTC, earliest first, including today and days without activity.

    One query, whose cost grows with the rows of these days. Raises ``NotVisible`` for a scope outside the caller's
    scope.
    """
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
    with connection.cursor() as cursor:
        cursor.execute(sql, bound.values)
        for day, what, count, by_hand in cursor.fetchall():
            setattr(found[day], what, getattr(found[day], what) + count)
            found[day].by_hand += by_hand
    return list(found.values())


@dataclass(frozen=True, slots=True)
class LiveDay:
    """How many topics were live at the end of a day in UTC, by how many their number changed on that day, and how many
    were created."""

    live: int
    change: int
    created: int


def live_days(live: int, *, days: int, now: dt.datetime, scope: str = ROOT) -> list[LiveDay]:
    """Return how many topics at or below ``scope`` were live and how many were created on each of the last ``days``
    days in UTC. The numbers are computed backwards from the present number ``live``. One query, whose cost grows with
    the rows of these days. The function does not check whether the caller may see the scope."""
    every = utc_days(days, now=now)
    bound = Bound()
    sql = _LIVE_SQL.format(
        topic_within=scope_sql("t.scope_id", scope, bound.bind),
        action_join="" if scope == ROOT else _ACTION_JOIN,
        action_within=scope_sql("v.scope_id", scope, bound.bind),
    )
    bound.values["since"] = day_begin(every[0])
    with connection.cursor() as cursor:
        cursor.execute(sql, bound.values)
        changes: dict[dt.date, tuple[int | None, int]] = {day: numbers for day, *numbers in cursor.fetchall()}
    found = []
    for day in every[::-1]:
        change, created = changes.get(day, (0, 0))
        found.append(LiveDay(live, change or 0, created))
        live = max(0, live - (change or 0))
    return found[::-1]
