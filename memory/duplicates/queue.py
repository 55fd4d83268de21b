"""The queue of topics to be compared with their nearest."""

import uuid
from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection

# Scopes per step.
SCOPES_A_STEP = 16

# Scopes have equal shares and a random order, so that a busy scope does not delay the others.
_WAITING_SQL = """
WITH turns AS MATERIALIZED (
    SELECT s.id, s.path, greatest(1, %(limit)s / least(count(*) OVER (), {most_scopes})) AS share
    FROM memory_scope s
    WHERE EXISTS (SELECT FROM memory_duplicatelook l WHERE l.scope_id = s.id AND l.waiting) {within}
    ORDER BY random() LIMIT {most_scopes}
)
SELECT w.topic_id, turns.id, turns.path, w.kind, w.text_hash
FROM turns CROSS JOIN LATERAL (
    SELECT l.topic_id, ov.kind, v.text_hash FROM memory_duplicatelook l
    JOIN memory_topicvector v ON v.topic_id = l.topic_id JOIN memory_vitality ov ON ov.topic_id = l.topic_id
    WHERE l.scope_id = turns.id AND l.waiting AND v.live AND v.model = %(model)s AND v.embedding IS NOT NULL
    ORDER BY l.topic_id LIMIT turns.share
) w
ORDER BY turns.id, w.topic_id
"""


class Waiting(NamedTuple):
    """A topic in the queue."""

    id: uuid.UUID
    scope_id: int
    path: str
    kind: str
    text_hash: str


def read_waiting(*, scope_ids: Sequence[int] | None, model: str, limit: int) -> list[Waiting]:
    """Return queued topics that have a vector, grouped by scope. Each scope has the same share of ``limit``. One
    query."""
    within = "" if scope_ids is None else "AND s.id = ANY(%(scopes)s)"
    with connection.cursor() as cursor:
        cursor.execute(
            _WAITING_SQL.format(within=within, most_scopes=SCOPES_A_STEP),
            {"model": model, "limit": limit, "scopes": list(scope_ids or ())},
        )
        return [Waiting(*row) for row in cursor.fetchall()]
