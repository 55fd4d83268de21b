"""What a lookup asks for, as a tree.

``lookup_language`` reads it from what people type; ``memory/recall/lookup_sql.py`` says it in SQL. The language is in
docs/lookup.md.
"""

import datetime as dt
from collections.abc import Container
from dataclasses import dataclass

from memory.domain.durations import SECONDS

LIVE, ARCHIVED, RELEASED = "live", "archived", "released"
STANDINGS = (LIVE, ARCHIVED, RELEASED)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the topic's title, summary or current values, in any of its forms."""

    text: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words exactly as they stand, capitals aside."""

    text: str


@dataclass(frozen=True, slots=True)
class IdBegins:
    """The identifier begins with these hexadecimal digits, 32 at most, without dashes."""

    digits: str


@dataclass(frozen=True, slots=True)
class Within:
    """The topic lies at this scope, a canonical path, or below it."""

    path: str


@dataclass(frozen=True, slots=True)
class Named:
    """``kind``, ``category`` or ``provenance`` is exactly this."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class OnRung:
    """The topic stands on this rung."""

    rung: str


@dataclass(frozen=True, slots=True)
class HasField:
    """The topic has a field of this name, and if ``value`` is given that is its current value, capitals aside."""

    name: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """``pinned``, ``live`` or ``released`` is so."""

    name: str
    value: bool = True


@dataclass(frozen=True, slots=True)
class Compare:
    """``salience``, ``retrievals``, ``created`` or ``used`` beside a number or a day in UTC."""

    name: str
    op: str
    value: float | int | dt.date


@dataclass(frozen=True, slots=True)
class Between:
    """The same between two bounds, both included."""

    name: str
    low: float | int | dt.date
    high: float | int | dt.date


@dataclass(frozen=True, slots=True)
class Elapsed:
    """So many seconds since ``created``, or since ``used``: the last retrieval, else the creation."""

    name: str
    op: str
    seconds: float


@dataclass(frozen=True, slots=True)
class NeverUsed:
    """No query has ever returned the topic."""


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: "Tree"


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part holds; there are at least two, and none is an ``AllOf``."""

    parts: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part holds; there are at least two, and none is an ``AnyOf``."""

    parts: tuple["Tree", ...]


Leaf = Word | Phrase | IdBegins | Within | Named | OnRung | HasField | Flag | Compare | Between | Elapsed | NeverUsed
Tree = Leaf | Not | AllOf | AnyOf


def tree_all(*parts: Tree | None) -> Tree | None:
    """Return the tree in which every part holds, None if there is none."""
    return _joined(AllOf, [part for part in parts if part is not None])


def tree_any(*parts: Tree | None) -> Tree | None:
    """Return the tree in which at least one part holds, None if there is none."""
    return _joined(AnyOf, [part for part in parts if part is not None])


def _joined(kind: type[AllOf] | type[AnyOf], parts: list[Tree]) -> Tree | None:
    flat: list[Tree] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) else (part,))
    return kind(tuple(flat)) if len(flat) > 1 else flat[0] if flat else None


def tree_parts(tree: Tree | None) -> tuple[Tree, ...]:
    """Return what all has to hold: the parts of an ``AllOf``, else the tree itself."""
    if tree is None:
        return ()
    return tree.parts if isinstance(tree, AllOf) else (tree,)


def tree_texts(tree: Tree | None) -> list[str]:
    """Return the words and phrases of a tree, each once, in their order."""
    match tree:
        case None:
            found: list[str] = []
        case Word(text) | Phrase(text):
            found = [text]
        case Not(part):
            found = tree_texts(part)
        case AllOf(parts) | AnyOf(parts):
            found = [text for part in parts for text in tree_texts(part)]
        case _:
            found = []
    return list(dict.fromkeys(found))


def tree_wanted(tree: Tree | None) -> list[str]:
    """Return the words and phrases that are asked for, not those that are excluded."""
    match tree:
        case Not():
            return []
        case AllOf(parts) | AnyOf(parts):
            return list(dict.fromkeys(text for part in parts for text in tree_wanted(part)))
        case _:
            return tree_texts(tree)


