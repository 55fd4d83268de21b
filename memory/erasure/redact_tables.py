"""Masks erased content in the tables without memories: journals, logs, lists, jobs, sessions. The database selects the
rows that may match. Python then checks these rows, because the database does not recognize different spellings."""

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import sql

from memory.core.errors import Conflict
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT, scope_within
from memory.erasure.encoded_columns import ENCODINGS, Encoding
from memory.erasure.erased_text import MAX_ANCHORS
from memory.erasure.receipts import is_anchor
from memory.erasure.redact_text import Eraser, anchors_of, anchors_pattern
from memory.erasure.related_rows import (
    DOCUMENTS,
    IDS_KEPT,
    TEXT_ARRAYS,
    TEXT_OF_TOPICS,
    TEXTS,
    Column,
    analyzed_on_nodes,
    key_sql,
    statistics_on_nodes,
    statistics_read,
)
from memory.recall.reinforcement import accesses_without_sql
from memory.stores.citus import cluster_is, shard_run
from memory.stores.current import store_current, store_schema, store_use

ROWS = 2_000
TRIES = 5
# The first version of PostgreSQL that can clear the statistics of one column.
_CLEARS_STATISTICS = 180000

_ACCESSES_SQL = (
    accesses_without_sql(
        rows="(l.topic_ids || l.cut_ids) && %(ids)s::uuid[]",
        topic="u.topic <> ALL(%(ids)s::uuid[])",
        field="u.field <> ALL(%(fields)s::uuid[])",
    )
    + "RETURNING a.id::text"
)
# Only rows in the caller's scope are changed. A row of another scope is about another topic that once had the same id.
_AUDITS_SQL = """
UPDATE memory_auditevent SET reason = '', before = '{}', after = '{}'
WHERE topic_id = ANY(%(ids)s::uuid[]) AND action <> 'purged'
  AND (%(within)s = '/' OR scope = %(within)s OR starts_with(scope, %(within)s || '/'))
RETURNING id::text
"""
# If a client repeats a request, the erased content must not be stored again. Therefore the Idempotency-Key stays in
# use, and the reply is 410. The same applies to a message whose turn was emptied. Ids are compared as text, because a
# string that looks like an id may not be a valid UUID.
_REPLIES_SQL = """
UPDATE memory_idempotencyrecord r SET reply = 'null', request_hash = '', status = 410
WHERE status <> 410 AND (EXISTS (
    SELECT 1 FROM regexp_matches(reply::text, '"topic_id\\\\?": ?\\\\?"([0-9a-f-]{36})', 'g') m
    WHERE m[1] = ANY(%(ids)s::uuid[]::text[])
) OR EXISTS (SELECT 1 FROM memory_conversationturn t WHERE t.id = r.turn_id AND t.erased)) RETURNING id::text
"""
# The query, reason and question of a list, and the reason and spelling of each entry, may describe any topic of the
# list. So they are emptied even if only one topic of the list is purged.
_ENTRIES_SQL = """
UPDATE memory_forgetlisting l
SET query = '', reason = '', question = '', entries = (
    SELECT coalesce(jsonb_agg(CASE WHEN (e->>'id')::uuid = ANY(%(ids)s::uuid[])
        THEN (e - 'keeps') || '{"why": "", "excerpt": "", "spelling": ""}' ELSE e || '{"why": "", "spelling": ""}'
        END ORDER BY n), '[]')
    FROM jsonb_array_elements(entries) WITH ORDINALITY x (e, n)
)
WHERE EXISTS (SELECT 1 FROM jsonb_array_elements(entries) e WHERE (e->>'id')::uuid = ANY(%(ids)s::uuid[]))
RETURNING id::text
"""
# If a process is killed between a write and the log entry for the call, the turn has no entry for the write.
_UNLOGGED_SQL = """
SELECT DISTINCT t.id FROM memory_conversationwrite w
JOIN memory_conversationturn t ON t.conversation_id = w.conversation_id AND t.at <= w.at
    AND t.ended IN ('working', 'lost')
WHERE w.topic_id = ANY(%(ids)s::uuid[]) AND NOT EXISTS (
    SELECT 1 FROM memory_conversationturn n
    WHERE n.conversation_id = t.conversation_id AND n.place = t.place + 1 AND n.at <= w.at
)
"""
# A model that has read erased content may have paraphrased it in the same turn and in all later turns of the
# conversation. A running turn checks ``erased`` before its next write.
_TURNS_SQL = """
WITH touched AS (
    SELECT conversation_id, min(place) AS place FROM memory_conversationturn t
    WHERE t.id = ANY(%(turns)s::bigint[]) OR EXISTS (
        SELECT 1 FROM jsonb_array_elements(tool_log) e,
            jsonb_array_elements_text(coalesce(e->'topic_ids', '[]') || coalesce(e->'seen', '[]')) i
        WHERE i = ANY(%(read)s::uuid[]::text[])
    ) GROUP BY conversation_id
)
UPDATE memory_conversationturn t
SET erased = true, message = '', reply = '', tool_log = (
    SELECT coalesce(jsonb_agg(e || '{"arguments": {}, "said": ""}' || (
        SELECT jsonb_object_agg(m.name, (
            SELECT coalesce(jsonb_agg(i), '[]') FROM jsonb_array_elements_text(coalesce(e->m.name, '[]')) i
            WHERE i <> ALL(%(ids)s::uuid[]::text[])
        )) FROM (VALUES ('topic_ids'), ('seen')) m (name)
    ) ORDER BY n), '[]') FROM jsonb_array_elements(tool_log) WITH ORDINALITY x (e, n)
)
FROM touched d WHERE t.conversation_id = d.conversation_id AND t.place >= d.place
RETURNING t.id::text
"""
# Maps the scope of a row (None for a row without a scope) to the eraser for this row.
ErasersByScope = Callable[[str | None], Eraser]

