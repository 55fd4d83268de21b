"""Re-keying applies a change of half-life or clock to the stored rows, in resumable batches in the background.

Only the half-life, the clock and the fade key of a row change. The half-life and the clock in force thus apply to the
past too.
"""

import datetime as dt
import time
import uuid

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from memory.core.scopes import ROOT, scope_within
from memory.models import Rekeying
from memory.models.formulas_sql import counted_sql, fade_key_sql, scope_within_sql
from memory.models.locks import Lock, lock_try
from memory.policy.effective import policies_current
from memory.policy.replies import RekeyingOut
from memory.policy.snapshot import Policies
from memory.stores.pending import after_commit, work_pending

TOPICS_PER_BATCH = 5000
# If more scopes than this have stray rows (``half_lives_stray_check``), the whole store is re-keyed.
MAX_STRAY_SCOPES = 20
_FIRST = uuid.UUID(int=0)

_WITHIN = scope_within_sql("v.scope_id")
_COUNT_SQL = f"SELECT count(*) FROM memory_vitality v WHERE {_WITHIN}"

_BATCH_SQL = f"""
SELECT v.topic_id, s.id, s.path
FROM (
    SELECT v.topic_id, v.scope_id FROM memory_vitality v
    WHERE v.topic_id > %(after)s AND {_WITHIN} ORDER BY v.topic_id LIMIT %(limit)s
) v
JOIN memory_scope s ON s.id = v.scope_id
ORDER BY v.topic_id
"""


def _rekey_sql(table: str, key: str, joined: str) -> str:
    """Return the SQL statement that updates the rows of the topics ``%(ids)s`` to the half-life and the clock of their
    scopes. The rows are locked in the order of their keys, to prevent deadlocks."""
    fade = fade_key_sql("r.salience", counted=counted_sql("r", wall="held.wall"), half_life="held.half_life")
    return f"""
        WITH held AS MATERIALIZED (
            SELECT x.{key} AS key, w.half_life, w.wall
            FROM {table} x {joined}
            JOIN unnest(%(scopes)s::bigint[], %(half_lives)s::float8[], %(walls)s::bool[])
                 AS w (scope_id, half_life, wall)
              ON w.scope_id = v.scope_id
            WHERE x.topic_id = ANY(%(ids)s) AND (x.half_life, x.wall) <> (w.half_life, w.wall)
            ORDER BY x.{key} FOR NO KEY UPDATE OF x
        )
        UPDATE {table} r SET half_life = held.half_life, wall = held.wall, fade = {fade}, fade_floor = {fade}
        FROM held WHERE r.{key} = held.key
    """


_TOPICS = _rekey_sql("memory_vitality", "topic_id", "JOIN memory_vitality v ON v.topic_id = x.topic_id")
_FIELDS = _rekey_sql("memory_field", "id", "JOIN memory_vitality v ON v.topic_id = x.topic_id")

# The pairs of half-life and clock that occur. The recursion makes one step in the index per pair and rung.
_KEYS_SQL = """
WITH RECURSIVE found AS (
    (SELECT rung, wall, half_life FROM memory_vitality WHERE live AND NOT pinned ORDER BY rung, wall, half_life LIMIT 1)
    UNION ALL
    SELECT n.rung, n.wall, n.half_life FROM found p CROSS JOIN LATERAL (
        SELECT v.rung, v.wall, v.half_life FROM memory_vitality v
        WHERE v.live AND NOT v.pinned AND (v.rung, v.wall, v.half_life) > (p.rung, p.wall, p.half_life)
        ORDER BY v.rung, v.wall, v.half_life LIMIT 1
    ) n
)
SELECT DISTINCT half_life, wall FROM found
"""

_STRAY_SCOPES_SQL = """
SELECT path FROM memory_scope WHERE id IN (
    SELECT scope_id FROM memory_vitality v
    JOIN unnest(%s::float8[], %s::bool[]) AS stray (half_life, wall) USING (half_life, wall)
    WHERE v.live AND NOT v.pinned AND v.rung = ANY(%s)
)
ORDER BY path LIMIT %s
"""
_LIVE_RUNGS = [0, 1, 2]


