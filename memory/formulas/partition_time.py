"""Partition time: wall time without the idle days of a partition. Pure Python.

A day in UTC without a query or a write is idle; other days are active. The partition time stops at the midnight after
an active day and continues when the next active day begins. ``memory/models/formulas_sql.py`` has these formulas in
SQL.
"""

import bisect
import dataclasses
import datetime as dt
import itertools
import math
from dataclasses import dataclass, field

import numpy as np

from memory.formulas.salience import SECONDS_PER_DAY, Numbers


@dataclass(frozen=True, slots=True)
class PartitionTime:
    """The active and the idle time of a partition. Times are epochs in seconds.

    ``active_until`` is the midnight after the last active day. ``idle_spans`` is a flat sequence of the start and the
    end of each idle period before ``active_until``. By default, every day is active. If ``wall`` is true, idle days
    count too.
    """

    active_until: float = math.inf
    idle_spans: tuple[float, ...] = ()
    wall: bool = False
    # The idle seconds before each entry of ``idle_spans``.
    _totals: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        steps = itertools.pairwise(self.idle_spans)
        lengths = (end - start if index % 2 == 0 else 0.0 for index, (start, end) in enumerate(steps))
        object.__setattr__(self, "_totals", tuple(itertools.accumulate(lengths, initial=0.0)))

    def idle(self, at: Numbers) -> Numbers:
        """Return the idle seconds before ``at``. The result never decreases with ``at``. Also works on arrays."""
        if isinstance(at, float):
            count = bisect.bisect_right(self.idle_spans, at)
            within = at - self.idle_spans[count - 1] if count % 2 else 0.0
            return (self._totals[count - 1] if count else 0.0) + within + max(0.0, at - self.active_until)
        before = np.interp(at, self.idle_spans, self._totals) if self.idle_spans else 0.0
        return before + np.maximum(0.0, at - self.active_until)

    def skipped(self, idle_before: Numbers, now: Numbers) -> Numbers:
        """Return the idle seconds between a use and ``now``; 0 if ``wall`` is true. ``idle_before`` are the idle
        seconds before the use."""
        return 0.0 if self.wall else self.idle(now) - idle_before

    def counted(self, at: Numbers, idle: Numbers | None = None) -> Numbers:
        """Return ``at`` minus the idle seconds before ``at``. This is the time scale of the fade key. If ``wall`` is
        true, return ``at`` itself. ``idle`` has the idle seconds before ``at``; if it is None, they are computed."""
        return at if self.wall else at - (self.idle(at) if idle is None else idle)

    def active_at(self, now: dt.datetime) -> "PartitionTime":
        """Return the partition time after a query or write at ``now``."""
        today = midnight(now)
        if now.timestamp() < self.active_until < math.inf:
            return self
        if self.active_until == math.inf:
            return dataclasses.replace(self, active_until=today + SECONDS_PER_DAY)
        spans = self.idle_spans if self.active_until == today else (*self.idle_spans, self.active_until, today)
        return dataclasses.replace(self, active_until=today + SECONDS_PER_DAY, idle_spans=spans)

    def active_from(self, now: dt.datetime) -> "PartitionTime":
        """Return the partition time under the assumption that the day of ``now`` and all later days are active."""
        return dataclasses.replace(self, active_until=math.inf, idle_spans=self.active_at(now).idle_spans)


EVERY_DAY = PartitionTime()


def midnight(now: dt.datetime) -> float:
    """Return the epoch of the start of the UTC day of ``now``."""
    return now.timestamp() // SECONDS_PER_DAY * SECONDS_PER_DAY
