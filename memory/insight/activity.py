"""Activity by day: how many topics were ingested, archived and restored, and how many queries ran. Read-only."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet

from memory.access.keys import caller_identities, caller_labels
from memory.access.principal import Principal
from memory.core.cursors import cursor_make, cursor_number, cursor_parse, cursor_time
from memory.models import AccessLog
from memory.predicates.binding import Bound, path_q, path_sql, scope_sql

# Each part uses an index by time. Archivings are read from the journal of runs, which marks those that were undone.
# Restores are read from the audit, one entry per topic, because the list behind the number shows the same entries.
_DAYS_SQL = """
SELECT (e.at AT TIME ZONE 'UTC')::date, CASE WHEN e.action LIKE 'ingest\\_%%' THEN 'ingested' ELSE e.action END,
       count(*)
FROM memory_auditevent e
WHERE e.at >= %(since)s AND e.at < %(until)s AND {audit_within}
  AND (e.action LIKE 'ingest\\_%%' OR e.action = 'restored')
GROUP BY 1, 2
UNION ALL
SELECT (l.at AT TIME ZONE 'UTC')::date, 'queries', count(*) FROM memory_accesslog l
WHERE l.at >= %(since)s AND l.at < %(until)s AND l.kind = 'query' AND {access_within}
GROUP BY 1
UNION ALL
SELECT (a.at AT TIME ZONE 'UTC')::date, 'archived', count(*)
FROM memory_forgetaction a {action_join}
WHERE a.at >= %(since)s AND a.at < %(until)s AND a.action = 'archived' AND a.state IN ('applied', 'conflict')
  AND {action_within}
GROUP BY 1
"""

# How the number of live topics changed per day. What was purged leaves no row and so counts on no day; what was undone
# counts as if it had not happened.
_LIVE_SQL = """
SELECT day, sum(change)::bigint FROM (
    SELECT (t.created_at AT TIME ZONE 'UTC')::date AS day, count(*) AS change FROM memory_topic t
    WHERE t.created_at >= %(since)s GROUP BY 1
    UNION ALL
    SELECT (a.at AT TIME ZONE 'UTC')::date, sum((a.after->>'live')::boolean::int - (a.before->>'live')::boolean::int)
    FROM memory_forgetaction a
    WHERE a.at >= %(since)s AND a.state IN ('applied', 'conflict') AND a.after IS NOT NULL GROUP BY 1
) changes GROUP BY 1
"""


@dataclass(slots=True)
class ActivityDay:
    """What happened on one day in UTC."""

    day: dt.date
    ingested: int = 0
    queries: int = 0
    archived: int = 0
    restored: int = 0


def activity_days(scope: str, *, days: int, principal: Principal, now: dt.datetime) -> list[ActivityDay]:
    """Return the last ``days`` days in UTC, earliest first, including today and days without activity.

    One query, whose cost grows with the rows of these days. Raises ``NotVisible`` for a scope outside the caller's.
    """
    chosen = principal.scope_chosen(scope)
    today = now.astimezone(dt.UTC).date()
    first = today - dt.timedelta(days=days - 1)
    found = {first + dt.timedelta(days=place): ActivityDay(first + dt.timedelta(days=place)) for place in range(days)}
    bound = Bound()
    sql = _DAYS_SQL.format(
        audit_within=path_sql("e.scope", chosen, bound.bind),
        access_within=path_sql("l.scope", chosen, bound.bind),
        action_join="" if chosen == "/" else "JOIN memory_vitality v ON v.topic_id = a.topic_id",
        action_within=scope_sql("v.scope_id", chosen, bound.bind),
    )
    bound.values["since"] = dt.datetime.combine(first, dt.time(), tzinfo=dt.UTC)
    bound.values["until"] = dt.datetime.combine(today, dt.time(), tzinfo=dt.UTC) + dt.timedelta(days=1)
    with connection.cursor() as cursor:
        cursor.execute(sql, bound.values)
        for day, what, count in cursor.fetchall():
            setattr(found[day], what, getattr(found[day], what) + count)
    return list(found.values())


def live_days(live: int, *, days: int, now: dt.datetime) -> list[int]:
    """Return the number of live topics in the whole store at the end of each of the last ``days`` days in UTC, worked
    back from the ``live`` ones of now. One query, whose cost grows with the rows of these days."""
    today = now.astimezone(dt.UTC).date()
    first = today - dt.timedelta(days=days - 1)
    with connection.cursor() as cursor:
        cursor.execute(_LIVE_SQL, {"since": dt.datetime.combine(first, dt.time(), tzinfo=dt.UTC)})
        changes: dict[dt.date, int | None] = dict(cursor.fetchall())
    found = [live]
    for place in range(days - 1):
        found.append(max(0, found[-1] - (changes.get(today - dt.timedelta(days=place)) or 0)))
    return found[::-1]


@dataclass(frozen=True, slots=True)
class QueryFilter:
    """Which queries a list shows; None means all. ``scope`` is canonical and includes what lies below it."""

    scope: str = "/"
    actor: str | None = None
    since: dt.datetime | None = None
    until: dt.datetime | None = None


def queries_list(
    filters: QueryFilter, *, principal: Principal, cursor: str | None, limit: int
) -> tuple[list[dict[str, Any]], str | None]:
    """Return queries, newest first, and the cursor of the next page. Three statements, two of them for the labels of
    keys and accounts.

    Raises ``NotVisible`` for a scope outside the caller's, ``ValueRefused`` for a foreign cursor.
    """
    queries = _queries(filters, principal).order_by("-at", "-id")
    if cursor is not None:
        at, number = cursor_parse(cursor, cursor_time, cursor_number)
        queries = queries.filter(Q(at__lt=at) | Q(at=at, id__lt=number))
    rows = list(queries[: limit + 1])
    following = cursor_make(rows[limit - 1].at, rows[limit - 1].pk) if len(rows) > limit else None
    names = caller_labels(row.actor for row in rows[:limit])
    return [
        {
            "at": row.at,
            "actor": names.get(row.actor, row.actor),
            "scope": row.scope,
            "query": row.query,
            "topics": len(row.topic_ids),
        }
        for row in rows[:limit]
    ], following


def queries_count(filters: QueryFilter, *, principal: Principal, at_most: int) -> int:
    """Return how many queries there are, ``at_most`` + 1 if there are more than that. One query."""
    return _queries(filters, principal)[: at_most + 1].count()


def _queries(filters: QueryFilter, principal: Principal) -> QuerySet[AccessLog]:
    queries = AccessLog.objects.filter(path_q(principal.scope_chosen(filters.scope)), kind=AccessLog.Kind.QUERY)
    if filters.actor is not None:
        queries = queries.filter(actor__in=caller_identities(filters.actor))
    if filters.since is not None:
        queries = queries.filter(at__gte=filters.since)
    if filters.until is not None:
        queries = queries.filter(at__lt=filters.until)
    return queries
