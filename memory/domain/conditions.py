"""Conditions: a small tree of comparisons on what is known of a topic. The grammar is in docs/rules.md.

A condition exists as the JSON that people write, as the tree here, and as SQL (``memory/forgetting/conditions.py``).
``tests/properties/test_condition_equality.py`` proves that ``condition_matches`` and the SQL choose the same topics.
"""

import datetime as dt
import math
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from memory.domain.durations import duration_parse, duration_text, seconds_bounded
from memory.domain.errors import ValueRefused
from memory.domain.patterns import pattern_check
from memory.domain.problem_codes import ProblemCode
from memory.domain.scopes import scope_normalize, scope_within

MAX_DEPTH = 8
MAX_COMPARISONS = 50
MAX_LIST = 100
MAX_TEXT = 200
MAX_NUMBER = 1_000_000_000

RUNGS = ("active", "summarized", "detached", "archived")

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

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ORDER_NAMES = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_WORD_OPERATORS = ("is", "is_not", "in", "not_in")
OPERATORS: dict[FieldType, tuple[str, ...]] = {
    "word": _WORD_OPERATORS,
    "rung": _WORD_OPERATORS,
    "scope": ("within", "is"),
    "category": ("has", "has_any"),
    "duration": tuple(_ORDER),
    "count": ("is", *_ORDER),
    "number": tuple(_ORDER),
    "switch": ("is",),
    "text": ("matches", "contains"),
}
LIST_OPERATORS = ("in", "not_in", "has_any")

Value = str | float | int | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison. ``age`` and ``idle`` are compared in seconds; lists are tuples."""

    field: str
    op: str
    value: Value


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part holds; there is at least one."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part holds."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: "Condition"


Condition = Comparison | AllOf | AnyOf | Not


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What a condition may ask about one topic. ``score`` and ``salience`` are those of the moment of asking."""

    kind: str
    scope: str
    categories: frozenset[str]
    created_at: dt.datetime
    last_retrieved_at: dt.datetime | None
    retrievals: int
    score: float
    salience: float
    provenance: str
    rung: str
    pinned: bool
    title: str
    summary: str


def condition_parse(data: object) -> Condition:
    """Return the condition that a JSON tree says.

    Raises ``ValueRefused`` with a sentence that names the place in the tree and what would be possible there.
    """
    left = [MAX_COMPARISONS]
    return _parse(data, "condition", 1, left)


def condition_json(condition: Condition) -> dict[str, Any]:
    """Return the canonical JSON tree, which parses to an equal condition: operators as signs, durations as ``7d``."""
    match condition:
        case AllOf(parts):
            return {"all": [condition_json(part) for part in parts]}
        case AnyOf(parts):
            return {"any": [condition_json(part) for part in parts]}
        case Not(part):
            return {"not": condition_json(part)}
        case Comparison(field, op, value):
            told: object = value
            if isinstance(value, tuple):
                told = list(value)
            elif FIELDS[field] == "duration":
                told = duration_text(float(value))
            return {"field": field, "op": op, "value": told}


def condition_matches(condition: Condition, facts: TopicFacts, *, now: dt.datetime) -> bool:
    """Tell whether a topic fulfils a condition at ``now``: the twin of the SQL, for tests and for one topic at a time.

    PostgreSQL matches patterns without going back; Python does go back, and takes its time over long texts.
    """
    match condition:
        case AllOf(parts):
            return all(condition_matches(part, facts, now=now) for part in parts)
        case AnyOf(parts):
            return any(condition_matches(part, facts, now=now) for part in parts)
        case Not(part):
            return not condition_matches(part, facts, now=now)
        case Comparison():
            return _compare(condition, facts, now)


def condition_comparisons(condition: Condition, *, negated: bool = False) -> Iterator[tuple[Comparison, bool]]:
    """Return every comparison, each with whether an odd number of ``not`` stands above it."""
    match condition:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from condition_comparisons(part, negated=negated)
        case Not(part):
            yield from condition_comparisons(part, negated=not negated)
        case Comparison():
            yield condition, negated


