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
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return _from_number(float(value) if abs(value) < 1e20 else 0.0)
    if not isinstance(value, str):
        return None
    text = value.strip()[:100]
    if _NUMBER.fullmatch(text):
        return _from_number(float(text))
    return _from_text(text)


def time_past(draft: Draft, name: str, value: Any, *, now: dt.datetime) -> dt.datetime | None:
    """Return the time in a member, or None if the member is empty, unreadable or after ``now``. Unreadable and future
    times are listed in ``draft.lost``, missing time zones in ``draft.notes``."""
    if value in NOTHING:
        return None
    found = time_parse(value)
    if found is None or found.at > now:
        draft.lost.append((name, "it is in the future" if found else "it is not a readable time"))
        return None
    if not found.zoned:
        draft.notes.append((name, "has no time zone and is taken as UTC"))
    return found.at


def _from_number(number: float) -> ParsedTime | None:
    for least, unit in _UNITS:
        if number >= least:
            return _bounded(dt.datetime.fromtimestamp(number / unit, tz=dt.UTC), zoned=True)
    return None


def _from_text(text: str) -> ParsedTime | None:
    text = re.sub(r" ?(?:UTC|GMT)$", "Z", text)
    for parse in (dt.datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = parse(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        if found.tzinfo is None:
            return _bounded(found.replace(tzinfo=dt.UTC), zoned=False)
        return _bounded(found, zoned=True)
    return None


def _bounded(at: dt.datetime, *, zoned: bool) -> ParsedTime | None:
    return ParsedTime(at.astimezone(dt.UTC), zoned) if EARLIEST <= at <= LATEST else None
