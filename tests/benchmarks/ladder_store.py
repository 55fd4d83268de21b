"""A synthetic store of any size in which every topic stands where it belongs: nothing is due. No vectors, no embedder.

Topics were last used in the 125 days before the moment of the store, evenly, with salience 1 and a half-life of 30
days; their rung is the one that the default thresholds give them.
"""

import datetime as dt
import math
import uuid

from django.db import connection

from memory.access.principal import SYSTEM
from memory.forgetting.plan import run_plan
from memory.formulas.partition_time import midnight
from memory.formulas.salience import SECONDS_PER_DAY
from memory.models import ForgetRun
from memory.policy.effective import knobs_effective, policies_current
from tests.vacuum import vacuum_analyze

NOW = dt.datetime(2026, 11, 1, 12, tzinfo=dt.UTC)
HALF_LIFE_DAYS = 30
# The days after which the score has fallen below each threshold.
SUMMARIZED_AFTER, DETACHED_AFTER, ARCHIVED_AFTER = (-HALF_LIFE_DAYS * math.log2(theta) for theta in (0.25, 0.12, 0.05))
SPREAD_DAYS = 125
WEEKENDS = 104
IDLE_SECONDS = WEEKENDS * 2 * SECONDS_PER_DAY

TABLES = (
    "memory_forgetaction",
    "memory_forgetrun",
    "memory_shadowhit",
    "memory_accesslog",
    "memory_wakeup",
    "memory_auditevent",
    "memory_link",
    "memory_fieldsummary",
    "memory_revision",
    "memory_field",
    "memory_topicvector",
    "memory_topicdocument",
    "memory_vitality",
    "memory_topicedit",
    "memory_topic",
    "memory_scope",
    "memory_lexeme",
    "memory_corpustotals",
    "memory_partitionactivity",
    "memory_policyversion",
    "memory_rekeying",
)

_MADE = """
CREATE TEMPORARY TABLE made AS
SELECT n, ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid AS id, at,
       (ARRAY['observation', 'finding', 'preference', 'decision', 'tool_output'])[1 + n %% 5] AS kind,
       CASE WHEN days < %(summarized)s THEN 0 WHEN days < %(detached)s THEN 1 ELSE 2 END AS rung
FROM (
    SELECT n, days, %(now)s::timestamptz - days * interval '1 day' AS at
    FROM (SELECT n, (n * 7919 %% %(topics)s) / %(topics)s::float8 * %(spread)s AS days
          FROM generate_series(1, %(topics)s::bigint) AS n) x
) y
"""

_INSERTS = (
    """INSERT INTO memory_topic
           (id, scope_id, kind, title, summary, categories, provenance, created_at, updated_at, rung)
       SELECT id, %(scope)s, kind, 'topic ' || n, 'what was seen on that day', '{}', 'bench', at, at, rung FROM made""",
    """INSERT INTO memory_vitality (topic_id, scope_id, salience, reinforced_at, idle_before, wall, half_life, fade,
           fade_floor, pinned, pin_reason, kind, created_at, retrieval_count, rung, live)
       SELECT id, %(scope)s, 1, at, %(idle)s, %(wall)s, %(half_life)s, extract(epoch from at) - %(skipped)s,
              extract(epoch from at) - %(skipped)s, false, '', kind, at, 0, rung, true FROM made""",
    """INSERT INTO memory_topicdocument (topic_id, scope_id, live, document, counted, length, uncounted)
       SELECT id, %(scope)s, true, d, d, 7, false FROM made, (SELECT to_tsvector('english', 'seen day') AS d) x""",
    """INSERT INTO memory_topicvector (topic_id, scope_id, live, model, text_hash, embedding)
       SELECT id, %(scope)s, true, 'instant', '', NULL FROM made""",
    """INSERT INTO memory_field (id, topic_id, name, last_seq, cold_through, salience, reinforced_at, created_at,
           idle_before, wall, half_life, fade, fade_floor, retrieval_count, detached)
       SELECT id, id, 'value', 1, 0, 1, at, at, %(idle)s, %(wall)s, %(half_life)s, extract(epoch from at) - %(skipped)s,
              extract(epoch from at) - %(skipped)s, 0, false FROM made""",
    # Every weekend of two years was idle, all of them before the topics.
    """INSERT INTO memory_partitionactivity (scope, active_until, idle_spans)
       SELECT '/', %(end)s, array_agg(%(end)s - (n * 7 + 2000 - d) * 86400 ORDER BY n DESC, d)
       FROM generate_series(1, %(weekends)s) n, unnest(ARRAY[0, 2]) d""",
    """INSERT INTO memory_revision (id, field_id, seq, value, field_type, valid_from, recorded_at, provenance,
           why_changed, impact_expected, actor)
       SELECT id, id, 1, 'value ' || n, 'string', at, at, 'bench', '', '', 'bench' FROM made""",
)

_DUE = """
UPDATE memory_vitality SET reinforced_at = %(at)s, fade = %(fade)s, fade_floor = %(fade)s WHERE topic_id = ANY(%(ids)s)
"""


def store_clear() -> None:
    """Empty every table that is filled here or that forgetting writes."""
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(TABLES)} CASCADE")


def store_fill(topics: int) -> None:
    """Replace the store by ``topics`` topics of which none is due at ``NOW``, under the default clock."""
    store_clear()
    wall = knobs_effective("/").clock == "wall"
    wanted = {
        "idle": IDLE_SECONDS,
        "weekends": WEEKENDS,
        "wall": wall,
        "skipped": 0.0 if wall else IDLE_SECONDS,
        "end": midnight(NOW) + SECONDS_PER_DAY,
        "topics": topics,
        "now": NOW,
        "spread": SPREAD_DAYS,
        "summarized": SUMMARIZED_AFTER,
        "detached": DETACHED_AFTER,
        "half_life": HALF_LIFE_DAYS * 86_400.0,
    }
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS made")
        cursor.execute(_MADE, wanted)
        cursor.execute("INSERT INTO memory_scope (path) VALUES ('/bench') RETURNING id")
        for statement in _INSERTS:
            cursor.execute(statement, {**wanted, "scope": _scope_id()})
        cursor.execute("DROP TABLE made")
    vacuum_analyze()


def topics_make_due(count: int, topics: int) -> None:
    """Let ``count`` topics, spread over the store, have been unused long enough to be archived at ``NOW``."""
    at = NOW - dt.timedelta(days=ARCHIVED_AFTER + 5)
    ids = [uuid.UUID(f"00000000-0000-7000-8000-{1 + n * (topics // count):012x}") for n in range(count)]
    with connection.cursor() as cursor:
        skipped = 0.0 if knobs_effective("/").clock == "wall" else IDLE_SECONDS
        cursor.execute(_DUE, {"at": at, "fade": at.timestamp() - skipped, "ids": ids})
    vacuum_analyze("memory_vitality")


def _scope_id() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM memory_scope WHERE path = '/bench'")
        return int(cursor.fetchone()[0])


def pressure_plan(now: dt.datetime) -> ForgetRun:
    """Plan a run over the whole store that no gate holds back."""
    return run_plan(
        "/",
        event="memory_pressure",
        dry_run=False,
        actor=SYSTEM.actor,
        policies=policies_current(),
        judged_at=now,
        now=now,
    )
