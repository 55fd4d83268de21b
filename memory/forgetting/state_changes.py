"""The SQL statements that change the state of topics. The caller has locked the topics and writes the journal.

``rung`` is stored on Topic and Vitality, ``live`` on Vitality, TopicVector and TopicDocument. Manual actions, runs and
undo share these statements, so that all copies agree.
"""

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Any

from django.db.backends.utils import CursorWrapper

from memory.models import Rung
from memory.models.formulas_sql import (
    counted_sql,
    fade_key_sql,
    faded_sql,
    partition_idle_sql,
    salience_effective_sql,
    salience_now_sql,
    scope_of_sql,
    skipped_sql,
)
from memory.stores.pending import after_commit, work_pending

Ids = Sequence[uuid.UUID]

# A restored topic has at least this salience, which is the salience of a new topic.
RESTORED_SALIENCE = 1.0

_RUNG_SQL = """
UPDATE {table} x SET rung = d.rung{more}
FROM unnest(%(ids)s::uuid[], %(rungs)s::int[]) AS d (id, rung) WHERE x.{key} = d.id
"""
# Below the first rung, the fade floor must equal the fade key, because the index must also find topics that rise. The
# rung is in the same index, so the additional assignment costs nothing.
_RUNGS = (
    _RUNG_SQL.format(table="memory_topic", key="id", more=""),
    _RUNG_SQL.format(table="memory_vitality", key="topic_id", more=", fade_floor = x.fade"),
)

_LIVE = (
    "UPDATE memory_vitality SET live = %(live)s WHERE topic_id = ANY(%(ids)s)",
    "UPDATE memory_topicvector SET live = %(live)s WHERE topic_id = ANY(%(ids)s)",
    "UPDATE memory_topicdocument SET live = %(live)s, uncounted = true WHERE topic_id = ANY(%(ids)s)",
)

# Archiving multiplies the stored salience, which is the salience at the last use. This multiplies the present salience
# by the same factor, and keeps the time of the last use.
_LESS = faded_sql("v.salience", "d.factor")
_LESS_KEY = fade_key_sql(_LESS, counted=counted_sql("v"), half_life="v.half_life")
_ARCHIVE_SQL = f"""
UPDATE memory_vitality v
SET rung = {Rung.ARCHIVED:d}, live = false, salience = {_LESS}, fade = {_LESS_KEY}, fade_floor = {_LESS_KEY}
FROM unnest(%(ids)s::uuid[], %(factors)s::float8[]) AS d (id, factor)
WHERE v.topic_id = d.id
"""

_RENEWED_KEY = fade_key_sql(
    "r.salience", counted=counted_sql("v", at="%(now)s::timestamptz", idle="r.idle"), half_life="v.half_life"
)
_PRESENT = salience_effective_sql("v", "%(now)s::timestamptz", skipped=skipped_sql("v", "i.idle"))
_RENEW_SQL = f"""
WITH renewed AS (
    SELECT v.topic_id, i.idle,
           greatest({_PRESENT} / d.factor, %(least)s) AS salience
    FROM unnest(%(ids)s::uuid[], %(factors)s::float8[]) AS d (id, factor)
    JOIN memory_vitality v ON v.topic_id = d.id
    CROSS JOIN LATERAL (SELECT {partition_idle_sql("v.scope_id", "%(now)s::timestamptz")} AS idle) i
)
UPDATE memory_vitality v
SET salience = r.salience, reinforced_at = %(now)s, idle_before = r.idle,
    fade = {_RENEWED_KEY}, fade_floor = {_RENEWED_KEY}
FROM renewed r WHERE v.topic_id = r.topic_id
"""

_RELEASED_SQL = "UPDATE memory_topic SET released_at = %(at)s WHERE id = ANY(%(ids)s)"

_PIN_SQL = """
UPDATE memory_vitality v SET pinned = d.pinned, pin_reason = d.reason,
    pinned_by_agent = d.pinned AND %(by_agent)s AND (NOT v.pinned OR v.pinned_by_agent)
FROM unnest(%(ids)s::uuid[], %(pinned)s::bool[], %(reasons)s::text[]) AS d (id, pinned, reason)
WHERE v.topic_id = d.id
"""

_DETACH_SQL = f"""
UPDATE memory_field f SET detached = true
FROM unnest(%(ids)s::uuid[], %(thetas)s::float8[]) AS d (id, theta)
WHERE f.topic_id = d.id AND NOT f.detached
  AND {salience_now_sql("f", "%(now)s::timestamptz", scope=scope_of_sql("f"))} < d.theta
"""

_ATTACH_SQL = "UPDATE memory_field SET detached = false WHERE topic_id = ANY(%(ids)s) AND detached"

