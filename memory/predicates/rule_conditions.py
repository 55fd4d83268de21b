"""The conditions of rules as JSON: a tree of all, any, not and comparisons. The grammar is in docs/rules.md."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeGuard

from memory.core.durations import duration_parse, duration_text, seconds_bounded
from memory.core.errors import ValueRefused
from memory.core.patterns import pattern_check
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import scope_normalize
from memory.predicates.tree import RUNGS, AllOf, AnyOf, Comparison, Not, Predicate, Value

MAX_DEPTH = 8
MAX_COMPARISONS = 50
MAX_LIST = 100
MAX_TEXT = 200
MAX_NUMBER = 1_000_000_000

FieldType = Literal["word", "scope", "category", "duration", "count", "number", "rung", "switch", "text"]
FIELDS: dict[str, FieldType] = {
    "kind": "word",
    "scope": "scope",
    "category": "category",
    "age": "duration",
    "idle": "duration",
    "retrievals": "count",
    "score": "number",
    "salience": "number",
    "provenance": "word",
    "rung": "rung",
    "pinned": "switch",
    "title": "text",
    "summary": "text",
    "text": "text",
}

_ORDER = ("<", "<=", ">", ">=")
ORDER_NAMES = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_WORD_OPERATORS = ("is", "is_not", "in", "not_in")
OPERATORS: dict[FieldType, tuple[str, ...]] = {
    "word": _WORD_OPERATORS,
    "rung": _WORD_OPERATORS,
    "scope": ("within", "is"),
    "category": ("has", "has_any"),
    "duration": _ORDER,
    "count": ("is", *_ORDER),
    "number": _ORDER,
    "switch": ("is",),
    "text": ("matches", "contains"),
}
NAMED_FIELD_OPERATORS = ("is", "contains", "matches", "has")
LIST_OPERATORS = ("in", "not_in", "has_any")


def condition_parse(data: object) -> Predicate:
    """Return the condition of a JSON tree. Raises ``ValueRefused``, whose message names the invalid place and what is
    allowed there."""
    return _parse(data, "condition", 1, [MAX_COMPARISONS])


def condition_json(condition: Predicate) -> dict[str, Any]:
    """Return the canonical JSON tree of a condition. Raises ``TypeError`` for search words, which rules do not have."""
    match condition:
        case AllOf(parts):
            return {"all": [condition_json(part) for part in parts]}
        case AnyOf(parts):
            return {"any": [condition_json(part) for part in parts]}
        case Not(part):
            return {"not": condition_json(part)}
        case Comparison("field", op, (name,)):
            return {"field": {"name": name, "op": op}}
        case Comparison("field", op, (name, text)):
            return {"field": {"name": name, "op": "is" if op == "has" else op, "value": text}}
        case Comparison(field, op, value):
            stored: object = list(value) if isinstance(value, tuple) else value
            if FIELDS[field] == "duration" and isinstance(value, float):
                stored = duration_text(value)
            return {"field": field, "op": op, "value": stored}
    raise TypeError(f"Rules have no {condition!r}.")


def _parse(data: object, place: str, depth: int, remaining: list[int]) -> Predicate:
    """Parse the part of the tree at ``place``. The only entry of ``remaining`` is the number of comparisons that may
    follow."""
    if depth > MAX_DEPTH:
        raise _refused(place, f": a condition may be nested at most {MAX_DEPTH} levels deep.")
    if not isinstance(data, dict):
        raise _refused(place, " must be an object: one of all, any, not, or a comparison with field, op and value.")
    names = {str(name) for name in data}
    match names:
        case _ if names == {"all"} or names == {"any"}:
            (name,) = names
            parts = data[name]
            if not isinstance(parts, list) or not parts:
                raise _refused(f"{place}.{name}", " must be a list of at least one condition.")
            if len(parts) > MAX_LIST:
                raise _refused(f"{place}.{name}", f" takes at most {MAX_LIST} conditions; {len(parts)} were given.")
            parsed = tuple(_parse(part, f"{place}.{name}[{at}]", depth + 1, remaining) for at, part in enumerate(parts))
            return AllOf(parsed) if name == "all" else AnyOf(parsed)
        case _ if names == {"not"}:
            return Not(_parse(data["not"], f"{place}.not", depth + 1, remaining))
        case _ if names in ({"field", "op", "value"}, {"field"}):
            remaining[0] -= 1
            if remaining[0] < 0:
                raise _refused(place, f": a condition may have at most {MAX_COMPARISONS} comparisons.")
            if names == {"field"}:
                return _named_field(data["field"], f"{place}.field")
            return _comparison(data["field"], data["op"], data["value"], place)
    raise _refused(
        place,
        " must have exactly one of all, any, not, or exactly field, op and value; "
        f"it has {', '.join(sorted(name[:50] for name in names)[:10]) or 'nothing'}.",
    )


def _named_field(data: object, place: str) -> Comparison:
    """Return the comparison of one field of a topic: ``{name, op, value}``, without a value for ``has``."""
    if not isinstance(data, dict) or not isinstance(data.get("name"), str) or not data["name"]:
        raise _refused(place, " must be an object with the name of a field, op and value.")
    op = data.get("op")
    if op not in NAMED_FIELD_OPERATORS:
        raise _refused(
            f"{place}.op",
            f": a named field cannot be compared with {_shown(op)}; use one of {', '.join(NAMED_FIELD_OPERATORS)}.",
        )
    wanted = {"name", "op"} if op == "has" else {"name", "op", "value"}
    if set(data) != wanted:
        raise _refused(place, f" must have exactly {', '.join(sorted(wanted))}.")
    with _at(f"{place}.value"):
        name = _text(data["name"])
        if op == "has":
            return Comparison("field", "has", (name,))
        return Comparison("field", op, (name, str(_value("text" if op != "is" else "word", op, data["value"]))))


def _comparison(field: object, op: object, value: object, place: str) -> Comparison:
    if not isinstance(field, str) or field not in FIELDS:
        raise _refused(f"{place}.field", f": the field {_shown(field)} does not exist; fields are {', '.join(FIELDS)}.")
    kind = FIELDS[field]
    sign = ORDER_NAMES.get(op, op) if isinstance(op, str) else None
    if sign not in OPERATORS[kind]:
        raise _refused(
            f"{place}.op", f": {_shown(op)} does not apply to {field}; use one of {', '.join(OPERATORS[kind])}."
        )
    with _at(f"{place}.value"):
        return Comparison(field, sign, _value(kind, sign, value))


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Put ``place`` before the sentence of a refusal."""
    try:
        yield
    except ValueRefused as problem:
        raise ValueRefused(f"{place}: {problem.sentence}", code=problem.code, member=place) from None


