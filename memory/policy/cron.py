"""Cron lines: five fields, in UTC, parsed with the library that the scheduler of the job queue uses."""

import datetime as dt
import re

from croniter import croniter
from croniter.croniter import CroniterError

from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode

FIELDS = 5
# The length of the scheduler's column.
MAX_LENGTH = 100
# The 29th of February is at most 8 years away. A line without a date in that time has none.
MAX_YEARS = 8
# Random and hashed times would differ between the preview and the schedule.
_DRAWN = re.compile(r"(?<![a-z])[hr](?![a-z])", re.IGNORECASE)


def cron_next(cron: str, *, now: dt.datetime) -> dt.datetime:
    """Return the first time after ``now`` at which ``cron`` fires. Raises ``ValueRefused`` if it is malformed."""
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
                f"cron {cron!r} never fires: its date does not exist.", code=ProblemCode.INVALID_CRON
            ) from problem
        raise ValueRefused(
            f"cron {cron!r} is not a valid minute, hour, day, month and weekday.", code=ProblemCode.INVALID_CRON
        ) from problem


def _next(cron: str, now: dt.datetime) -> dt.datetime:
    found: dt.datetime = croniter(cron, now, max_years_between_matches=MAX_YEARS).get_next(dt.datetime)
    return found


def cron_check(cron: str) -> None:
    """Raise ``ValueRefused`` unless ``cron`` can be read and fires."""
    # Whether a line ever fires does not depend on the present time.
    cron_next(cron, now=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
