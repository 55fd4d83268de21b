"""The tree of a predicate: comparisons with the fields of a topic, words that it contains, and all, any and not."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

RUNGS = ("active", "summarized", "detached", "archived")

Value = str | float | int | bool | dt.date | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison of a field with a value; lists are tuples.

    ``age`` and ``idle`` are compared in seconds, ``created`` and ``used`` with days in UTC; ``used`` is None for topics
    that no query has returned. ``by`` is the name of a caller that wrote the topic or a part of it. ``field`` has a
    name, or a name and what its current value is, contains or matches. ``id`` begins with hexadecimal digits, 32 at
    most, without dashes.
    """

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
    """Every part holds; there is at least one."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part holds; there is at least one."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: "Predicate"


Leaf = Comparison | Word | Phrase
Predicate = Leaf | AllOf | AnyOf | Not


def all_of(*parts: Predicate | None) -> Predicate | None:
    """Return the predicate in which every part holds, without nesting; None if there is no part."""
    return _joined(AllOf, [part for part in parts if part is not None])


def any_of(*parts: Predicate | None) -> Predicate | None:
    """Return the predicate in which at least one part holds, without nesting; None if there is no part."""
    return _joined(AnyOf, [part for part in parts if part is not None])


def _joined(kind: type[AllOf] | type[AnyOf], parts: list[Predicate]) -> Predicate | None:
    flat: list[Predicate] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) else (part,))
    return kind(tuple(flat)) if len(flat) > 1 else flat[0] if flat else None


def leaves(predicate: Predicate | None, *, negated: bool = False) -> Iterator[tuple[Leaf, bool]]:
    """Yield every leaf from left to right, each with whether an odd number of ``Not`` stands above it."""
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
    """Yield every comparison, each with whether an odd number of ``Not`` stands above it."""
    for leaf, negated in leaves(predicate):
        if isinstance(leaf, Comparison):
            yield leaf, negated


def takes_time(predicate: Predicate, *, negated: bool = False) -> bool:
    """Return whether a predicate cannot hold for a topic that was made just now, because of its age or idle time."""
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            found = [takes_time(part, negated=negated) for part in parts]
            return any(found) if isinstance(predicate, AllOf) is not negated else all(found)
        case Not(part):
            return takes_time(part, negated=not negated)
        case Comparison("age" | "idle", op, float() | int() as seconds):
            # A new topic has neither, so that "at least" and its opposite never hold at 0 and below.
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
    """Return the patterns that a predicate matches with, each once, in their order."""
    found = (value_words(part)[-1] for part, _negated in comparisons(predicate) if part.op == "matches")
    return tuple(dict.fromkeys(found))


def value_words(comparison: Comparison) -> tuple[str, ...]:
    """Return the value of a comparison of words as a tuple, whether it is one or a list."""
    return comparison.value if isinstance(comparison.value, tuple) else (str(comparison.value),)