def _value(kind: FieldType, op: str, value: object) -> Value:
    if op in LIST_OPERATORS:
        return _list(kind, value)
    match kind:
        case "duration":
            return _duration(value)
        case "count":
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_NUMBER:
                raise _value_refused(f"{_shown(value)} is not a whole number between 0 and {MAX_NUMBER}.")
            return value
        case "number":
            if not _is_number(value) or not -MAX_NUMBER <= value <= MAX_NUMBER:
                raise _value_refused(f"{_shown(value)} is not a number between -{MAX_NUMBER} and {MAX_NUMBER}.")
            return float(value)
        case "switch":
            if not isinstance(value, bool):
                raise _value_refused(f"{_shown(value)} is neither true nor false.")
            return value
        case "scope":
            return scope_normalize(_text(value))
        case "rung":
            return _rung(value)
        case "text":
            text = _text(value)
            if op == "matches":
                pattern_check(text)
            elif not text:
                raise _value_refused("an empty text is contained in every text.")
            return text
        case "category":
            return _category(value)
        case "word":
            return _text(value)


def _list(kind: FieldType, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise _value_refused(f"{_shown(value)} must be a list of at least one text.")
    if len(value) > MAX_LIST:
        raise _value_refused(f"a list takes at most {MAX_LIST} texts; {len(value)} were given.")
    read: Callable[[object], str] = {"rung": _rung, "category": _category}.get(kind, _text)
    return tuple(dict.fromkeys(read(word) for word in value))


def _duration(value: object) -> float:
    if isinstance(value, str):
        return duration_parse(value)
    if not _is_number(value):
        raise _value_refused(f"{_shown(value)} is neither a duration such as 30d nor a number of seconds.")
    return float(seconds_bounded(value))


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _rung(value: object) -> str:
    if value not in RUNGS:
        raise _value_refused(f"{_shown(value)} is not a stage; stages are {', '.join(RUNGS)}.")
    return str(value)


def _category(value: object) -> str:
    text = _text(value)
    if not text:
        raise _value_refused("a category must not be empty.")
    return text


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _value_refused(f"{_shown(value)} is not a text.")
    if len(value) > MAX_TEXT:
        raise _value_refused(f"a text has at most {MAX_TEXT} characters; this one has {len(value)}.")
    # PostgreSQL cannot store these characters.
    if "\x00" in value or re.search("[\ud800-\udfff]", value):
        raise _value_refused("a text must not contain NUL characters or halves of surrogate pairs.")
    return value


def _refused(place: str, sentence: str) -> ValueRefused:
    """Return the problem of a condition at ``place``, which begins the sentence."""
    return ValueRefused(f"{place}{sentence}", code=ProblemCode.INVALID_RULE, member=place)


def _value_refused(sentence: str) -> ValueRefused:
    return ValueRefused(sentence, code=ProblemCode.INVALID_RULE)


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
