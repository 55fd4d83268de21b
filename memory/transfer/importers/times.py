"""Moments as other systems write them."""

import datetime as dt
import re
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from memory.ingest.items import EARLIEST, LATEST
from memory.transfer.importers.draft import NOTHING, Draft

_NUMBER = re.compile(r"[0-9]{9,20}(?:\.[0-9]+)?")
# Seconds since 1970, or their thousandths and so on: each unit is told by how large a moment of our time is in it.
_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (1e8, 1.0))


class Moment(NamedTuple):
    """A moment, and whether its zone was said; without one it is taken as UTC."""

    at: dt.datetime
    zoned: bool


def moment_read(value: Any) -> Moment | None:
    """Return the moment that a JSON value stands for: ISO 8601, seconds since 1970 or their fractions, or the dates of
    mail. None for anything else. Numbers below 100,000,000 are no moments but places in a recording."""
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


def moment_past(draft: Draft, name: str, value: Any, *, now: dt.datetime) -> dt.datetime | None:
    """Return the moment that a member stands for; None if it says nothing, or if it is lost, as it cannot be read or
    lies behind ``now``. What becomes of it is told in the draft."""
    if value in NOTHING:
        return None
    found = moment_read(value)
    if found is None or found.at > now:
        draft.lost.append((name, "it lies in the future" if found else "it is no time that can be read"))
        return None
    if not found.zoned:
        draft.told.append((name, "names no zone and is taken as UTC"))
    return found.at


def _from_number(number: float) -> Moment | None:
    for least, unit in _UNITS:
        if number >= least:
            return _bounded(dt.datetime.fromtimestamp(number / unit, tz=dt.UTC), zoned=True)
    return None


def _from_text(text: str) -> Moment | None:
    text = re.sub(r" ?(?:UTC|GMT)$", "Z", text)
    for read in (dt.datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = read(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        if found.tzinfo is None:
            return _bounded(found.replace(tzinfo=dt.UTC), zoned=False)
        return _bounded(found, zoned=True)
    return None


def _bounded(at: dt.datetime, *, zoned: bool) -> Moment | None:
    if not EARLIEST <= at <= LATEST:
        return None
    return Moment(at.astimezone(dt.UTC), zoned)
