"""Cursors: opaque texts that mark where the next page of a list begins."""

import base64
import binascii
import datetime as dt
import json
import re
from collections.abc import Callable
from typing import Any

from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode

# The maximum number of characters of a cursor. The longest cursors contain a title and an id.
MAX_CURSOR = 8000
# No row can match a text with NUL or surrogates: PostgreSQL cannot store them and refuses them in queries.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_REFUSED = "This cursor does not belong to this list. Request the first page without a cursor."


def cursor_make(*parts: object) -> str:
    """Return the cursor that consists of ``parts``. Times are written in ISO 8601, other values as their text."""
    texts = [part.isoformat() if isinstance(part, dt.datetime) else str(part) for part in parts]
    # Characters are not escaped, because an address with an escaped long title would be longer than servers accept.
    return base64.urlsafe_b64encode(json.dumps(texts, ensure_ascii=False).encode()).decode()


def cursor_parse(cursor: str, *converters: Callable[[str], Any]) -> list[Any]:
    """Return the parts of ``cursor``, each converted by its converter. Raises ``ValueRefused`` if the cursor is
    malformed or belongs to another list."""
    if len(cursor) > MAX_CURSOR:
        raise ValueRefused(_REFUSED, code=ProblemCode.INVALID_CURSOR, member="cursor")
    try:
        parts = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        if not isinstance(parts, list) or any(not isinstance(part, str) or _UNSTORABLE.search(part) for part in parts):
            raise ValueRefused(_REFUSED, code=ProblemCode.INVALID_CURSOR, member="cursor")
        return [convert(part) for convert, part in zip(converters, parts, strict=True)]
    except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError, binascii.Error) as problem:
        raise ValueRefused(_REFUSED, code=ProblemCode.INVALID_CURSOR, member="cursor") from problem


def cursor_time(text: str) -> dt.datetime:
    """Return a part of a cursor as a time in UTC. A time without an offset is in UTC. Raises ``ValueError`` and
    ``OverflowError``."""
    at = dt.datetime.fromisoformat(text)
    return at.replace(tzinfo=at.tzinfo or dt.UTC).astimezone(dt.UTC)


def cursor_number(text: str) -> int:
    """Return a part of a cursor as an integer. Raises ``ValueError`` unless it fits in 64 bits."""
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError
    return number


def cursor_as_number(cursor: str) -> int:
    """Return a cursor that is a plain number, such as an offset. Raises ``ValueRefused`` for any other cursor."""
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 9:
        raise ValueRefused(_REFUSED, code=ProblemCode.INVALID_CURSOR, member="cursor")
    return int(cursor)
