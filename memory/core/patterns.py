"""Patterns: regular expressions of Python that always ignore case, bounded so that matching is fast. The parse tree is
checked and translated to PostgreSQL, so that a pattern has the same meaning in Python and PostgreSQL."""

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

# ASCII characters that are white space in Python and not in PostgreSQL.
_SEPARATORS = r"\u001C-\u001F"
_CLASSES = {"CATEGORY_DIGIT": "[:digit:]", "CATEGORY_SPACE": f"[:space:]{_SEPARATORS}", "CATEGORY_WORD": "[:alnum:]_"}
_AT = {
    "AT_BEGINNING": r"\A",
    "AT_BEGINNING_STRING": r"\A",
    # In Python, ``$`` also matches before a line feed at the end of the text.
    "AT_END": r"(?=\u000A?\Z)",
    "AT_END_STRING": r"\Z",
    "AT_BOUNDARY": r"\y",
    # In Python, ``\B`` never matches in an empty text.
    "AT_NON_BOUNDARY": r"\Y(?:(?=.)|(?<=.))",
}


class PatternRefused(ValueRefused):
    """A pattern is outside the common, safe subset (422)."""

    code = ProblemCode.INVALID_PATTERN


def pattern_check(pattern: str) -> None:
    """Raise ``ValueRefused`` for a pattern outside the common, safe subset."""
    _tree(pattern)


def pattern_to_postgres(pattern: str) -> str:
    """Return ``pattern`` for PostgreSQL's ``~*``, which then matches the same ASCII texts as ``re.search`` with
    ``IGNORECASE``. For other letters, the locale of the database decides. Raises ``ValueRefused`` for the same patterns
    as ``pattern_check``."""
    return _sequence(_tree(pattern))


def _tree(pattern: str) -> Any:
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
    return tree


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


def _sequence(tree: Any) -> str:
    return "".join(_part(str(op), argument) for op, argument in tree)


def _part(name: str, argument: Any) -> str:
    match name:
        case "LITERAL":
            return _escaped(argument)
        case "NOT_LITERAL":
            return f"[^{_escaped_in_brackets(argument)}]"
        case "ANY":
            # Python's dot stops at line feeds.
            return r"[^\u000A]"
        case "AT":
            return _AT[str(argument)]
        case "IN":
            return _bracket(argument)
        case "SUBPATTERN":
            return f"(?:{_sequence(argument[3])})"
        case "BRANCH":
            return f"(?:{'|'.join(_sequence(branch) for branch in argument[1])})"
        case _:
            least, most, body = argument
            # Greedy and lazy repeats are translated alike, because both match the same texts.
            end = "" if most == _UNBOUNDED else str(int(most))
            return f"(?:{_sequence(body)}){{{least},{end}}}"


def _escaped(code: int) -> str:
    character = chr(code)
    return character if character.isalnum() or code > 127 else f"\\u{code:04X}"


def _escaped_in_brackets(code: int) -> str:
    # All characters are escaped, so that none has a special meaning within brackets.
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _bracket(items: Any) -> str:
    """Return the translation of a set of characters. PostgreSQL does not allow classes such as ``\\W`` within brackets,
    so they become alternatives."""
    negated, plain, others = False, "", []
    for op, argument in items:
        name = str(op)
        if name == "NEGATE":
            negated = True
        elif name == "LITERAL":
            plain += _escaped_in_brackets(argument)
        elif name == "RANGE":
            plain += f"{_escaped_in_brackets(argument[0])}-{_escaped_in_brackets(argument[1])}"
        elif (category := str(argument)) in _CLASSES:
            plain += _CLASSES[category]
        else:
            others.append(f"[^{_CLASSES[category.replace('_NOT_', '_')]}]")
    if not others:
        return f"[{'^' if negated else ''}{plain}]"
    alternatives = "|".join(([f"[{plain}]"] if plain else []) + others)
    # In PostgreSQL the dot also matches a line feed.
    return f"(?:(?!{alternatives}).)" if negated else f"(?:{alternatives})"
