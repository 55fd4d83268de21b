"""Finds similar topics by vector and title: in a small scope by a full scan, in a large one by the vector index."""

import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import connection

from memory.embedding.base import Vectors
from memory.ingest.bulk import vector_text
from memory.stores.citus import settings_set

# A topic is paired with at most this number of similar topics. In a larger cluster, each member is paired with the
# topics nearest to it.
NEAREST = 8
# A title that more topics share, such as "note", says nothing about their similarity.
TITLE_SHARED_AT_MOST = 6
# pgvector's ef_search for a large scope; measured in tests/benchmarks/test_duplicates.py.
EF_SEARCH = 80

_SIZE_SQL = "SELECT count(*) FROM (SELECT 1 FROM memory_topicvector WHERE scope_id = %s AND live LIMIT %s) x"
_SETTINGS = {"hnsw.iterative_scan": "strict_order", "hnsw.max_scan_tuples": "20000", "hnsw.ef_search": str(EF_SEARCH)}
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
WHERE own.id = ANY(%(ids)s) AND other.times <= %(most)s AND trim(own.title) <> ''
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
    """Return the pairs of similar topics in which the id of at least one topic is in ``ids``. The topics with these ids
    must be in the scope ``scope_id``. Two topics are similar if they have the same title or a cosine of at least
    ``above``; unless ``any_kind``, they must also have the same kind. At most four queries. Needs a transaction,
    because it may set options of the vector index."""
    found: dict[tuple[uuid.UUID, uuid.UUID], NearPair] = {}
    with connection.cursor() as cursor:
        exact = _exact(scope_id, exact_below)
        parameters: dict[str, Any] = {
            "ids": list(ids),
            "scope": scope_id,
            "nearest": NEAREST,
            "above": above,
            "any_kind": any_kind,
            "most": TITLE_SHARED_AT_MOST,
        }
        for sql, same_title in ((_NEAR_SQL.format(exact=exact), False), (_TITLES_SQL, True)):
            cursor.execute(sql, parameters)
            for own, other, cosine in cursor.fetchall():
                one, two = sorted((own, other))
                found[one, two] = NearPair(one, two, None if cosine is None else float(cosine), same_title)
    return sorted(found.values(), key=lambda pair: (pair.one, pair.other))


def texts_near(
    vectors: Vectors, *, scope_id: int, kind: str, model: str, exact_below: int, above: float
) -> dict[int, list[tuple[uuid.UUID, float]]]:
    """Return the most similar live topics of the scope and kind for each row of ``vectors``. The keys are the indexes
    of the rows. Each value lists ids of topics with their cosines, the most similar first. Two queries, three in a
    large scope."""
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
    """Return the suffix of an ORDER BY that forces an exact scan, if the scope is small. If it is large, set the
    options of the vector index and return an empty text."""
    with connection.cursor() as cursor:
        cursor.execute(_SIZE_SQL, [scope_id, exact_below + 1])
        small = int(cursor.fetchone()[0]) <= exact_below
    if not small:
        settings_set(_SETTINGS)
    return " + 0" if small else ""
