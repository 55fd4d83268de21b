"""The nodes of a predicate tree: comparisons of fields with values, words, phrases, and the operators all, any and
not."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

RUNGS = ("active", "summarized", "detached", "archived")

Value = str | float | int | bool | dt.date | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison of a field with a value. A list of values is a tuple. ``age`` and ``idle`` are in seconds,
    ``created`` and ``used`` are days in UTC. The value None of ``used`` means that no query has returned the topic.
    ``by`` names a caller that wrote a part of the topic. The value of ``field`` is a tuple: the name of a field and, if
    its value is compared, a text. With ``begins``, the value of ``id`` is the beginning of an id: hexadecimal digits
    without dashes."""

    field: str
    op: str
    value: Value


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the topic's title, summary or current values, in any of its forms."""

    text: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """An exact text in title, summary or current values, ignoring case."""

    text: str


@dataclass(frozen=True, slots=True)
class AllOf:
    """All parts hold. ``parts`` is not empty."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part holds. ``parts`` is not empty."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: "Predicate"


Leaf = Comparison | Word | Phrase
Predicate = Leaf | AllOf | AnyOf | Not


def all_of(*parts: Predicate | None) -> Predicate | None:
    """Return the predicate that is true if every part is true; None if there is no part. Nested ``AllOf`` are
    merged."""
    return _joined(AllOf, [part for part in parts if part is not None])


def any_of(*parts: Predicate | None) -> Predicate | None:
    """Return the predicate that is true if a part is true; None if there is no part. Nested ``AnyOf`` are merged."""
    return _joined(AnyOf, [part for part in parts if part is not None])


def _joined(kind: type[AllOf] | type[AnyOf], parts: list[Predicate]) -> Predicate | None:
    flat: list[Predicate] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) else (part,))
    return kind(tuple(flat)) if len(flat) > 1 else flat[0] if flat else None


# Conditions that depend on how a topic was used, and on the rung that it has because of that.
_OF_USE = frozenset({"idle", "used", "retrievals", "score", "salience", "rung"})


def has_fixed_period(predicate: Predicate) -> bool:
    """Return whether a condition is a time to live: it requires an age, and nothing that depends on use."""
    ages = [
        part
        for part in (predicate.parts if isinstance(predicate, AllOf) else (predicate,))
        if isinstance(part, Comparison) and part.field == "age" and part.op in (">", ">=")
    ]
    fields = {leaf.field for leaf, _negated in leaves(predicate) if isinstance(leaf, Comparison)}
    return bool(ages) and not fields & _OF_USE


def leaves(predicate: Predicate | None, *, negated: bool = False) -> Iterator[tuple[Leaf, bool]]:
    """Yield (leaf, negated) from left to right. ``negated``: the leaf is below an odd number of ``Not``."""
    match predicate:
        case None:
            pass
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from leaves(part, negated=negated)
        case Not(part):
            yield from leaves(part, negated=not negated)
        case _:
            yield predicate, negated


def comparisons(predicate: Predicate) -> Iterator[tuple[Comparison, bool]]:
    """Yield (comparison, negated) from left to right, without words and phrases."""
    for leaf, negated in leaves(predicate):
        if isinstance(leaf, Comparison):
            yield leaf, negated


def needs_time(predicate: Predicate, *, negated: bool = False) -> bool:
    """Return whether time must pass before a new topic can meet this predicate."""
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            found = [needs_time(part, negated=negated) for part in parts]
            return any(found) if isinstance(predicate, AllOf) is not negated else all(found)
        case Not(part):
            return needs_time(part, negated=not negated)
        case Comparison("age" | "idle", op, float() | int() as seconds):
            # Age and idle time of a new topic are 0, which is enough for "at least 0".
            return (op in ("<", "<=") if negated else op in (">", ">=")) and seconds > 0
        case _:
            return False


def categories_of(predicate: Predicate) -> frozenset[str]:
    """Return the categories that a predicate compares with, negated or not."""
    return frozenset(
        category
        for comparison, _negated in comparisons(predicate)
        if comparison.field == "category"
        for category in value_words(comparison)
    )


def patterns_of(predicate: Predicate) -> tuple[str, ...]:
    """Return the patterns in a predicate, each once, in their order."""
    found = (value_words(part)[-1] for part, _negated in comparisons(predicate) if part.op == "matches")
    return tuple(dict.fromkeys(found))


def value_words(comparison: Comparison) -> tuple[str, ...]:
    """Return the value of a comparison as a tuple of words, even if it is a single word."""
    return comparison.value if isinstance(comparison.value, tuple) else (str(comparison.value),)
