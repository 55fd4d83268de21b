"""Embeds topics that have no vector of the present model, for example after ``?defer=1``. The worker and the command
``reembed`` use this module."""

import contextlib
import time
import uuid
from collections.abc import Iterator
from typing import Any

import structlog
from django.db import connection, transaction

from memory.embedding import Embedder, EmbeddingFailed, embedder_get, text_hash
from memory.embedding.base import Vectors
from memory.ingest.bulk import vector_text
from memory.ingest.load import known_load
from memory.models.statements import rows_read

logger = structlog.get_logger(__name__)

TOPICS_PER_STEP = 64
# Seconds between two commits of vectors, so that a killed worker loses little and makes progress.
COMMIT_SECONDS = 5.0
# The first call of a step embeds this number of texts, because their cost is unknown. The number doubles after each
# call that takes less than ``QUICK_SECONDS``.
TEXTS_AT_FIRST, QUICK_SECONDS = 8, 1.0
# If the first texts of a step all fail, and there are at least this many, the embedder is assumed to be down.
TRIED_SINGLY = TEXTS_AT_FIRST

# Takes one topic of each scope in turn, so that no scope delays the others. Skips topics that failed earlier.
_WAITING_SQL = """
SELECT topic_id, text_hash FROM (
    SELECT topic_id, text_hash, row_number() OVER (PARTITION BY scope_id ORDER BY topic_id) AS turn
    FROM memory_topicvector WHERE embedding IS NULL AND topic_id <> ALL(%(tried)s::uuid[])
) waiting
ORDER BY turn, topic_id LIMIT %(limit)s
"""
# Every topic may be pending, so the topics are read in the order of their ids.
_OTHER_MODELS_SQL = """
SELECT topic_id, text_hash FROM memory_topicvector
WHERE (embedding IS NULL OR model <> %(model)s) AND (%(after)s::uuid IS NULL OR topic_id > %(after)s::uuid)
ORDER BY topic_id LIMIT %(limit)s
"""

# A topic with a newer text has another hash and stays pending. A locked topic also stays pending, because waiting for
# two writers could deadlock. The old vector stays until it is replaced.
_WRITE_SQL = """
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
RETURNING v.topic_id
"""

_COUNT_SQL = "SELECT count(*) FROM memory_topicvector WHERE embedding IS NULL OR model <> %s"


def vectors_fill(*, other_models: bool = False) -> Iterator[int]:
    """Embed pending topics; with ``other_models``, also topics with a vector of another model. Yield the number of
    vectors of each commit, about every ``COMMIT_SECONDS``. Four queries for ``TOPICS_PER_STEP`` topics, and one for
    each commit. The function may be stopped, repeated, and run by several processes at once. A text that the embedder
    refuses is skipped and logged. Raises ``EmbeddingFailed`` if the embedder refuses every text of the first step, or,
    with ``other_models``, of any step."""
    after: uuid.UUID | None = None
    tried: list[uuid.UUID] = []
    any_written = False
    while True:
        if other_models:
            hashes = _rows(_OTHER_MODELS_SQL, {"after": after, "model": embedder_get().model_name})
        else:
            hashes = _rows(_WAITING_SQL, {"tried": tried})
        if not hashes:
            return
        # The model is loaded only if topics are pending. Upkeep calls this function each minute, and an idle worker
        # should not load the model.
        embedder = embedder_get()
        after = max(hashes)
        known = known_load(changed=hashes, read=[], lock=False)
        # Topics may be purged meanwhile.
        texts = {topic_id: known.topics[topic_id].text().embedded() for topic_id in hashes if topic_id in known.topics}
        written: set[uuid.UUID] = set()
        try:
            for vectors in _embedded(embedder, texts):
                done = _write(vectors, hashes, texts, model=embedder.model_name)
                written.update(done)
                yield len(done)
        except EmbeddingFailed:
            if other_models or not any_written:
                raise
            # The embedder works, so only refused texts are left. The next run tries them again.
            logger.warning("texts_refused_by_the_embedder", topics=[str(topic_id) for topic_id in texts])
            return
        any_written = any_written or bool(written)
        tried += hashes.keys() - written


