"""Verifies that no purged content is left in a store. Searches every table, and the statistics of the planner. Receipts
store only keyed hashes of texts and identifiers. Each value, string within JSON, sentence and identifier is therefore
hashed and looked up."""

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db import connection, transaction

from memory.erasure.encoded_columns import ENCODINGS
from memory.erasure.receipt_search import ErasedHashes, erased_hashes, match_finder
from memory.erasure.receipts import Chain, identifier_hashes, is_anchor, receipts_verify, seals_are_ours
from memory.erasure.redact_text import Eraser, strings_of
from memory.erasure.related_rows import (
    DOCUMENTS,
    IDS_KEPT,
    TEXT_ARRAYS,
    TEXTS,
    Column,
    columns_of,
    key_sql,
    statistics_on_nodes,
    statistics_read,
)

ROWS = 1_000
MAX_LISTED = 1_000
_LISTS = ("traces", "stored_again", "addresses")

_UUID = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![0-9a-f])")
_SEARCHED_TYPES = TEXTS | DOCUMENTS | TEXT_ARRAYS | {"uuid", "uuid[]", "tsvector", "bytea"}
# Of the columns of a receipt, only ``_RECEIPT_TEXTS`` contain text.
_RECEIPT = "memory_erasurereceipt."
_RECEIPT_REASON = f"{_RECEIPT}reason"
_RECEIPT_TEXTS = (_RECEIPT_REASON, f"{_RECEIPT}scope")

# Names of columns with the time at which a row was written. The first of these columns in a table is used.
_TIME_COLUMNS = ("recorded_at", "at", "created_at", "found_at", "started", "started_at", "attempt_time", "action_time")
# A UUIDv7 contains the time of its creation, which the author of an imported item cannot choose. In a file that was
# written by hand, ids may have another version.
_MADE = """CASE WHEN substr(id::text, 15, 1) = '7'
           THEN to_timestamp(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0) END"""
_LAST_WRITTEN_SQL = """(SELECT max(e.at) FROM memory_auditevent e WHERE e.topic_id = memory_topic.id
            AND (e.action = 'ingest_new_topic' OR e.action = 'edited'))"""
_WRITTEN: dict[str, str | None] = {
    "memory_topic": _LAST_WRITTEN_SQL,
    "memory_revision": _MADE,
    "memory_field": _MADE,
    # The times in this table are not the times at which its texts were written.
    "memory_vitality": None,
    "memory_forgetrun": "created_at",
    "memory_rekeying": None,
}


@dataclass(frozen=True, slots=True)
class Trace:
    """A place where purged content is still stored. The content is not included. ``type`` is id, text or identifier."""

    table: str
    column: str
    key: str
    type: str
    receipt: int
    ours: bool = True

    def sentence(self) -> str:
        """Return the trace as a sentence."""
        what = {"id": "the id", "text": "a text", "identifier": "an identifier"}[self.type]
        where = f"{self.table}.{self.column}" + (f", row {self.key}," if self.key else "")
        note = "" if self.ours else " This table does not belong to MemState, so a purge does not change it."
        return f"{where} contains {what} that was erased according to receipt {self.receipt}.{note}"


@dataclass(slots=True)
class VerificationReport:
    """The result of a search. ``traces`` are places with purged content that was stored before its purge.
    ``stored_again`` are places with such content that was stored after the purge. ``addresses`` are names of scopes,
    keys and accounts that contain purged content. ``ours`` is true if the receipts were made with the present secret
    key."""

    chain: Chain
    ours: bool = True
    traces: list[Trace] = field(default_factory=list)
    stored_again: list[Trace] = field(default_factory=list)
    addresses: list[Trace] = field(default_factory=list)
    tables: int = 0
    rows: int = 0
    # Tables that the database account may not read.
    unreadable: list[str] = field(default_factory=list)
    # Nodes of a cluster whose statistics could not be searched.
    nodes_away: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the chain is valid, every node was searched, and there are no traces."""
        return self.chain.ok and self.ours and not self.traces and not self.nodes_away


def erasure_verify(*, progress: Callable[[str, int], None] | None = None) -> VerificationReport:
    """Read every table of the database, verify the chain of receipts, and report purged content that is left.

    ``progress`` is called with the name of a table and the number of rows that were read since the last call. Costs one
    statement per thousand rows. Reads about ten thousand rows per second.
    """
    search = ErasureSearch(erased_hashes())
    tables, unreadable = tables_read()
    for table in tables:
        search.read(table, progress=progress)
    return search.report(unreadable)


def rows_expected() -> int:
    """Return the approximate number of rows to read, for a progress bar. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(greatest(reltuples, 0)), 0)::bigint FROM pg_class c JOIN pg_namespace n "
            "ON n.oid = c.relnamespace WHERE relkind = 'r' AND (nspname = current_schema() OR "
            "current_schema() = 'store_main' AND nspname <> 'information_schema' AND nspname !~ '^(pg|store)_')"
        )
        return int(cursor.fetchone()[0])


