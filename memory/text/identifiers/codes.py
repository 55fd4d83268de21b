"""Codes of numbered things: INV-2024-001, PO#123, ABC-123, order 4711, number plates and serial numbers."""

import re
from typing import Final

from memory.text.identifiers.tables import CAPITALS, NOUNS, SMALL
from memory.text.identifiers.view import TAKEN, WORD, TextView
from memory.text.lazy_pattern import lazy_pattern
from memory.text.word_lists import wordset

_ALNUM: Final = rf"(?:(?!_){WORD})"
_FRESH: Final = rf"(?<!{WORD})(?<![@$€£¥{TAKEN}])(?<!\w[-./])"
_ENDS: Final = rf"(?!{WORD})"

# Grouped by first character, because a search that ignores case would otherwise try every noun at each position. Longer
# nouns come first.
_NOUN: Final = "|".join(
    f"{first}(?:{'|'.join(re.escape(noun[1:]) for noun in sorted(NOUNS, key=len, reverse=True) if noun[0] == first)})"
    for first in sorted({noun[0] for noun in NOUNS})
)
_LABELLED: Final = lazy_pattern(
    rf"(?<!{WORD})({_NOUN})"
    rf"((?:\s?(?:numbers?|nummer|number|no|nr|num|id|code|номер|n[º°]|ref(?:erence)?)(?!{WORD})\.?)?\s?(?:#|:|=|is|was|ist)?\s{{0,2}}#?)\s?"
    rf"(\d(?:\d|(?<=\d)[ -](?=\d{{2}})){{0,29}})(?!{WORD})(?![-./:,]?\w)(?!\s?(?:%|°))",
    re.IGNORECASE,
)
_NUMBERED: Final = lazy_pattern(
    rf"(?<!{WORD})(?<![#&/{TAKEN}])(?:#\s?|(?:no|nr|num)\.\s?|numéro\s|nummer\s|number\s)(\d{{1,18}})(?!{WORD})(?![-./:,]\w)",
    re.IGNORECASE,
)
_TOKEN: Final = lazy_pattern(
    rf"{_FRESH}(?=[^\W\d_]{{0,40}}+(?:[-_/.#:][^\W\d_]{{1,40}}+){{0,4}}[-_/.#:]?[\d_])({_ALNUM}++(?:[-_/.#:]{_ALNUM}++)*+){_ENDS}"
)
_SPACED: Final = lazy_pattern(
    rf"{_FRESH}((?:[A-Z]{{2,6}}|(?i:inv|po|ref|ord|tkt|req|sku|cr|rma|sn|pn))(?: ?[#:-] ?| )"
    rf"\d{{1,12}}(?:[ /-]\d{{1,12}})*+)(?!{WORD})(?![-./:,%]\w)(?!%)"
)
_PLATE: Final = lazy_pattern(
    # Number plates of the United Kingdom, Germany, India, Spain and countries with similar plates.
    rf"{_FRESH}([A-Z]{{2}}\d{{2}} ?[A-Z]{{3}}|[A-ZÄÖÜ]{{1,3}}[- ][A-Z]{{1,2}} \d{{1,4}}[EH]?"
    r"|[A-Z]{2}[- ]\d{1,2}[- ][A-Z]{1,2}[- ]\d{4}|\d{1,4} [A-Z]{2,3} \d{1,4})"
    rf"(?!{WORD})(?!-\w)"
)
# Cheap tests before costly searches.
_NOUN_WORDS: Final = frozenset(
    word for noun in NOUNS for word in re.findall(r"[^\W\d_]+", noun) if len(word) > 1 or not word.isascii()
) | {sign for noun in NOUNS for sign in noun if sign >= "\u2e80"}
_NUMBER_WORDS: Final = frozenset(("no", "nr", "num", "numéro", "nummer", "number"))
# These patterns begin with a digit and use lookbehinds for the rest, so that the search tries only the digits.
_CAPITAL_NUMBER: Final = lazy_pattern(
    r"\d(?: ?[A-Z]|(?<=[A-ZÄÖÜ]\d)|(?<=[A-ZÄÖÜ][ #:-]\d)|(?<=[A-ZÄÖÜ][ #:-]{2}\d)|(?<=[A-ZÄÖÜ][ #:-]{3}\d))"
)
_SMALL_CODES: Final = frozenset(("inv", "po", "ref", "ord", "tkt", "req", "sku", "cr", "rma", "sn", "pn"))
_JOINED: Final = lazy_pattern(r"\d(?:[^\W\d]|[-/.#:]\w|\d{7}|(?<=[^\W\d]\d)|(?<=[^\W\d][-/.#:]\d))")
_UNDERLINED: Final = lazy_pattern(r"_\w")
# Nouns after which a short number is a code: "ticket 12", but not "order 12 boxes".
_NUMBERED_ALONE: Final = wordset("ticket pr po issue room locker invoice task flight")
_SEPARATORS: Final = lazy_pattern(r"[-_/.#: ]+")
_RUNS: Final = lazy_pattern(r"\d+|[^\W\d_]+")


