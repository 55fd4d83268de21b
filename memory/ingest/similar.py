"""Topics that an ingested one resembles, for agents that would rather extend than repeat."""

import uuid
from collections.abc import Sequence

from django.db import connection

MOST = 5

_SIMILAR = """
SELECT own.topic_id, near.topic_id, near.cosine
FROM memory_topicvector own
CROSS JOIN LATERAL (
    SELECT other.topic_id, -(other.embedding <#> own.embedding) AS cosine
    FROM memory_topicvector other
    WHERE other.live AND other.model = own.model AND other.scope_id = own.scope_id
    ORDER BY other.embedding <#> own.embedding
    LIMIT %(most)s + 1
) near
WHERE own.topic_id = ANY(%(ids)s) AND near.topic_id <> own.topic_id AND near.cosine >= %(above)s
UNION ALL
SELECT own.id, other.id, 1
FROM memory_topic own
JOIN memory_topic other ON other.scope_id = own.scope_id AND md5(lower(other.title)) = md5(lower(own.title))
JOIN memory_vitality v ON v.topic_id = other.id AND v.live
WHERE own.id = ANY(%(ids)s) AND other.id <> own.id AND own.title <> 'untitled'
ORDER BY 3 DESC, 2
"""


def similar_find(ids: Sequence[uuid.UUID], *, above: float) -> dict[uuid.UUID, list[uuid.UUID]]:
    """Return, for each topic, live topics of its scope with the same title or a cosine of at least ``above``.

    Those with the same title come first, then the nearest.

    Two queries (the settings of the index scan, and the search). Topics that resemble none are left out.
    """
    found: dict[uuid.UUID, list[uuid.UUID]] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('hnsw.iterative_scan', 'strict_order', true), "
            "set_config('hnsw.max_scan_tuples', '200000', true)"
        )
        cursor.execute(_SIMILAR, {"ids": list(ids), "most": MOST, "above": above})
        for topic_id, other, _cosine in cursor.fetchall():
            others = found.setdefault(topic_id, [])
            if other not in others:
                others.append(other)
    return {topic_id: others[:MOST] for topic_id, others in found.items()}
