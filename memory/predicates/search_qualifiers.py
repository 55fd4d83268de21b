"""Parses the values of the qualifiers of the search language into comparisons."""

import datetime as dt
import re
from collections.abc import Callable

from memory.core.durations import duration_parse
from memory.core.errors import ValueRefused
from memory.core.nearest import nearest_hint
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import scope_normalize
from memory.predicates.tree import RUNGS, AllOf, Comparison, Predicate

FIRST_DAY, LAST_DAY = dt.date(1000, 1, 1), dt.date(9998, 12, 31)

IS = (*RUNGS, "live", "pinned", "released")
_ORDER = re.compile(r"(<=|>=|<|>|=|≤|≥)?(.*)", re.DOTALL)
_SIGNS = {"≤": "<=", "≥": ">=", "=": "is", None: "is"}
_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{0,12})?|\.[0-9]{1,12}", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,9}", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_FIELD = re.compile(r'("[^"]*"|[^"=]*)(?:(=)("[^"]*"|[^"]*))?')


def qualifier_read(name: str, value: str) -> Predicate:
    """Return the predicate of a qualifier; ``name`` is a key of ``EXAMPLES``. Raises ``ValueRefused``, whose message
    shows a valid value."""
    read, _example = _QUALIFIERS[name]
    return read(name, value)


def _refused(sentence: str) -> ValueRefused:
    return ValueRefused(sentence, code=ProblemCode.INVALID_LOOKUP)


def _plain(name: str, value: str) -> str:
    """Return a value without its quotes."""
    quoted = len(value) >= 2 and value.startswith('"') and value.endswith('"')
    text = value[1:-1] if quoted else value
    if '"' in text:
        raise _refused(f'Quotes go around the whole value, such as {name}:"two words".')
    return text


def _id(name: str, value: str) -> Predicate:
    digits = _plain(name, value).replace("-", "").lower()
    if not re.fullmatch(r"[0-9a-f]{1,32}", digits, re.ASCII):
        raise _refused("An id has 32 of the digits 0-9 and a-f, with optional dashes. Its first digits are enough.")
    return Comparison("id", "begins", digits)


def _named(name: str, value: str) -> Predicate:
    return Comparison(name, "has" if name == "category" else "is", _plain(name, value))


def _by(name: str, value: str) -> Predicate:
    caller = _plain(name, value).strip()
    if not caller:
        raise _refused("Write who wrote it, such as by:admin.")
    return Comparison("by", "is", caller)


def _contains(name: str, value: str) -> Predicate:
    text = _plain(name, value)
    if not text:
        raise _refused("An empty text is contained in every text.")
    return Comparison(name, "contains", text)


def _is(name: str, value: str) -> Predicate:
    word = _one_of(_plain(name, value), IS, "state")
    return Comparison("rung", "is", word) if word in RUNGS else Comparison(word, "is", True)


def _one_of(text: str, words: tuple[str, ...], noun: str) -> str:
    word = text.lower()
    if word not in words:
        hint = nearest_hint(word, words, noun=f"{noun}s")
        raise _refused(f"The {noun} {text[:50]!r} does not exist; {hint}.")
    return word


def _pinned(name: str, value: str) -> Predicate:
    word = _plain(name, value).lower()
    if word not in ("yes", "no"):
        raise _refused("pinned: must be yes or no.")
    return Comparison("pinned", "is", word == "yes")


def _field(_name: str, value: str) -> Predicate:
    match = _FIELD.fullmatch(value)
    if match is None or not match[1].strip('"'):
        raise _refused(
            "Write field:NAME or field:NAME=VALUE, such as field:city, field:city=Berlin or "
            'field:"due date"="next week".'
        )
    name = match[1].strip('"')
    if match[2] is None:
        return Comparison("field", "has", (name,))
    if not match[3]:
        raise _refused(
            f'Write a value after "=": field:{name}=Berlin. For any value write field:{name}, for an '
            f'empty one field:{name}="".'
        )
    return Comparison("field", "has", (name, match[3].strip('"')))