# For each table, the statement that changes rows with the ids of erased topics. These statements run before texts are
# searched.
_BY_ID = {
    "memory_accesslog": _ACCESSES_SQL,
    "memory_auditevent": _AUDITS_SQL,
    "memory_forgetlisting": _ENTRIES_SQL,
    "memory_conversationturn": _TURNS_SQL,
    # This comes after the turns, because code that closes a turn takes its locks in the same order.
    "memory_idempotencyrecord": _REPLIES_SQL,
}
# Columns that are derived from a text. They are emptied when the text is masked.
_DERIVED = {"memory_accesslog": ("query_hash",)}


def turns_unlogged(cursor: CursorWrapper, ids: Sequence[uuid.UUID]) -> list[int]:
    """Return the turns that wrote to the topics ``ids`` without a log entry, because their process was killed. Call
    this before the topics are deleted. One statement."""
    cursor.execute(_UNLOGGED_SQL, {"ids": list(ids)})
    return [row[0] for row in cursor.fetchall()]


def logs_redact(
    cursor: CursorWrapper,
    eraser: Eraser,
    ids: Sequence[uuid.UUID],
    columns: Sequence[Column],
    *,
    within: str = ROOT,
    turns: Sequence[int] = (),
    derived: Sequence[uuid.UUID] = (),
) -> dict[str, int]:
    """Mask erased content in all tables except those of topics, and return the number of changed rows by table.

    ``ids`` are the erased topics, and ``derived`` are the topics that were compacted from them. A turn of a
    conversation is emptied, with all later turns, if it is in ``turns`` or used one of these topics. Outside the scope
    ``within``, only ids are masked, so that callers cannot change journals of others. About two statements per table.
    """
    touched: dict[str, set[str]] = {}
    fields = [uuid.UUID(each) for each in eraser.ids]
    parameters: dict[str, Any] = {
        "ids": list(ids),
        "read": [*ids, *derived],
        "fields": fields,
        "turns": list(turns),
        "within": within,
    }
    for table, statement in _BY_ID.items():
        cursor.execute(statement, parameters)
        touched.setdefault(table, set()).update(row[0] for row in cursor.fetchall())
    anchors = anchors_of(eraser.passages, eraser.identifiers, most=MAX_ANCHORS)
    if anchors is not None:
        # Only topic ids are searched for: a row with the id of a field or revision also contains the id of its topic.
        plain = [str(each) for each in ids]
        anchors = [*anchors, *plain, *(each.replace("-", "") for each in plain)]
        anchors = anchors if len(anchors) <= 2 * MAX_ANCHORS else None
    ids_only = Eraser(ids=eraser.ids)

    def eraser_of(scope: str | None) -> Eraser:
        return eraser if within == ROOT or (scope and scope_within(scope, within)) else ids_only

    for own in _logs(columns).values():
        table = own[0].table
        for column in own:
            if column.data_type in ("uuid", "uuid[]") and column.label not in IDS_KEPT:
                touched.setdefault(table, set()).update(_ids_remove(cursor, column, own, eraser))
        touched.setdefault(table, set()).update(_table_redact(cursor, own, eraser_of, anchors_pattern(anchors)))
    return {table: len(rows) for table, rows in touched.items() if rows}