# The summaries in force are withdrawn. The revisions that they covered become warm again, up to max_field_history.
_UNFOLD_SQL = """
WITH withdrawn AS (
    UPDATE memory_fieldsummary s SET withdrawn_at = %(now)s
    FROM memory_field f
    WHERE f.id = s.field_id AND f.topic_id = ANY(%(ids)s) AND s.withdrawn_at IS NULL
    RETURNING s.id, s.field_id, s.from_seq, f.topic_id
), warmed AS (
    UPDATE memory_field f
    SET cold_through = least(f.cold_through, greatest(p.since - 1, f.last_seq - p.most, 0))
    FROM (
        SELECT a.field_id, min(a.from_seq) AS since, min(d.most) AS most
        FROM withdrawn a JOIN unnest(%(ids)s::uuid[], %(most)s::int[]) AS d (id, most) ON d.id = a.topic_id
        GROUP BY a.field_id
    ) p
    WHERE f.id = p.field_id
)
SELECT topic_id, array_agg(id ORDER BY id) FROM withdrawn GROUP BY topic_id
"""


def rungs_set(cursor: CursorWrapper, rungs: dict[uuid.UUID, int]) -> None:
    """Move topics between the rungs above the archive. Two SQL statements."""
    if rungs:
        for statement in _RUNGS:
            cursor.execute(statement, {"ids": list(rungs), "rungs": list(rungs.values())})


def live_set(cursor: CursorWrapper, ids: Ids, *, live: bool) -> None:
    """Set whether queries find topics. Three SQL statements."""
    if ids:
        for statement in _LIVE:
            cursor.execute(statement, {"ids": list(ids), "live": live})
        if live:
            # If these are the only live topics of the store, upkeep creates its schedules again.
            after_commit(work_pending)


def archive(cursor: CursorWrapper, factors: dict[uuid.UUID, float]) -> None:
    """Archive topics, and multiply the salience of each by its factor. Four SQL statements."""
    if not factors:
        return
    ids = list(factors)
    cursor.execute(_RUNGS[0], {"ids": ids, "rungs": [int(Rung.ARCHIVED)] * len(ids)})
    cursor.execute(_ARCHIVE_SQL, {"ids": ids, "factors": list(factors.values())})
    for statement in _LIVE[1:]:
        cursor.execute(statement, {"ids": ids, "live": False})


def release(cursor: CursorWrapper, ids: Ids, *, now: dt.datetime) -> None:
    """Release topics: no query returns them, and their rows are kept. Four SQL statements."""
    if ids:
        cursor.execute(_RELEASED_SQL, {"ids": list(ids), "at": now})
        live_set(cursor, ids, live=False)


def revive(
    cursor: CursorWrapper, factors: dict[uuid.UUID, float], *, most: dict[uuid.UUID, int], now: dt.datetime
) -> dict[uuid.UUID, list[int]]:
    """Restore archived or released topics to the first rung, with all fields. Return the ids of the withdrawn
    summaries, keyed by topic id. Nine SQL statements.

    The salience of each topic is divided by its factor, which reverses archiving, and raised to at least
    ``RESTORED_SALIENCE``. The new salience fades from ``now`` on. ``most`` maps a topic id to the greatest number of
    warm revisions of a field.
    """
    if not factors:
        return {}
    ids = list(factors)
    cursor.execute(_RELEASED_SQL, {"ids": ids, "at": None})
    rungs_set(cursor, dict.fromkeys(ids, int(Rung.ACTIVE)))
    live_set(cursor, ids, live=True)
    cursor.execute(_RENEW_SQL, {"ids": ids, "factors": list(factors.values()), "least": RESTORED_SALIENCE, "now": now})
    fields_attach(cursor, ids)
    return fields_unfold(cursor, {topic_id: most[topic_id] for topic_id in ids}, now=now)


def pins_set(cursor: CursorWrapper, pins: dict[uuid.UUID, tuple[bool, str]], *, by_agent: bool = False) -> None:
    """Pin or unpin topics. ``pins`` maps a topic id to (pinned, reason). One SQL statement. If an agent pins a topic
    that an operator or a rule has pinned, agents still cannot unpin it."""
    if pins:
        parameters: dict[str, Any] = {
            "ids": list(pins),
            "pinned": [pinned for pinned, _reason in pins.values()],
            "reasons": [reason for _pinned, reason in pins.values()],
            "by_agent": by_agent,
        }
        cursor.execute(_PIN_SQL, parameters)


def fields_detach(cursor: CursorWrapper, thetas: dict[uuid.UUID, float], *, now: dt.datetime) -> None:
    """Detach each field whose salience is below the threshold of its topic in ``thetas``. One SQL statement."""
    if thetas:
        cursor.execute(_DETACH_SQL, {"ids": list(thetas), "thetas": list(thetas.values()), "now": now})


def fields_attach(cursor: CursorWrapper, ids: Ids) -> None:
    """Attach the detached fields of topics. One SQL statement."""
    if ids:
        cursor.execute(_ATTACH_SQL, {"ids": list(ids)})


def fields_unfold(cursor: CursorWrapper, most: dict[uuid.UUID, int], *, now: dt.datetime) -> dict[uuid.UUID, list[int]]:
    """Withdraw the summaries of the fields of topics, and make their revisions warm again. ``most`` maps a topic id to
    the greatest number of warm revisions of a field. Return the ids of the withdrawn summaries, keyed by topic id."""
    if not most:
        return {}
    cursor.execute(_UNFOLD_SQL, {"ids": list(most), "most": list(most.values()), "now": now})
    found: list[tuple[Any, ...]] = cursor.fetchall()
    return {topic_id: list(summaries) for topic_id, summaries in found}
