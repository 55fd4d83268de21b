"""Cursors: where the next page of a list begins, as text that only the list itself reads."""

import base64
import binascii
import datetime as dt
import json
from collections.abc import Callable
from typing import Any

from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode

# No cursor is longer: the longest hold a title and an id.
MOST_CURSOR = 8000
_FOREIGN = "This cursor was not handed out here; start again without one."


def cursor_make(*parts: object) -> str:
    """Return the cursor for a place in a list; moments become ISO 8601, numbers their exact text."""
    said = [part.isoformat() if isinstance(part, dt.datetime) else str(part) for part in parts]
    # Letters as they are: as escapes, a long title would make an address that servers refuse.
    return base64.urlsafe_b64encode(json.dumps(said, ensure_ascii=False).encode()).decode()


def cursor_parse(cursor: str, *readers: Callable[[str], Any]) -> list[Any]:
    """Return the parts of a cursor, each read by its reader. Raises ``ValueRefused`` for one from elsewhere."""
    if len(cursor) > MOST_CURSOR:
        raise ValueRefused(_FOREIGN, code=ProblemCode.INVALID_CURSOR)
    try:
        parts = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        if not isinstance(parts, list) or not all(_storable(part) for part in parts):
            raise ValueRefused(_FOREIGN, code=ProblemCode.INVALID_CURSOR)
        return [reader(part) for reader, part in zip(readers, parts, strict=True)]
    except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError, binascii.Error) as problem:
        raise ValueRefused(_FOREIGN, code=ProblemCode.INVALID_CURSOR) from problem


def _storable(part: object) -> bool:
    # Neither NUL nor half a pair of surrogates can be in the store, so the database is not asked about them.
    return isinstance(part, str) and "\x00" not in part and not any("\ud800" <= letter <= "\udfff" for letter in part)


def cursor_time(text: str) -> dt.datetime:
    """Return a moment that a cursor holds, in UTC, as it is where it has no offset. Raises ``ValueError`` and
    ``OverflowError``."""
    moment = dt.datetime.fromisoformat(text)
    return moment.replace(tzinfo=moment.tzinfo or dt.UTC).astimezone(dt.UTC)


def cursor_number(text: str) -> int:
    """Return a whole number that a cursor holds, as far as the database counts. Raises ``ValueError``."""
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError
    return number


def cursor_as_number(cursor: str) -> int:
    """Return a cursor that is a plain number. Raises ``ValueRefused`` for any other."""
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 9:
        raise ValueRefused(_FOREIGN, code=ProblemCode.INVALID_CURSOR)
    return int(cursor)
