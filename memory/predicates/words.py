"""Predicates and rules in plain English, for pages, plans and problems."""

import datetime as dt
from collections.abc import Sequence

from memory.core.durations import duration_words
from memory.core.rules import COMPACT, Rule
from memory.predicates.rule_conditions import condition_parse
from memory.predicates.tree import AllOf, AnyOf, Comparison, Leaf, Not, Phrase, Predicate, Word, value_words

_EVENTS = {
    "ingest_complete": "after an ingest",
    "query_complete": "after a recall",
    "cron": "on each scheduled run",
    "memory_pressure": "under memory pressure",
    "manual": "in a manual run",
}
_ORDER = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}
_ORDER_OF_DAYS = {"<": "before", "<=": "on or before", ">": "after", ">=": "on or after"}
# The opposites of operators, for "not".
_OPPOSITE = {"is": "is_not", "is_not": "is", "in": "not_in", "not_in": "in", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_NOUNS = {
    "idle": "time since the last use",
    "retrievals": "number of recalls",
    "text": "title, summary or field",
    "created": "day of creation",
    "used": "day of the last use",
}


def predicate_describe(predicate: Predicate) -> str:
    """Return a predicate as a clause about topics: ``whose kind is tool_output and whose age is at least 7 days``."""
    return _clause(predicate, negated=False, inner=False)


def rule_describe(rule: Rule) -> str:
    """Return a rule as a sentence, beginning with its events."""
    events = listed([_EVENTS[event] for event in rule.events])
    if rule.action == "categorize":
        doing = f"add the category {_quoted(rule.category)} to memories"
    elif rule.action == COMPACT:
        doing = "combine into one memory each group of similar memories"
    else:
        doing = f"{rule.action} memories"
    off = "" if rule.enabled else " (Switched off.)"
    return f"{events[0].upper()}{events[1:]}: {doing} {predicate_describe(condition_parse(rule.condition))}.{off}"


def listed(words: Sequence[str], conjunction: str = "and") -> str:
    """Return words as a list in a sentence: ``a, b and c``."""
    *before, last = words
    return f"{', '.join(before)} {conjunction} {last}" if before else last


def _clause(predicate: Predicate, *, negated: bool, inner: bool) -> str:
    match predicate:
        case Not(part):
            return _clause(part, negated=not negated, inner=inner)
        case AllOf(parts) | AnyOf(parts):
            # De Morgan: the negation turns "and" into "or" and negates each part.
            word = "and" if isinstance(predicate, AllOf) is not negated else "or"
            if len(parts) == 1:
                return _clause(parts[0], negated=negated, inner=inner)
            clauses = f" {word} ".join(_clause(part, negated=negated, inner=True) for part in parts)
            return f"({clauses})" if inner else clauses
        case _:
            return _leaf(predicate, negated)


def _leaf(leaf: Leaf, negated: bool) -> str:
    not_, do_not = ("not ", "do not ") if negated else ("", "")
    match leaf:
        case Word(text):
            return f"that {do_not}mention {_quoted(text)}"
        case Phrase(text):
            return f"that {do_not}say “{text}”"
        case Comparison("scope", "is", path):
            return f"that are {not_}in scope {path}"
        case Comparison("scope", _, path):
            return f"that are {not_}within scope {path}"
        case Comparison("category"):
            return f"that {do_not}have the category {listed([_quoted(word) for word in value_words(leaf)], 'or')}"
        case Comparison("pinned" | "live" | "released" as state, _, value):
            return f"that are {state}" if bool(value) is not negated else f"that are not {state}"
        case Comparison("by", _, name):
            return f"that were {not_}written by {_quoted(str(name))}"
        case Comparison("used", "is", None):
            return f"that were {'' if negated else 'never '}used"
        case Comparison("field", _, (name,)):
            return f"that {do_not}have the field {_quoted(str(name))}"
        case Comparison("field", "contains" | "matches" as op, (name, value)):
            verb = {"contains": "contain", "matches": "match the pattern"}[op]
            verb = f"does not {verb}" if negated else verb.replace("contain", "contains").replace("match ", "matches ")
            return f"whose field {_quoted(str(name))} {verb} {_quoted(str(value)) if op == 'contains' else value}"
        case Comparison("field", _, (name, value)):
            return f"whose field {_quoted(str(name))} is {not_}{_quoted(str(value))}"
        case Comparison("id", "begins", digits):
            return f"whose id {'does not begin' if negated else 'begins'} with {digits}"
        case Comparison(field, "matches", value):
            verb = "does not match" if negated else "matches"
            return f"whose {_NOUNS.get(field, field)} {verb} the pattern {value}"
        case Comparison(field, "contains", value):
            verb = "does not contain" if negated else "contains"
            return f"whose {_NOUNS.get(field, field)} {verb} {_quoted(str(value))}"
        case Comparison(field):
            return f"whose {_NOUNS.get(field, field)} {_relation(leaf, negated)}"


def _relation(comparison: Comparison, negated: bool) -> str:
    value = comparison.value
    if isinstance(value, dt.date) and comparison.op in _ORDER:
        # The opposite comparison would exclude topics that were never used, so "not" is kept.
        return f"is {'not ' if negated else ''}{_ORDER_OF_DAYS[comparison.op]} {value}"
    op = _OPPOSITE[comparison.op] if negated else comparison.op
    if op in _ORDER:
        if comparison.field in ("age", "idle") and isinstance(value, (int, float)):
            return f"is {_ORDER[op]} {duration_words(value)}"
        return f"is {_ORDER[op]} {f'{value:.15g}' if isinstance(value, (int, float)) else value}"
    not_ = "not " if op in ("is_not", "not_in") else ""
    words = [_quoted(word) for word in value_words(comparison)]
    if len(words) == 1:
        return f"is {not_}{words[0]}"
    return f"is neither {listed(words, 'nor')}" if not_ else f"is {listed(words, 'or')}"


def _quoted(word: str) -> str:
    """Return a word, in quotes if it has characters that could be misread in a sentence."""
    return word if word and all(sign.isalnum() or sign in "_-./:@" for sign in word) else f"“{word}”"
