"""Folds the access log into salience in bulk. Each row is folded exactly once, even if the worker is killed."""

import datetime as dt
from typing import Any

from django.db import connection, transaction

from memory.core.repeats import Asked, repeats_dropped
from memory.models.formulas_sql import (
    counted_sql,
    decay_sql,
    fade_floor_sql,
    fade_key_sql,
    faded_sql,
    reinforcement_share_sql,
)
from memory.models.locks import Lock, lock_try, lock_wait
from memory.policy.effective import policies_current
from memory.recall.reinforcement import accesses_without_sql

ROWS_PER_FOLD = 1000

_CLAIM_SQL = """
SELECT id, at, actor, query_hash, scope, counted IS FALSE FROM memory_accesslog
WHERE folded_at IS NULL ORDER BY id LIMIT %s FOR UPDATE
"""

_COUNTED_BEFORE_SQL = """
SELECT DISTINCT ON (a.actor, a.query_hash) a.actor, a.query_hash, a.at
FROM memory_accesslog a
JOIN unnest(%s::text[], %s::text[]) AS asked (actor, query_hash)
  ON a.actor = asked.actor AND a.query_hash = asked.query_hash
WHERE a.counted AND a.at >= %s
ORDER BY a.actor, a.query_hash, a.at DESC
"""


_SHARE = reinforcement_share_sql("t.relevance", min_relevance="a.min_relevance")
_TOPIC_HITS_SQL = f"""
    SELECT t.id, a.id AS access_id, a.at, a.bump * {_SHARE} AS bump, a.field_bump * {_SHARE} AS field_bump
    FROM memory_accesslog a CROSS JOIN LATERAL unnest(a.topic_ids, a.relevances) AS t (id, relevance)
    WHERE a.id = ANY(%(counted)s) AND t.id IS NOT NULL AND {_SHARE} > 0
"""
# The relevance of a field is the relevance of its topic.
_FIELD_HITS_SQL = f"""
    SELECT f.id, f.access_id, t.at, t.field_bump AS bump
    FROM (
        SELECT x.id, m.topic_id, a.id AS access_id
        FROM memory_accesslog a CROSS JOIN LATERAL unnest(a.field_ids) AS x (id) JOIN memory_field m ON m.id = x.id
        WHERE a.id = ANY(%(counted)s)
    ) f
    JOIN ({_TOPIC_HITS_SQL}) t ON t.access_id = f.access_id AND t.id = f.topic_id
"""


