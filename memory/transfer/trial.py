"""The statements of an import, tried by its check: into tables of the same shape that are nobody's, and empty again.

So what the check lets pass can be stored: the database itself has read every number, moment and id, as it will again.
"""

import re
from functools import cache

from django.db.backends.utils import CursorWrapper

from memory.transfer.bring import SCOPES, TOPIC_NEW, insert_statements
from memory.transfer.marks import Ground

_NAME = re.compile(r"\bmemory_(\w+)")
_TRIED = r"transfer_try_\1"
_MAKE = "CREATE TEMPORARY TABLE IF NOT EXISTS transfer_try_{0} (LIKE memory_{0} INCLUDING ALL)"
# What has no statement of its own to read it, or one that reads it only where other things are so.
_CASTS = {
    "topic": "SELECT count((l.line->>'document')::tsvector), count((l.line->'vector'->>'embedding')::vector), "
    "count((l.line->'vector'->>'embedding')::jsonb) FROM transfer_line l WHERE l.why IS NULL",
}
# Lines that only point from one row to another.
_POINTING = ("reference", "merged")


def lines_try(cursor: CursorWrapper, sort: str, ground: Ground) -> None:
    """Try to store the lines that wait, as ``lines_bring`` would. Raises ``DataError`` or ``IntegrityError`` if they
    cannot be. A statement for each of the import's, and one for each table; needs a transaction."""
    statements = _statements(sort)
    if not statements:
        return
    tables = _tables(sort)
    cursor.execute("; ".join(_MAKE.format(table) for table in tables))
    cursor.execute(f"TRUNCATE {', '.join(f'transfer_try_{table}' for table in tables)}")
    # As if every number had to be moved.
    parameters = ground.parameters() | {"link": 1, "summary": 1, "access": 1, "job": "0" * 32}
    for statement in statements:
        cursor.execute(statement, parameters)


def trial_clear(cursor: CursorWrapper) -> None:
    """Remove the temporary tables of this connection. One statement."""
    tables = {table for sort in insert_statements() for table in _tables(sort)}
    cursor.execute(f"DROP TABLE IF EXISTS {', '.join(f'pg_temp.transfer_try_{table}' for table in sorted(tables))}")


@cache
def _tables(sort: str) -> tuple[str, ...]:
    statements = (SCOPES, *insert_statements()[sort])
    return tuple(sorted({table for statement in statements for table in _NAME.findall(statement)}))


@cache
def _statements(sort: str) -> tuple[str, ...]:
    if sort in _POINTING:
        return ()
    own = (SCOPES, *insert_statements()[sort]) if sort == "pair" else insert_statements()[sort]
    tried = [_NAME.sub(_TRIED, statement.replace(TOPIC_NEW, "true")) for statement in own]
    return (*tried, *([_CASTS[sort]] if sort in _CASTS else []))
