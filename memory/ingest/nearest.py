"""Finds the topics near others: by vector within one scope and kind, and by title. Reads only.

A small scope is scanned exactly; in a large one the vector index answers. All pairs are never compared.
"""

import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import connection

from memory.core.text import UNTITLED
from memory.embedding.base import Vectors
from memory.ingest.bulk import vector_text

# So many of the nearest are compared. In a larger cluster, each member finds others.
NEAREST = 8
# A title that more topics share is a heading, such as "note", and no sign of likeness.
TITLE_SHARED_AT_MOST = 6
# pgvector's ef_search for a large scope; measured in tests/benchmarks/test_duplicates.py.
EF_SEARCH = 80

_SIZE_SQL = "SELECT count(*) FROM (SELECT 1 FROM memory_topicvector WHERE scope_id = %s AND live LIMIT %s) x"
_SETTINGS_SQL = """
SELECT set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.max_scan_tuples', '20000', true),
       set_config('hnsw.ef_search', %s, true)
"""
# The "+ 0" keeps the planner from walking the vector index of the whole store for a handful of rows.
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
# MATERIALIZED: each vector is parsed once, not for every comparison.
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
    """Two topics that are near each other: ``one`` has the lower id. No cosine where a vector is missing."""

    one: uuid.UUID
    other: uuid.UUID
    cosine: float | None
    same_title: bool


def topics_near(
    ids: Sequence[uuid.UUID], *, scope_id: int, exact_below: int, above: float, any_kind: bool = False
) -> list[NearPair]:
    """Return the pairs that topics of one scope make with their nearest of the same kind, from a cosine of ``above``,
    and with those of the same title. Four queries, in a transaction for the settings of the search."""
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
    return sorted(found.values(), key=lambda near: (near.one, near.other))


def texts_near(
    vectors: Vectors, *, scope_id: int, kind: str, model: str, exact_below: int, above: float
) -> dict[int, list[tuple[uuid.UUID, float]]]:
    """Return for each row of ``vectors``, by its place from 0, the nearest live topics, nearest first.

    Two queries, three in a large scope.
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
    with connection.cursor() as cursor:
        cursor.execute(_SIZE_SQL, [scope_id, exact_below + 1])
        small = int(cursor.fetchone()[0]) <= exact_below
        if not small:
            cursor.execute(_SETTINGS_SQL, [str(EF_SEARCH)])
    return " + 0" if small else ""
