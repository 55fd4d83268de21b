"""What describes and does not name: versions, sums of money, numbers with and without a unit."""

import re
from typing import Final

from memory.domain.reading.identifiers.tables import CURRENCIES, UNITS
from memory.domain.reading.identifiers.view import LETTER, TAKEN, WORD, View

# It begins with a digit, and what must not stand before is asked behind it: so the search goes from digit to digit.
_NUMBER: Final = re.compile(
    rf"\d(?<!{WORD}\d)(?<![{TAKEN}#]\d)(?<!\w[-./:]\d)(?<!\d[,']\d)"
    r"(?:\d{0,2}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d{0,2}(?:\.\d{3}){2,}(?:,\d+)?(?!\d)|\d{0,2}(?:\.\d{3})+,\d+"
    r"|\d{0,2}(?: \d{3})+(?:[.,]\d+)?(?!\d)|\d*(?:[.,]\d+)?)"
)
# What is left when everything else has been taken: both numbers of "30-35" and of "3/4".
_LEFT: Final = re.compile(_NUMBER.pattern.replace(r"(?<!\w[-./:]\d)", r"(?<![^\W\d][-./:]\d)(?<!\d[.:]\d)"))
_SCALES: Final = {
    "k": 3, "thousand": 3, "tsd": 3, "m": 6, "mio": 6, "mn": 6, "million": 6, "bn": 9, "b": 9, "billion": 9, "mrd": 9,
}  # fmt: skip
_SCALE: Final = re.compile(rf"(?:([kmb])|\s?(thousand|tsd|mio|mn|million|bn|billion|mrd)\.?)(?!{WORD})", re.IGNORECASE)
# What is counted: a word, two with a stroke between them, or signs.
_COUNTED: Final = re.compile(
    r"([\s-]?)([^\W\d_]+(?:/[^\W\d_]+|[²2](?!\d))?|[^\w\s.,;:!?()\[\]'\"/*#@+=<>~-]{1,2}[^\W\d_]?)"
)
_BEFORE: Final = re.compile(
    rf"(?:(?<!{LETTER})({LETTER}{{1,8}})\s?|"
    r"(?<![A-Za-z])([A-Za-z]{0,2}[^\w\s.,;:!?()\[\]'\"/*#@+=<>~-])\s?)-?$"
)
_VERSIONY: Final = re.compile(r"\d(?:\.\d+\.\d|(?<=[vV]\d)|(?<=[vV][. ]\d)|(?<=[vV]\. \d))")
_VERSION_WORDS: Final = frozenset(("version", "release", "ver"))
_VERSION: Final = re.compile(
    rf"(?<!{WORD})(?<![./\\@{TAKEN}-])(?:(?:version|release|ver\.?)\s?|v\.?\s?(?=\d))?"
    r"(\d{1,6}(?:\.\d{1,8})*+(?:[-+](?:alpha|beta|rc|dev|pre|post|snapshot)[\w.]*+|(?:a|b|rc)\d{1,3})?)"
    rf"(?!{WORD})(?!\.\d)(?![-/:,]\d)",
    re.IGNORECASE,
)
# Letters that stand for a unit only right behind the number: "3 a day" is no current.
_ATTACHED: Final = frozenset("adskb")


def amounts_find(view: View) -> None:
    """Add versions, sums of money, and numbers with a unit. Linear in the text."""
    if _VERSIONY.search(view.text) or not _VERSION_WORDS.isdisjoint(view.words):
        for match in _VERSION.finditer(view.text):
            told = match[0][0].lower() in "vr"
            if told or match[1].count(".") > 1:
                name = re.sub(r"(?<![\d.])0+(?=\d)|(?<=\.)0+(?=\d)", "", match[1].lower())
                view.add("version", name, match.start(), match.end())
        view.hide()
    for match in _NUMBER.finditer(view.text):
        _measure(view, match)
    view.hide()


