"""How many topics there are on each rung."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memory.core.scopes import ROOT
from memory.models import Rung
from memory.models.statements import rows_by_store, rows_read
from memory.predicates.binding import Bound, scope_sql
from memory.predicates.sql import written_by_sql

# Live topics are counted in Vitality, which is a narrow table. The state of all other topics is only in Topic.
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


def topic_counts(scope: str = ROOT, *, writer: str | None = None) -> TopicCounts:
    """Return the number of topics in each state at or below ``scope``. If ``writer`` is set, count only topics that the
    caller with this name wrote. One query. Does not check permissions."""
    bound = Bound()
    return _counts(dict(rows_read(_statement(scope, bound, writer=writer), bound.values)))


def topic_counts_by_store(names: Sequence[str]) -> dict[str, TopicCounts]:
    """Return the number of topics in each state for each store in ``names``, as a dict by name. One query."""
    found: dict[str, dict[str, int]] = {name: {} for name in names}
    for name, state, times in rows_by_store(_statement(ROOT, Bound()), names):
        found[name][state] = times
    return {name: _counts(counts) for name, counts in found.items()}


def _statement(scope: str, bound: Bound, *, writer: str | None = None) -> str:
    within_v, within_t = (scope_sql(f"{row}.scope_id", scope, bound.bind) for row in "vt")
    if writer is not None:
        within_v += f" AND {written_by_sql('v.topic_id', writer, bound.bind)}"
        within_t += f" AND {written_by_sql('t.id', writer, bound.bind)}"
    return _COUNTS_SQL.format(archived=Rung.ARCHIVED, within_v=within_v, within_t=within_t)


def _counts(counts: Mapping[str, int]) -> TopicCounts:
    rungs = {rung.label: counts.get(str(int(rung)), 0) for rung in Rung}
    rungs[Rung.ARCHIVED.label] = counts.get("archived", 0)
    return TopicCounts(rungs, counts.get("pinned", 0), counts.get("released", 0))
