"""Gauges: how many topics stand where, and how near a place is to the limit from which it forgets."""

from dataclasses import dataclass, field

from django.db import connection

from memory.core.scopes import ROOT
from memory.models import Rung
from memory.policy.snapshot import Policies
from memory.predicates.binding import Bound, scope_sql

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


@dataclass(frozen=True, slots=True)
class SoftLimit:
    """The active topics at one scope and below, and its soft limit: below it, no event and no schedule forgets."""

    scope: str
    active: int
    soft_limit: int
    mode: str

    @property
    def open(self) -> bool:
        """Whether there are enough topics that events and schedules forget."""
        return self.active >= self.soft_limit


def topic_counts() -> TopicCounts:
    """Return how many topics stand where in the whole store. One query, which reads the narrow table once."""
    with connection.cursor() as cursor:
        cursor.execute(_STANDING)
        counts: dict[str, int] = dict(cursor.fetchall())
    rungs = {rung.label: counts.get(str(int(rung)), 0) for rung in Rung}
    rungs[Rung.ARCHIVED.label] = counts.get("archived", 0)
    return TopicCounts(rungs, counts.get("pinned", 0), counts.get("released", 0))


def root_limit(policies: Policies, standing: TopicCounts) -> SoftLimit:
    """Return the gauge of the whole store. No query."""
    knobs = policies.knobs(ROOT)
    return SoftLimit(ROOT, standing.rungs[Rung.ACTIVE.label], knobs.topic_count_soft_limit, knobs.mode)


def limits_below(policies: Policies, *, most: int) -> list[SoftLimit]:
    """Return the gauges of the scopes with a policy of their own, the root apart, by path, at most ``most``. One query,
    none if there are none."""
    nodes = [node for node in policies.nodes(ROOT) if node.scope != ROOT][:most]
    if not nodes:
        return []
    bound = Bound()
    counts = " UNION ALL ".join(
        f"SELECT {place}, count(*) FROM memory_vitality v WHERE v.live AND v.rung = {Rung.ACTIVE:d} "
        f"AND {scope_sql('v.scope_id', node.scope, bound.bind)}"
        for place, node in enumerate(nodes)
    )
    with connection.cursor() as cursor:
        cursor.execute(counts, bound.values)
        active: dict[int, int] = dict(cursor.fetchall())
    return [
        SoftLimit(node.scope, active[place], node.knobs.topic_count_soft_limit, node.knobs.mode)
        for place, node in enumerate(nodes)
    ]
