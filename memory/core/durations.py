"""Lengths of time as people write them: ``30d``, ``2w``, ``6m``, ``1y``, ``24h``."""

import re

from memory.core.errors import ValueRefused

SECONDS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400, "m": 30 * 86_400, "y": 365 * 86_400}
WORDS = {"s": "second", "min": "minute", "h": "hour", "d": "day", "w": "week", "m": "month", "y": "year"}

# A thousand years. The present date minus this is still a valid date.
MAX_SECONDS = 1_000 * SECONDS["y"]

_WRITTEN = re.compile(r"([0-9]{1,12})\s*(s|min|h|d|w|m|y)", re.ASCII)

# The units of ``duration_words``, without months and years, because 30 days are not exactly a month.
_WORD_UNITS = ("d", "h", "min", "s")


def duration_parse(text: str) -> float:
    """Return the seconds of a duration such as ``30d``: a whole number and one of y (365 days), m (30 days), w, d, h,
    min, s. Raises ``ValueRefused`` for other texts and for more than a thousand years."""
    match = _WRITTEN.fullmatch(text.strip().lower()) if len(text) <= 50 else None
    if match is None:
        raise ValueRefused(
            f"{text[:50]!r} is not a duration. Write a number and one of y, m (30 days), w, d, h, min, s: 30d, 24h."
        )
    return seconds_bounded(float(int(match[1]) * SECONDS[match[2]]))


def seconds_bounded(seconds: float) -> float:
    """Return ``seconds`` rounded to microseconds. Raises ``ValueRefused`` below 0 and above a thousand years."""
    if not 0 <= seconds <= MAX_SECONDS:
        raise ValueRefused("A duration lies between 0 and 1000 years.")
    return round(seconds, 6)


def duration_text(seconds: float) -> str | float:
    """Return a duration in its stored form: ``7d``, ``24h`` or ``90min``, or the seconds if no unit divides it."""
    for unit in ("d", "h", "min"):
        if seconds and seconds % SECONDS[unit] == 0:
            return f"{int(seconds // SECONDS[unit])}{unit}"
    return seconds


def duration_words(seconds: float) -> str:
    """Return a duration in words: ``7 days``, ``1 hour``, ``90 minutes``, ``0.5 seconds``."""
    for unit in _WORD_UNITS:
        if seconds and seconds % SECONDS[unit] == 0:
            return _counted(seconds / SECONDS[unit], WORDS[unit])
    return _counted(seconds, "second")


def _counted(number: float, word: str) -> str:
    return f"{number:.15g} {word}{'' if number == 1 else 's'}"