def numbers_find(view: View) -> None:
    """Add the numbers that nothing else has taken."""
    for match in _LEFT.finditer(view.text):
        end = match.end()
        after = view.text[end : end + 2]
        if after[:1] == "_" or _WORD.match(after) or (after[:1] in ".,:" and after[1:].isdigit()):
            continue
        start = match.start() - _negative(view.text, match.start())
        view.add("number", number_canonical(view.text[start:end]), start, end)
    view.hide()


_WORD: Final = re.compile(WORD)


def _negative(text: str, start: int) -> bool:
    """Tell whether the sign before ``start`` makes the number negative: one that joins no words."""
    return text[start - 1 : start] == "-" and (start == 1 or text[start - 2] in " \t\n(=:,")


def _measure(view: View, match: re.Match[str]) -> None:
    text, start, end = view.text, match.start(), match.end()
    number = number_canonical(match[0])
    scale = _SCALE.match(text, end)
    # Regular expressions take the Turkish letter without a dot for an "i".
    if scale and (places := _SCALES.get((scale[1] or scale[2]).lower())):
        number, end = _scaled(number, places), scale.end()
    before = _BEFORE.search(text[max(0, start - 11) : start]) if _after_currency(text, start) else None
    if before and (currency := CURRENCIES.get((before[1] or before[2]).casefold())) and not _goes_on(text, end):
        # Behind a letter the word would be cut where the look back begins; nothing in the table is that long.
        view.add("amount", f"{currency} {number}", start - len(before[0]), end)
        return
    counted = _COUNTED.match(text, end)
    if counted is None:
        if scale and scale[2]:
            view.add("number", number, start, end)
        return
    word = counted[2].casefold()
    for told in (word, word.rstrip("2²"), word[:1]):
        stop = counted.start(2) + len(told)
        if _goes_on(text, stop) and told[-1:].isalpha():
            continue
        if currency := CURRENCIES.get(told):
            view.add("amount", f"{currency} {number}", start, stop)
            return
        if (unit := UNITS.get(told)) and not (told in _ATTACHED and counted[1]) and (not scale or scale[2]):
            start -= _negative(text, start)
            view.add("number", f"{'-' * (start < match.start())}{number} {unit}", start, stop)
            return
    if scale and scale[2]:
        view.add("number", number, start, end)


def _after_currency(text: str, start: int) -> bool:
    """Tell whether a currency may stand before ``start``: a cheap look, to save the costly one."""
    before = text[max(0, start - 11) : start].rstrip(" -")
    if not before[-1:].isalpha():
        return bool(before)
    return before.rsplit(None, 1)[-1].casefold() in CURRENCIES or not before.isascii() or not before.isalpha()


def _goes_on(text: str, at: int) -> bool:
    return bool(_WORD.match(text, at))


def _scaled(number: str, places: int) -> str:
    whole, _, part = number.partition(".")
    return number_canonical(whole + part[:places].ljust(places, "0") + ("." + part[places:] if part[places:] else ""))


def number_canonical(told: str) -> str:
    """Return a number with a full stop before its decimals, and no zero or sign that says nothing.

    A separator before three digits is one of thousands if it is a comma or comes more than once; otherwise decimals
    follow it. So ``1,234`` is 1234, ``1.234`` is a little more than one.
    """
    if told.isdigit():
        return told.lstrip("0") or "0"
    told = told.replace(" ", "").lstrip("+")
    sign, told = ("-", told[1:]) if told.startswith("-") else ("", told)
    last = max(told.rfind(","), told.rfind("."))
    if last >= 0:
        mark = told[last]
        other = "." if mark == "," else ","
        thousands = other not in told and (
            told.count(mark) > 1 or (mark == "," and re.fullmatch(r"\d{1,3},\d{3}", told))
        )
        told = told.replace(mark, "") if thousands else told.replace(other, "").replace(mark, ".")
    whole, _, part = told.partition(".")
    whole, part = whole.lstrip("0") or "0", part.rstrip("0")
    plain = whole + (f".{part}" if part else "")
    return plain if plain == "0" else sign + plain
