"""Proves that nothing is left of what was purged: looks for it in every table of the database, and in the statistics.

Receipts hold no text, only keyed hashes; so every text that is found is hashed and looked up. What is read: each value
as a whole, each string within JSON, each sentence and each identifier in any of them, each id. Tables are asked
of the database, so that one that nobody thought of is read as well.
"""

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction

from memory.erasure.encoded_columns import CODED
from memory.erasure.receipt_search import Wanted, hits_finder, receipts_wanted
from memory.erasure.receipts import Chain, identifier_hasher, is_anchor, receipts_verify, seals_are_ours
from memory.erasure.redact_text import strings_of
from memory.erasure.related_rows import (
    DOCUMENTS,
    IDS_KEPT,
    TEXT_ARRAYS,
    TEXTS,
    Column,
    columns_of,
    key_sql,
    statistics_read,
)

ROWS = 1_000
MOST_TOLD = 1_000

_UUID = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![0-9a-f])")
_SORTS = TEXTS | DOCUMENTS | TEXT_ARRAYS | {"uuid", "uuid[]", "tsvector", "bytea"}
# Of a receipt the rest are hashes and numbers.
_RECEIPT = "memory_erasurereceipt."
_RECEIPT_REASON = f"{_RECEIPT}reason"
_RECEIPT_TEXTS = (_RECEIPT_REASON, f"{_RECEIPT}scope")

# When a row was written, where its own columns tell: the first of these that a table has.
_MOMENTS = ("recorded_at", "at", "created_at", "found_at", "started", "started_at", "attempt_time", "action_time")
# Ids of this sort hold the moment at which they were made, which an item that is brought in with its age cannot choose.
# Those of a file that somebody has made by hand may be of another.
_MADE = """CASE WHEN substr(id::text, 15, 1) = '7'
           THEN to_timestamp(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0) END"""
_TOLD = """(SELECT max(e.at) FROM memory_auditevent e WHERE e.topic_id = memory_topic.id
            AND (e.action = 'ingest_new_topic' OR e.action = 'edited'))"""
_WRITTEN: dict[str, str | None] = {
    "memory_topic": _TOLD,
    "memory_revision": _MADE,
    "memory_field": _MADE,
    # Their times are of something else than their texts.
    "memory_vitality": None,
    "memory_forgetrun": "created_at",
    "memory_rekeying": None,
}


@dataclass(frozen=True, slots=True)
class Trace:
    """Something of what was purged, by where it stands; never what it says. ``sort`` is id, text or identifier."""

    table: str
    column: str
    key: str
    sort: str
    receipt: int
    ours: bool = True

    def sentence(self) -> str:
        """Return the trace in words."""
        what = {"id": "the id", "text": "a text", "identifier": "an identifier"}[self.sort]
        where = f"{self.table}.{self.column}" + (f", row {self.key}," if self.key else "")
        rest = "" if self.ours else " This table is not MemState's, so a purge leaves it alone."
        return f"{where} holds {what} of what receipt {self.receipt} says was erased.{rest}"


@dataclass(slots=True)
class Verdict:
    """What was found. ``traces`` are left from before; what was ``again`` stored since is no trace, nor is what names a
    scope, a key or an account (``addresses``)."""

    chain: Chain
    ours: bool = True
    traces: list[Trace] = field(default_factory=list)
    again: list[Trace] = field(default_factory=list)
    addresses: list[Trace] = field(default_factory=list)
    tables: int = 0
    rows: int = 0
    # Tables that the account of the store may not read.
    unread: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the chain is whole and nothing is left."""
        return self.chain.ok and self.ours and not self.traces


def erasure_verify(*, progress: Callable[[str, int], None] | None = None) -> Verdict:
    """Verify the chain of receipts, then read every table of the database, and say what is left of what was purged.

    ``progress`` is called with the table and the number of rows read since the last call. One statement per thousand
    rows, each table in a transaction of its own; ten thousand rows a second or so. Changes nothing.
    """
    verdict = Verdict(receipts_verify(), ours=seals_are_ours())
    wanted = receipts_wanted()
    with connection.cursor() as cursor:
        columns = columns_of(cursor)
    tables = _tables(columns)
    verdict.unread = sorted({column.told_table for column in columns if not column.readable})
    look = _Look(wanted)
    for table in tables:
        verdict.tables += 1
        with transaction.atomic():
            for rows in _rows(table):
                for key, written, values in rows:
                    for column, value in zip(table.read, values, strict=True):
                        if value:
                            look.at(column, key, written, value)
                verdict.rows += len(rows)
                if progress is not None:
                    progress(table.read[0].told_table, len(rows))
    if wanted:
        with connection.cursor() as cursor:
            for owner, name, value in statistics_read(cursor):
                look.statistics(owner, name, value)
    look.tell(verdict)
    return verdict


def rows_expected() -> int:
    """Return about how many rows there are to read, for a progress bar. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(greatest(reltuples, 0)), 0)::bigint FROM pg_class c JOIN pg_namespace n "
            "ON n.oid = c.relnamespace WHERE relkind = 'r' AND nspname <> 'information_schema' AND nspname !~ '^pg_'"
        )
        return int(cursor.fetchone()[0])