def _fold_sql(table: str, key: str, hits: str, *, scope: str, exact_floor: str = "false") -> str:
    """Return the statement that folds the accesses ``%(counted)s`` into ``table``.

    ``hits`` is the query for the id, the time and the bump of each row to reinforce. ``scope`` is the expression for
    the scope of ``h``, a row of ``table``. ``%(idle)s`` has the idle seconds of the scope before each access; ``used``
    and ``since`` are times without these seconds. In rows that meet ``exact_floor``, ``fade_floor`` is set to the fade
    key.

    An access sets the salience to ``min(cap, effective + bump)``, where ``effective`` is the salience after its decay
    until the access. The statement computes all accesses of a row at once. ``w_i`` is the decay from access i to the
    last access. ``S_i`` is the sum of the bumps after access i, each decayed until the last access. The result is the
    minimum of the sum without caps and of all ``cap * w_i + S_i``. An access before the last reinforcement counts at
    the time of that reinforcement, with its bump decayed until then.
    """
    used = counted_sql("held", at="hit.at", idle="placed.idle")
    late = decay_sql(f"held.since - {used}", "held.half_life")
    from_start = decay_sql("last_used - since", "half_life")
    to_last = decay_sql("last_used - used", "half_life")
    return f"""
        WITH hit AS MATERIALIZED ({hits}), held AS MATERIALIZED (
            SELECT h.{key} AS id, h.salience, h.reinforced_at, h.idle_before, h.wall, h.half_life,
                   {counted_sql("h")} AS since, {scope} AS scope_id
            FROM {table} h
            WHERE h.{key} = ANY(ARRAY(SELECT DISTINCT id FROM hit)) ORDER BY h.{key} FOR NO KEY UPDATE
        ), access AS (
            SELECT id, held.salience, held.reinforced_at, held.idle_before, held.since, held.half_life,
                   greatest(placed.cap, held.salience) AS ceiling,
                   greatest({used}, held.since) AS used, {faded_sql("hit.bump", late)} AS bump,
                   hit.at AS seen_at, placed.idle, hit.access_id
            FROM hit JOIN held USING (id)
            JOIN unnest(%(accesses)s::bigint[], %(scopes)s::bigint[], %(caps)s::float8[], %(idle)s::float8[])
                 AS placed (access_id, scope_id, cap, idle) USING (access_id, scope_id)
        ), last AS (
            SELECT *, max(used) OVER (PARTITION BY id) AS last_used FROM access
        ), weighed AS (
            SELECT *, {faded_sql("bump", "weight")} AS decayed
            FROM (SELECT *, {to_last} AS weight FROM last) x
        ), after AS (
            SELECT *, coalesce(sum(decayed) OVER (
                       PARTITION BY id ORDER BY used, access_id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
                   ), 0) AS later
            FROM weighed
        ), outcome AS (
            SELECT id, min(last_used) AS used, max(seen_at) AS seen_at, max(idle) AS idle, count(*) AS times,
                   min(half_life) AS half_life,
                   least(
                       min({faded_sql("salience", from_start)}) + sum(decayed),
                       min(ceiling * weight + later)
                   ) AS salience
            FROM after GROUP BY id
        ), keyed AS (
            SELECT *, {fade_key_sql("salience", counted="used", half_life="half_life")} AS fade FROM outcome
        )
        UPDATE {table} row
        SET salience = k.salience, reinforced_at = greatest(row.reinforced_at, k.seen_at), fade = k.fade,
            idle_before = CASE WHEN k.seen_at > row.reinforced_at THEN k.idle ELSE row.idle_before END,
            fade_floor = CASE WHEN {exact_floor} THEN k.fade
                              ELSE {fade_floor_sql("row.fade_floor", fade="k.fade", half_life="k.half_life")} END,
            retrieval_count = row.retrieval_count + k.times,
            last_retrieved_at = greatest(row.last_retrieved_at, k.seen_at)
        FROM keyed k
        WHERE row.{key} = k.id
    """


# For topics that are not active, runs also check whether the salience has risen. Too low a floor would hide these
# topics.
_FOLD_TOPICS = _fold_sql("memory_vitality", "topic_id", _TOPIC_HITS_SQL, scope="h.scope_id", exact_floor="row.rung > 0")
_FIELD_SCOPE_SQL = "(SELECT v.scope_id FROM memory_vitality v WHERE v.topic_id = h.topic_id)"
_FOLD_FIELDS = _fold_sql("memory_field", "id", _FIELD_HITS_SQL, scope=_FIELD_SCOPE_SQL)

_PLACES_SQL = """
SELECT DISTINCT a.id, a.at, s.id, s.path
FROM memory_accesslog a
CROSS JOIN LATERAL unnest(a.topic_ids) AS hit (id)
JOIN memory_vitality v ON v.topic_id = hit.id
JOIN memory_scope s ON s.id = v.scope_id
WHERE a.id = ANY(%s)
"""

_MARK_SQL = """
UPDATE memory_accesslog SET folded_at = %(now)s, counted = (id = ANY(%(counted)s)) WHERE id = ANY(%(ids)s)
"""

# Removes purged topics from rows of queries that were answered while the purge was running.
_PURGED_REMOVE_SQL = accesses_without_sql(
    rows="l.id = ANY(%s)",
    topic="EXISTS (SELECT 1 FROM memory_topic m WHERE m.id = u.topic)",
    field="EXISTS (SELECT 1 FROM memory_field m WHERE m.id = u.field)",
)

