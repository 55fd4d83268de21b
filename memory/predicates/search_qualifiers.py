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

# An example of each qualifier.
EXAMPLES = {
    "id": "id:01991f3a",
    "scope": "scope:/user/mara",
    "kind": "kind:note",
    "rung": "rung:archived",
    "category": "category:work",
    "by": 'by:"tour agent"',
    "title": "title:tap",
    "summary": "summary:tap",
    "field": "field:city=Berlin",
    "salience": "salience:<0.1",
    "created": "created:<2026-05-01",
    "age": "age:>30d",
    "used": "used:>30d",
    "idle": "idle:>30d",
    "retrievals": "retrievals:>3",
    "pinned": "pinned:yes",
    "provenance": "provenance:api",
    "is": "is:archived",
}
IS = (*RUNGS, "live", "pinned", "released")
_ORDER = re.compile(r"(<=|>=|<|>|=|≤|≥)?(.*)", re.DOTALL)
_SIGNS = {"≤": "<=", "≥": ">=", "=": "is", None: "is"}
_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{0,12})?|\.[0-9]{1,12}", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,9}", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_FIELD = re.compile(r'("[^"]*"|[^"=]*)(?:(=)("[^"]*"|[^"]*))?')


def qualifier_read(name: str, value: str) -> Predicate:
    """Return the predicate of a qualifier. ``name`` is one of ``EXAMPLES``; ``value`` may be in quotes.

    Raises ``ValueRefused``, which shows a valid value.
    """
    return _READERS[name](name, value)


def _plain(name: str, value: str) -> str:
    """Return a value without its quotes."""
    quoted = len(value) >= 2 and value.startswith('"') and value.endswith('"')
    text = value[1:-1] if quoted else value
    if '"' in text:
        raise ValueRefused(
            f'Quotes go around the whole value, such as {name}:"two words".', code=ProblemCode.INVALID_LOOKUP_VALUE
        )
    return text


def _id(name: str, value: str) -> Predicate:
    digits = _plain(name, value).replace("-", "").lower()
    if not re.fullmatch(r"[0-9a-f]{1,32}", digits, re.ASCII):
        raise ValueRefused(
            "An id has 32 of the digits 0-9 and a-f, with optional dashes. Its first digits are enough.",
            code=ProblemCode.INVALID_LOOKUP_VALUE,
        )
    return Comparison("id", "begins", digits)


def _scope(name: str, value: str) -> Predicate:
    return Comparison("scope", "within", scope_normalize(_plain(name, value)))


def _named(name: str, value: str) -> Predicate:
    return Comparison(name, "has" if name == "category" else "is", _plain(name, value))


def _by(name: str, value: str) -> Predicate:
    caller = _plain(name, value).strip()
    if not caller:
        raise ValueRefused("Write who wrote it, such as by:admin.", code=ProblemCode.INVALID_LOOKUP_VALUE)
    return Comparison("by", "is", caller)


def _contains(name: str, value: str) -> Predicate:
    text = _plain(name, value)
    if not text:
        raise ValueRefused("An empty text is contained in every text.", code=ProblemCode.INVALID_LOOKUP_VALUE)
    return Comparison(name, "contains", text)


def _rung(name: str, value: str) -> Predicate:
    return Comparison("rung", "is", _one_of(_plain(name, value), RUNGS, "rung"))


def _is(name: str, value: str) -> Predicate:
    word = _one_of(_plain(name, value), IS, "state")
    return Comparison("rung", "is", word) if word in RUNGS else Comparison(word, "is", True)


def _one_of(text: str, words: tuple[str, ...], noun: str) -> str:
    word = text.lower()
    if word not in words:
        hint = nearest_hint(word, words, noun=f"{noun}s")
        raise ValueRefused(f"The {noun} {text[:50]!r} does not exist; {hint}.", code=ProblemCode.INVALID_LOOKUP_VALUE)
    return word


def _pinned(name: str, value: str) -> Predicate:
    word = _plain(name, value).lower()
    if word not in ("yes", "no"):
        raise ValueRefused("pinned: must be yes or no.", code=ProblemCode.INVALID_LOOKUP_VALUE)
    return Comparison("pinned", "is", word == "yes")


