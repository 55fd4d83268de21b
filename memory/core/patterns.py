"""Patterns: regular expressions that PostgreSQL evaluates and that always ignore case. Python's parser checks them, so
that what is refused does not depend on a database, and matching is fast."""

import importlib
import re
import warnings
from typing import Any

from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode

MAX_PATTERN = 200
MAX_REPEATS = 100
MAX_NESTED_REPEATS = 1000
# The maximum number of repeats without an upper bound. Each repeat enlarges the automaton of the database.
MAX_OPEN_REPEATS = 10

# The parser behind ``re.compile``. The standard library has no public access to the parse tree.
_parser: Any = importlib.import_module("re._parser")
_UNBOUNDED = int(_parser.MAXREPEAT)

_REFUSED = {
    "GROUPREF": "back-references",
    "GROUPREF_IGNORE": "back-references",
    "GROUPREF_EXISTS": "conditional groups",
    "ASSERT": "look-ahead and look-behind",
    "ASSERT_NOT": "look-ahead and look-behind",
    "ATOMIC_GROUP": "atomic groups",
    "POSSESSIVE_REPEAT": "possessive repeats",
}
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")

# What PostgreSQL writes differently: word boundaries, ``\xhh``, ``{,n}``, and a brace that is no count.
_DIFFERENT = re.compile(r"\\x([0-9a-fA-F]{2})|\\(.)|\{,(\d+)\}|\{(?!\d+(?:,\d*)?\})", re.DOTALL)
_BOUNDARIES = {"b": r"\y", "B": r"\Y"}


class PatternRefused(ValueRefused):
    """A pattern is outside the allowed subset (422)."""

    code = ProblemCode.INVALID_PATTERN


def pattern_check(pattern: str) -> None:
    """Raise ``ValueRefused`` for a pattern outside the allowed subset."""
    if len(pattern) > MAX_PATTERN:
        raise PatternRefused(f"A pattern has at most {MAX_PATTERN} characters; this one has {len(pattern)}.")
    if not pattern:
        raise PatternRefused("An empty pattern matches every text.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = _parser.parse(pattern)
            # The compiler of ``re`` refuses some patterns that the parser accepts.
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as problem:
        raise PatternRefused(f"The pattern {pattern!r} is malformed: {problem}.") from None
    if tree.state.groupdict:
        raise _refused("named groups")
    if tree.state.flags != re.UNICODE:
        raise _refused("flags such as (?i); case is always ignored")
    opened = _walk(tree, 1)
    if opened > MAX_OPEN_REPEATS:
        raise PatternRefused(
            f"A pattern may have at most {MAX_OPEN_REPEATS} repeats without an upper bound; this one has {opened}."
        )


def pattern_to_postgres(pattern: str) -> str:
    """Return a checked pattern for PostgreSQL's ``~*``."""
    return _DIFFERENT.sub(_as_in_postgres, pattern)


def _as_in_postgres(found: re.Match[str]) -> str:
    code, escaped, most = found.groups()
    if code:
        return f"\\u00{code}"
    if escaped:
        return _BOUNDARIES.get(escaped, found[0])
    return f"{{0,{most}}}" if most else r"\{"


def _refused(what: str) -> PatternRefused:
    return PatternRefused(f"A pattern must not use {what}.")


def _walk(tree: Any, times: int) -> int:
    """Check a sequence that may be repeated ``times`` times. Return its number of repeats without an upper bound."""
    opened = 0
    for op, argument in tree:
        name = str(op)
        if name in _REFUSED:
            raise _refused(_REFUSED[name])
        if name == "LITERAL" and not _storable(argument):
            raise _refused("NUL characters or halves of surrogate pairs")
        if name in _REPEATS:
            least, most, body = argument
            opened += _repeat_check(int(least), int(most), body, times)
        elif name == "SUBPATTERN":
            _group, adding, removing, body = argument
            if adding or removing:
                raise _refused("flags such as (?i:...); case is always ignored")
            opened += _walk(body, times)
        elif name == "BRANCH":
            opened += sum(_walk(branch, times) for branch in argument[1])
        elif name not in ("LITERAL", "NOT_LITERAL", "ANY", "IN", "AT"):
            raise _refused(f"{name.lower()}")
    return opened


def _repeat_check(least: int, most: int, body: Any, times: int) -> int:
    endless = most == _UNBOUNDED
    count = least if endless else most
    if count > MAX_REPEATS:
        raise PatternRefused(
            f"A pattern may repeat a part at most {MAX_REPEATS} times; this one repeats a part {count} times."
        )
    if times * max(1, count) > MAX_NESTED_REPEATS:
        raise PatternRefused(f"The nested repeats of a pattern must not multiply to more than {MAX_NESTED_REPEATS}.")
    if endless or most > 1:
        if body.getwidth()[0] == 0:
            raise PatternRefused("A pattern must not repeat a part that can be empty, such as (a?)*.")
    elif body.getwidth()[1] == 0:
        raise PatternRefused("A pattern must not repeat a part that is always empty.")
    return int(endless) + _walk(body, times * max(1, count))


def _storable(code: int) -> bool:
    return code != 0 and not 0xD800 <= code <= 0xDFFF