def _write(
    vectors: dict[uuid.UUID, Vectors], hashes: dict[uuid.UUID, str], texts: dict[uuid.UUID, str], *, model: str
) -> list[uuid.UUID]:
    ids = list(vectors)
    with connection.cursor() as cursor:
        cursor.execute(
            _WRITE_SQL,
            {
                "model": model,
                "ids": ids,
                "vectors": [vector_text(vectors[topic_id]) for topic_id in ids],
                "old": [hashes[topic_id] for topic_id in ids],
                "new": [text_hash(texts[topic_id]) for topic_id in ids],
            },
        )
        return [topic_id for (topic_id,) in cursor.fetchall()]


def vectors_missing_count() -> int:
    """Return the number of topics without a vector of the present model. One query, which reads the vector table."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_SQL, [embedder_get().model_name])
        count: int = cursor.fetchone()[0]
        return count


def _rows(sql: str, wanted: dict[str, Any]) -> dict[uuid.UUID, str]:
    return dict(rows_read(sql, {"limit": TOPICS_PER_STEP, **wanted}))


def _embedded(embedder: Embedder, texts: dict[uuid.UUID, str]) -> Iterator[dict[uuid.UUID, Vectors]]:
    """Yield the vectors of a step, in one part for each commit. Raises ``EmbeddingFailed`` if the embedder is assumed
    to be down."""
    ids, at, count = list(texts), 0, TEXTS_AT_FIRST
    ready: dict[uuid.UUID, Vectors] = {}
    refused: list[uuid.UUID] = []
    since = time.monotonic()
    while at < len(ids):
        began = time.monotonic()
        part = {topic_id: texts[topic_id] for topic_id in ids[at : at + count]}
        at += len(part)
        try:
            ready.update(zip(part, embedder.embed_passages(list(part.values())), strict=True))
        except EmbeddingFailed as problem:
            made = _embedded_singly(embedder, part)
            refused += part.keys() - made.keys()
            ready.update(made)
            # If no text has succeeded, the endpoint is probably down.
            if len(refused) == at and (at >= TRIED_SINGLY or at == len(ids)):
                raise problem from None
        now = time.monotonic()
        count = count * 2 if now - began < QUICK_SECONDS else TEXTS_AT_FIRST
        if now - since >= COMMIT_SECONDS and ready:
            yield ready
            ready, since = {}, time.monotonic()
    if ready:
        yield ready
    if refused:
        logger.warning("texts_refused_by_the_embedder", topics=[str(topic_id) for topic_id in refused])


def _embedded_singly(embedder: Embedder, texts: dict[uuid.UUID, str]) -> dict[uuid.UUID, Vectors]:
    vectors: dict[uuid.UUID, Vectors] = {}
    for topic_id, text in texts.items():
        with contextlib.suppress(EmbeddingFailed):
            vectors[topic_id] = embedder.embed_passages([text])[0]
    return vectors


_WIDTH_SQL = """
SELECT atttypmod FROM pg_attribute WHERE attrelid = 'memory_topicvector'::regclass AND attname = 'embedding'
"""


def vectors_resize(dimension: int) -> int | None:
    """Change the length of vectors in the database. Return the former length, or None if the length was the same. After
    a change, all topics are pending."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_WIDTH_SQL)
        former: int = cursor.fetchone()[0]
        if former == dimension:
            return None
        cursor.execute("SELECT pg_get_indexdef('topicvector_hnsw'::regclass)")
        definition = cursor.fetchone()[0]
        cursor.execute("DROP INDEX topicvector_hnsw")
        cursor.execute(f"ALTER TABLE memory_topicvector ALTER embedding TYPE vector({dimension:d}) USING NULL")
        cursor.execute(definition)
    return former