def tree_without(tree: Tree | None, words: Container[str]) -> Tree | None:
    """Return the tree without those ``Word``s: what tells nothing apart asks for nothing."""
    match tree:
        case Word(text):
            return None if text in words else tree
        case Not(part):
            left = tree_without(part, words)
            return None if left is None else Not(left)
        case AllOf(parts):
            return tree_all(*(tree_without(part, words) for part in parts))
        case AnyOf(parts):
            return tree_any(*(tree_without(part, words) for part in parts))
        case _:
            return tree


def tree_question(tree: Tree | None) -> tuple[str, Tree | None]:
    """Return the question that the words and phrases at the top ask, and the conditions that are left.

    A word at the top asks, as in a query: it need not occur. A phrase asks and is a condition as well.
    """
    parts = tree_parts(tree)
    asked = [part.text for part in parts if isinstance(part, (Word, Phrase))]
    return " ".join(asked), tree_all(*(part for part in parts if not isinstance(part, Word)))


def tree_scope(tree: Tree | None) -> str:
    """Return the scope that everything has to lie in, the narrowest of those at the top."""
    return max((part.path for part in tree_parts(tree) if isinstance(part, Within)), key=len, default="/")


def tree_standings(tree: Tree | None) -> tuple[str, ...]:
    """Return which of ``STANDINGS`` a list has to look at. Released topics are looked at only if ``is:released`` asks
    for them."""
    found = [LIVE, ARCHIVED]
    if _asks_released(tree):
        found.append(RELEASED)
    for part in tree_parts(tree):
        match part:
            case Flag("released", True):
                found = [standing for standing in found if standing == RELEASED]
            case Flag("live", True) | Not(OnRung("archived")):
                found = [standing for standing in found if standing != ARCHIVED]
            case OnRung(rung):
                gone = LIVE if rung == ARCHIVED else ARCHIVED
                found = [standing for standing in found if standing != gone]
            case _:
                pass
    return tuple(found)


def _asks_released(tree: Tree | None) -> bool:
    match tree:
        case Flag("released", True):
            return True
        case AllOf(parts) | AnyOf(parts):
            return any(_asks_released(part) for part in parts)
        case _:
            return False


# --- As text ---------------------------------------------------------------------------------------------------------


def tree_words(tree: Tree | None) -> str:
    """Return a tree as people would type it; read again, it gives the same tree."""
    match tree:
        case None:
            return ""
        case AllOf(parts):
            return " ".join(f"({tree_words(part)})" if isinstance(part, AnyOf) else tree_words(part) for part in parts)
        case AnyOf(parts):
            return " OR ".join(tree_words(part) for part in parts)
        case Not(part):
            said = tree_words(part)
            return f"-({said})" if isinstance(part, (AllOf, AnyOf)) else f"-{said}"
        case _:
            return _leaf_words(tree)


def _leaf_words(leaf: Leaf) -> str:
    match leaf:
        case Word(text):
            return text
        case Phrase(text):
            return f'"{text}"'
        case IdBegins(digits):
            return f"id:{_dashed(digits)}"
        case Within(path):
            return f"scope:{_quoted(path)}"
        case Named(name, value):
            return f"{name}:{_quoted(value)}"
        case OnRung(rung):
            return f"rung:{rung}"
        case HasField(name, value):
            return f"field:{_quoted(name)}" + (f"={_quoted(value)}" if value is not None else "")
        case Flag("pinned", value):
            return f"pinned:{'yes' if value else 'no'}"
        case Flag(name, _):
            return f"is:{name}"
        case Compare(name, op, value):
            return f"{name}:{'' if op == '=' else op}{_bound(value)}"
        case Between(name, low, high):
            return f"{name}:{_bound(low)}..{_bound(high)}"
        case Elapsed(name, op, seconds):
            return f"{name}:{op}{_length(seconds)}"
        case NeverUsed():
            return "used:never"


def _quoted(text: str) -> str:
    plain = text and not any(letter.isspace() or letter in "()=" for letter in text)
    return text if plain else f'"{text}"'


def _dashed(digits: str) -> str:
    groups = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return "-".join(group for group in groups if group)


def _bound(value: float | dt.date) -> str:
    if isinstance(value, float):
        # As many digits as can be typed, and never an exponent.
        return f"{value:.12f}".rstrip("0").rstrip(".")
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def _length(seconds: float) -> str:
    whole = int(seconds)
    unit = next(unit for unit in ("d", "h", "min", "s") if whole % SECONDS[unit] == 0)
    return f"{whole // SECONDS[unit]}{unit}"