@dataclass(frozen=True, slots=True)
class _Table:
    read: list[Column]
    key: str
    written: str


class _Look:
    """Collects what is found; whether it is a trace may depend on what is found later."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.found: list[tuple[Trace, bool | None, str]] = []
        self.again: set[str] = set()
        self.addresses: list[Trace] = []
        self._hits = hits_finder(wanted)
        self._identifier = identifier_hasher()

    def at(self, column: Column, key: str, written: dt.datetime | None, value: str) -> None:
        """Look at one value."""
        if not self.wanted:
            return
        if column.place not in IDS_KEPT and "-" in value:
            for found in set(_UUID.findall(value.lower())) & self.wanted.ids.keys():
                self._note(column, key, written, "id", found)
        if column.sort in ("uuid", "uuid[]") or (
            column.place.startswith(_RECEIPT) and column.place not in _RECEIPT_TEXTS
        ):
            return
        for said, short in _strings(column, value):
            if column.place == "memory_topicmention.identifiers":
                digest = self._identifier(said)
                if digest in self.wanted.identifiers:
                    self._note(column, key, written, "identifier", digest)
                continue
            for hit in self._hits(said, short):
                self._note(column, key, written, hit.sort, hit.digest)

    def statistics(self, table: str, column: str, value: str) -> None:
        """Look at one value that the planner has kept."""
        for found in set(_UUID.findall(value.lower())) & self.wanted.ids.keys():
            if f"{table}.{column}" not in IDS_KEPT:
                self.found.append(
                    (Trace(f"the statistics of {table}", column, "", "id", self.wanted.ids[found][0]), None, found)
                )
        for hit in self._hits(value, True):
            number = self.wanted.of(hit.sort)[hit.digest][0]
            self.found.append((Trace(f"the statistics of {table}", column, "", hit.sort, number), None, hit.digest))

    def tell(self, verdict: Verdict) -> None:
        """Sort what was found."""
        for trace, since, what in self.found:
            known = since if since is not None else what in self.again
            told = verdict.again if known else verdict.traces
            if len(told) < MOST_TOLD:
                told.append(trace)
        verdict.addresses = self.addresses[:MOST_TOLD]

    def _note(self, column: Column, key: str, written: dt.datetime | None, sort: str, what: str) -> None:
        number, erased_at = self.wanted.of(sort)[what]
        trace = Trace(column.told_table, column.name, key, sort, number, ours=column.ours)
        if column.kept and sort != "id" and column.place != _RECEIPT_REASON:
            self.addresses.append(trace)
            return
        since = None if written is None else written > erased_at
        if since:
            self.again.add(what)
        self.found.append((trace, since, what))


def _tables(columns: Sequence[Column]) -> list[_Table]:
    by_table: dict[str, list[Column]] = {}
    for column in columns:
        if not column.readable:
            continue
        by_table.setdefault(column.quoted_table, []).append(column)
    tables = []
    for own in by_table.values():
        read = [column for column in own if column.sort in _SORTS]
        if read:
            # Of other people's tables nobody here knows what a column of that name holds.
            names = {column.name for column in own if column.ours}
            moment = next((f'"{name}"' for name in _MOMENTS if name in names), None)
            tables.append(_Table(read, key_sql(own), _WRITTEN.get(own[0].told_table, moment) or "NULL"))
    # Topics first: what is stored again is known before the rows that have no time are met.
    return sorted(tables, key=lambda table: table.read[0].told_table not in ("memory_topic", "memory_revision"))


def _rows(table: _Table) -> Iterator[list[tuple[str, dt.datetime | None, list[str | None]]]]:
    wanted = ", ".join(_as_text(column) for column in table.read)
    with connection.chunked_cursor() as reader:
        reader.execute(
            f"SELECT {table.key}, ({table.written})::timestamptz, {wanted} FROM {table.read[0].quoted_table}"
        )
        while rows := reader.fetchmany(ROWS):
            yield [(key, written, list(values)) for key, written, *values in rows]


def _as_text(column: Column) -> str:
    name = f'"{column.name}"'
    if column.sort in TEXT_ARRAYS:
        return f"to_json({name})::text"
    if column.sort == "tsvector":
        return f"to_json(tsvector_to_array({name}))::text"
    if column.sort == "bytea":
        return f"encode({name}, 'escape')"
    return f"{name}::text"


def _strings(column: Column, value: str) -> Iterator[tuple[str, bool]]:
    coded = CODED.get(column.place)
    if coded is not None:
        yield from strings_of({"result": _read(coded.read, value)})
    elif column.sort in DOCUMENTS:
        document = json.loads(value)
        if column.place == "memory_auditevent.after" and is_anchor(document):
            return
        for said, short in strings_of(document):
            yield said, short
            if said[:1] in "{[" and '"' in said:
                # A reply is kept as it was sent: as JSON within JSON.
                yield from strings_of(_read(json.loads, said))
    elif column.sort in TEXT_ARRAYS or column.sort == "tsvector":
        for said in json.loads(value):
            yield said or "", True
    else:
        yield value, True


def _read(reader: Callable[[str], Any], value: str) -> Any:
    try:
        return reader(value)
    except Exception:
        # Whatever it is, it is looked at as it stands.
        return value