def condition_categories(condition: Condition) -> frozenset[str]:
    """Return the categories that a condition asks for, negated or not."""
    return frozenset(
        category
        for comparison, _negated in condition_comparisons(condition)
        if comparison.field == "category"
        for category in value_words(comparison)
    )


def condition_patterns(condition: Condition) -> tuple[str, ...]:
    """Return the patterns that a condition matches with, each once, in their order."""
    found = (str(part.value) for part, _negated in condition_comparisons(condition) if part.op == "matches")
    return tuple(dict.fromkeys(found))


def value_words(comparison: Comparison) -> tuple[str, ...]:
    """Return the value of a comparison of words as a tuple, whether it is one or a list."""
    return comparison.value if isinstance(comparison.value, tuple) else (str(comparison.value),)


def _parse(data: object, place: str, depth: int, left: list[int]) -> Condition:
    if depth > MAX_DEPTH:
        raise ValueRefused(
            f"{place}: a condition nests at most {MAX_DEPTH} levels deep.", code=ProblemCode.INVALID_CONDITION
        )
    if not isinstance(data, dict):
        raise ValueRefused(
            f"{place} must be an object: one of all, any, not, or a comparison with field, op and value.",
            code=ProblemCode.INVALID_CONDITION,
        )
    names = {str(name) for name in data}
    match names:
        case _ if names == {"all"} or names == {"any"}:
            (name,) = names
            parts = data[name]
            if not isinstance(parts, list) or not parts:
                raise ValueRefused(
                    f"{place}.{name} must be a list of at least one condition.", code=ProblemCode.INVALID_CONDITION
                )
            if len(parts) > MAX_LIST:
                raise ValueRefused(
                    f"{place}.{name} takes at most {MAX_LIST} conditions; {len(parts)} were given.",
                    code=ProblemCode.INVALID_CONDITION,
                )
            parsed = tuple(_parse(part, f"{place}.{name}[{at}]", depth + 1, left) for at, part in enumerate(parts))
            return AllOf(parsed) if name == "all" else AnyOf(parsed)
        case _ if names == {"not"}:
            return Not(_parse(data["not"], f"{place}.not", depth + 1, left))
        case _ if names == {"field", "op", "value"}:
            left[0] -= 1
            if left[0] < 0:
                raise ValueRefused(
                    f"{place}: a condition holds at most {MAX_COMPARISONS} comparisons.",
                    code=ProblemCode.INVALID_CONDITION,
                )
            return _comparison(data["field"], data["op"], data["value"], place)
    raise ValueRefused(
        f"{place} must hold exactly one of all, any, not, or exactly field, op and value; "
        f"it holds {', '.join(sorted(name[:50] for name in names)[:10]) or 'nothing'}.",
        code=ProblemCode.INVALID_CONDITION,
    )


def _comparison(field: object, op: object, value: object, place: str) -> Comparison:
    if not isinstance(field, str) or field not in FIELDS:
        raise ValueRefused(
            f"{place}.field: there is no field {_shown(field)}; there are {', '.join(FIELDS)}.",
            code=ProblemCode.UNKNOWN_CONDITION_FIELD,
        )
    kind = FIELDS[field]
    sign = ORDER_NAMES.get(op, op) if isinstance(op, str) else None
    if sign not in OPERATORS[kind]:
        raise ValueRefused(
            f"{place}.op: {field} cannot be compared with {_shown(op)}; possible are {', '.join(OPERATORS[kind])}.",
            code=ProblemCode.UNKNOWN_OPERATOR,
        )
    try:
        return Comparison(field, sign, _value(kind, sign, value))
    except ValueRefused as problem:
        raise ValueRefused(f"{place}.value: {problem.sentence}", code=problem.code) from None


def _value(kind: FieldType, op: str, value: object) -> Value:
    if op in LIST_OPERATORS:
        return _list(kind, value)
    match kind:
        case "duration":
            return _duration(value)
        case "count":
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_NUMBER:
                raise ValueRefused(
                    f"{_shown(value)} is no whole number between 0 and {MAX_NUMBER}.",
                    code=ProblemCode.INVALID_CONDITION_VALUE,
                )
            return value
        case "number":
            return _number(value)
        case "switch":
            if not isinstance(value, bool):
                raise ValueRefused(
                    f"{_shown(value)} is neither true nor false.", code=ProblemCode.INVALID_CONDITION_VALUE
                )
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
                raise ValueRefused(
                    "an empty text is contained in every text.", code=ProblemCode.INVALID_CONDITION_VALUE
                )
            return text
        case "category":
            return _category(value)
        case "word":
            return _text(value)