@dataclass(frozen=True, slots=True)
class SearchedTable:
    """A table with the columns to search. ``key`` and ``written`` are SQL for the key and the time of a row."""

    columns: list[Column]
    key: str
    written: str

    @property
    def label(self) -> str:
        """The name of the table, with its schema if it belongs to another application."""
        return self.columns[0].table_label


def tables_read() -> tuple[list[SearchedTable], list[str]]:
    """Return the tables to search, in order, and the names of the tables that the database account may not read.

    One query.
    """
    with connection.cursor() as cursor:
        columns = columns_of(cursor)
    return _tables(columns), sorted({column.table_label for column in columns if not column.readable})


class ErasureSearch:
    """Collects matches, table by table. Whether a match is a trace may depend on rows that are read later. The state
    between two tables can be stored (``as_json``), and another search for the same receipts can continue from it."""

    def __init__(self, erased: ErasedHashes, state: Mapping[str, Any] | None = None) -> None:
        state = state or {}
        self.erased = erased
        self.tables: int = state.get("tables", 0)
        self.rows: int = state.get("rows", 0)
        self._stored_again: set[str] = set(state.get("known", ()))
        self._lists = {name: [Trace(**each) for each in state.get(name, ())] for name in _LISTS}
        # Matches in rows without a time, by digest. They are traces unless another row stores the same content again.
        self._undecided = {key: [Trace(**each) for each in found] for key, found in state.get("unsure", {}).items()}
        self._matches = match_finder(erased)

    def as_json(self) -> dict[str, Any]:
        """Return the state of the search."""
        return {
            "tables": self.tables,
            "rows": self.rows,
            "known": sorted(self._stored_again),
            "unsure": {key: [asdict(each) for each in found] for key, found in self._undecided.items()},
            **{name: [asdict(each) for each in found] for name, found in self._lists.items()},
        }

    def read(self, table: SearchedTable, *, progress: Callable[[str, int], None] | None = None) -> None:
        """Search one table, in a transaction of its own. One statement per thousand rows."""
        with transaction.atomic():
            for rows in _rows(table):
                for key, written, values in rows:
                    for column, value in zip(table.columns, values, strict=True):
                        if value:
                            self.search_value(column, key, written, value)
                self.rows += len(rows)
                if progress is not None:
                    progress(table.label, len(rows))
        self.tables += 1

    def report(self, unreadable: Sequence[str] = ()) -> VerificationReport:
        """Search the planner's statistics, verify the chain, and return the report. Six queries, on a cluster seven;
        reads receipts in batches."""
        away: list[str] = []
        if any(self.erased.values()):
            with connection.cursor() as cursor:
                found = statistics_read(cursor)
            on_nodes, away = statistics_on_nodes()
            for owner, name, value in (*found, *on_nodes):
                self.search_statistics(owner, name, value)
        for digest, traces in self._undecided.items():
            for trace in traces:
                self._add("stored_again" if digest in self._stored_again else "traces", trace)
        return VerificationReport(
            receipts_verify(),
            ours=seals_are_ours(),
            tables=self.tables,
            rows=self.rows,
            unreadable=list(unreadable),
            nodes_away=away,
            **self._lists,
        )

    def search_value(self, column: Column, key: str, written: dt.datetime | None, value: str) -> None:
        """Search one value of a row."""
        if not any(self.erased.values()):
            return
        if column.label not in IDS_KEPT and "-" in value:
            for found in set(_UUID.findall(value.lower())) & self.erased["id"].keys():
                if not _names_another(column, value, found):
                    self._match_add(column, key, written, "id", found)
        if column.data_type in ("uuid", "uuid[]") or (
            column.label.startswith(_RECEIPT) and column.label not in _RECEIPT_TEXTS
        ):
            return
        for text, short in _searched_texts(column, value):
            if column.label == "memory_topicmention.identifiers":
                for digest in self.erased["identifier"].keys() & identifier_hashes(text):
                    self._match_add(column, key, written, "identifier", digest)
                continue
            for match in self._matches(text, short):
                self._match_add(column, key, written, match.type, match.digest)

    def search_statistics(self, table: str, column: str, value: str) -> None:
        """Search one value of the planner's statistics."""
        found = [("id", each) for each in set(_UUID.findall(value.lower())) & self.erased["id"].keys()]
        if f"{table}.{column}" in IDS_KEPT:
            found = []
        found += [(match.type, match.digest) for match in self._matches(value, True)]
        for match_type, digest in found:
            number, _at = self.erased[match_type][digest]
            self._decide_later(Trace(f"the statistics of {table}", column, "", match_type, number), digest)

    def _match_add(self, column: Column, key: str, written: dt.datetime | None, match_type: str, digest: str) -> None:
        number, erased_at = self.erased[match_type][digest]
        trace = Trace(column.table_label, column.name, key, match_type, number, ours=column.of_project)
        if column.kept and match_type != "id" and column.label != _RECEIPT_REASON:
            self._add("addresses", trace)
        elif written is None:
            self._decide_later(trace, digest)
        elif written > erased_at:
            self._stored_again.add(digest)
            self._add("stored_again", trace)
        else:
            self._add("traces", trace)

    def _add(self, name: str, trace: Trace) -> None:
        if len(self._lists[name]) < MAX_LISTED:
            self._lists[name].append(trace)

    def _decide_later(self, trace: Trace, digest: str) -> None:
        undecided = self._undecided.setdefault(digest, [])
        if len(undecided) < MAX_LISTED:
            undecided.append(trace)


