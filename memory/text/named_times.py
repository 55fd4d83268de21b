"""Finds the times that a question names, such as "on April 27th", "letzte Woche" or "三天前", as days in UTC."""

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from memory.text.date_words import NUMBER, TOKEN, Kind, Meaning, date_words
from memory.text.folding import fold
from memory.text.word_lists import wordset

# A day without a year may lie this number of years back.
YEARS_BACK: Final = 10
# The years that are read from four digits alone.
_YEARS: Final = range(1900, 2101)
_POSSIBLE: Final = {"month": range(1, 13), "day": range(1, 32), "year": _YEARS}
# Between the parts of a date: "the 27th of April", "27 de abril del 2024", "27-го апреля", "4월의 27일".
_FILLERS: Final = wordset(
    "the of de del do da of th st nd rd er o a го е ого den der la le el den y , の 의 لـ من شهر и"
)
# Before a month or a year without a day: "in April", "im Jahr 2024", "last May", "в апреле".
_BEFORE: Final = wordset(
    "in im during since last of throughout letzten letztem vergangenen en em no au mois dernier pasado passado le de "
    "в во за с год году прошлом jahr jahre ano del fin mid late early anfang mitte ende seit pendant durant desde "
    "durante في عام سنة شهر خلال منذ"
)
_AFTER: Final = wordset("году года год г last dernier pasado passado الماضي")
_BEFORE_YEAR: Final = wordset(
    "in since during throughout year im jahr jahre seit en ano desde annee depuis em во в с عام سنة في nel w"
)
_EVERY: Final = wordset(
    "every each jeden jede jedem todos todas los cada chaque tous toutes toda todo каждый каждую "
    "каждое 每 毎 매 كل ogni elke iedere her"
)
_NEXT: Final = wordset(
    "next nachsten nachste nachster kommenden proximo proxima prochain следующий следующую 下 来 다음"
)

_ISO: Final = re.compile(r"(?<![\w.-])((?:19|20)\d\d)([-/.])(\d{1,2})\2(\d{1,2})(?![\w-]|\.\d)")
_ISO_MONTH: Final = re.compile(r"(?<![\w.-])((?:19|20)\d\d)-(0[1-9]|1[0-2])(?![\w-]|\.\d)")
_NUMERIC: Final = re.compile(r"(?<![\w./-])(\d{1,2})([-/.])(\d{1,2})\2((?:19|20)\d\d)(?![\w-]|\.\d)")
_NO_YEAR: Final = re.compile(
    r"(?<!\w)(?:am|vom|dem|den|zum|el|del|le|du|em|no|dia|on|от|за)\s(\d{1,2})([/.])(\d{1,2})(?:(?<=\d)\.)?(?![\w/]|[.,]\d|\s?[%€$])"
)


class Span(NamedTuple):
    """The days from ``begin`` until the day before ``end``."""

    begin: dt.date
    end: dt.date


@dataclass(frozen=True, slots=True)
class NamedTime:
    """One time that a question names. ``spans`` are its possible meanings, the most likely one first; a day without a
    year has one for each of the last years. With ``edge``, the time is the first or the latest day that has memories,
    and ``spans`` is empty."""

    spans: tuple[Span, ...]
    edge: Literal["first", "latest"] | None = None


@dataclass(frozen=True, slots=True)
class NamedTimes:
    """The times that a question names, and the rest of the question, folded."""

    times: tuple[NamedTime, ...]
    rest: str


class _Part(NamedTuple):
    """A part of the question that a phrase or a number makes; ``begin`` and ``end`` count tokens."""

    kind: Kind | Literal["number"]
    value: int
    begin: int
    end: int
    short: bool = False
    weeks: int | None = None


def times_named(question: str, *, today: dt.date) -> NamedTimes:
    """Return the times that ``question`` names, relative to ``today``. Linear time; a question without words for times
    and without digits costs one pass over its words. A weekday is the nearest one in the past, not today."""
    text = fold(question)
    found: list[tuple[int, int, NamedTime]] = []
    taken = bytearray(len(text))
    if any(letter.isdigit() for letter in text):
        for begin, end, time in _numeric(text, today):
            if not any(taken[begin:end]):
                found.append((begin, end, time))
                taken[begin:end] = b"\1" * (end - begin)
    matches = [match for match in TOKEN.finditer(text) if not taken[match.start()]]
    words = [match[0] for match in matches]
    for first, last, time in _worded(words, today):
        found.append((matches[first].start(), matches[last - 1].end(), time))
    rest, at = [], 0
    for begin, end, _time in sorted(found, key=lambda each: each[:2]):
        rest.append(text[at:begin])
        at = max(at, end)
    return NamedTimes(tuple(time for _begin, _end, time in found), " ".join([*rest, text[at:]]))


