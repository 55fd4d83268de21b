"""Embeds topics that have no vector of the present model: after ``?defer=1``, and for ``reembed``."""

import uuid
from collections.abc import Iterator, Mapping

import structlog
from django.db import connection, transaction

from memory.embedding import Embedder, EmbeddingFailed, embedder_get, text_hash
from memory.embedding.base import Vectors
from memory.ingest.bulk import vector_text
from memory.ingest.load import known_load

logger = structlog.get_logger(__name__)

TOPICS_PER_STEP = 64
# After so many failures in a row, the embedder is taken to be down, and not the texts to be at fault.
TRIED_SINGLY = 8

# By id, each step after the one before, so that a topic that cannot be embedded is skipped for the rest of the run.
_PENDING = """
SELECT topic_id, text_hash FROM memory_topicvector
WHERE ({lacking}) AND (%(after)s::uuid IS NULL OR topic_id > %(after)s::uuid)
ORDER BY topic_id LIMIT %(limit)s
"""
_WAITING = "embedding IS NULL"
_FOREIGN = "embedding IS NULL OR model <> %(model)s"

# A topic whose text has changed since it was read has another hash and stays pending. So does a locked one: waiting
# for two writers could deadlock. The old vector stays until it is replaced.
_WRITE = """
WITH held AS MATERIALIZED (
    SELECT topic_id FROM memory_topicvector
    WHERE topic_id = ANY(%(ids)s) AND (embedding IS NULL OR model <> %(model)s)
    ORDER BY topic_id FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE memory_topicvector v SET embedding = d.embedding::vector, model = %(model)s, text_hash = d.new_hash
FROM unnest(%(ids)s::uuid[], %(vectors)s::text[], %(old)s::text[], %(new)s::text[])
     AS d (id, embedding, old_hash, new_hash)
JOIN held ON held.topic_id = d.id
WHERE v.topic_id = d.id AND v.text_hash = d.old_hash
"""

_COUNT = "SELECT count(*) FROM memory_topicvector WHERE embedding IS NULL OR model <> %s"


def vectors_fill(*, foreign: bool = False) -> Iterator[int]:
    """Embed pending topics in steps; yield how many vectors each step wrote.

    With ``foreign``, also topics whose vector is of another model. A step is five queries on ``TOPICS_PER_STEP`` topics
    and is committed by itself: it can be stopped and repeated at any time, and several processes may run at once, at
    worst embedding some texts twice. A text that the embedder refuses is skipped and logged. Raises ``EmbeddingFailed``
    if it refuses every text of a step.
    """
    embedder = embedder_get()
    after: uuid.UUID | None = None
    while True:
        hashes = _pending(after, foreign=foreign, model=embedder.model_name)
        if not hashes:
            return
        after = max(hashes)
        known = known_load(changed=hashes, read=[], lock=False)
        texts = {topic_id: known.topics[topic_id].text().embedded() for topic_id in hashes}
        vectors = _embed(embedder, texts)
        ids = list(vectors)
        with connection.cursor() as cursor:
            cursor.execute(
                _WRITE,
                {
                    "model": embedder.model_name,
                    "ids": ids,
                    "vectors": [vector_text(vectors[topic_id]) for topic_id in ids],
                    "old": [hashes[topic_id] for topic_id in ids],
                    "new": [text_hash(texts[topic_id]) for topic_id in ids],
                },
            )
            yield int(cursor.rowcount)


def foreign_count() -> int:
    """Return how many topics have no vector of the present model. One query, which reads the vector table."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [embedder_get().model_name])
        count: int = cursor.fetchone()[0]
        return count


def _pending(after: uuid.UUID | None, *, foreign: bool, model: str) -> dict[uuid.UUID, str]:
    sql = _PENDING.format(lacking=_FOREIGN if foreign else _WAITING)
    with connection.cursor() as cursor:
        cursor.execute(sql, {"after": after, "limit": TOPICS_PER_STEP, "model": model})
        return dict(cursor.fetchall())


def _embed(embedder: Embedder, texts: Mapping[uuid.UUID, str]) -> dict[uuid.UUID, Vectors]:
    try:
        return dict(zip(texts, embedder.embed_passages(list(texts.values())), strict=True))
    except EmbeddingFailed as problem:
        return _embed_singly(embedder, texts, problem)


def _embed_singly(
    embedder: Embedder, texts: Mapping[uuid.UUID, str], first: EmbeddingFailed
) -> dict[uuid.UUID, Vectors]:
    vectors: dict[uuid.UUID, Vectors] = {}
    refused: list[uuid.UUID] = []
    for topic_id, text in texts.items():
        try:
            vectors[topic_id] = embedder.embed_passages([text])[0]
        except EmbeddingFailed:
            refused.append(topic_id)
            # Without a single success, the endpoint is more likely down than all texts at fault.
            if not vectors and len(refused) >= TRIED_SINGLY:
                raise first from None
    if not vectors:
        raise first
    logger.warning("texts_refused_by_the_embedder", topics=[str(topic_id) for topic_id in refused])
    return vectors


_WIDTH = """
SELECT atttypmod FROM pg_attribute WHERE attrelid = 'memory_topicvector'::regclass AND attname = 'embedding'
"""


def vectors_resize(dimension: int) -> int | None:
    """Make the vector column hold vectors of ``dimension`` numbers; return what it held, or None if nothing changed.

    Vectors of another length cannot be kept: all topics become pending, and the index is created anew, empty.
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