def _tables(columns: Sequence[Column]) -> list[SearchedTable]:
    by_table: dict[str, list[Column]] = {}
    for column in columns:
        if not column.readable:
            continue
        by_table.setdefault(column.quoted_table, []).append(column)
    tables = []
    for own in by_table.values():
        searched = [column for column in own if column.data_type in _SEARCHED_TYPES]
        if searched:
            # In a table of another application, a column with a name of ``_TIME_COLUMNS`` may mean something else.
            names = {column.name for column in own if column.of_project}
            time_column = next((f'"{name}"' for name in _TIME_COLUMNS if name in names), None)
            written = _WRITTEN.get(own[0].table_label, time_column) or "NULL"
            tables.append(SearchedTable(searched, key_sql(own), written))
    # Topics come first, so that content that was stored again is known before rows without a time are read.
    return sorted(tables, key=lambda table: table.label not in ("memory_topic", "memory_revision"))


def _rows(table: SearchedTable) -> Iterator[list[tuple[str, dt.datetime | None, list[str | None]]]]:
    wanted = ", ".join(_as_text(column) for column in table.columns)
    with connection.chunked_cursor() as reader:
        reader.execute(
            f"SELECT {table.key}, ({table.written})::timestamptz, {wanted} FROM {table.columns[0].quoted_table} "
            f"WHERE {table.columns[0].rows_here}"
        )
        while rows := reader.fetchmany(ROWS):
            yield [(key, written, list(values)) for key, written, *values in rows]


def _as_text(column: Column) -> str:
    name = f'"{column.name}"'
    if column.data_type in TEXT_ARRAYS:
        return f"to_json({name})::text"
    if column.data_type == "tsvector":
        return f"to_json(tsvector_to_array({name}))::text"
    if column.data_type == "bytea":
        return f"encode({name}, 'escape')"
    return f"{name}::text"


def _searched_texts(column: Column, value: str) -> Iterator[tuple[str, bool]]:
    """Yield (text, short) for each text in a value that must be searched. If ``short`` is true, the text is also
    searched for short passages."""
    encoding = ENCODINGS.get(column.label)
    if encoding is not None:
        yield from strings_of({"result": _decoded(encoding.read, value)})
    elif column.data_type in DOCUMENTS:
        document = json.loads(value)
        if column.label == "memory_auditevent.after" and is_anchor(document):
            return
        for text, short in strings_of(document):
            yield text, short
            if text[:1] in "{[" and '"' in text:
                # Stored replies are JSON within JSON strings.
                yield from strings_of(_decoded(json.loads, text))
    elif column.data_type in TEXT_ARRAYS or column.data_type == "tsvector":
        for text in json.loads(value):
            yield text or "", True
    else:
        yield value, True


def _names_another(column: Column, value: str, found: str) -> bool:
    """Return whether a purge would keep the id ``found`` in this value, for example because ``found`` is the id of a
    run."""
    if column.data_type not in DOCUMENTS:
        return False
    document = json.loads(value)
    return Eraser(ids={found}).masked_value(document) is document


def _decoded(decode: Callable[[str], Any], value: str) -> Any:
    try:
        return decode(value)
    except Exception:
        # A value that cannot be decoded is searched unchanged.
        return value
