"""Values of the fields of topics. Each value is stored as text, with a type; the text must be valid for the type."""

import datetime as dt
import json
import math
import re
from collections.abc import Callable, Sequence

from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode

MAX_VALUE_LENGTH = 100_000
_INTEGER = re.compile(r"[+-]?[0-9]{1,300}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _is_float(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and text.isascii() and "_" not in text and text == text.strip()
    except ValueError:
        return False


def _is_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    # Python also accepts week dates and dates without dashes. Most other languages do not.
    return _DATE.fullmatch(text) is not None


def _is_datetime(text: str) -> bool:
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(digits)
    return number


def _parses_as_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        return False
    return True


FIELD_TYPES: dict[str, tuple[Callable[[str], bool], str]] = {
    "string": (lambda _text: True, "text"),
    "int": (lambda text: _INTEGER.fullmatch(text) is not None, "a whole number such as 42"),
    "float": (_is_float, "a finite number such as 3.5"),
    "bool": (lambda text: text.lower() in ("true", "false"), "true or false"),
    "date": (_is_date, "a date such as 2026-03-01"),
    "datetime": (_is_datetime, "a date and time such as 2026-03-01T09:30:00Z"),
    "list": (
        lambda text: _parses_as_json(text) and isinstance(json.loads(text), list),
        'a JSON list such as ["a", "b"]',
    ),
    "json": (_parses_as_json, "JSON"),
}


def value_as_text(value: object, *, field_type: str, name: str) -> str:
    """Return the text to store for a JSON value: a text unchanged, any other value as JSON. Raises ``ValueRefused`` for
    an unknown type, an invalid value, and a text longer than ``MAX_VALUE_LENGTH``."""
    if field_type not in FIELD_TYPES:
        raise ValueRefused(f"Field {name!r} has the unknown type {field_type!r}; types are {', '.join(FIELD_TYPES)}.")
    fits, example = FIELD_TYPES[field_type]
    if isinstance(value, str):
        text = value
    elif field_type == "string":
        raise ValueRefused(f"Field {name!r} is of type string, so its value must be text.")
    else:
        text = json.dumps(value, ensure_ascii=False)
    if len(text) > MAX_VALUE_LENGTH:
        raise ValueRefused(
            f"The value of field {name!r} has {len(text)} characters; the limit is {MAX_VALUE_LENGTH}.",
            code=ProblemCode.TOO_LARGE,
        )
    if not fits(text):
        raise ValueRefused(f"The value of field {name!r} is not of type {field_type}: it must be {example}.")
    return text


def json_array(words: Sequence[str]) -> str:
    """Return ``words`` as a JSON array, for a parameter of an SQL statement."""
    return json.dumps(list(words), ensure_ascii=False)