def _numeric(text: str, today: dt.date) -> Iterator[tuple[int, int, NamedTime]]:
    for match in _ISO.finditer(text):
        if span := _day(int(match[1]), int(match[3]), int(match[4])):
            yield match.start(), match.end(), NamedTime((span,))
    for match in _ISO_MONTH.finditer(text):
        if span := _month(int(match[1]), int(match[2])):
            yield match.start(), match.end(), NamedTime((span,))
    for match in _NUMERIC.finditer(text):
        one, two, year = int(match[1]), int(match[3]), int(match[4])
        readings = [_day(year, two, one)]
        if match[2] != ".":
            readings.append(_day(year, one, two))
        if spans := tuple(dict.fromkeys(span for span in readings if span)):
            yield match.start(), match.end(), NamedTime(spans)
    for match in _NO_YEAR.finditer(text):
        if spans := _in_years(int(match[3]), int(match[1]), today):
            yield match.start(1), match.end(), NamedTime(spans)


def _worded(words: Sequence[str], today: dt.date) -> Iterator[tuple[int, int, NamedTime]]:
    parts = list(_parts(words))
    used: set[int] = set()

    def near(at: int, *kinds: str) -> int | None:
        """Return the place of the next part, if it is of one of ``kinds`` and only fillers lie between."""
        if not 0 <= at + 1 < len(parts) or parts[at + 1].kind not in kinds or at + 1 in used:
            return None
        gap = words[parts[at].end : parts[at + 1].begin]
        return at + 1 if len(gap) <= 3 and _FILLERS.issuperset(gap) else None

    # A month with its day and its year.
    for at, part in enumerate(parts):
        if part.kind != "month":
            continue
        together = {at}
        day = year = None
        before = at - 1
        # "2024年4月27日" and "27 April 2024" and "April 27, 2024".
        if before >= 0 and near(before, "month") == at and before not in used:
            candidate = parts[before]
            if candidate.kind == "number" and 1 <= candidate.value <= 31:
                day, together = candidate.value, together | {before}
            elif candidate.kind == "year":
                year, together = candidate.value, together | {before}
        following = near(at, "number", "day", "year")
        if following is not None:
            candidate = parts[following]
            if day is None and (candidate.kind == "day" or (candidate.kind == "number" and 1 <= candidate.value <= 31)):
                day, together = candidate.value, together | {following}
                if year is None and (after := near(following, "year")) is not None:
                    year, together = parts[after].value, together | {after}
            elif candidate.kind == "year" and year is None:
                year, together = candidate.value, together | {following}
        if day is None and year is None and (part.short or not _alone(words, part)):
            continue
        if year is None and (relative := _beside(parts, at, "years", used)) is not None:
            year, together = today.year + parts[relative].value, together | {relative}
        if day is None:
            spans = _only(_month(year, part.value)) if year else _months(part.value, today)
        elif year is not None:
            spans = _only(_day(year, part.value, day))
        else:
            spans = _in_years(part.value, day, today)
        if spans:
            used |= together
            yield parts[min(together)].begin, parts[max(together)].end, NamedTime(spans)
    for at, part in enumerate(parts):
        if at in used:
            continue
        begin, end = part.begin, part.end
        preceding = set(words[max(0, begin - 2) : begin])
        match part.kind:
            case "weekday":
                if preceding & (_EVERY | _NEXT):
                    continue
                weeks = part.weeks
                if weeks is None and (relative := _beside(parts, at, "weeks", used)) is not None:
                    weeks = parts[relative].value
                    used |= {relative}
                    begin, end = min(begin, parts[relative].begin), max(end, parts[relative].end)
                used.add(at)
                if span := _weekday(part.value, weeks, today):
                    yield begin, end, NamedTime((span,))
            case "year" if part.end - part.begin > 1 or set(words[begin - 1 : begin]) & _BEFORE_YEAR:
                yield begin, end, NamedTime((Span(dt.date(part.value, 1, 1), dt.date(part.value + 1, 1, 1)),))
            case "first" | "latest" as edge:
                yield begin, end, NamedTime((), edge)
    for at, part in enumerate(parts):
        if at not in used and (span := _relative(part.kind, part.value, today)):
            yield part.begin, part.end, NamedTime((span,))


def _alone(words: Sequence[str], month: _Part) -> bool:
    """Return whether a month without a day and a year is meant as a time."""
    if month.end - month.begin > 1:
        # "4月"; but "一月" is often a part of other words.
        return words[month.begin] != "一"
    before, after = words[month.begin - 1 : month.begin], words[month.end : month.end + 1]
    return bool(_BEFORE.intersection(before) or _AFTER.intersection(after))


