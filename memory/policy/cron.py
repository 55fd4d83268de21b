"""Cron lines: five fields, in UTC, parsed by the library that the scheduler of the job queue uses."""

import datetime as dt
import re

from croniter import croniter
from croniter.croniter import CroniterError

from memory.core.policy_values import PolicyValueRefused

FIELDS = 5
# The length of the column in the table of the scheduler.
MAX_LENGTH = 100
# The 29th of February is at most 8 years away. A line without a date in this period never fires.
MAX_YEARS = 8
# Random and hashed fields are refused, because the preview and the schedule would have different times.
_RANDOM = re.compile(r"(?<![a-z])[hr](?![a-z])", re.IGNORECASE)


def cron_next(cron: str, *, now: dt.datetime) -> dt.datetime:
    """Return the first time after ``now`` at which ``cron`` fires. Raises ``ValueRefused`` if there is none."""
    if len(cron) > MAX_LENGTH or len(cron.split()) != FIELDS or _RANDOM.search(cron):
        raise PolicyValueRefused(
            f"cron {cron[:MAX_LENGTH]!r} is not valid. Give five values (minute, hour, day, month, weekday), "
            f"together at most {MAX_LENGTH} characters.",
            member="cron",
        )
    try:
        following: dt.datetime = croniter(cron, now, max_years_between_matches=MAX_YEARS).get_next(dt.datetime)
    except CroniterError as problem:
        if croniter.is_valid(cron):
            raise PolicyValueRefused(f"cron {cron!r} never fires: its date does not exist.", member="cron") from problem
        raise PolicyValueRefused(
            f"cron {cron!r} is not valid. Give five values: minute, hour, day, month and weekday.", member="cron"
        ) from problem
    return following


def cron_check(cron: str) -> None:
    """Raise ``ValueRefused`` if ``cron`` is malformed or never fires."""
    # Any time can be used, because the result does not depend on it.
    cron_next(cron, now=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
