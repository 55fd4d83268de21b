"""Finds sources, the texts from which facts were extracted. A purge of a fact erases its whole source, because the
words of the source may differ from those of the fact ("She has it since May"). Other facts from the source stay."""

import json
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from django.db.backends.utils import CursorWrapper

from memory.erasure.erased_text import parts_of
from memory.erasure.redact_text import Eraser, Passage, Weight, passage_of, passage_weight
from memory.extraction.store import EDGE, SOURCE_FIELD, SOURCE_KIND, TEXT_FIELD, source_id_of
from memory.text.names import words_index

# For each text, at most this number of topics that contain all its words are checked.
MAX_SAYING = 10_000

_FACT_TEXTS_SQL = """
SELECT t.title FROM memory_topic t WHERE t.id = ANY(%(ids)s) AND t.kind <> %(kind)s
UNION SELECT r.value FROM memory_topic t JOIN memory_field f ON f.topic_id = t.id JOIN memory_revision r
    ON r.field_id = f.id WHERE t.id = ANY(%(ids)s) AND t.kind <> %(kind)s
"""
# A source is found by a link to it, by a field that refers to it, or because it contains all words of a text.
_SOURCES_SQL = """
WITH facts AS (
    SELECT id, scope_id FROM memory_topic WHERE id = ANY(%(ids)s)
), linked AS (
    SELECT l.target_id AS id FROM memory_link l WHERE l.source_id = ANY(%(ids)s) AND l.kind = %(edge)s
    UNION
    SELECT r.ref_topic_id FROM memory_field f JOIN memory_revision r ON r.field_id = f.id
    WHERE f.topic_id = ANY(%(ids)s) AND f.name = %(reference)s
), saying AS (
    -- One lookup for each text, so that the index is used.
    SELECT m.topic_id AS id FROM jsonb_array_elements(%(words)s::jsonb) AS d (words)
    CROSS JOIN LATERAL (
        SELECT topic_id FROM memory_topicmention
        WHERE words @> ARRAY(SELECT jsonb_array_elements_text(d.words)) LIMIT %(most)s
    ) m
)
SELECT t.id, s.path, string_agg(r.value, '' ORDER BY length(f.name), f.name), t.id IN (SELECT id FROM linked)
FROM memory_topic t JOIN memory_scope s ON s.id = t.scope_id
-- A long text is several fields.
JOIN memory_field f ON f.topic_id = t.id AND f.name ^@ %(text)s
JOIN memory_revision r ON r.field_id = f.id AND r.seq = 1
WHERE t.id IN (SELECT id FROM linked UNION SELECT id FROM saying) AND t.kind = %(kind)s
  AND t.scope_id IN (SELECT scope_id FROM facts) AND t.id <> ALL(%(ids)s)
GROUP BY t.id, s.path
"""


def sources_of(cursor: CursorWrapper, ids: Sequence[uuid.UUID]) -> list[uuid.UUID]:
    """Return the sources of the topics ``ids``, and other sources in their scopes that contain a text of one of these
    topics. Two statements.

    Extraction derives the id of a source from its text. Only topics with such an id count as sources, so that users
    cannot cause the purge of a topic by adding a link.
    """
    parameters: dict[str, Any] = {
        "ids": list(ids),
        "kind": SOURCE_KIND,
        "edge": EDGE,
        "reference": SOURCE_FIELD,
        "text": TEXT_FIELD,
        "most": MAX_SAYING,
    }
    cursor.execute(_FACT_TEXTS_SQL, parameters)
    passages = _long_passages(row[0] for row in cursor.fetchall())
    words = [sorted(words_index(" ".join(passage))) for passage in passages]
    cursor.execute(_SOURCES_SQL, {**parameters, "words": json.dumps([each for each in words if each])})
    eraser = Eraser(passages=passages)
    return sorted(
        {
            topic_id
            for topic_id, scope, text, linked in cursor.fetchall()
            if source_id_of(text, scope=scope) == topic_id and (linked or eraser.masked(text) is not text)
        }
    )


def _long_passages(texts: Iterable[str]) -> set[Passage]:
    passages = {passage for text in texts for passage in (passage_of(text), *parts_of(text))}
    return {passage for passage in passages if passage_weight(passage) is Weight.LONG}