def _field(_name: str, value: str) -> Predicate:
    match = _FIELD.fullmatch(value)
    if match is None or not match[1].strip('"'):
        raise ValueRefused(
            "Write field:NAME or field:NAME=VALUE, such as field:city, field:city=Berlin or "
            'field:"due date"="next week".',
            code=ProblemCode.INVALID_LOOKUP_VALUE,
        )
    name = match[1].strip('"')
    if match[2] is None:
        return Comparison("field", "has", (name,))
    if not match[3]:
        raise ValueRefused(
            f'Write a value after "=": field:{name}=Berlin. For any value write field:{name}, for an '
            f'empty one field:{name}="".',
            code=ProblemCode.INVALID_LOOKUP_VALUE,
        )
    return Comparison("field", "has", (name, match[3].strip('"')))


def _compared(name: str, value: str, read: Callable[[str], float | int | dt.date], example: str) -> Predicate:
    text = _plain(name, value)
    low, dots, high = text.partition("..")
    if dots and low and high:
        bounds = read(low), read(high)
        if bounds[0] > bounds[1]:  # type: ignore[operator]
            raise ValueRefused(
                f"The range is in the wrong order; write {name}:{high}..{low}.", code=ProblemCode.INVALID_LOOKUP_VALUE
            )
        return AllOf((Comparison(name, ">=", bounds[0]), Comparison(name, "<=", bounds[1])))
    op, bound = _ordered(text)
    if not bound:
        raise ValueRefused(
            f"{name}: needs something to compare with, such as {example}.", code=ProblemCode.INVALID_LOOKUP_VALUE
        )
    return Comparison(name, op, read(bound))


def _ordered(text: str) -> tuple[str, str]:
    match = _ORDER.fullmatch(text)
    assert match is not None
    return _SIGNS.get(match[1], match[1]), match[2]


def _salience(name: str, value: str) -> Predicate:
    found = _compared(name, value, _decimal, EXAMPLES[name])
    if isinstance(found, Comparison) and found.op == "is":
        raise ValueRefused(
            "Salience changes all the time, so it cannot be compared with an exact number. Write salience:<0.5, "
            "salience:>=0.5 or salience:0.4..0.6.",
            code=ProblemCode.INVALID_LOOKUP_VALUE,
        )
    return found


def _decimal(text: str) -> float:
    if not _DECIMAL.fullmatch(text):
        raise ValueRefused(f"{text[:30]!r} is not a number such as 0.1 or 2.", code=ProblemCode.INVALID_LOOKUP_VALUE)
    return float(text)


def _retrievals(name: str, value: str) -> Predicate:
    return _compared(name, value, _whole, EXAMPLES[name])


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueRefused(f"{text[:30]!r} is not a whole number such as 3.", code=ProblemCode.INVALID_LOOKUP_VALUE)
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
            raise ValueRefused(
                f"{bound[:30]!r} is neither a day such as 2026-05-01 nor a length of time such as 30d, 2w or 24h.",
                code=ProblemCode.INVALID_LOOKUP_VALUE,
            ) from problem
        return _since(name, "age" if name == "created" else "idle", op, bound, seconds)
    return _compared(name, value, _day, f"{name}:>=2026-05-01")


def _elapsed(name: str, value: str) -> Predicate:
    op, bound = _ordered(_plain(name, value))
    if not bound:
        raise ValueRefused(
            f"{name}: needs something to compare with, such as {EXAMPLES[name]}.", code=ProblemCode.INVALID_LOOKUP_VALUE
        )
    return _since(name, name, op, bound, duration_parse(bound))


def _since(name: str, field: str, op: str, bound: str, seconds: float) -> Predicate:
    if op == "is":
        raise ValueRefused(
            f"Longer or shorter? Write {name}:>{bound[:30]} or {name}:<{bound[:30]}.",
            code=ProblemCode.INVALID_LOOKUP_VALUE,
        )
    return Comparison(field, op, seconds)


def _day(text: str) -> dt.date:
    try:
        day = dt.date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        day = None
    if day is None or not FIRST_DAY <= day <= LAST_DAY:
        raise ValueRefused(f"{text[:30]!r} is not a day such as 2026-05-01.", code=ProblemCode.INVALID_LOOKUP_VALUE)
    return day


_READERS: dict[str, Callable[[str, str], Predicate]] = {
    "id": _id,
    "scope": _scope,
    "kind": _named,
    "category": _named,
    "title": _contains,
    "summary": _contains,
    "provenance": _named,
    "by": _by,
    "rung": _rung,
    "is": _is,
    "field": _field,
    "pinned": _pinned,
    "salience": _salience,
    "retrievals": _retrievals,
    "created": _moment,
    "age": _elapsed,
    "used": _moment,
    "idle": _elapsed,
}
