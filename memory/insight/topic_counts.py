"""How many topics there are on each rung."""

from dataclasses import dataclass, field

from django.db import connection

from memory.core.scopes import ROOT
from memory.models import Rung
from memory.predicates.binding import Bound, scope_sql

# Live topics are counted in Vitality, which is a narrow table. The state of all other topics is only in their own rows.
_COUNTS_SQL = """
SELECT v.rung::text, count(*) FROM memory_vitality v WHERE v.live AND {within_v} GROUP BY 1
UNION ALL
SELECT CASE WHEN t.released_at IS NULL THEN 'archived' ELSE 'released' END, count(*) FROM memory_topic t
WHERE t.merged_into_id IS NULL AND (t.released_at IS NOT NULL OR t.rung = {archived:d}) AND {within_t} GROUP BY 1
UNION ALL
SELECT 'pinned', count(*) FROM memory_vitality v JOIN memory_topic t ON t.id = v.topic_id
WHERE v.pinned AND t.merged_into_id IS NULL AND t.released_at IS NULL AND {within_t}
"""


@dataclass(frozen=True, slots=True)
class TopicCounts:
    """The number of topics on each rung, by the label of the rung, and the numbers of pinned and of released topics."""

    rungs: dict[str, int] = field(default_factory=dict)
    pinned: int = 0
    released: int = 0

    @property
    def live(self) -> int:
        """The number of topics that queries return."""
        return sum(count for name, count in self.rungs.items() if name != Rung.ARCHIVED.label)

    @property
    def total(self) -> int:
        """The number of all topics except merged ones."""
        return sum(self.rungs.values()) + self.released


def topic_counts(scope: str = ROOT) -> TopicCounts:
    """Return the number of topics in each state at or below ``scope``. One query. The function does not check whether
    the caller may see the scope."""
    bound = Bound()
    statement = _COUNTS_SQL.format(
        archived=Rung.ARCHIVED,
        within_v=scope_sql("v.scope_id", scope, bound.bind),
        within_t=scope_sql("t.scope_id", scope, bound.bind),
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, bound.values)
        counts: dict[str, int] = dict(cursor.fetchall())
    rungs = {rung.label: counts.get(str(int(rung)), 0) for rung in Rung}
    rungs[Rung.ARCHIVED.label] = counts.get("archived", 0)
    return TopicCounts(rungs, counts.get("pinned", 0), counts.get("released", 0))
