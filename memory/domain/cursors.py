"""Cursors: where the next page of a list begins, as text that only the list itself reads."""

import base64
import binascii
import datetime as dt
import json
from collections.abc import Callable
from typing import Any

from memory.domain.errors import ValueRefused

_FOREIGN = "This cursor was not handed out here; start again without one."


def cursor_make(*parts: object) -> str:
    """Return the cursor for a place in a list; moments become ISO 8601, numbers their exact text."""
    said = [part.isoformat() if isinstance(part, dt.datetime) else str(part) for part in parts]
    return base64.urlsafe_b64encode(json.dumps(said).encode()).decode()


def cursor_parse(cursor: str, *readers: Callable[[str], Any]) -> list[Any]:
    """Return the parts of a cursor, each read by its reader. Raises ``ValueRefused`` for one from elsewhere."""
    try:
        parts = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        return [reader(part) for reader, part in zip(readers, parts, strict=True)]
    except (ValueError, TypeError, AttributeError, binascii.Error) as problem:
        raise ValueRefused(_FOREIGN) from problem


def moment_read(text: str) -> dt.datetime:
    """Return a moment that a cursor holds; without an offset it is in UTC."""
    moment = dt.datetime.fromisoformat(text)
    return moment.replace(tzinfo=moment.tzinfo or dt.UTC)


def place_read(cursor: str) -> int:
    """Return a cursor that is a plain number. Raises ``ValueRefused`` for any other."""
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 9:
        raise ValueRefused(_FOREIGN)
    return int(cursor)
