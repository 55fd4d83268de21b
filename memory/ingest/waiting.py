"""Topics that wait for a vector: written with ``?defer=1``, or set back by ``reembed``. The worker's side of embedding."""

from django.db import connection

from memory.embedding import embedder_get, text_hash
from memory.ingest.bulk import vector_text
from memory.ingest.load import known_load

TOPICS_PER_TURN = 64

_WAITING = "SELECT topic_id, text_hash FROM memory_topicvector WHERE embedding IS NULL ORDER BY topic_id LIMIT %s"

# A topic whose text has changed since it was read keeps waiting: its hash is another one by now.
_GIVE = """
UPDATE memory_topicvector v SET embedding = d.embedding::vector, model = %s, text_hash = d.new_hash
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::text[]) AS d (id, embedding, old_hash, new_hash)
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
            [
                embedder.model_name,
                list(texts),
                [vector_text(vector) for vector in vectors],
                list(hashes.values()),
                [text_hash(text) for text in texts.values()],
            ],
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