def _compared(name: str, value: str, read: Callable[[str], float | int | dt.date]) -> Predicate:
    text = _plain(name, value)
    low, dots, high = text.partition("..")
    if dots and low and high:
        bounds = read(low), read(high)
        if bounds[0] > bounds[1]:  # type: ignore[operator]
            raise _refused(f"The range is in the wrong order; write {name}:{high}..{low}.")
        return AllOf((Comparison(name, ">=", bounds[0]), Comparison(name, "<=", bounds[1])))
    op, bound = _ordered(text)
    if not bound:
        raise _refused(f"{name}: needs something to compare with, such as {EXAMPLES[name]}.")
    return Comparison(name, op, read(bound))


def _ordered(text: str) -> tuple[str, str]:
    match = _ORDER.fullmatch(text)
    assert match is not None
    return _SIGNS.get(match[1], match[1]), match[2]


def _salience(name: str, value: str) -> Predicate:
    found = _compared(name, value, _decimal)
    if isinstance(found, Comparison) and found.op == "is":
        raise _refused(
            "Salience changes all the time, so it cannot be compared with an exact number. Write salience:<0.5, "
            "salience:>=0.5 or salience:0.4..0.6."
        )
    return found


def _decimal(text: str) -> float:
    if not _DECIMAL.fullmatch(text):
        raise _refused(f"{text[:30]!r} is not a number such as 0.1 or 2.")
    return float(text)


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise _refused(f"{text[:30]!r} is not a whole number such as 3.")
    return int(text)


def _moment(name: str, value: str) -> Predicate:
    text = _plain(name, value)
    if name == "used" and text.lower() == "never":
        return Comparison("used", "is", None)
    op, bound = _ordered(text)
    if ".." not in text and bound and not _DAY.fullmatch(bound):
        try:
            seconds = duration_parse(bound)
        except ValueRefused as problem:
            raise _refused(
                f"{bound[:30]!r} is neither a day such as 2026-05-01 nor a length of time such as 30d, 2w or 24h."
            ) from problem
        return _since(name, "age" if name == "created" else "idle", op, bound, seconds)
    return _compared(name, value, _day)


def _elapsed(name: str, value: str) -> Predicate:
    op, bound = _ordered(_plain(name, value))
    if not bound:
        raise _refused(f"{name}: needs something to compare with, such as {EXAMPLES[name]}.")
    return _since(name, name, op, bound, duration_parse(bound))


def _since(name: str, field: str, op: str, bound: str, seconds: float) -> Predicate:
    if op == "is":
        raise _refused(f"Longer or shorter? Write {name}:>{bound[:30]} or {name}:<{bound[:30]}.")
    return Comparison(field, op, seconds)


def _day(text: str) -> dt.date:
    try:
        day = dt.date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        day = None
    if day is None or not FIRST_DAY <= day <= LAST_DAY:
        raise _refused(f"{text[:30]!r} is not a day such as 2026-05-01.")
    return day


# For each qualifier, the function that parses its values, and a valid value.
_QUALIFIERS: dict[str, tuple[Callable[[str, str], Predicate], str]] = {
    "id": (_id, "01991f3a"),
    "scope": (lambda name, value: Comparison(name, "within", scope_normalize(_plain(name, value))), "/user/mara"),
    "kind": (_named, "note"),
    "rung": (lambda name, value: Comparison(name, "is", _one_of(_plain(name, value), RUNGS, name)), "archived"),
    "category": (_named, "work"),
    "by": (_by, '"tour agent"'),
    "title": (_contains, "tap"),
    "summary": (_contains, "tap"),
    "field": (_field, "city=Berlin"),
    "salience": (_salience, "<0.1"),
    "created": (_moment, "<2026-05-01"),
    "age": (_elapsed, ">30d"),
    "used": (_moment, ">30d"),
    "idle": (_elapsed, ">30d"),
    "retrievals": (lambda name, value: _compared(name, value, _whole), ">3"),
    "pinned": (_pinned, "yes"),
    "provenance": (_named, "api"),
    "is": (_is, "archived"),
}
# An example of each qualifier.
EXAMPLES = {name: f"{name}:{value}" for name, (_read, value) in _QUALIFIERS.items()}
