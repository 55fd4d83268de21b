"""Numbers of rows that come from another store: kept where the table was empty, else moved up behind those that are
there, in a block of their own.

So wherever a number stands, also in the journal, adding one and the same amount makes it right.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper

from memory.domain.errors import Conflict, ValueRefused
from memory.domain.problem_codes import ProblemCode

# By sort of row; what refers to rows of these by number is in ``bring``.
TABLES = {"link": "memory_link", "summary": "memory_fieldsummary", "access": "memory_accesslog"}
_TRIES, _PAUSE = 200, 0.05
# A store may have numbers up to here, and by so many more for each row: no store comes near, however much it has
# written and erased. What a file says goes no further, so that what is imported leaves room, and can be imported again.
ROOM, PER_ROW = 2**40, 2**20

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


@dataclass(slots=True)
class NumbersSeen:
    """The greatest number of each sort that a file tells of: of rows, and of rows that are gone, where a journal still
    names them. No new row may be taken for one of these."""

    greatest: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TABLES, 0))

    def add(self, sort: str, told: Any) -> None:
        """Look at one line."""
        for of, number in _numbers_told(sort, told):
            # Whatever else stands there is no number of a row.
            if type(number) is int:
                self.greatest[of] = max(self.greatest[of], number)

    def check(self, *, lines: int) -> None:
        """Raise ``ValueRefused`` if a number of a file of so many lines is beyond what a store can have."""
        for of, number in self.greatest.items():
            if number > ROOM + PER_ROW * lines:
                raise ValueRefused(
                    f"The file names {of} number {number:,}, and no store comes so far; was it changed by hand?",
                    code=ProblemCode.NUMBER_TOO_LARGE,
                )


def _numbers_told(sort: str, told: Any) -> Iterator[tuple[str, Any]]:
    """Yield the numbers that ``bring`` moves."""
    if sort in ("link", "access"):
        yield sort, told.id
    elif sort == "topic":
        yield from (("summary", summary.id) for each in told.fields for summary in each.summaries)
    elif sort == "watermark":
        yield "access", told.position
    elif sort == "conversation":
        yield from (("link", write.link_id) for write in told.writes)
    elif sort == "audit" and isinstance(told.after, dict):
        yield "link", told.after.get("link")
    elif sort == "action" and isinstance(told.changes, dict):
        changes = told.changes
        yield "link", changes.get("link_made")
        links = changes.get("links")
        for of, held in (
            ("summary", changes.get("summaries")),
            ("summary", changes.get("withdrawn")),
            *(("link", side) for side in (links.values() if isinstance(links, dict) else ())),
        ):
            yield from ((of, number) for number in (held if isinstance(held, list) else ()))


def numbers_reserve(most: dict[str, int], *, alone: bool) -> tuple[bool, dict[str, Any]]:
    """Reserve the numbers up to ``most`` of each sort, of a file of ``most["lines"]`` lines; return whether the store
    was empty, and what has to be added to the numbers of the file, by sort; beside them the last journal entry that is
    there. ``alone`` says that no other import has reserved numbers that it has yet to use.

    Needs a transaction. Nobody writes to these tables in between, and nobody is waited for while others are held:
    raises ``Conflict`` if the store does not come to rest for a moment within ten seconds, or if its numbers would go
    beyond what an import could bring anywhere else.
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
            # A store with nothing in it, that nobody else fills, has no numbers that could be mistaken for others. A
            # table that is empty by now may have had some, which journals name.
            numbers[sort] = 0 if fresh else max(greatest, last)
            if numbers[sort] + most.get(sort, 0) > ROOM:
                cursor.execute(f"SELECT count(*) FROM {table}")
                rows = cursor.fetchone()[0] + most.get("lines", 0)
                if numbers[sort] + most.get(sort, 0) > ROOM + PER_ROW * rows:
                    raise Conflict(
                        f"The {sort} numbers of this store leave no room for those of the file.",
                        code=ProblemCode.NUMBER_TOO_LARGE,
                    )
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
    raise Conflict("The store is too busy to begin an import; try again in a moment.", code=ProblemCode.STORE_BUSY)
