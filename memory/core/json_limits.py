"""JSON from outside: parsed within limits, and free of what cannot be stored."""

import json
import math
import re
from typing import Any

from memory.core.errors import RequestRefused, ValueRefused
from memory.core.problem_codes import ProblemCode

# A whole string, which is skipped because brackets within it do not count, or one bracket. The quantifiers never give
# back what they took, and a string may end with the text, so that the time is linear in the length whatever is sent.
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)


def _depth_bounded(text: str, limit: int, what: str) -> None:
    # The parser recurses, so depth is counted before it runs.
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        first = text[match.start()]
        if first in "[{":
            depth += 1
            if depth > limit:
                raise RequestRefused(
                    f"{what} nests deeper than {limit} levels, which is the limit.", code=ProblemCode.JSON_TOO_DEEP
                )
        elif first in "]}":
            depth -= 1


def _refuse_unstorable(value: Any, what: str) -> None:
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            if "\x00" in part:
                raise ValueRefused(
                    f"{what} contains a NUL character, which cannot be stored.", code=ProblemCode.INVALID_CHARACTER
                )
            if not part.isascii() and not _encodes(part):
                raise ValueRefused(
                    f"{what} contains half of a surrogate pair, which is no character.",
                    code=ProblemCode.INVALID_CHARACTER,
                )
        elif isinstance(part, dict):
            stack.extend(part.keys())
            stack.extend(part.values())
        elif isinstance(part, list):
            stack.extend(part)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def json_guarded(raw: bytes, *, max_depth: int, what: str = "The body") -> Any:
    """Return the value of a JSON document; sentences begin with ``what`` it is.

    Raises ``RequestRefused`` for what is not JSON in UTF-8 or nests deeper than ``max_depth``, ``ValueRefused`` for
    numbers that are not finite and text that PostgreSQL cannot hold.
    """

    def refuse_constant(name: str) -> None:
        raise ValueRefused(f"{what} contains {name}; numbers must be finite.", code=ProblemCode.NUMBER_NOT_FINITE)

    def finite(digits: str) -> float:
        number = float(digits)
        if math.isinf(number):
            raise ValueRefused(f"{what} contains a number too large to be finite.", code=ProblemCode.NUMBER_NOT_FINITE)
        return number

    try:
        text = raw.decode()
    except UnicodeDecodeError as problem:
        raise RequestRefused(
            f"{what} is not UTF-8: byte {problem.start} cannot be read.", code=ProblemCode.INVALID_JSON
        ) from problem
    # Fewer brackets than levels allowed cannot nest too deep: the common case needs no count.
    if text.count("[") + text.count("{") > max_depth:
        _depth_bounded(text, max_depth, what)
    try:
        value = json.loads(text, parse_constant=refuse_constant, parse_float=finite)
    except json.JSONDecodeError as problem:
        raise RequestRefused(
            f"{what} is not JSON: {problem.msg} at line {problem.lineno}, column {problem.colno}.",
            code=ProblemCode.INVALID_JSON,
        ) from problem
    except ValueError as problem:
        raise RequestRefused(f"{what} holds a number with too many digits.", code=ProblemCode.INVALID_JSON) from problem
    # What is UTF-8 and JSON holds neither as it is: both can only be written as an escape.
    if "\\u" in text:
        _refuse_unstorable(value, what)
    return value
