"""Export: a store, or what lies at one of its scopes, as lines of JSON. Nothing is changed.

An export is one snapshot: what is written meanwhile is not in it. It holds nothing of the moment and of the machine, so
that two stores that hold the same give the same file, byte for byte.
"""

import datetime as dt
import itertools
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from memory.access.principal import Principal
from memory.domain.errors import Conflict
from memory.domain.problem_codes import ProblemCode
from memory.domain.scopes import ROOT
from memory.models import AuditEvent, ErasureReceipt
from memory.transfer.lines import END
from memory.transfer.sections import STALE, Place, Section, section_lines, sections_make
from memory.transfer.shape import FORMAT, VERSION

# So many lines of a sort tell how long they are.
SAMPLE = 200

_UUID = re.compile(rb'"([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"')
# Lines that tell of what was erased on purpose, or by their topic alone.
_NAMING = (b'{"type":"audit"', b'{"type":"receipt"')
_TOPIC = b'{"type":"topic"'


def store_export(
    *, principal: Principal, scope: str | None = None, vectors: bool = False, after: Place | None = None
) -> Iterator[bytes]:
    """Yield the lines of an export of ``scope``, each with its end; the last says how many there are.

    With ``after``, where an earlier export has stopped (``part_read``), the lines behind that: these are of the present
    moment, while those before are of theirs. ``vectors`` adds the
    embeddings, which are made anew otherwise. One statement per thousand rows, and none but reads. Unless the caller
    has opened a transaction, the generator keeps one of its own open from the first line to the last: everything that
    is read by the same connection meanwhile is read as it was then, and nothing can be written.

    Raises ``NotAllowed`` below operator, ``NotVisible`` outside the caller's scope; with the first line, ``Conflict``
    if what stands before ``after`` is not what the store holds.
    """
    principal.require("operator")
    where = principal.scope_chosen(scope)
    return _lines(where, vectors=vectors, place=after)


def export_note(
    *, principal: Principal, now: dt.datetime, scope: str | None = None, vectors: bool = False, behind: int = 0
) -> None:
    """Write down in the journal that somebody takes an export, or goes on with it behind so many lines. One statement.
    Raises as ``store_export`` does."""
    principal.require("operator")
    AuditEvent.objects.create(
        at=now,
        actor=principal.actor,
        action="exported",
        scope=principal.scope_chosen(scope),
        reason="",
        after={"vectors": vectors, "behind": behind},
    )


def export_count(*, principal: Principal, scope: str | None = None) -> int:
    """Return how many lines an export has, those of very long histories left out. A statement for each sort; reads the
    keys of every table. Raises as ``store_export`` does."""
    principal.require("operator")
    where = principal.scope_chosen(scope)
    with connection.cursor() as cursor:
        return 2 + sum(count for _section, count in _counted(cursor, where, vectors=False))


def export_size(*, principal: Principal, scope: str | None = None, vectors: bool = False) -> tuple[int, int]:
    """Return how many lines an export has, as ``export_count`` does, and about how many bytes: each sort of line is
    taken to go on as it begins. Two statements for each sort. Raises as ``store_export`` does."""
    principal.require("operator")
    where = principal.scope_chosen(scope)
    lines, size = 2, 0.0
    with connection.cursor() as cursor:
        for section, count in _counted(cursor, where, vectors=vectors):
            rows = section_lines(cursor, section, wanted=_wanted(where), scoped=where != ROOT, place=None)
            sample = [len(line) for line in itertools.islice(rows, SAMPLE)]
            lines, size = lines + count, size + count * sum(sample) / max(1, len(sample))
    return lines, round(size)


def _counted(cursor: CursorWrapper, scope: str, *, vectors: bool) -> Iterator[tuple[Section, int]]:
    """Yield the sections of an export, each with how many lines it has. A statement for each."""
    for section in sections_make(vectors=vectors):
        if (rows := section.rows_sql(scoped=scope != ROOT)) is not None:
            cursor.execute(f"SELECT count(*) FROM {section.source} r WHERE {rows}", _wanted(scope))
            yield section, int(cursor.fetchone()[0])


