"""Parses times in the formats of other systems."""

import datetime as dt
import re
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from memory.ingest.items import EARLIEST, LATEST
from memory.transfer.importers.draft import NOTHING, Draft

_NUMBER = re.compile(r"[0-9]{9,20}(?:\.[0-9]+)?")
# The units of a time since 1970, from nanoseconds to seconds: (smallest number that is read in this unit, units per
# second).
_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (1e8, 1.0))


class ParsedTime(NamedTuple):
    """A time, and whether the text contains a time zone. A time without a time zone is read as UTC."""

    at: dt.datetime
    zoned: bool


def time_parse(value: Any) -> ParsedTime | None:
    """Return the time in a JSON value, or None. The value may be ISO 8601, a time since 1970 in a unit of ``_UNITS``,
    or a date as in mail headers. Numbers below 100,000,000 give None, because they are positions in a recording."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    text = (f"{value:.6f}" if isinstance(value, float) else str(value)).strip()[:100]
    try:
        if _NUMBER.fullmatch(text):
            unit = next(unit for least, unit in _UNITS if float(text) >= least)
            at = dt.datetime.fromtimestamp(float(text) / unit, tz=dt.UTC)
        else:
            at = _from_text(re.sub(r" ?(?:UTC|GMT)$", "Z", text))
    except (ValueError, TypeError, IndexError, OverflowError, StopIteration):
        return None
    zoned = at.tzinfo is not None
    at = at if zoned else at.replace(tzinfo=dt.UTC)
    return ParsedTime(at.astimezone(dt.UTC), zoned) if EARLIEST <= at <= LATEST else None


def time_past(draft: Draft, name: str, value: Any, *, now: dt.datetime) -> dt.datetime | None:
    """Return the time in a member, or None if the member is empty, unreadable or after ``now``. Unreadable and future
    times are listed in ``draft.lost``, missing time zones in ``draft.notes``."""
    if value in NOTHING:
        return None
    found = time_parse(value)
    if found is None or found.at > now:
        draft.lose(name, "it is in the future" if found else "it is not a readable time")
        return None
    if not found.zoned:
        draft.note(name, "has no time zone and is taken as UTC")
    return found.at


def _from_text(text: str) -> dt.datetime:
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        return parsedate_to_datetime(text)
