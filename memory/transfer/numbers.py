"""Numbers of rows that come from another store: kept where the table was empty, else moved up behind those that are
there, in a block of their own.

So wherever a number stands, also in the journal, adding one and the same amount makes it right.
"""

import time
from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper

from memory.domain.errors import Conflict

# By sort of row; what refers to rows of these by number is in ``bring``.
TABLES = {"link": "memory_link", "summary": "memory_fieldsummary", "access": "memory_accesslog"}
_TRIES, _PAUSE = 200, 0.05

_LOCK = f"LOCK TABLE {', '.join(TABLES.values())} IN SHARE ROW EXCLUSIVE MODE NOWAIT"
_LAST = """
SELECT coalesce((SELECT max(id) FROM {table}), 0),
       (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence})
"""
_EMPTY = """
SELECT NOT EXISTS (SELECT 1 FROM memory_topic) AND NOT EXISTS (SELECT 1 FROM memory_policyversion)
   AND NOT EXISTS (SELECT 1 FROM memory_forgetrun) AND NOT EXISTS (SELECT 1 FROM memory_accesslog)
   AND NOT EXISTS (SELECT 1 FROM memory_erasurereceipt) AND NOT EXISTS (SELECT 1 FROM memory_conversation)
"""


def numbers_reserve(most: dict[str, int], *, alone: bool) -> tuple[bool, dict[str, Any]]:
    """Reserve the numbers up to ``most`` of each sort, and return whether the store was empty, and what has to be added
    to the numbers of the file, by sort; beside them the last journal entry that is there. ``alone`` says that no other
    import has reserved numbers that it has yet to use.

    Needs a transaction. Nobody writes to these tables in between, and nobody is waited for while others are held:
    raises ``Conflict`` if the store does not come to rest for a moment within ten seconds.
    """
    with connection.cursor() as cursor:
        _lock(cursor)
        cursor.execute(_EMPTY)
        fresh = alone and bool(cursor.fetchone()[0])
        numbers: dict[str, Any] = {"access_most": most.get("access", 0)}
        for sort, table in TABLES.items():
            cursor.execute("SELECT pg_get_serial_sequence(%s, 'id')", [table])
            sequence = cursor.fetchone()[0]
            cursor.execute(_LAST.format(table=table, sequence=sequence))
            greatest, last = cursor.fetchone()
            # An empty table that nobody else fills has no numbers that could be mistaken for others.
            numbers[sort] = 0 if alone and not greatest else max(greatest, last)
            if (end := max(last, numbers[sort] + most.get(sort, 0))) > last:
                cursor.execute("SELECT setval(%s, %s)", [sequence, end])
        cursor.execute("SELECT coalesce(max(id), 0) FROM memory_auditevent")
        numbers["last_audit"] = int(cursor.fetchone()[0])
        return fresh, numbers


def _lock(cursor: CursorWrapper) -> None:
    for _try in range(_TRIES):
        try:
            with transaction.atomic():
                cursor.execute(_LOCK)
        except OperationalError:
            time.sleep(_PAUSE)
        else:
            return
    raise Conflict("The store is too busy to begin an import; try again in a moment.")