def statistics_renew(cursor: CursorWrapper, eraser: Eraser, columns: Sequence[Column]) -> list[str]:
    """Renew the planner's statistics of all tables whose statistics contain erased content, and return these tables.

    The catalog stores common values of columns in plain text. Three statements, plus one for each renewed table. From
    PostgreSQL 18 on, one more statement, plus one for each column whose statistics must be cleared. On a cluster, the
    statistics on the nodes are renewed after the commit, because until then the nodes still see the erased rows.
    """
    # Until the transaction ends, autovacuum must not analyze the tables of the project, because it would still read the
    # erased rows.
    ours = ", ".join(sorted({column.quoted_table for column in columns if column.of_project}))
    cursor.execute(f"LOCK TABLE {ours} IN SHARE UPDATE EXCLUSIVE MODE")
    tables = sorted({table for table, _column, text in statistics_read(cursor) if eraser.masked(text) != text})
    for table in tables:
        cursor.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(table)))
    if tables and connection.connection.info.server_version >= _CLEARS_STATISTICS:
        # ANALYZE keeps the old statistics of a table that is now empty.
        rest = {(table, column) for table, column, text in statistics_read(cursor) if eraser.masked(text) != text}
        for table, column in sorted(rest):
            cursor.execute(
                "SELECT pg_clear_attribute_stats(relnamespace::regnamespace::text, relname, %s, false) FROM pg_class "
                "WHERE oid = %s::regclass",
                [column, table],
            )
    if cluster_is():
        store = store_current()

        def renew() -> None:
            with store_use(store):
                _statistics_renew_on_nodes(eraser)

        # An error is only logged, because the purge is already committed. A verification finds what is left.
        transaction.on_commit(renew, robust=True)
    return tables


def _statistics_renew_on_nodes(eraser: Eraser) -> None:
    """Renew the statistics on the nodes of a cluster, outside a transaction. Four statements, plus those for each table
    and column as in ``statistics_renew``. Raises ``DatabaseError`` if a node cannot be read."""
    schema = store_schema(store_current())

    def erased() -> tuple[set[tuple[str, str]], list[str]]:
        values, away = statistics_on_nodes()
        return {(table, column) for table, column, text in values if eraser.masked(text) != text}, away

    found, away = erased()
    tables = {table for table, _column in found} | analyzed_on_nodes()
    for table in sorted(tables):
        shard_run(f"{schema}.{table}", "ANALYZE %s")
    if tables and connection.connection.info.server_version >= _CLEARS_STATISTICS:
        for table, column in sorted(erased()[0]):
            shard_run(
                f"{schema}.{table}",
                f"SELECT pg_clear_attribute_stats(relnamespace::regnamespace::text, relname, '{column}', false) "
                "FROM pg_class WHERE oid = %L::regclass",
            )
    if away:
        raise DatabaseError(f"After a purge, these nodes were not searched for erased statistics: {', '.join(away)}.")


def _logs(columns: Iterable[Column]) -> dict[str, list[Column]]:
    tables: dict[str, list[Column]] = {}
    for column in columns:
        if column.of_project and column.table not in TEXT_OF_TOPICS:
            tables.setdefault(column.quoted_table, []).append(column)
    return tables


def _ids_remove(cursor: CursorWrapper, column: Column, columns: Sequence[Column], eraser: Eraser) -> set[str]:
    """Remove erased ids from a column that is not a foreign key. In an array, NULL takes the place of each erased id.
    Another column is set to NULL. If it cannot be null, the row is deleted."""
    if column.key or column.foreign or column.kept or not eraser.ids:
        return set()
    name, here, ids = f'"{column.name}"', column.rows_here, [uuid.UUID(each) for each in eraser.ids]
    if column.data_type == "uuid[]":
        statement = (
            f"UPDATE {column.quoted_table} SET {name} = ARRAY(SELECT CASE WHEN e <> ALL(%(ids)s::uuid[]) THEN e END "
            f"FROM unnest({name}) WITH ORDINALITY u (e, n) ORDER BY n) "
            f"WHERE {here} AND EXISTS (SELECT 1 FROM unnest({name}) e WHERE e = ANY(%(ids)s::uuid[]))"
        )
    elif column.nullable:
        statement = f"UPDATE {column.quoted_table} SET {name} = NULL WHERE {here} AND {name} = ANY(%(ids)s::uuid[])"
    else:
        statement = f"DELETE FROM {column.quoted_table} WHERE {here} AND {name} = ANY(%(ids)s::uuid[])"
    cursor.execute(f"{statement} RETURNING {key_sql(columns)}", {"ids": ids})
    return {row[0] for row in cursor.fetchall()}


