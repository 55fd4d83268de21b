"""Patterns: the regular expressions that Python and PostgreSQL both read, bounded so that PostgreSQL matches them fast.

A pattern is written as for Python's ``re`` and always ignores case. It is parsed once; what is allowed is decided on
the tree, and the tree is written out again for PostgreSQL (advanced regular expressions), so that no difference in
notation between the two can slip through. Where they differ in meaning, the translation says what Python means.
"""

import importlib
import re
import warnings
from typing import Any

from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode

MAX_PATTERN = 200
MAX_REPEATS = 100
MAX_NESTED_REPEATS = 1000
# Each further one makes the automaton of the database larger.
MAX_OPEN_REPEATS = 10

# The parser behind ``re.compile``; the standard library offers no public door to the tree.
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

# What Python counts as white space within ASCII and PostgreSQL does not.
_SEPARATORS = r"\u001C-\u001F"
_CLASSES = {"CATEGORY_DIGIT": "[:digit:]", "CATEGORY_SPACE": f"[:space:]{_SEPARATORS}", "CATEGORY_WORD": "[:alnum:]_"}
_AT = {
    "AT_BEGINNING": r"\A",
    "AT_BEGINNING_STRING": r"\A",
    # In Python ``$`` also stands before a line feed that ends the text.
    "AT_END": r"(?=\u000A?\Z)",
    "AT_END_STRING": r"\Z",
    "AT_BOUNDARY": r"\y",
    # Nowhere in an empty text, says Python.
    "AT_NON_BOUNDARY": r"\Y(?:(?=.)|(?<=.))",
}


def pattern_check(pattern: str) -> None:
    """Refuse a pattern that is not within the common, safe subset; ``ValueRefused`` says why in a sentence."""
    _tree(pattern)


def pattern_to_postgres(pattern: str) -> str:
    """Return ``pattern`` for PostgreSQL's ``~*``: it matches what ``re.search`` with ``IGNORECASE`` matches.

    For texts in ASCII the two are equal; beyond it, which characters are letters and which pairs differ only in case is
    what the locale of the database says. Raises ``ValueRefused`` as ``pattern_check`` does.
    """
    return _sequence(_tree(pattern))


def _tree(pattern: str) -> Any:
    if len(pattern) > MAX_PATTERN:
        raise ValueRefused(
            f"A pattern has at most {MAX_PATTERN} characters; this one has {len(pattern)}.",
            code=ProblemCode.INVALID_PATTERN,
        )
    if not pattern:
        raise ValueRefused("An empty pattern matches every text.", code=ProblemCode.INVALID_PATTERN)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = _parser.parse(pattern)
            # What the parser lets pass and the compiler does not.
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as problem:
        raise ValueRefused(
            f"The pattern {pattern!r} cannot be read: {problem}.", code=ProblemCode.INVALID_PATTERN
        ) from None
    if tree.state.groupdict:
        raise _refused("named groups")
    if tree.state.flags != re.UNICODE:
        raise _refused("flags such as (?i); case is always ignored")
    opened = _walk(tree, 1)
    if opened > MAX_OPEN_REPEATS:
        raise ValueRefused(
            f"A pattern takes at most {MAX_OPEN_REPEATS} repeats without an end; this one has {opened}.",
            code=ProblemCode.INVALID_PATTERN,
        )
    return tree


def _refused(what: str) -> ValueRefused:
    return ValueRefused(f"A pattern must not use {what}.", code=ProblemCode.INVALID_PATTERN)


def _walk(tree: Any, times: int) -> int:
    """Check a sequence that may be repeated ``times`` times, and return how many repeats without an end it holds."""
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
        raise ValueRefused(
            f"A repeat in a pattern counts to {MAX_REPEATS} at most; this one counts to {count}.",
            code=ProblemCode.INVALID_PATTERN,
        )
    if times * max(1, count) > MAX_NESTED_REPEATS:
        raise ValueRefused(
            f"Repeats within repeats multiply to {MAX_NESTED_REPEATS} at most in a pattern.",
            code=ProblemCode.INVALID_PATTERN,
        )
    if endless or most > 1:
        if body.getwidth()[0] == 0:
            raise ValueRefused(
                "A pattern must not repeat a part that can be empty, such as (a?)*.", code=ProblemCode.INVALID_PATTERN
            )
    elif body.getwidth()[1] == 0:
        raise ValueRefused("A pattern must not repeat a part that is always empty.", code=ProblemCode.INVALID_PATTERN)
    return int(endless) + _walk(body, times * max(1, count))


def _storable(code: int) -> bool:
    return code != 0 and not 0xD800 <= code <= 0xDFFF


def _sequence(tree: Any) -> str:
    return "".join(_part(str(op), argument) for op, argument in tree)


def _part(name: str, argument: Any) -> str:
    match name:
        case "LITERAL":
            return _outside(argument)
        case "NOT_LITERAL":
            return f"[^{_inside(argument)}]"
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
            # Greedy or not decides how much is matched, and nobody asks that here.
            end = "" if most == _UNBOUNDED else str(int(most))
            return f"(?:{_sequence(body)}){{{least},{end}}}"


def _outside(code: int) -> str:
    character = chr(code)
    return character if character.isalnum() or code > 127 else f"\\u{code:04X}"


def _inside(code: int) -> str:
    # By number, so that nothing in brackets has a meaning of its own.
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _bracket(items: Any) -> str:
    """Return a set of characters. A class such as ``\\W`` cannot stand within brackets; it becomes an alternative."""
    negated, plain, others = False, "", []
    for op, argument in items:
        name = str(op)
        if name == "NEGATE":
            negated = True
        elif name == "LITERAL":
            plain += _inside(argument)
        elif name == "RANGE":
            plain += f"{_inside(argument[0])}-{_inside(argument[1])}"
        elif (category := str(argument)) in _CLASSES:
            plain += _CLASSES[category]
        else:
            others.append(f"[^{_CLASSES[category.replace('_NOT_', '_')]}]")
    if not others:
        return f"[{'^' if negated else ''}{plain}]"
    alternatives = "|".join(([f"[{plain}]"] if plain else []) + others)
    # In PostgreSQL the dot is any character at all.
    return f"(?:(?!{alternatives}).)" if negated else f"(?:{alternatives})"
