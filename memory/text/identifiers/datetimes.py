"""Dates and times of day."""

import calendar
import re
import string
from typing import Final

from memory.text.identifiers.tables import MONTHS
from memory.text.identifiers.view import LETTER, TAKEN, WORD, TextView
from memory.text.lazy_pattern import lazy_pattern

_FRESH: Final = rf"(?<!{WORD})(?<!\w[-./:])(?<![/\\#$€£{TAKEN}])"
_ENDS: Final = r"(?![\w/])(?!-\w)(?![.:]\d)"
_ORDINAL: Final = r"(?:st|nd|rd|th|er|º|ª|°|\.|-го|-е)?"
_OF: Final = r"(?:\s?,?\s?(?:of|de|di|del|do)?\s?|\s?-\s?)"

_ISO: Final = lazy_pattern(
    rf"{_FRESH}(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}})(?![\d/])(?!-\w)(?!\.\d)"
    rf"(?:(?:[Tt]|,? )(\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d{{1,9}})?)?))?"
    rf"(?:\s?(?:[Zz]|UTC|[+-]\d{{2}}:?\d{{2}})(?!\w))?(?!{WORD})"
)
_BASIC: Final = lazy_pattern(rf"{_FRESH}((?:19|20)\d\d)(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)?Z?)?{_ENDS}")
_THREE: Final = lazy_pattern(rf"{_FRESH}(\d{{1,2}})([-/.])\s?(\d{{1,2}})\2\s?(\d{{4}}|\d{{2}}){_ENDS}")
_HAN: Final = lazy_pattern(r"(?<!\d)(?:(\d{4})\s?[年년]\s?)?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日号號일]")
# ``_NAME`` accepts any word as a month; the word is looked up later. The next three patterns begin with a digit.
_NAME: Final = rf"({LETTER}{{3,10}})"
_DAY_MONTH: Final = lazy_pattern(
    rf"\d(?<!{WORD}\d)(?<![/\\$€£.:#{TAKEN}]\d)\d?{_ORDINAL}{_OF}{_NAME}(?!{WORD})\.?"
    rf"(?:(?:\s?,?\s?(?:of\s|de\s|del\s)?|-)(\d{{4}}|'\d{{2}})(?!{WORD}))?",
    re.IGNORECASE,
)
_DAY: Final = lazy_pattern(
    rf"\d(?<=\s\d)\d?(?:st|nd|rd|th)?(?![\w:]|[.,]\d|\s?[ap]\.?m\b)(?:,?\s?(?:of\s)?(\d{{4}})(?!{WORD}))?",
    re.IGNORECASE,
)
_YEAR: Final = lazy_pattern(rf"\d(?<=\s\d)\d{{3}}(?!{WORD})")
_MONTH_BEFORE: Final = lazy_pattern(rf"(?<!{WORD}){_NAME}\.?,?\s(?:the\s|of\s|de\s)?$", re.IGNORECASE)

_CLOCK: Final = lazy_pattern(
    # A time may follow a hyphen: "10:30-11:30".
    rf"(?<!{WORD})(?<![^\W\d][-./:])(?<!\d[./:])(?<![/\\#$€£{TAKEN}])(\d{{1,2}}):(\d{{2}})(?::(\d{{2}})(?:[.,]\d{{1,9}})?)?(?!:?\d)\s?([AaPp]\.?[Mm]\b\.?)?(?!{WORD})"
)
_HOUR: Final = lazy_pattern(
    rf"{_FRESH}(?<![.,]\d)(\d{{1,2}})(?:[.:](\d{{2}}))?\s?(?:([AaPp])\.?[Mm]\b\.?|(o'?clock)\b|(Uhr)(?:\s(\d{{1,2}})(?!\d))?|h(\d{{2}})(?!\w)|\s?(heures)\b)",
    re.IGNORECASE,
)
_NAMED: Final = lazy_pattern(
    rf"(?<!{WORD})(?<!-)(noon|midday|midnight|mitternacht|полдень|полночь)(?!{WORD})(?!-)", re.IGNORECASE
)


def datetimes_find(view: TextView) -> None:
    """Add dates, times of day and datetimes. An ambiguous date such as 03/04/2024 is added twice. Dates with full stops
    have the day first. Two-digit years from 70 on are in the 20th century. Linear time."""
    if view.digits:
        _dates(view)
        for match in view.matches(_CLOCK, likely=":" in view.text and _CLOCKY.search(view.text)):
            hour, minute = _hour(int(match[1]), (match[4] or "")[:1]), int(match[2])
            if hour is not None and minute < 60 and (not match[3] or int(match[3]) < 60):
                _time(view, hour, minute, int(match[3] or 0), match.start(), _end(match))
        for match in view.matches(_HOUR, likely=_HOURLY.search(view.text)):
            minute = int(match[2] or match[6] or match[7] or 0)
            hour = _hour(int(match[1]), match[3] or "")
            if hour is None or minute > 59:
                continue
            _time(view, hour, minute, 0, match.start(), _end(match))
            if match[4] and hour <= 12:
                _time(view, (hour + 12) % 24 if hour < 12 else 0, minute, 0, match.start(), _end(match))
    for match in view.matches(_NAMED, likely=not _TIMES.isdisjoint(view.words)):
        hour = 12 if match[1].casefold() in ("noon", "midday", "полдень") else 0
        _time(view, hour, 0, 0, match.start(), match.end())