def _table_redact(
    cursor: CursorWrapper, columns: Sequence[Column], eraser_of: ErasersByScope, anchors: str | None
) -> set[str]:
    texts = [each for each in columns if each.data_type in TEXTS | DOCUMENTS | TEXT_ARRAYS and not each.kept]
    touched: set[str] = set()
    if not texts:
        return touched
    for _try in range(TRIES):
        changes = _changes(columns, texts, eraser_of, anchors)
        written = 0
        for begin in range(0, len(changes), ROWS):
            written += _rows_write(cursor, texts, changes[begin : begin + ROWS])
        touched |= {change.key for change in changes}
        if written == len(changes):
            return touched
        # Another process changed one of the rows meanwhile, so all rows are read again.
    raise Conflict(
        f"Other processes keep writing to {columns[0].table}, so nothing was purged. Try again in a moment.",
        code=ProblemCode.BUSY,
    )


@dataclass(frozen=True, slots=True)
class _Change:
    """A row to change. ``place`` is its ``ctid``, and ``key`` is its primary key. ``values`` are the new values of its
    texts; None means that the row is deleted."""

    place: str
    key: str
    values: list[str | None] | None


def _changes(
    columns: Sequence[Column], texts: Sequence[Column], eraser_of: ErasersByScope, anchors: str | None
) -> list[_Change]:
    found: list[_Change] = []
    for place, key, scope, *row in _rows_read(columns, texts, anchors):
        eraser = eraser_of(scope)
        values = [_masked(column, value, eraser) for column, value in zip(texts, row, strict=True)]
        if values == row:
            continue
        deleted = any(
            value != old and column.label in ENCODINGS and ENCODINGS[column.label].delete_when_changed
            for column, value, old in zip(texts, values, row, strict=True)
        )
        found.append(_Change(str(place), str(key), None if deleted else values))
    return found


def _rows_read(columns: Sequence[Column], texts: Sequence[Column], anchors: str | None) -> Iterator[list[str | None]]:
    """Yield ctid, key, scope and texts of the rows that may match. All rows with letters outside ASCII are included,
    because the database cannot normalize these letters like ``fold``."""
    selected = ", ".join(f'"{column.name}"::text' for column in texts)
    scope = '"scope"' if any(column.name == "scope" and column.data_type in TEXTS for column in columns) else "NULL"
    statement = f"SELECT ctid::text, {key_sql(columns)}, {scope}, {selected} FROM {columns[0].quoted_table} WHERE "
    statement += columns[0].rows_here
    parameters: list[str] = []
    if anchors is not None and not any(column.label in ENCODINGS for column in texts):
        conditions = []
        for column in texts:
            text = f'"{column.name}"::text'
            # JSON may contain letters outside ASCII as escapes.
            conditions.append(
                f"octet_length({text}) <> length({text}) OR lower({text}) ~ %s OR strpos({text}, '\\u') > 0"
            )
            parameters.append(anchors)
        statement += f" AND ({' OR '.join(conditions)})"
    with connection.chunked_cursor() as reader:
        reader.execute(statement, parameters)
        while rows := reader.fetchmany(ROWS):
            yield from map(list, rows)


def _masked(column: Column, value: str | None, eraser: Eraser) -> str | None:
    if not value:
        return value
    encoding: Encoding | None = ENCODINGS.get(column.label)
    if encoding is not None:
        decoded = encoding.read(value)
        masked = eraser.masked_value(decoded, "result")
        return value if masked is decoded else encoding.write(masked)
    if column.data_type in DOCUMENTS:
        if column.label in IDS_KEPT:
            eraser = Eraser(eraser.passages, eraser.identifiers)
        document = json.loads(value)
        if column.label == "memory_auditevent.after" and is_anchor(document):
            return value
        masked = eraser.masked_value(document)
        return value if masked is document else json.dumps(masked, ensure_ascii=False)
    return eraser.masked(value)


def _rows_write(cursor: CursorWrapper, texts: Sequence[Column], changes: Sequence[_Change]) -> int:
    table = texts[0].quoted_table
    deleted = [change.place for change in changes if change.values is None]
    kept = [(change.place, change.values) for change in changes if change.values is not None]
    written = 0
    if deleted:
        cursor.execute(f"DELETE FROM {table} WHERE ctid = ANY(%s::tid[])", [deleted])
        written += cursor.rowcount
    if kept:
        made = "".join(f", \"{name}\" = ''" for name in _DERIVED.get(texts[0].table, ()))
        # Masking may make a text longer than the column allows. The cast cuts the text, so the update succeeds.
        sets = ", ".join(f'"{column.name}" = d.v{n}::{column.full_type}' for n, column in enumerate(texts))
        names = ", ".join(f"v{n}" for n in range(len(texts)))
        arrays = ", ".join("%s::text[]" for _column in texts)
        cursor.execute(
            f"UPDATE {table} t SET {sets}{made} FROM unnest(%s::tid[], {arrays}) AS d (place, {names}) "
            "WHERE t.ctid = d.place",
            [[place for place, _values in kept], *([values[n] for _place, values in kept] for n in range(len(texts)))],
        )
        written += cursor.rowcount
    return written