def header(*, scope: str, vectors: bool) -> dict[str, Any]:
    """Return the first line of an export."""
    return {"type": FORMAT, "version": VERSION, "scope": scope, "vectors": vectors}


def part_read(file: IO[bytes], *, scope: str, vectors: bool) -> tuple[int, Place | None]:
    """Return how many bytes of ``file`` are whole lines of an export that has stopped, and the place to go on at, None
    for one that has not begun. Reads all of it, line by line, and the receipts.

    Raises ``Conflict`` if it was written by another export, or by something else, or if it holds what a purge has
    erased since: whoever imports such a file would have it back.
    """
    offset = count = same = 0
    sort = last = topic = b""
    receipts, erased = _receipts()
    file.seek(0)
    for line in file:
        if not line.endswith(b"\n"):
            break
        if count == 0 and _parsed(line) != header(scope=scope, vectors=vectors):
            raise Conflict(
                "What is there was begun by an export of something else; remove it, or give another name.",
                code=ProblemCode.FILE_NOT_AN_EXPORT,
            )
        if erased and _holds(line, erased):
            raise Conflict(STALE, code=ProblemCode.EXPORT_OUTDATED)
        if line.startswith(_TOPIC):
            topic = line
        own = line[: line.find(b",")]
        offset, count, same = offset + len(line), count + 1, same + 1 if own == sort else 1
        sort, last = own, line
    if not count:
        return offset, None
    place = Place(_parsed(last), count=same, lines=count, topic=_parsed(topic) if topic else None, receipts=receipts)
    return offset, place


def _receipts() -> tuple[int, set[bytes]]:
    """Return the number of the last receipt, 0 for none, and the ids of all that was erased. One query."""
    last, erased = 0, set[bytes]()
    for number, ids in ErasureReceipt.objects.values_list("number", "topic_ids").iterator():
        last = max(last, number)
        erased.update(each.encode() for each in ids)
    return last, erased


def _holds(line: bytes, erased: set[bytes]) -> bool:
    """Tell whether a line is about something that was erased. Other topics may name it in what they say."""
    if line.startswith(_NAMING):
        return False
    if line.startswith(_TOPIC):
        found = _UUID.search(line)
        return found is not None and found[1] in erased
    return not erased.isdisjoint(_UUID.findall(line))


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        told = json.loads(line)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise Conflict(
            "What is there is no part of an export; remove it, or give another name.",
            code=ProblemCode.FILE_NOT_AN_EXPORT,
        )
    return told


def _lines(scope: str, *, vectors: bool, place: Place | None) -> Iterator[bytes]:
    scoped, wanted = scope != ROOT, _wanted(scope)
    count = place.lines if place else 1
    if place is None or place.sort == FORMAT:
        if place is None:
            yield _line(header(scope=scope, vectors=vectors))
        place = None
    elif place.sort == END:
        return
    with _snapshot(), connection.cursor() as cursor:
        if place is not None:
            # A purge between the look at the file and this moment.
            cursor.execute("SELECT coalesce(max(number), 0) FROM memory_erasurereceipt")
            if cursor.fetchone()[0] != place.receipts:
                raise Conflict(STALE, code=ProblemCode.EXPORT_OUTDATED)
        for section in sections_make(vectors=vectors):
            behind = None
            if place is not None:
                if not section.holds(place):
                    continue
                behind, place = place, None
            for line in section_lines(cursor, section, wanted=wanted, scoped=scoped, place=behind):
                count += 1
                yield line
    yield _line({"type": END, "lines": count + 1})


def _line(told: dict[str, Any]) -> bytes:
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _wanted(scope: str) -> dict[str, Any]:
    return {"path": scope, "below": f"{scope}/", "beyond": f"{scope}0"}


@contextmanager
def _snapshot() -> Iterator[None]:
    """Read everything as it is at one moment. In a transaction of the caller's, what that sees."""
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            # Whoever takes the lines may take his time.
            cursor.execute("SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0")
        yield
