"""What describes and does not name: versions, sums of money, numbers with and without a unit."""

import re
from typing import Final

from memory.domain.reading.identifiers.tables import CURRENCIES, UNITS
from memory.domain.reading.identifiers.view import TAKEN, WORD, View

_NUMBER: Final = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?: \d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)?"
_FRESH: Final = rf"(?<!{WORD})(?<![{TAKEN}#])(?<!\w[-./:])(?<!\d[,'])"
_SIGNS: Final = "|".join(
    sorted((re.escape(word) for word in CURRENCIES if not word.isalpha() or not word.isascii()), key=len, reverse=True)
)
_CODES: Final = "|".join(
    sorted((word for word in CURRENCIES if word.isalpha() and word.isascii()), key=len, reverse=True)
)
_SCALE: Final = r"(?:(k|m|b|\s?(?:thousand|mio|mn|million|bn|billion|tsd|mrd))(?!\w))?"
_SCALES: Final = {
    "k": 3, "thousand": 3, "tsd": 3, "m": 6, "mio": 6, "mn": 6, "million": 6, "bn": 9, "b": 9, "billion": 9, "mrd": 9,
}  # fmt: skip
_AMOUNT_BEFORE: Final = re.compile(
    rf"(?<!{WORD})({_SIGNS}|(?:{_CODES})(?=[ \d]))\s?(-?(?:{_NUMBER})){_SCALE}(?!{WORD})", re.IGNORECASE
)
_AMOUNT_AFTER: Final = re.compile(
    rf"{_FRESH}((?:{_NUMBER})){_SCALE}[\s-]?({_SIGNS}|(?:{_CODES})(?!{WORD}))", re.IGNORECASE
)
_HAS_CURRENCY: Final = re.compile(
    rf"{_SIGNS}|(?<!{WORD})(?:{_CODES})(?!{WORD})|(?<=\d)(?:{_CODES})(?!{WORD})|(?:{_CODES})(?=\d)", re.IGNORECASE
)
_VERSION: Final = re.compile(
    rf"(?<!{WORD})(?<![./\\@{TAKEN}-])(?:(?:version|release|ver\.?)\s?|v\.?\s?(?=\d))?(\d{{1,6}}(?:\.\d{{1,8}})*+(?:[-+](?:alpha|beta|rc|dev|pre|post|snapshot)[\w.]*+|(?:a|b|rc)\d{{1,3}})?)(?!{WORD})(?!\.\d)(?![-/:,]\d)",
    re.IGNORECASE,
)
_QUANTITY: Final = re.compile(
    rf"{_FRESH}(-?(?:{_NUMBER}))[\s-]?({'|'.join(sorted(map(re.escape, UNITS), key=len, reverse=True))})(?!{WORD})",
    re.IGNORECASE,
)
_PLAIN: Final = re.compile(rf"{_FRESH}(?<![-+])([-+]?(?:{_NUMBER}))(?!{WORD})(?![.,:/]\d)")


def amounts_find(view: View) -> None:
    """Add versions, sums of money, and numbers with a unit. Linear in the text."""
    for match in _VERSION.finditer(view.text):
        told = match[0][0].lower() in "vr"
        if told or match[1].count(".") > 1:
            name = re.sub(r"(?<![\d.])0+(?=\d)|(?<=\.)0+(?=\d)", "", match[1].lower())
            view.add("version", name, match.start(), match.end())
    view.hide()
    if _HAS_CURRENCY.search(view.text):
        for match in _AMOUNT_BEFORE.finditer(view.text):
            _amount(view, match[1], match[2], match[3], match)
        view.hide()
        for match in _AMOUNT_AFTER.finditer(view.text):
            _amount(view, match[3], match[1], match[2], match)
        view.hide()
    for match in _QUANTITY.finditer(view.text):
        view.add("number", f"{number_canonical(match[1])} {UNITS[match[2].casefold()]}", match.start(), match.end())
    view.hide()


def numbers_find(view: View) -> None:
    """Add the numbers that nothing else has taken."""
    for match in _PLAIN.finditer(view.text):
        view.add("number", number_canonical(match[1]), match.start(), match.end())
    view.hide()


def number_canonical(told: str) -> str:
    """Return a number with a full stop before its decimals, and no zero or sign that says nothing.

    A separator before three digits is one of thousands if it is a comma or comes more than once; otherwise decimals
    follow it. So ``1,234`` is 1234, ``1.234`` is a little more than one.
    """
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


def _amount(view: View, currency: str, number: str, scale: str | None, match: re.Match[str]) -> None:
    canonical = number_canonical(number)
    if scale:
        whole, _, part = canonical.partition(".")
        places = _SCALES[scale.strip().casefold()]
        canonical = number_canonical(
            whole + part[:places].ljust(places, "0") + ("." + part[places:] if part[places:] else "")
        )
    view.add("amount", f"{CURRENCIES[currency.casefold()]} {canonical}", match.start(), match.end())