def numbered_find(view: TextView) -> None:
    """Add numbers with a noun or a sign: ``order no. 4711``, ``ticket #12``, ``#12``. "ticket #12" and "invoice #12"
    are two things; "#12" alone may be either. Linear time."""
    for match in view.matches(_LABELLED, likely=not _NOUN_WORDS.isdisjoint(view.words) or "/" in view.text):
        noun = NOUNS.get(match[1].casefold())
        if noun is None:
            continue
        digits = re.sub(r"\D", "", match[3])
        # "order 3 pizzas" and "case 12" contain no code; "case no. 12" does.
        if not re.search(r"[#:=]|n[ro]|num|nº|n°|номер|id|code|ref|is|ist", match[2], re.IGNORECASE) and len(digits) < (
            2 if noun in _NUMBERED_ALONE else 3
        ):
            continue
        number = digits.lstrip("0") or "0"
        canonical = f"{noun}-{number}"
        view.add("code", canonical, match.start(), match.end(3), marks=(f"*number:{number}",))
    for match in view.matches(_NUMBERED, likely="#" in view.text or not _NUMBER_WORDS.isdisjoint(view.words)):
        number = match[1].lstrip("0") or "0"
        view.add("code", number, match.start(), match.end(), marks=(f"~number:{number}",))


def codes_find(view: TextView) -> None:
    """Add codes of letters and digits, or of numbers with a separator between them. Linear in the text."""
    likely = view.digits and (_CAPITAL_NUMBER.search(view.text) or not _SMALL_CODES.isdisjoint(view.words))
    for pattern in (_PLATE, _SPACED) if likely else ():
        for match in view.matches(pattern):
            first = re.match(r"[^\W\d_]*", match[1])
            if first is not None and first[0].upper() not in CAPITALS:
                _add(view, match[1], match.start(1), match.end(1))
    joined = (view.digits and _JOINED.search(view.text)) or ("_" in view.text and _UNDERLINED.search(view.text))
    for match in view.matches(_TOKEN, likely=joined):
        if _code_like(match[1]):
            _add(view, match[1], match.start(1), match.end(1), named=True)


def code_canonical(code: str) -> str:
    """Return the runs of letters or digits of a code in lower case, without leading zeros, joined by hyphens."""
    return "-".join(run.lstrip("0") or "0" if run.isdigit() else run for run in _RUNS.findall(code.casefold()))


def _add(view: TextView, code: str, start: int, end: int, *, named: bool = False) -> None:
    canonical = code_canonical(code)
    joined = "".join(_RUNS.findall(code.casefold()))
    marks: list[str] = []
    if _SEPARATORS.search(code):
        if canonical.count("-") > 1:
            marks.append(f"*code:{joined}")
    else:
        marks.append(f"~code:{joined}")
    if named and not re.search(r"[/#:]", code):
        marks.append(f"~name:{code.casefold()}")
    if canonical.isdigit():
        marks.append(f"~number:{canonical}")
    view.add("code", canonical, start, end, marks=tuple(marks))


def _code_like(token: str) -> bool:
    groups = _SEPARATORS.split(token)
    digits = sum(sign.isdigit() for sign in token)
    letters = sum(sign.isalpha() for sign in token)
    if not digits:
        # "ann_dev", "API_KEY"
        return "_" in token and not re.search(r"[/.#:]", token) and len(token) > 3
    if not letters:
        if len(groups) == 1:
            return digits > 7
        return digits > 4 and re.search(r"[.:]", token) is None and max(map(len, groups)) > 2
    if len(groups) == 1:
        # "5th", "1990s", "16gb", "221b" and "Q3" are not codes, because they are too short or a number with its unit.
        return (
            len(token) > 2
            and not re.fullmatch(r"\d+[^\W\d_]{1,3}|[^\W\d_]\d", token)
            and token.casefold() not in ("h2o", "co2")
        )
    if groups[0].isdigit() and all(group.isalpha() and (group.islower() or group.istitle()) for group in groups[1:]):
        return False
    first = groups[0]
    if first.isalpha() and first.islower() and (first in SMALL or len(first) > 14):
        return False
    # "it.5 years", "see:12": a full stop or a colon joins a code only between capitals.
    return re.search(r"[.:]", token) is None or token.upper() == token
