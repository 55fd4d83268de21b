"""Parses JSON from outside within limits, and refuses text that cannot be stored."""

import json
import math
import re
from typing import Any

from memory.core.errors import RequestRefused, ValueRefused
from memory.core.problem_codes import ProblemCode

# Either a whole string or one bracket. Strings are matched so that brackets within them do not count. Possessive
# quantifiers and an optional closing quote keep the time linear in the length of any input.
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


def _depth_bounded(text: str, limit: int, what: str) -> None:
    # The parser is recursive, so the depth is checked before it runs.
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        first = text[match.start()]
        if first in "[{":
            depth += 1
            if depth > limit:
                raise RequestRefused(
                    f"{what} is nested more than {limit} levels deep, which is the limit.",
                    code=ProblemCode.INVALID_JSON,
                )
        elif first in "]}":
            depth -= 1


def _refuse_unstorable(value: Any, what: str) -> None:
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            if "\x00" in part:
                raise ValueRefused(f"{what} contains a NUL character, which cannot be stored.")
            if _SURROGATE.search(part):
                raise ValueRefused(f"{what} contains half of a surrogate pair, which is not a character.")
        elif isinstance(part, dict):
            stack.extend(part.keys())
            stack.extend(part.values())
        elif isinstance(part, list):
            stack.extend(part)


def json_guarded(raw: bytes, *, max_depth: int, what: str = "The body") -> Any:
    """Return the parsed value of a JSON document. Error sentences call the document ``what``. Raises ``RequestRefused``
    if it is not JSON in UTF-8 or too deep, and ``ValueRefused`` for numbers that are not finite and text that
    PostgreSQL cannot store."""

    def refuse_constant(name: str) -> None:
        raise ValueRefused(f"{what} contains {name}; numbers must be finite.")

    def finite(digits: str) -> float:
        number = float(digits)
        if math.isinf(number):
            raise ValueRefused(f"{what} contains a number that is out of range.")
        return number

    try:
        text = raw.decode()
    except UnicodeDecodeError as problem:
        raise RequestRefused(
            f"{what} is not UTF-8: byte {problem.start} cannot be read.", code=ProblemCode.INVALID_JSON
        ) from problem
    # Most texts have so few brackets that they cannot be nested too deeply.
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
    # Valid JSON in UTF-8 can contain NUL and surrogates only as escapes.
    if "\\u" in text:
        _refuse_unstorable(value, what)
    return value
