"""What a condition says of one topic, worked out by itself in Python, to compare the SQL with."""

import datetime as dt
import operator
import re
from dataclasses import dataclass
from typing import Any

from memory.core.scopes import scope_within
from memory.predicates.tree import AllOf, AnyOf, Comparison, Not, Predicate, value_words

_ORDER: dict[str, Any] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What a condition may ask about one topic; score and salience at the moment of asking."""

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


def condition_holds(condition: Predicate, facts: TopicFacts, *, now: dt.datetime) -> bool:
    match condition:
        case AllOf(parts):
            return all(condition_holds(part, facts, now=now) for part in parts)
        case AnyOf(parts):
            return any(condition_holds(part, facts, now=now) for part in parts)
        case Not(part):
            return not condition_holds(part, facts, now=now)
        case Comparison():
            return _compare(condition, facts, now)
    raise AssertionError(condition)


def _compare(comparison: Comparison, facts: TopicFacts, now: dt.datetime) -> bool:
    op = comparison.op
    value: Any = comparison.value
    match comparison.field:
        case "scope":
            return scope_within(facts.scope, str(value)) if op == "within" else facts.scope == value
        case "category":
            return not facts.categories.isdisjoint(value_words(comparison))
        case "age":
            return _ORDER[op](now - facts.created_at, dt.timedelta(seconds=float(value)))
        case "idle":
            used = facts.last_retrieved_at or facts.created_at
            return _ORDER[op](now - used, dt.timedelta(seconds=float(value)))
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
