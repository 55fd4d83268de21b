"""Records the days on which a partition was queried or written. All other days are idle."""

import datetime as dt
from collections.abc import Iterable

from django.db import connection

from memory.core.scopes import ROOT
from memory.formulas.partition_time import midnight
from memory.formulas.salience import SECONDS_PER_DAY
from memory.policy.snapshot import Policies

# The rows are locked in the order of their scopes. A row that another process updated during the wait for its lock no
# longer matches.
_NOTE_SQL = """
WITH held AS MATERIALIZED (
    SELECT id FROM memory_partitionactivity
    WHERE scope = ANY(%(scopes)s) AND active_until <= %(now)s ORDER BY scope FOR NO KEY UPDATE
), noted AS (
    UPDATE memory_partitionactivity p
    SET idle_spans = CASE WHEN p.active_until < %(today)s THEN p.idle_spans || ARRAY[p.active_until, %(today)s::float8]
                          ELSE p.idle_spans END,
        active_until = %(end)s
    FROM held WHERE p.id = held.id
)
INSERT INTO memory_partitionactivity (scope, active_until, idle_spans)
SELECT %(root)s, %(end)s, '{}' WHERE %(root)s = ANY(%(scopes)s)
ON CONFLICT (scope) DO NOTHING
"""

_SPLIT_SQL = """
INSERT INTO memory_partitionactivity (scope, active_until, idle_spans)
SELECT %(scope)s, active_until, idle_spans FROM memory_partitionactivity WHERE scope = %(above)s
ON CONFLICT (scope) DO NOTHING
"""


def activity_note(policies: Policies, scopes: Iterable[str], *, now: dt.datetime) -> None:
    """Record that ``scopes`` were queried or written at ``now``, in the transaction of the caller. One SQL statement,
    or none if ``policies`` already contain the day. Call this after topics are locked and before slow work."""
    at = now.timestamp()
    paths = {policies.time_path(scope) for scope in scopes}
    due = sorted(path for path in paths if path not in policies.times or policies.times[path].active_until <= at)
    if due:
        today = midnight(now)
        with connection.cursor() as cursor:
            cursor.execute(
                _NOTE_SQL, {"scopes": due, "now": at, "today": today, "end": today + SECONDS_PER_DAY, "root": ROOT}
            )


def activity_split(policies: Policies, scope: str, *, now: dt.datetime) -> None:
    """Give ``scope`` its own record of active days, copied from the scope above, because ``scope`` has got a policy.
    The caller must have begun a transaction. At most two SQL statements."""
    if scope == ROOT or scope in policies.times:
        return
    with connection.cursor() as cursor:
        if not policies.times:
            # The store was never used, so today does not count as active yet.
            cursor.execute(
                "INSERT INTO memory_partitionactivity (scope, active_until, idle_spans) VALUES (%s, %s, '{}') "
                "ON CONFLICT (scope) DO NOTHING",
                [ROOT, midnight(now)],
            )
        cursor.execute(_SPLIT_SQL, {"scope": scope, "above": policies.time_path(scope)})
