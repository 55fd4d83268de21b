"""A synthetic store of any size, written straight into the tables: unit vectors around random centres, texts with a
Zipf-like vocabulary, chains of links. It has the statistics of a real store and none of its meaning."""

import datetime as dt
import uuid

import numpy as np
from django.db import connection

from memory.ingest.bulk import vector_binary
from memory.ingest.write import VECTOR, VECTOR_TYPES
from memory.recall.corpus import documents_count
from tests.vacuum import vacuum_analyze

DIMENSION = 384
CHAIN = 12
WORDS = 8_000
TOPICS_PER_CENTER = 50

TABLES = (
    "memory_accesslog",
    "memory_wakeup",
    "memory_auditevent",
    "memory_link",
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
)

_FILL = """
WITH made AS (
    SELECT n, ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid AS id,
           now() - (n %% 180) * interval '1 day' AS at,
           (SELECT string_agg('word' || floor(%(words)s * power(random(), 3))::int, ' ')
            FROM generate_series(1, 14 + n * 0)) AS text
    FROM generate_series(1, %(topics)s) AS n
), scope AS (
    INSERT INTO memory_scope (path) VALUES ('/bench') RETURNING id
), topics AS (
    INSERT INTO memory_topic
        (id, scope_id, kind, title, summary, categories, provenance, created_at, updated_at, rung)
    SELECT made.id, scope.id, 'observation', 'topic ' || n, text, '{}', 'bench', at, at, 0 FROM made, scope
), vitality AS (
    INSERT INTO memory_vitality (topic_id, scope_id, salience, reinforced_at, half_life, fade, fade_floor, pinned,
        pin_reason, kind, created_at, retrieval_count, rung, live)
    SELECT made.id, scope.id, 1, at, 2592000, extract(epoch from at), extract(epoch from at), false, '', 'observation',
        at, 0, 0, true
    FROM made, scope
), documents AS (
    INSERT INTO memory_topicdocument (topic_id, scope_id, live, document, length, uncounted)
    SELECT made.id, scope.id, true, to_tsvector('english', 'topic ' || n || ' ' || text), 16, true FROM made, scope
), fields AS (
    INSERT INTO memory_field (id, topic_id, name, last_seq, cold_through, salience, reinforced_at, created_at,
        half_life, fade, fade_floor, retrieval_count, detached)
    SELECT made.id, made.id, 'value', 1, 0, 1, at, at, 2592000, extract(epoch from at), extract(epoch from at), 0, false
    FROM made
), revisions AS (
    INSERT INTO memory_revision (id, field_id, seq, value, field_type, valid_from, recorded_at, provenance,
        why_changed, impact_expected, actor)
    SELECT made.id, made.id, 1, 'value ' || n, 'string', at, at, 'bench', '', '', 'bench' FROM made
)
INSERT INTO memory_link (source_id, target_id, kind, created_at, actor)
SELECT made.id, ('00000000-0000-7000-8000-' || lpad(to_hex(n - 1), 12, '0'))::uuid, 'follows', at, 'bench'
FROM made WHERE n %% %(chain)s <> 1
"""


def topic_id(n: int) -> uuid.UUID:
    """Return the id of the n-th topic, counted from 1."""
    return uuid.UUID(f"00000000-0000-7000-8000-{n:012x}")


def store_clear() -> None:
    """Empty every table that ``store_fill`` fills."""
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(TABLES)} CASCADE")


def vectors_make(topics: int, *, seed: int) -> np.ndarray:
    """Return unit vectors, ``(topics, DIMENSION)``: so many centres, and topics scattered around each."""
    random = np.random.default_rng(seed)
    centers = random.standard_normal((max(1, topics // TOPICS_PER_CENTER), DIMENSION), dtype=np.float32)
    vectors = centers[random.integers(len(centers), size=topics)]
    vectors += random.standard_normal((topics, DIMENSION), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def store_fill(topics: int, *, model: str, seed: int = 1) -> np.ndarray:
    """Replace the store by ``topics`` synthetic topics and return their vectors."""
    store_clear()
    vectors = vectors_make(topics, seed=seed)
    with connection.cursor() as cursor:
        cursor.execute("SELECT setseed(0.5)")
        cursor.execute("DROP INDEX IF EXISTS topicvector_hnsw")
        cursor.execute(_FILL, {"topics": topics, "words": WORDS, "chain": CHAIN})
        cursor.execute("SELECT id FROM memory_scope")
        scope = cursor.fetchone()[0]
        with cursor.copy(f"COPY memory_topicvector ({VECTOR.replace(' ', ', ')}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(VECTOR_TYPES)
            for n, vector in enumerate(vectors, start=1):
                copy.write_row((topic_id(n), scope, True, model, "", vector_binary(vector)))
        cursor.execute("SET maintenance_work_mem = '4GB'")
        cursor.execute(
            "CREATE INDEX topicvector_hnsw ON memory_topicvector USING hnsw (embedding vector_ip_ops) "
            "WITH (m = 12, ef_construction = 40) WHERE live"
        )
    while documents_count():
        pass
    vacuum_analyze()
    return vectors


def question_make(random: np.random.Generator) -> str:
    """Return a question of eight words with the vocabulary's own distribution."""
    return " ".join(f"word{int(WORDS * value**3)}" for value in random.random(8))


def day(n: int) -> dt.datetime:
    """Return noon of the n-th day of a fixed year."""
    return dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC) + dt.timedelta(days=n)
