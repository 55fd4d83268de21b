"""The statements of an import, tried by its check: into tables of the same shape that are nobody's, and empty again.

So what the check lets pass can be stored: the database itself has read every number, moment and id, as it will again.
"""

import re
from functools import cache

from django.db import transaction
from django.db.backends.utils import CursorWrapper

from memory.transfer.bring import SCOPES, TOPIC_NEW, insert_statements
from memory.transfer.marks import Ground

_NAME = re.compile(r"\bmemory_(\w+)")
_TRIED = r"transfer_try_\1"
_TRUNCATE_AFTER = 16
_MAKE = "CREATE TEMPORARY TABLE IF NOT EXISTS transfer_try_{0} (LIKE memory_{0} INCLUDING ALL)"
# What has no statement of its own to read it, or one that reads it only where other things are so.
_CASTS = {
    "topic": "SELECT count((l.line->>'document')::tsvector), count((l.line->'vector'->>'embedding')::vector), "
    "count((l.line->'vector'->>'embedding')::jsonb) FROM transfer_line l WHERE l.why IS NULL"
}
# Lines that only point from one row to another.
_POINTING = ("reference", "merged")


class Trial:
    """Tries batches of lines, on one connection; ``clear`` removes the tables."""

    def __init__(self, cursor: CursorWrapper) -> None:
        self._cursor = cursor
        self._made: set[str] = set()
        self._tried = 0

    def prepare(self, sort: str) -> None:
        """Make the tables that lines of a sort are tried in. A statement for each that is not there."""
        for table in _tables(sort):
            if table not in self._made:
                self._cursor.execute(_MAKE.format(table))
                self._made.add(table)
        self._tried += 1
        if self._tried % _TRUNCATE_AFTER == 0:
            # What was taken back is still on the disk, and nobody else tidies temporary tables.
            self._cursor.execute(f"TRUNCATE {', '.join(f'transfer_try_{table}' for table in self._made)}")

    def lines(self, sort: str, ground: Ground) -> None:
        """Try to store the lines that wait, as ``lines_bring`` would, and take it back. Raises what the database says
        if they cannot be. A statement for each of the import's; needs a transaction."""
        # As if every number had to be moved.
        parameters = ground.parameters() | {"link": 1, "summary": 1, "access": 1, "job": "0" * 32}
        with transaction.atomic():
            for statement in _statements(sort):
                self._cursor.execute(statement, parameters)
            transaction.set_rollback(True)

    def clear(self) -> None:
        """Remove the tables. One statement."""
        if self._made:
            names = ", ".join(f"pg_temp.transfer_try_{table}" for table in sorted(self._made))
            self._cursor.execute(f"DROP TABLE IF EXISTS {names}")
            self._made.clear()


@cache
def _tables(sort: str) -> tuple[str, ...]:
    if sort in _POINTING:
        return ()
    statements = (SCOPES, *insert_statements()[sort])
    return tuple(sorted({table for statement in statements for table in _NAME.findall(statement)}))


@cache
def _statements(sort: str) -> tuple[str, ...]:
    if sort in _POINTING:
        return ()
    own = (SCOPES, *insert_statements()[sort]) if sort == "pair" else insert_statements()[sort]
    tried = [_NAME.sub(_TRIED, statement.replace(TOPIC_NEW, "true")) for statement in own]
    return (*tried, *([_CASTS[sort]] if sort in _CASTS else []))