def half_lives_rekey(*, now: dt.datetime, budget_seconds: float) -> int:
    """Update topics and fields to the half-life and the clock in force, until time is up. Return the number of examined
    topics; 0 means that nothing is left or another process is working. Each batch is one transaction of seven SQL
    statements."""
    until = time.monotonic() + budget_seconds
    examined = 0
    while (count := _next_batch(now)) is not None:
        examined += count
        if time.monotonic() >= until:
            break
    return examined


def rekeying_progress(scope: str, *, caller: str = ROOT) -> list[RekeyingOut]:
    """Return the unfinished re-keyings above, at and below ``scope``. One query. ``total`` is None until the first
    batch. The reason and the numbers of a re-keying above the scope ``caller`` are left out."""
    return [
        {
            "scope": work.scope,
            "reason": work.reason if scope_within(work.scope, caller) else "",
            "started_at": work.started_at,
            "done": work.done if scope_within(work.scope, caller) else None,
            "total": work.total if scope_within(work.scope, caller) and work.after is not None else None,
        }
        for work in Rekeying.objects.filter(finished_at=None).order_by("id")
        if scope_within(work.scope, scope) or scope_within(scope, work.scope)
    ]


def half_lives_stray_check(*, now: dt.datetime) -> int:
    """Find stray rows, whose half-life and clock belong to no policy. Enqueue re-keyings that update them, and return
    the number of these re-keyings. At most three SQL statements, plus those of ``policies_current``.

    A stray row comes from a writer that had read the old policy and committed after the re-keying.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        policies = policies_current()
        if policies.rekeying:
            # The unfinished re-keying will still change rows. Stray rows are searched for after it has finished.
            return 0
        wanted = {node.knobs.keys for node in policies.nodes(ROOT)}
        cursor.execute(_KEYS_SQL)
        strays = [found for found in cursor.fetchall() if found not in wanted]
        if not strays:
            return 0
        half_lives, wall_clocks = zip(*strays, strict=True)
        cursor.execute(_STRAY_SCOPES_SQL, [list(half_lives), list(wall_clocks), _LIVE_RUNGS, MAX_STRAY_SCOPES + 1])
        paths = [path for (path,) in cursor.fetchall()]
        # The re-keying of a scope also covers the scopes below it.
        topmost = [path for path in paths if not any(path != other and scope_within(path, other) for other in paths)]
        covered = [ROOT] if len(paths) > MAX_STRAY_SCOPES else topmost
        Rekeying.objects.bulk_create(
            Rekeying(scope=path, reason="rows with a half-life or clock that no policy wants", started_at=now)
            for path in covered
        )
        after_commit(work_pending)
        return len(covered)


def _next_batch(now: dt.datetime) -> int | None:
    """Process one batch and return its number of topics; None if nothing is left or another process is working."""
    with transaction.atomic(), connection.cursor() as cursor:
        if not lock_try(Lock.REKEY_HALF_LIVES):
            return None
        unfinished = list(Rekeying.objects.filter(finished_at=None).order_by("id"))
        if not unfinished:
            return None
        work, later = unfinished[0], unfinished[1:]
        if any(scope_within(work.scope, other.scope) for other in later):
            # The later re-keying covers all rows of this one.
            work.finished_at = now
            work.save(update_fields=["finished_at"])
            return 0
        return _batch(cursor, work, policies_current(), now)


def _batch(cursor: CursorWrapper, work: Rekeying, policies: Policies, now: dt.datetime) -> int:
    within = {"scope": work.scope, "below": work.scope.rstrip("/") + "/"}
    if work.after is None:
        cursor.execute(_COUNT_SQL, within)
        work.total = cursor.fetchone()[0]
    cursor.execute(_BATCH_SQL, {**within, "after": work.after or _FIRST, "limit": TOPICS_PER_BATCH})
    rows = cursor.fetchall()
    if rows:
        keys = {scope_id: policies.knobs(path).keys for _id, scope_id, path in rows}
        parameters = {
            "ids": [row[0] for row in rows],
            "scopes": list(keys),
            "half_lives": [half_life for half_life, _wall in keys.values()],
            "walls": [wall for _half_life, wall in keys.values()],
        }
        cursor.execute(_TOPICS, parameters)
        cursor.execute(_FIELDS, parameters)
        work.after = rows[-1][0]
        work.done += len(rows)
    if len(rows) < TOPICS_PER_BATCH:
        work.finished_at = now
    work.save(update_fields=["after", "total", "done", "finished_at"])
    return len(rows)