def _list(kind: FieldType, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ValueRefused(
            f"{_shown(value)} is no list of at least one text.", code=ProblemCode.INVALID_CONDITION_VALUE
        )
    if len(value) > MAX_LIST:
        raise ValueRefused(
            f"a list takes at most {MAX_LIST} texts; {len(value)} were given.", code=ProblemCode.INVALID_CONDITION_VALUE
        )
    read: Callable[[object], str] = {"rung": _rung, "category": _category}.get(kind, _text)
    return tuple(dict.fromkeys(read(word) for word in value))


def _duration(value: object) -> float:
    if isinstance(value, str):
        return duration_parse(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueRefused(
            f"{_shown(value)} is no duration such as 30d, nor a number of seconds.",
            code=ProblemCode.INVALID_CONDITION_VALUE,
        )
    return seconds_bounded(value)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -MAX_NUMBER <= value <= MAX_NUMBER:
        raise ValueRefused(
            f"{_shown(value)} is no number between -{MAX_NUMBER} and {MAX_NUMBER}.",
            code=ProblemCode.INVALID_CONDITION_VALUE,
        )
    number = float(value)
    if math.isnan(number):
        raise ValueRefused("NaN is no number.", code=ProblemCode.INVALID_CONDITION_VALUE)
    return number


def _rung(value: object) -> str:
    if value not in RUNGS:
        raise ValueRefused(
            f"{_shown(value)} is no rung; there are {', '.join(RUNGS)}.", code=ProblemCode.INVALID_CONDITION_VALUE
        )
    return str(value)


def _category(value: object) -> str:
    text = _text(value)
    if not text:
        raise ValueRefused("a category has a name.", code=ProblemCode.INVALID_CONDITION_VALUE)
    return text


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueRefused(f"{_shown(value)} is no text.", code=ProblemCode.INVALID_CONDITION_VALUE)
    if len(value) > MAX_TEXT:
        raise ValueRefused(
            f"a text has at most {MAX_TEXT} characters; this one has {len(value)}.",
            code=ProblemCode.INVALID_CONDITION_VALUE,
        )
    # Neither can be stored.
    if "\x00" in value or re.search("[\ud800-\udfff]", value):
        raise ValueRefused(
            "a text must not hold NUL characters or halves of surrogate pairs.",
            code=ProblemCode.INVALID_CONDITION_VALUE,
        )
    return value


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _compare(comparison: Comparison, facts: TopicFacts, now: dt.datetime) -> bool:
    op, value = comparison.op, comparison.value
    match comparison.field:
        case "scope":
            return scope_within(facts.scope, str(value)) if op == "within" else facts.scope == value
        case "category":
            return not facts.categories.isdisjoint(value_words(comparison))
        case "age":
            return _ORDER[op](now - facts.created_at, dt.timedelta(seconds=float(value)))  # type: ignore[arg-type]
        case "idle":
            used = facts.last_retrieved_at or facts.created_at
            return _ORDER[op](now - used, dt.timedelta(seconds=float(value)))  # type: ignore[arg-type]
        case "retrievals" | "score" | "salience":
            found = getattr(facts, comparison.field)
            return bool(found == value) if op == "is" else _ORDER[op](found, value)
        case "pinned":
            return facts.pinned is value
        case "title" | "summary" | "text":
            texts = (facts.title, facts.summary) if comparison.field == "text" else (getattr(facts, comparison.field),)
            return any(_text_compare(op, str(value), text) for text in texts)
        case _:
            found = getattr(facts, comparison.field) in value_words(comparison)
            return found if op in ("is", "in") else not found


def _text_compare(op: str, value: str, text: str) -> bool:
    if op == "contains":
        return value.lower() in text.lower()
    return re.search(value, text, re.IGNORECASE) is not None
