"""The story's calendar: the days and hours at which things happen.

Day 0 is a Monday. The move is on day 68, the holiday lasts from day 98 to 111, Atlas is launched on day 148.
"""

import random
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final

SPAN: Final = timedelta(days=183)
HOLIDAY: Final = range(98, 112)
LAUNCH: Final = range(133, 157)

_WEEK: Final = (1.05, 1.15, 1.1, 1.05, 0.85, 0.35, 0.45)
_WORK_WEEK: Final = (1.1, 1.2, 1.1, 1.1, 0.9, 0.05, 0.08)
_HOME_WEEK: Final = (1.0, 1.0, 1.0, 1.0, 0.9, 0.65, 0.75)
_WORK_HOURS: Final = {8: 3, 9: 8, 10: 9, 11: 8, 12: 3, 13: 7, 14: 8, 15: 7, 16: 4, 17: 1, 20: 1, 21: 1}
_HOME_HOURS: Final = {6: 1, 7: 6, 8: 4, 10: 2, 12: 4, 15: 2, 16: 4, 17: 7, 18: 6, 19: 5, 20: 8, 21: 6, 22: 2}


def scope_is_work(scope: str) -> bool:
    """Return whether events of this scope happen at work."""
    return scope.startswith(("/project", "/studio"))


@dataclass(frozen=True, slots=True)
class Calendar:
    """The days of a story that ends at `now`."""

    now: datetime

    def __post_init__(self) -> None:
        if self.now.tzinfo is None:
            raise ValueError("now must carry a time zone")

    @property
    def day_zero(self) -> date:
        """The first Monday of the story."""
        first = (self.now - SPAN).date() + timedelta(days=1)
        return first + timedelta(days=-first.weekday() % 7)

    @property
    def last_day(self) -> int:
        """The number of the day of `now`."""
        return (self.now.date() - self.day_zero).days

    def day_weight(self, day: int, *, work: bool | None = None) -> float:
        """Return the weight of this day for events at work (`work` is true), at home (false) or both (None)."""
        week = _WEEK if work is None else _WORK_WEEK if work else _HOME_WEEK
        weight = week[day % 7]
        if day in HOLIDAY:
            weight *= 0.06 if work else 0.3
        if day in LAUNCH and work is not False:
            weight *= 2.4
        return weight

    def day_draw(self, first: int, last: int, *, rng: random.Random, work: bool | None = None) -> int:
        """Return a random day from ``first`` to ``last``, weighted by ``day_weight``."""
        days = range(max(first, 0), max(min(last, self.last_day), 0) + 1)
        return rng.choices(days, [self.day_weight(day, work=work) for day in days])[0]

    def time_draw(self, day: int, *, rng: random.Random, work: bool) -> datetime:
        """Return a random time on this day, in the hours of work or leisure, not later than `now`."""
        hours = _WORK_HOURS if work else _HOME_HOURS
        hour = rng.choices(list(hours), list(hours.values()))[0]
        clock = time(hour, rng.randint(0, 59), rng.randint(0, 59), tzinfo=self.now.tzinfo)
        at = datetime.combine(self.day_zero + timedelta(days=day), clock)
        return at if at < self.now else self.now - timedelta(seconds=rng.randint(60, 7200))
