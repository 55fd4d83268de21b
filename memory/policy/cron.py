"""Cron lines: five fields, in UTC, read by the library that the scheduler of the jobs reads them with."""

import datetime as dt
import re

from croniter import croniter
from croniter.croniter import CroniterError

from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode

FIELDS = 5
# What the column of the scheduler holds.
MAX_LENGTH = 100
# The 29th of February is 8 years away at most; what has no date in that time has none.
MAX_YEARS = 8
# Times drawn by lot or from a hash would be others in the preview than in the schedule.
_DRAWN = re.compile(r"(?<![a-z])[hr](?![a-z])", re.IGNORECASE)


def cron_next(cron: str, *, now: dt.datetime) -> dt.datetime:
    """Return the first moment after ``now`` at which ``cron`` fires. Raises ``ValueRefused``."""
    if len(cron) > MAX_LENGTH or len(cron.split()) != FIELDS or _DRAWN.search(cron):
        raise ValueRefused(
            f"cron must be five fields (minute, hour, day, month, weekday) of at most {MAX_LENGTH} characters; "
            f"{cron[:MAX_LENGTH]!r} is not.",
            code=ProblemCode.INVALID_CRON,
        )
    try:
        return _next(cron, now)
    except CroniterError as problem:
        if croniter.is_valid(cron):
            raise ValueRefused(
                f"cron {cron!r} never fires: there is no such date.", code=ProblemCode.INVALID_CRON
            ) from problem
        raise ValueRefused(
            f"cron {cron!r} cannot be read as minute, hour, day, month, weekday.", code=ProblemCode.INVALID_CRON
        ) from problem


def _next(cron: str, now: dt.datetime) -> dt.datetime:
    found: dt.datetime = croniter(cron, now, max_years_between_matches=MAX_YEARS).get_next(dt.datetime)
    return found


def cron_check(cron: str) -> None:
    """Raise ``ValueRefused`` unless ``cron`` can be read and fires."""
    # Whether a line ever fires does not depend on when it is asked.
    cron_next(cron, now=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