def _beside(parts: Sequence[_Part], at: int, kind: str, used: set[int]) -> int | None:
    """Return the place of a part of this kind next to the part ``at``, at most three words away."""
    for other in (at - 1, at + 1):
        if 0 <= other < len(parts) and other not in used and parts[other].kind == kind:
            first, second = sorted((parts[at], parts[other]), key=lambda part: part.begin)
            if second.begin - first.end <= 3:
                return other
    return None


def _parts(words: Sequence[str]) -> Iterator[_Part]:
    phrases, numbers = date_words()
    at = 0
    while at < len(words):
        word = words[at]
        number, length = _number(words, at, numbers)
        part = _phrase(words, at, phrases.get(word, ()), numbers)
        if part is None and number is not None:
            part = _phrase(words, at, phrases.get(NUMBER, ()), numbers)
            if part is None and (word.isdigit() or number > 1):
                part = _Part("year" if len(word) == 4 and number in _YEARS else "number", number, at, at + length)
        if part is None:
            at += 1
        else:
            yield part
            at = part.end


def _phrase(
    words: Sequence[str], at: int, choices: Sequence[tuple[tuple[str, ...], Meaning]], numbers: dict[str, int]
) -> _Part | None:
    for tokens, meaning in choices:
        place, number = at, None
        for token in tokens:
            if place >= len(words):
                break
            if token == NUMBER:
                number, length = _number(words, place, numbers)
                if number is None:
                    break
                place += length
            elif words[place] == token:
                place += 1
            else:
                break
        else:
            value = meaning.value + meaning.times * (number or 0)
            if value in _POSSIBLE.get(meaning.kind, (value,)):
                return _Part(meaning.kind, value, at, place, meaning.short, meaning.weeks)
    return None


_HAN: Final = {sign: value for value, sign in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}


def _number(words: Sequence[str], at: int, numbers: dict[str, int]) -> tuple[int | None, int]:
    """Return (the number that begins at a word, how many words it has)."""
    word = words[at]
    if word.isdigit():
        return (int(word), 1) if len(word) < 5 else (None, 1)
    if word in _HAN or word == "十":
        end = at
        while end < len(words) and (words[end] in _HAN or words[end] == "十"):
            end += 1
        return _han("".join(words[at:end])), end - at
    return numbers.get(word), 1


def _han(digits: str) -> int | None:
    if "十" not in digits:
        return int("".join(str(_HAN[sign]) for sign in digits)) if len(digits) < 5 else None
    tens, _ten, ones = digits.partition("十")
    if len(tens) > 1 or len(ones) > 1 or "十" in ones:
        return None
    return 10 * (_HAN[tens] if tens else 1) + (_HAN[ones] if ones else 0)


def _only(span: Span | None) -> tuple[Span, ...]:
    return () if span is None else (span,)


# Each of these functions returns None for a day that does not exist, before the year 1 and after 9999.
def _day(year: int, month: int, day: int) -> Span | None:
    try:
        return _relative("days", 0, dt.date(year, month, day))
    except ValueError:
        return None


def _month(year: int, month: int) -> Span | None:
    try:
        return Span(dt.date(year, month, 1), dt.date(year + month // 12, month % 12 + 1, 1))
    except ValueError:
        return None


def _months(month: int, today: dt.date) -> tuple[Span, ...]:
    latest = today.year - (month > today.month)
    spans = (_month(year, month) for year in range(latest, latest - YEARS_BACK, -1))
    return tuple(span for span in spans if span)


def _in_years(month: int, day: int, today: dt.date) -> tuple[Span, ...]:
    spans = (_day(year, month, day) for year in range(today.year, today.year - YEARS_BACK - 1, -1))
    return tuple(span for span in spans if span and span.begin <= today)[:YEARS_BACK]


def _weekday(weekday: int, weeks: int | None, today: dt.date) -> Span | None:
    if weeks is None:
        return _relative("days", -((today.weekday() - weekday - 1) % 7 + 1), today)
    return _relative("days", 7 * weeks - today.weekday() + weekday, today)


def _relative(kind: str, value: int, today: dt.date) -> Span | None:
    try:
        match kind:
            case "days":
                begin = today + dt.timedelta(days=value)
                return Span(begin, begin + dt.timedelta(days=1))
            case "weeks":
                begin = today + dt.timedelta(days=7 * value - today.weekday())
                return Span(begin, begin + dt.timedelta(days=7))
            case "months":
                months = 12 * today.year + today.month - 1 + value
                return _month(months // 12, months % 12 + 1)
            case "years":
                return Span(dt.date(today.year + value, 1, 1), dt.date(today.year + value + 1, 1, 1))
    except (ValueError, OverflowError):
        pass
    return None