# A query writes only its access row, in one INSERT. This statement derives the wake-ups from the access rows.
_WAKE_UPS_SQL = """
WITH scopes (scope_id, event, first_at, last_at, times) AS MATERIALIZED (
    SELECT t.scope_id, 'query_complete', %(now)s, %(now)s, count(DISTINCT a.id)
    FROM memory_accesslog a
    CROSS JOIN LATERAL unnest(a.topic_ids) AS hit (id)
    JOIN memory_topic t ON t.id = hit.id
    WHERE a.id = ANY(%(ids)s) AND a.at > %(now)s::timestamptz - interval '1 day'
    GROUP BY t.scope_id ORDER BY t.scope_id
)
INSERT INTO memory_wakeup (scope_id, event, first_at, last_at, times)
SELECT * FROM scopes
ON CONFLICT (scope_id, event)
DO UPDATE SET last_at = excluded.last_at, times = memory_wakeup.times + excluded.times
"""


def fold_wait() -> None:
    """Wait until no other process is folding. No other process can fold until this transaction ends. One query."""
    lock_wait(Lock.FOLD_ACCESSES)


def accesses_fold(*, now: dt.datetime) -> int:
    """Fold up to ``ROWS_PER_FOLD`` rows of the access log, oldest first, and return their number.

    One transaction of ten statements marks the rows and raises the salience, so that neither happens without the other.
    Returns 0 at once if another process is folding.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        if not lock_try(Lock.FOLD_ACCESSES):
            return 0
        cursor.execute(_CLAIM_SQL, [ROWS_PER_FOLD])
        claimed = cursor.fetchall()
        if not claimed:
            return 0
        # A query about the past does not count as use. Its row is only checked for purged topics.
        rows = [row[:5] for row in claimed if not row[5]]
        ids = [row[0] for row in claimed]
        policies = policies_current()
        windows = {scope: policies.knobs(scope).reinforce_once_seconds for *_rest, scope in rows}
        longest = dt.timedelta(seconds=max(windows.values(), default=0))
        earliest = min((at for _id, at, *_rest in rows), default=now) - longest
        asked = sorted({(actor, digest) for _id, _at, actor, digest, _scope in rows})
        cursor.execute(
            _COUNTED_BEFORE_SQL, [[actor for actor, _d in asked], [digest for _a, digest in asked], earliest]
        )
        before: dict[Asked, float] = {(actor, digest): at.timestamp() for actor, digest, at in cursor.fetchall()}
        # The hash of a query includes the scope, so all accesses with the same hash have the same window.
        counted = [
            access_id
            for window in sorted(set(windows.values()))
            for access_id in repeats_dropped(
                [
                    (access_id, (actor, digest), at.timestamp())
                    for access_id, at, actor, digest, scope in rows
                    if windows[scope] == window
                ],
                window=window,
                counted_before=before,
            )
        ]
        cursor.execute(_PLACES_SQL, [counted])
        placed = [(access, scope_id, policies.effective(path), at) for access, at, scope_id, path in cursor.fetchall()]
        parameters: dict[str, Any] = {
            "counted": counted,
            "accesses": [access for access, *_rest in placed],
            "scopes": [scope_id for _access, scope_id, *_rest in placed],
            "caps": [policy.knobs.field_salience_max for *_rest, policy, _at in placed],
            "idle": [float(policy.time.idle(at.timestamp())) for *_rest, policy, at in placed],
        }
        cursor.execute(_FOLD_TOPICS, parameters)
        cursor.execute(_FOLD_FIELDS, parameters)
        cursor.execute(_PURGED_REMOVE_SQL, [ids])
        cursor.execute(_MARK_SQL, {"now": now, "counted": counted, "ids": ids})
        cursor.execute(_WAKE_UPS_SQL, {"now": now, "ids": [row[0] for row in rows]})
        return len(claimed)
