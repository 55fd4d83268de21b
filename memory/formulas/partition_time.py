"""The time of a partition: wall time without idle days, which had neither a query nor a write. Pure Python.

Days are UTC. The time stops after the last active day and continues with the next query or write; the days between are
idle. ``memory/models/expressions.py`` has the same as SQL.
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
    """Epochs in seconds: the midnight after the last active day, and start and end of each idle stretch before it.

    Without arguments, every day is active. With ``wall``, idle days count too.
    """

    active_until: float = math.inf
    idle_spans: tuple[float, ...] = ()
    wall: bool = False
    # The idle seconds before each start and end of the spans.
    _totals: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        steps = itertools.pairwise(self.idle_spans)
        lengths = (end - start if place % 2 == 0 else 0.0 for place, (start, end) in enumerate(steps))
        object.__setattr__(self, "_totals", tuple(itertools.accumulate(lengths, initial=0.0)))

    def idle(self, at: Numbers) -> Numbers:
        """Return the seconds of idle days before ``at``, also for arrays. The result never decreases with ``at``."""
        if isinstance(at, float):
            place = bisect.bisect_right(self.idle_spans, at)
            within = at - self.idle_spans[place - 1] if place % 2 else 0.0
            return (self._totals[place - 1] if place else 0.0) + within + max(0.0, at - self.active_until)
        before = np.interp(at, self.idle_spans, self._totals) if self.idle_spans else 0.0
        return before + np.maximum(0.0, at - self.active_until)

    def skipped(self, idle_before: Numbers, now: Numbers) -> Numbers:
        """Return the idle seconds until ``now`` since the time with ``idle_before`` idle seconds; 0 for wall time."""
        return 0.0 if self.wall else self.idle(now) - idle_before

    def counted(self, at: Numbers, idle: Numbers | None = None) -> Numbers:
        """Return ``at`` as the fade key counts it; ``idle`` are the idle seconds before, if they are known."""
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
        """Return the partition time if every day from that of ``now`` on is active, as projections assume."""
        return dataclasses.replace(self, active_until=math.inf, idle_spans=self.active_at(now).idle_spans)


EVERY_DAY = PartitionTime()


def midnight(now: dt.datetime) -> float:
    """Return the epoch of the start of the UTC day of ``now``."""
    return now.timestamp() // SECONDS_PER_DAY * SECONDS_PER_DAY
