"""Topics that wait for a vector: the worker's side of embedding, for ``?defer=1`` and ``reembed``."""

from django.db import connection, transaction

from memory.embedding import embedder_get, text_hash
from memory.ingest.bulk import vector_text
from memory.ingest.load import known_load

TOPICS_PER_TURN = 64

_WAITING = "SELECT topic_id, text_hash FROM memory_topicvector WHERE embedding IS NULL ORDER BY topic_id LIMIT %s"

# A topic whose text has changed since it was read keeps waiting: its hash is another one by now. So does one that is
# being written; waiting for two writers could have them wait for us.
_GIVE = """
WITH held AS MATERIALIZED (
    SELECT topic_id FROM memory_topicvector
    WHERE topic_id = ANY(%(ids)s) AND embedding IS NULL ORDER BY topic_id FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE memory_topicvector v SET embedding = d.embedding::vector, model = %(model)s, text_hash = d.new_hash
FROM unnest(%(ids)s::uuid[], %(vectors)s::text[], %(old)s::text[], %(new)s::text[])
     AS d (id, embedding, old_hash, new_hash)
JOIN held ON held.topic_id = d.id
WHERE v.topic_id = d.id AND v.text_hash = d.old_hash AND v.embedding IS NULL
"""

# Vectors of other models, a slice at a time; each slice is its own transaction, so a killed run goes on where it was.
_SET_BACK = """
UPDATE memory_topicvector SET embedding = NULL
WHERE topic_id IN (SELECT topic_id FROM memory_topicvector WHERE model <> %s AND embedding IS NOT NULL LIMIT %s)
"""

_COUNT = "SELECT count(*) FROM memory_topicvector WHERE embedding IS NULL OR model <> %s"


def waiting_embed() -> int:
    """Give vectors to up to ``TOPICS_PER_TURN`` waiting topics and return how many were tried. Five queries.

    Safe to run in several processes at once and to kill: the work is done twice at worst. Raises ``EmbeddingFailed``.
    """
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, [TOPICS_PER_TURN])
        hashes = dict(cursor.fetchall())
    if not hashes:
        return 0
    known = known_load(changed=hashes, read=[], lock=False)
    texts = {topic_id: known.topics[topic_id].text().embedded() for topic_id in hashes}
    embedder = embedder_get()
    vectors = embedder.embed_passages(list(texts.values()))
    with connection.cursor() as cursor:
        cursor.execute(
            _GIVE,
            {
                "model": embedder.model_name,
                "ids": list(texts),
                "vectors": [vector_text(vector) for vector in vectors],
                "old": list(hashes.values()),
                "new": [text_hash(text) for text in texts.values()],
            },
        )
    return len(texts)


def foreign_count() -> int:
    """Return how many topics have no vector of the present model. One query, which reads the vector table."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [embedder_get().model_name])
        count: int = cursor.fetchone()[0]
        return count


def foreign_set_back(limit: int) -> int:
    """Make up to ``limit`` topics wait whose vector is of another model; return how many. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_SET_BACK, [embedder_get().model_name, limit])
        return int(cursor.rowcount)


_WIDTH = """
SELECT atttypmod FROM pg_attribute WHERE attrelid = 'memory_topicvector'::regclass AND attname = 'embedding'
"""


def vectors_resize(dimension: int) -> int | None:
    """Make the vector column hold vectors of ``dimension`` numbers; return what it held, or None if nothing changed.

    Vectors of another length cannot be kept: every topic then waits for a new one. The index is made anew, empty.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_WIDTH)
        held: int = cursor.fetchone()[0]
        if held == dimension:
            return None
        cursor.execute("SELECT pg_get_indexdef('topicvector_hnsw'::regclass)")
        definition = cursor.fetchone()[0]
        cursor.execute("DROP INDEX topicvector_hnsw")
        cursor.execute(f"ALTER TABLE memory_topicvector ALTER embedding TYPE vector({dimension:d}) USING NULL")
        cursor.execute(definition)
    return held
