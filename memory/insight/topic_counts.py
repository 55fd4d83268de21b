"""How many topics there are on each rung of the whole store."""

from dataclasses import dataclass, field

from django.db import connection

from memory.models import Rung

# The live ones are told by the narrow table; of those that left retrieval, the topic knows why.
_STANDING = f"""
SELECT v.rung::text, count(*) FROM memory_vitality v WHERE v.live GROUP BY 1
UNION ALL
SELECT CASE WHEN t.released_at IS NULL THEN 'archived' ELSE 'released' END, count(*) FROM memory_topic t
WHERE t.merged_into_id IS NULL AND (t.released_at IS NOT NULL OR t.rung = {Rung.ARCHIVED:d}) GROUP BY 1
UNION ALL
SELECT 'pinned', count(*) FROM memory_vitality v JOIN memory_topic t ON t.id = v.topic_id
WHERE v.pinned AND t.merged_into_id IS NULL AND t.released_at IS NULL
"""


@dataclass(frozen=True, slots=True)
class TopicCounts:
    """How many topics stand on each rung, by its label; how many of those are pinned; and how many were released."""

    rungs: dict[str, int] = field(default_factory=dict)
    pinned: int = 0
    released: int = 0

    @property
    def total(self) -> int:
        """All topics but those that were merged into others."""
        return sum(self.rungs.values()) + self.released


def topic_counts() -> TopicCounts:
    """Return how many topics stand where in the whole store. One query, which reads the narrow table once."""
    with connection.cursor() as cursor:
        cursor.execute(_STANDING)
        counts: dict[str, int] = dict(cursor.fetchall())
    rungs = {rung.label: counts.get(str(int(rung)), 0) for rung in Rung}
    rungs[Rung.ARCHIVED.label] = counts.get("archived", 0)
    return TopicCounts(rungs, counts.get("pinned", 0), counts.get("released", 0))
