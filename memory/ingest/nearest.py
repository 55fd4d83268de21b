"""Finds similar topics: by vector within one scope and kind, and by title. Reads only.

A small scope is scanned completely. In a large scope, the vector index is used.
"""

import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import connection

from memory.core.text import UNTITLED
from memory.embedding.base import Vectors
from memory.ingest.bulk import vector_text

# Each topic is paired with at most this number of similar topics. In a larger cluster, each member has other pairs.
NEAREST = 8
# If more topics have one title, the title is a heading, such as "note", and says nothing about likeness.
TITLE_SHARED_AT_MOST = 6
# pgvector's ef_search for a large scope; measured in tests/benchmarks/test_duplicates.py.
EF_SEARCH = 80

_SIZE_SQL = "SELECT count(*) FROM (SELECT 1 FROM memory_topicvector WHERE scope_id = %s AND live LIMIT %s) x"
_SETTINGS_SQL = """
SELECT set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.max_scan_tuples', '20000', true),
       set_config('hnsw.ef_search', %s, true)
"""
# ``exact`` is "+ 0" for a small scope, so that the planner does not use the vector index of the whole store.
_NEAR_SQL = """
SELECT own.topic_id, near.topic_id, near.cosine
FROM memory_topicvector own
JOIN memory_vitality ov ON ov.topic_id = own.topic_id
CROSS JOIN LATERAL (
    SELECT other.topic_id, -(other.embedding <#> own.embedding) AS cosine
    FROM memory_topicvector other
    WHERE other.live AND other.model = own.model AND other.scope_id = %(scope)s AND other.embedding IS NOT NULL
      AND other.topic_id <> own.topic_id
      AND (%(any_kind)s OR EXISTS (
          SELECT 1 FROM memory_vitality v WHERE v.topic_id = other.topic_id AND v.kind = ov.kind
      ))
    ORDER BY (other.embedding <#> own.embedding){exact}
    LIMIT %(nearest)s
) near
WHERE own.topic_id = ANY(%(ids)s) AND near.cosine >= %(above)s
"""
# MATERIALIZED, so that each vector is parsed only once.
_NEAR_VECTORS_SQL = """
WITH q AS MATERIALIZED (
    SELECT u.place, u.said::vector AS vector FROM unnest(%(vectors)s::text[]) WITH ORDINALITY AS u (said, place)
)
SELECT q.place, near.topic_id, near.cosine
FROM q
CROSS JOIN LATERAL (
    SELECT other.topic_id, -(other.embedding <#> q.vector) AS cosine
    FROM memory_topicvector other
    WHERE other.live AND other.model = %(model)s AND other.scope_id = %(scope)s AND other.embedding IS NOT NULL
      AND EXISTS (SELECT 1 FROM memory_vitality v WHERE v.topic_id = other.topic_id AND v.kind = %(kind)s)
    ORDER BY (other.embedding <#> q.vector){exact}
    LIMIT %(nearest)s
) near
WHERE near.cosine >= %(above)s ORDER BY q.place, near.cosine DESC
"""
_TITLES_SQL = """
SELECT own.id, other.id, -(ov.embedding <#> xv.embedding)
FROM memory_topic own
JOIN memory_topicvector ov ON ov.topic_id = own.id
CROSS JOIN LATERAL (
    SELECT t.id, count(*) OVER () AS times
    FROM (
        SELECT t.id FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id
        WHERE t.scope_id = own.scope_id AND md5(lower(t.title)) = md5(lower(own.title)) AND t.id <> own.id
          AND v.live AND (%(any_kind)s OR v.kind = own.kind)
        LIMIT %(most)s + 1
    ) t
) other
LEFT JOIN memory_topicvector xv ON xv.topic_id = other.id AND xv.model = ov.model
WHERE own.id = ANY(%(ids)s) AND other.times <= %(most)s AND lower(trim(own.title)) NOT IN ('', %(untitled)s)
"""


class NearPair(NamedTuple):
    """Two similar topics. ``one`` has the lower id. ``cosine`` is None if a vector is missing."""

    one: uuid.UUID
    other: uuid.UUID
    cosine: float | None
    same_title: bool


def topics_near(
    ids: Sequence[uuid.UUID], *, scope_id: int, exact_below: int, above: float, any_kind: bool = False
) -> list[NearPair]:
    """Return pairs of the topics ``ids`` of one scope with their most similar topics of the same kind, from a cosine of
    ``above``, and with topics of the same title. Four queries. Needs a transaction for the settings of the search."""
    found: dict[tuple[uuid.UUID, uuid.UUID], NearPair] = {}
    with connection.cursor() as cursor:
        exact = _exact(scope_id, exact_below)
        parameters: dict[str, Any] = {
            "ids": list(ids),
            "scope": scope_id,
            "nearest": NEAREST,
            "above": above,
            "any_kind": any_kind,
        }
        cursor.execute(_NEAR_SQL.format(exact=exact), parameters)
        for own, other, cosine in cursor.fetchall():
            one, two = sorted((own, other))
            found[one, two] = NearPair(one, two, float(cosine), same_title=False)
        cursor.execute(_TITLES_SQL, {**parameters, "most": TITLE_SHARED_AT_MOST, "untitled": UNTITLED})
        for own, other, cosine in cursor.fetchall():
            one, two = sorted((own, other))
            found[one, two] = NearPair(one, two, None if cosine is None else float(cosine), same_title=True)
    return sorted(found.values(), key=lambda pair: (pair.one, pair.other))


def texts_near(
    vectors: Vectors, *, scope_id: int, kind: str, model: str, exact_below: int, above: float
) -> dict[int, list[tuple[uuid.UUID, float]]]:
    """Return, by index of the row in ``vectors``, the most similar live topics, most similar first.

    Runs two queries, three in a large scope.
    """
    found: dict[int, list[tuple[uuid.UUID, float]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            _NEAR_VECTORS_SQL.format(exact=_exact(scope_id, exact_below)),
            {
                "vectors": [vector_text(row) for row in vectors],
                "scope": scope_id,
                "kind": kind,
                "model": model,
                "nearest": NEAREST,
                "above": above,
            },
        )
        for place, topic_id, cosine in cursor.fetchall():
            found.setdefault(int(place) - 1, []).append((topic_id, float(cosine)))
    return found


def _exact(scope_id: int, exact_below: int) -> str:
    """Return the suffix for an exact scan of a small scope. For a large scope, set the options of the index."""
    with connection.cursor() as cursor:
        cursor.execute(_SIZE_SQL, [scope_id, exact_below + 1])
        small = int(cursor.fetchone()[0]) <= exact_below
        if not small:
            cursor.execute(_SETTINGS_SQL, [str(EF_SEARCH)])
    return " + 0" if small else ""