# Cheap tests before costly searches.
_CLOCKY: Final = lazy_pattern(r"\d:\d")
_HOURLY: Final = lazy_pattern(r"\d\s{0,2}[AaPpOoUuHh]")
_PARTED: Final = lazy_pattern(r"\d[-/.]\s?\d")
_EIGHT: Final = lazy_pattern(r"\d{8}")
_TIMES: Final = frozenset(("noon", "midday", "midnight", "mitternacht", "полдень", "полночь"))
_MONTH_NAMES: Final = frozenset(MONTHS)


def _dates(view: TextView) -> None:
    for match in view.matches(_ISO, likely=view.digits > 5 and _PARTED.search(view.text)):
        if not _real(year := int(match[1]), month := int(match[3]), day := int(match[4])):
            continue
        date = f"{year:04}-{month:02}-{day:02}"
        start = match.start()
        if match[5] is None or not (clock := _clock(match[5])):
            _date(view, date, start, match.end(4))
            continue
        view.add("datetime", f"{date}t{clock}", start, _end(match))
        _date(view, date, start, match.end(4))
        view.add("time", clock, match.start(5), match.end(5))
    for match in view.matches(_BASIC, likely=view.digits > 7 and _EIGHT.search(view.text)):
        if _real(year := int(match[1]), month := int(match[2]), day := int(match[3])):
            date = f"{year:04}-{month:02}-{day:02}"
            _date(view, date, match.start(), match.end())
            if match[4] and int(match[4]) < 24 and int(match[5]) < 60:
                clock = _clock(f"{match[4]}:{match[5]}:{match[6] or '00'}")
                view.add("datetime", f"{date}t{clock}", match.start(), match.end())
    for match in view.matches(_THREE, likely=view.digits > 3 and _PARTED.search(view.text)):
        first, second, year = int(match[1]), int(match[3]), _year(match[4])
        readings = [(second, first)]
        if match[2] != "." and first != second:
            readings.append((first, second))
        for month, day in readings:
            if _real(year, month, day):
                _date(view, f"{year:04}-{month:02}-{day:02}", match.start(), match.end())
    for match in view.matches(_HAN, likely=not view.text.isascii()):
        _named(view, match[1], int(match[2]), match[3], match.start(), match.end())
    if _MONTH_NAMES.isdisjoint(view.words):
        return
    for match in view.matches(_DAY_MONTH):
        if month := _month(match[1]):
            _named(view, match[2], month, _leading(match[0]), match.start(), _end(match))
    for match in view.matches(_DAY):
        if before := _month_before(view.text, match.start()):
            _named(view, match[1], before[1], _leading(match[0]), before[0], _end(match))
    for match in view.matches(_YEAR):
        if 1000 <= int(match[0]) < 2200 and (before := _month_before(view.text, match.start())):
            view.add("date", f"{match[0]}-{before[1]:02}", before[0], match.end())


_PUNCTUATION: Final = string.punctuation + "«»“”"


def _leading(text: str) -> str:
    return text[:2] if text[1:2].isdigit() else text[:1]


def _month_before(text: str, at: int) -> tuple[int, int] | None:
    """Return (start, number) of the month whose name precedes ``at``; None if no month precedes it."""
    begin = max(0, at - 18)
    words = text[begin:at].split()
    last = words[-1].casefold().strip(_PUNCTUATION) if words else ""
    if last in ("the", "of", "de") and len(words) > 1:
        last = words[-2].casefold().strip(_PUNCTUATION)
    if last not in MONTHS and last.isascii():
        return None
    found = _MONTH_BEFORE.search(text[begin:at])
    month = _month(found[1]) if found else 0
    # A match at the beginning of the searched text may be the end of a longer word.
    if not found or not month or (found.start() == 0 and begin and _WORD.match(text[begin - 1])):
        return None
    return begin + found.start(), month


_WORD: Final = lazy_pattern(WORD)


def _month(name: str) -> int:
    # A search that ignores case also finds the Turkish letter without a dot for an "i", so the name may be unknown.
    return MONTHS.get(name.casefold(), 0)


def _named(view: TextView, year: str | None, month: int, day: str, start: int, end: int) -> None:
    if year is None:
        if 1 <= int(day) <= 31 and 1 <= month <= 12:
            month_day = f"{month:02}-{int(day):02}"
            view.add("date", f"--{month_day}", start, end, marks=(f"~date:{month_day}",))
    elif month and _real(full := _year(year.lstrip("'")), month, int(day)):
        _date(view, f"{full:04}-{month:02}-{int(day):02}", start, end)


def _date(view: TextView, date: str, start: int, end: int) -> None:
    view.add("date", date, start, end, marks=(f"*date:{date[5:]}",))


def _time(view: TextView, hour: int, minute: int, second: int, start: int, end: int) -> None:
    view.add("time", f"{hour:02}:{minute:02}" + (f":{second:02}" if second else ""), start, end)


def _clock(text: str) -> str:
    hour, minute, *rest = re.split(r"[:.,]", text)
    second = rest[0] if rest else "00"
    if int(hour) > 24 or int(minute) > 59 or int(second) > 59:
        return ""
    return f"{int(hour) % 24:02}:{minute}" + ("" if int(second) == 0 else f":{second}")


def _hour(hour: int, half: str) -> int | None:
    if half:
        return None if not 1 <= hour <= 12 else hour % 12 + (12 if half in "pP" else 0)
    return hour % 24 if hour <= 24 else None


def _year(digits: str) -> int:
    year = int(digits)
    return year if len(digits) > 2 else year + (1900 if year >= 70 else 2000)


def _real(year: int, month: int, day: int) -> bool:
    return 1000 <= year < 2200 and 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]


def _end(match: re.Match[str]) -> int:
    return match.start() + len(match[0].rstrip(" .,-") if not match[0].rstrip().endswith("m.") else match[0].rstrip())
