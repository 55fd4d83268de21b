"""Whether a repeated part of a pattern can match one text in two ways, which is what makes backtracking explode.

The part is taken apart into its character positions, and for each position into the positions that may come next
(Glushkov, 1961). If two that may come next accept a character in common, or one may come next in two ways, a matcher
has to guess; in a loop the guesses multiply. Without such a pair there is exactly one way to match, and no guessing.
The test is cautious: it also refuses a few patterns that would do no harm.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")

# Sets of characters as bits: one for each of ASCII, with letters in lower case, and one for each class of all others.
_DIGITS, _SPACES, _LETTERS, _SIGNS = (1 << place for place in range(128, 132))
_BEYOND = _DIGITS | _SPACES | _LETTERS | _SIGNS


def loop_ambiguous(body: Any) -> bool:
    """Tell whether ``body``, a parsed part that is repeated, can match one text in two ways."""
    least, most = body.getwidth()
    if least == most and not _branches(body):
        # Always the same length and the same way through: nothing to guess, as in (\\d{3}){2}.
        return False
    positions = _Positions()
    first, last, _empty = positions.sequence(body)
    positions.follow(last, first)
    return (
        positions.empty_twice
        or _overlap(first, positions.masks)
        or any(_overlap(nexts, positions.masks) for nexts in positions.nexts)
    )


def _branches(tree: Any) -> bool:
    for op, argument in tree:
        name = str(op)
        inner = argument[3] if name == "SUBPATTERN" else argument[2] if name in _REPEATS else ()
        if name == "BRANCH" or _branches(inner):
            return True
    return False


def _overlap(places: list[int], masks: list[int]) -> bool:
    seen = 0
    for place in places:
        if seen & masks[place]:
            return True
        seen |= masks[place]
    return False


class _Positions:
    """The positions of a part: what each accepts, and which may come next, as often as there are ways."""

    def __init__(self) -> None:
        self.masks: list[int] = []
        self.nexts: list[list[int]] = []
        # Whether some part can be empty in two ways, which shows in no position: (a?|b?), (a?)?, (.|.).
        self.empty_twice = False

    def follow(self, last: list[int], first: list[int]) -> None:
        for place in last:
            self.nexts[place].extend(first)

    def sequence(self, tree: Any) -> tuple[list[int], list[int], bool]:
        """Return the positions at which a sequence can begin and end, and whether it can be empty."""
        first: list[int] = []
        last: list[int] = []
        empty = True
        for op, argument in tree:
            part_first, part_last, part_empty = self.part(str(op), argument)
            self.follow(last, part_first)
            first = first + part_first if empty else first
            last = last + part_last if part_empty else part_last
            empty = empty and part_empty
        return first, last, empty

    def part(self, name: str, argument: Any) -> tuple[list[int], list[int], bool]:
        if name == "AT":
            return [], [], True
        if name == "SUBPATTERN":
            return self.sequence(argument[3])
        if name == "BRANCH":
            branches = [self.sequence(branch) for branch in argument[1]]
            self.empty_twice = self.empty_twice or sum(empty for _first, _last, empty in branches) > 1
            return (
                [place for first, _last, _empty in branches for place in first],
                [place for _first, last, _empty in branches for place in last],
                any(empty for _first, _last, empty in branches),
            )
        if name in _REPEATS:
            least, most, body = argument
            first, last, empty = self.sequence(body)
            if most > 1:
                self.follow(last, first)
            self.empty_twice = self.empty_twice or (empty and (least == 0 or most > 1))
            return first, last, empty or least == 0
        self.masks.append(_mask(name, argument))
        self.nexts.append([])
        place = len(self.masks) - 1
        return [place], [place], False


def _bit(code: int) -> int:
    character = chr(code)
    if code < 128:
        return 1 << ord(character.lower())
    if character.isdecimal():
        return _DIGITS
    if character.isspace():
        return _SPACES
    return _LETTERS if character.isalnum() else _SIGNS


def _bits(wanted: Callable[[str], bool]) -> int:
    return functools.reduce(operator.or_, (_bit(code) for code in range(128) if wanted(chr(code))), 0)


_ALL = _bits(lambda _character: True) | _BEYOND
_CLASSES = {
    "DIGIT": _bits(str.isdecimal) | _DIGITS,
    "SPACE": _bits(str.isspace) | _SPACES,
    "WORD": _bits(lambda character: character.isalnum() or character == "_") | _DIGITS | _LETTERS,
}


def _mask(name: str, argument: Any) -> int:
    """Return all that one position may accept."""
    match name:
        case "LITERAL":
            return _bit(argument)
        case "NOT_LITERAL":
            return _ALL & ~_bit(argument) if argument < 128 else _ALL
        case "IN":
            return _set(argument)
        case _:
            # The dot.
            return _ALL


def _set(items: Any) -> int:
    # ``whole`` is what is surely meant entirely; of a class beyond ASCII a single character means only a part.
    some, whole, negated = 0, 0, False
    for op, argument in items:
        match str(op):
            case "NEGATE":
                negated = True
            case "CATEGORY":
                kind = str(argument).removeprefix("CATEGORY_")
                mask = _CLASSES[kind] if kind in _CLASSES else _ALL & ~_CLASSES[kind.removeprefix("NOT_")]
                some, whole = some | mask, whole | mask
            case name:
                low, high = argument if name == "RANGE" else (argument, argument)
                mask = functools.reduce(operator.or_, (_bit(code) for code in range(low, min(high, 127) + 1)), 0)
                some, whole = some | mask | (0 if high < 128 else _BEYOND), whole | mask
    return _ALL & ~whole if negated else some
