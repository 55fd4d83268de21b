"""Conditions and rules in plain English, for pages, plans and refusals."""

from collections.abc import Sequence

from memory.domain.conditions import AllOf, AnyOf, Comparison, Condition, Not, condition_parse, value_words
from memory.domain.durations import duration_words
from memory.domain.rules import Rule

_EVENTS = {
    "ingest_complete": "after an ingest",
    "query_complete": "after a query",
    "cron": "on each scheduled run",
    "memory_pressure": "under memory pressure",
    "manual": "in a run by hand",
}
_ORDER = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}
# What "not" makes of an operator, where it has an opposite.
_OPPOSITE = {"is": "is_not", "is_not": "is", "in": "not_in", "not_in": "in", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_NOUNS = {
    "age": "age",
    "idle": "time since the last use",
    "retrievals": "number of retrievals",
    "text": "title or summary",
}


def condition_describe(condition: Condition) -> str:
    """Return a condition as a clause about topics: ``whose kind is tool_output and whose age is at least 7 days``."""
    return _clause(condition, negated=False, inner=False)


def rule_describe(rule: Rule) -> str:
    """Return a rule as a sentence, beginning with its events."""
    events = listed([_EVENTS[event] for event in rule.events])
    if rule.action == "categorize":
        doing = f"add the category {_quoted(rule.category)} to topics"
    else:
        doing = f"{rule.action} topics"
    off = "" if rule.enabled else " (Switched off.)"
    return f"{events[0].upper()}{events[1:]}: {doing} {condition_describe(condition_parse(rule.condition))}.{off}"


def listed(words: Sequence[str], conjunction: str = "and") -> str:
    """Return words as a list in a sentence: ``a, b and c``."""
    *before, last = words
    return f"{', '.join(before)} {conjunction} {last}" if before else last


def _clause(condition: Condition, *, negated: bool, inner: bool) -> str:
    match condition:
        case Comparison():
            return _comparison(condition, negated)
        case Not(part):
            return _clause(part, negated=not negated, inner=inner)
        case AllOf(parts) | AnyOf(parts):
            # Not all of them hold: one does not. None of them holds: each does not.
            word = "and" if isinstance(condition, AllOf) is not negated else "or"
            if len(parts) == 1:
                return _clause(parts[0], negated=negated, inner=inner)
            said = f" {word} ".join(_clause(part, negated=negated, inner=True) for part in parts)
            return f"({said})" if inner else said


def _comparison(comparison: Comparison, negated: bool) -> str:
    op = comparison.op
    not_ = "not " if negated else ""
    match comparison.field:
        case "scope":
            path = str(comparison.value)
            return f"that are {not_}in scope {path}" if op == "is" else f"that are {not_}within scope {path}"
        case "category":
            named = listed([_quoted(word) for word in value_words(comparison)], "or")
            return f"that {'do not have' if negated else 'have'} the category {named}"
        case "pinned":
            return "that are pinned" if bool(comparison.value) is not negated else "that are not pinned"
        case "title" | "summary" | "text" as field:
            noun = _NOUNS.get(field, field)
            if op == "matches":
                return f"whose {noun} {'does not match' if negated else 'matches'} the pattern {comparison.value}"
            return f"whose {noun} {'does not contain' if negated else 'contains'} {_quoted(str(comparison.value))}"
        case field:
            return f"whose {_NOUNS.get(field, field)} {_relation(comparison, negated)}"


def _relation(comparison: Comparison, negated: bool) -> str:
    op = _OPPOSITE[comparison.op] if negated else comparison.op
    if op in _ORDER:
        told = f"{comparison.value:.15g}" if isinstance(comparison.value, (int, float)) else str(comparison.value)
        if comparison.field in ("age", "idle"):
            told = duration_words(float(told))
        return f"is {_ORDER[op]} {told}"
    not_ = "not " if op in ("is_not", "not_in") else ""
    words = [_quoted(word) for word in value_words(comparison)]
    if len(words) == 1:
        return f"is {not_}{words[0]}"
    return f"is neither {listed(words, 'nor')}" if not_ else f"is {listed(words, 'or')}"


def _quoted(word: str) -> str:
    """Return a word as it is, or in quotes where it would not be seen as one."""
    return word if word and all(sign.isalnum() or sign in "_-./:@" for sign in word) else f"“{word}”"
