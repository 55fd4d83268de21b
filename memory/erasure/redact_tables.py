"""Takes what was erased out of everything that is not memory: journals, logs, lists, jobs, sessions.

Which tables these are is asked of the database; those that are not of this project's models, nor of its libraries', are
left alone. Of each, the rows that may hold something are picked by the database and read here, since only the program
knows two spellings of one identifier. What topics say is left alone.
"""

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper
from psycopg import sql

from memory.core.errors import Conflict
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT, scope_within
from memory.erasure.encoded_columns import ENCODINGS, Encoding
from memory.erasure.erased_text import MOST_ANCHORS
from memory.erasure.receipts import is_anchor
from memory.erasure.redact_text import Eraser, anchors_of, anchors_pattern
from memory.erasure.related_rows import DOCUMENTS, IDS_KEPT, TEXT_ARRAYS, TEXTS, Column, key_sql, statistics_read

ROWS = 2_000
TRIES = 5
# The first version of PostgreSQL that can forget the statistics of one column.
_CLEARS_STATISTICS = 180000

# What nobody else remembers either: the hash of a query is its fingerprint, and gets another one with it.
_ACCESSES = """
UPDATE memory_accesslog a
SET topic_ids = x.topics, field_ids = ARRAY(SELECT f FROM unnest(a.field_ids) WITH ORDINALITY u (f, n)
                                            WHERE f <> ALL(%(fields)s::uuid[]) ORDER BY n),
    query = CASE WHEN x.topics = '{}' THEN '' ELSE a.query END, query_hash = ''
FROM (
    SELECT id, ARRAY(SELECT t FROM unnest(topic_ids) WITH ORDINALITY u (t, n)
                     WHERE t <> ALL(%(ids)s::uuid[]) ORDER BY n) AS topics
    FROM memory_accesslog WHERE EXISTS (SELECT 1 FROM unnest(topic_ids) t WHERE t = ANY(%(ids)s::uuid[]))
) x WHERE a.id = x.id RETURNING a.id::text
"""
_AUDITS = """
UPDATE memory_auditevent SET reason = '', before = '{}', after = '{}'
WHERE topic_id = ANY(%(ids)s::uuid[]) AND action <> 'purged'
RETURNING id::text
"""
# A request that is sent again must not bring back what it once stored: its key stays taken, and answers that. So does
# that of a message whose turn was emptied. What looks like an id may stand in any text, so ids are compared as texts.
_REPLIES = """
UPDATE memory_idempotencyrecord r SET reply = 'null', request_hash = '', status = 410
WHERE status <> 410 AND (EXISTS (
    SELECT 1 FROM regexp_matches(reply::text, '"topic_id\\\\?": ?\\\\?"([0-9a-f-]{36})', 'g') m
    WHERE m[1] = ANY(%(ids)s::uuid[]::text[])
) OR EXISTS (SELECT 1 FROM memory_conversationturn t WHERE t.id = r.turn_id AND t.erased)) RETURNING id::text
"""
# Whatever a list was made for, its question and its reason speak of all that it lists, and so does why each is there.
_ENTRIES = """
UPDATE memory_forgetlisting l
SET query = '', reason = '', question = '', entries = (
    SELECT coalesce(jsonb_agg(CASE WHEN (e->>'id')::uuid = ANY(%(ids)s::uuid[])
        THEN (e - 'keeps') || '{"why": "", "excerpt": ""}' ELSE e || '{"why": ""}' END ORDER BY n), '[]')
    FROM jsonb_array_elements(entries) WITH ORDINALITY x (e, n)
)
WHERE EXISTS (SELECT 1 FROM jsonb_array_elements(entries) e WHERE (e->>'id')::uuid = ANY(%(ids)s::uuid[]))
RETURNING id::text
"""
# A process that is killed between a write and the note of its call leaves the write on record, and nothing in the turn.
_UNNOTED = """
SELECT DISTINCT t.id FROM memory_conversationwrite w
JOIN memory_conversationturn t ON t.conversation_id = w.conversation_id AND t.at <= w.at
    AND t.ended IN ('working', 'lost')
WHERE w.topic_id = ANY(%(ids)s::uuid[]) AND NOT EXISTS (
    SELECT 1 FROM memory_conversationturn n
    WHERE n.conversation_id = t.conversation_id AND n.place = t.place + 1 AND n.at <= w.at
)
"""
# Whoever has read of it may have paraphrased it, then and ever after in that conversation. A turn that is at work finds
# itself marked before it writes anything more.
_TURNS = """
WITH touched AS (
    SELECT conversation_id, min(place) AS place FROM memory_conversationturn t
    WHERE t.id = ANY(%(turns)s::bigint[]) OR EXISTS (
        SELECT 1 FROM jsonb_array_elements(tool_log) e,
            jsonb_array_elements_text(coalesce(e->'topic_ids', '[]') || coalesce(e->'seen', '[]')) i
        WHERE i = ANY(%(ids)s::uuid[]::text[])
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
# By table; each is about the rows themselves, before the texts are looked at.
_BY_ID = {
    "memory_accesslog": _ACCESSES,
    "memory_auditevent": _AUDITS,
    "memory_forgetlisting": _ENTRIES,
    "memory_conversationturn": _TURNS,
    # After the turns, as whoever closes one locks them.
    "memory_idempotencyrecord": _REPLIES,
}
# Beside a text that was masked, what is made from it.
_MADE_FROM = {"memory_accesslog": ("query_hash",)}


def turns_unnoted(cursor: CursorWrapper, ids: Sequence[uuid.UUID]) -> list[int]:
    """Return the turns that wrote to these topics and may not say so, as their process was killed. One statement.

    Belongs before the topics are removed, and with them what is on record of the writes.
    """
    cursor.execute(_UNNOTED, {"ids": list(ids)})
    return [row[0] for row in cursor.fetchall()]


def logs_redact(
    cursor: CursorWrapper,
    eraser: Eraser,
    ids: Sequence[uuid.UUID],
    columns: Sequence[Column],
    *,
    within: str = ROOT,
    turns: Sequence[int] = (),
) -> dict[str, int]:
    """Take what was erased out of every table but those that say what topics say; return the rows changed by table.

    ``turns`` of conversations are emptied beside those that say what they had to do with. Rows outside the scope
    ``within``, and those that have no scope if it is not the root, lose the ids alone: whoever may write in one scope
    must not rewrite the journals of another by storing and purging what these say. About two statements for each table
    of the database, however many topics. Reads each log once.
    """
    touched: dict[str, set[str]] = {}
    # Fields and revisions are masked where a row comes up anyhow; that it does, the topic's own id sees to.
    fields = [uuid.UUID(each) for each in eraser.ids]
    wanted: dict[str, Any] = {"ids": list(ids), "fields": fields, "turns": list(turns)}
    for table, statement in _BY_ID.items():
        cursor.execute(statement, wanted)
        touched.setdefault(table, set()).update(row[0] for row in cursor.fetchall())
    anchors = anchors_of(eraser.passages, eraser.identifiers, most=MOST_ANCHORS)
    if anchors is not None:
        plain = [str(each) for each in ids]
        anchors = [*anchors, *plain, *(each.replace("-", "") for each in plain)]
        anchors = anchors if len(anchors) <= 2 * MOST_ANCHORS else None
    masks = _Masks(eraser, Eraser(ids=eraser.ids), within)
    for own in _logs(columns).values():
        table = own[0].table
        for column in own:
            if column.data_type in ("uuid", "uuid[]") and column.label not in IDS_KEPT:
                touched.setdefault(table, set()).update(_ids_remove(cursor, column, own, eraser))
        touched.setdefault(table, set()).update(_table_redact(cursor, own, masks, anchors_pattern(anchors)))
    return {table: len(rows) for table, rows in touched.items() if rows}


def statistics_renew(cursor: CursorWrapper, eraser: Eraser) -> list[str]:
    """Have the planner's statistics made anew where they hold something erased, and return the tables.

    The most common values of a column, and a hundred between, stand in the catalogue as they are. One statement, and
    one for each such table.
    """
    held = sorted({table for table, _column, text in statistics_read(cursor) if eraser.masked(text) != text})
    for table in held:
        cursor.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(table)))
    if held and connection.connection.info.server_version >= _CLEARS_STATISTICS:
        # Of a table that is empty by now, nothing is made anew and the old ones stay.
        left = {(table, column) for table, column, text in statistics_read(cursor) if eraser.masked(text) != text}
        for table, column in sorted(left):
            cursor.execute("SELECT pg_clear_attribute_stats(current_schema(), %s, %s, false)", [table, column])
    return held


def _logs(columns: Iterable[Column]) -> dict[str, list[Column]]:
    tables: dict[str, list[Column]] = {}
    for column in columns:
        if column.ours and not column.own_text:
            tables.setdefault(column.quoted_table, []).append(column)
    return tables


def _ids_remove(cursor: CursorWrapper, column: Column, columns: Sequence[Column], eraser: Eraser) -> set[str]:
    """Take ids out of a column that is no foreign key; a row that cannot be without is about them alone, and goes."""
    if column.key or column.foreign or column.kept or not eraser.ids:
        return set()
    name, ids = f'"{column.name}"', [uuid.UUID(each) for each in eraser.ids]
    if column.data_type == "uuid[]":
        statement = (
            f"UPDATE {column.quoted_table} SET {name} = ARRAY(SELECT e FROM unnest({name}) WITH ORDINALITY u (e, n) "
            f"WHERE e <> ALL(%(ids)s::uuid[]) ORDER BY n) "
            f"WHERE EXISTS (SELECT 1 FROM unnest({name}) e WHERE e = ANY(%(ids)s::uuid[]))"
        )
    elif column.nullable:
        statement = f"UPDATE {column.quoted_table} SET {name} = NULL WHERE {name} = ANY(%(ids)s::uuid[])"
    else:
        statement = f"DELETE FROM {column.quoted_table} WHERE {name} = ANY(%(ids)s::uuid[])"
    cursor.execute(f"{statement} RETURNING {key_sql(columns)}", {"ids": ids})
    return {row[0] for row in cursor.fetchall()}


@dataclass(frozen=True, slots=True)
class _Masks:
    """What is taken out of rows within a scope, and what out of all others."""

    inside: Eraser
    outside: Eraser
    within: str

    def of(self, scope: str | None) -> Eraser:
        """Return the one for a row of this scope; None is a row that has none."""
        if self.within == ROOT or (scope and scope_within(scope, self.within)):
            return self.inside
        return self.outside


def _table_redact(cursor: CursorWrapper, columns: Sequence[Column], masks: _Masks, anchors: str | None) -> set[str]:
    texts = [column for column in columns if _is_text(column) and not column.kept]
    touched: set[str] = set()
    if not texts:
        return touched
    for _try in range(TRIES):
        changes = _changes(columns, texts, masks, anchors)
        written = 0
        for begin in range(0, len(changes), ROWS):
            written += _rows_write(cursor, texts, changes[begin : begin + ROWS])
        touched |= {change.key for change in changes}
        if written == len(changes):
            return touched
        # Somebody wrote to one of these rows in between; what stands there now is read again.
    raise Conflict(
        f"Others keep writing to {columns[0].table}; nothing was purged. Try again in a moment.",
        code=ProblemCode.STORE_BUSY,
    )


@dataclass(frozen=True, slots=True)
class _Change:
    """A row by its place and its key, and what its texts become; None for a row that goes."""

    place: str
    key: str
    values: list[str | None] | None


def _changes(columns: Sequence[Column], texts: Sequence[Column], masks: _Masks, anchors: str | None) -> list[_Change]:
    found: list[_Change] = []
    for place, key, scope, *row in _rows_read(columns, texts, anchors):
        eraser = masks.of(scope)
        values = [_masked(column, value, eraser) for column, value in zip(texts, row, strict=True)]
        if values == row:
            continue
        void = any(
            value != old and column.label in ENCODINGS and ENCODINGS[column.label].delete_when_changed
            for column, value, old in zip(texts, values, row, strict=True)
        )
        found.append(_Change(str(place), str(key), None if void else values))
    return found


def _is_text(column: Column) -> bool:
    return column.data_type in TEXTS | DOCUMENTS | TEXT_ARRAYS


def _rows_read(columns: Sequence[Column], texts: Sequence[Column], anchors: str | None) -> Iterator[list[str | None]]:
    """Yield place, key, scope and texts of the rows that may hold something: those with other letters than English ones
    are all read, as the database folds them otherwise than ``fold`` does."""
    wanted = ", ".join(f'"{column.name}"::text' for column in texts)
    scope = '"scope"' if any(column.name == "scope" and column.data_type in TEXTS for column in columns) else "NULL"
    statement = f"SELECT ctid::text, {key_sql(columns)}, {scope}, {wanted} FROM {columns[0].quoted_table}"
    parameters: list[str] = []
    if anchors is not None and not any(column.label in ENCODINGS for column in texts):
        conditions = []
        for column in texts:
            text = f'"{column.name}"::text'
            # Within JSON, other letters may be written by their numbers.
            conditions.append(
                f"octet_length({text}) <> length({text}) OR lower({text}) ~ %s OR strpos({text}, '\\u') > 0"
            )
            parameters.append(anchors)
        statement += " WHERE " + " OR ".join(conditions)
    with connection.chunked_cursor() as reader:
        reader.execute(statement, parameters)
        while rows := reader.fetchmany(ROWS):
            yield from map(list, rows)


def _masked(column: Column, value: str | None, eraser: Eraser) -> str | None:
    if not value:
        return value
    coded: Encoding | None = ENCODINGS.get(column.label)
    if coded is not None:
        held = coded.read(value)
        told = eraser.masked_value(held, "result")
        return value if told is held else coded.write(told)
    if column.data_type in DOCUMENTS:
        if column.label in IDS_KEPT:
            eraser = Eraser(eraser.passages, eraser.identifiers)
        document = json.loads(value)
        if column.label == "memory_auditevent.after" and is_anchor(document):
            return value
        told = eraser.masked_value(document)
        return value if told is document else json.dumps(told, ensure_ascii=False)
    return eraser.masked(value)


def _rows_write(cursor: CursorWrapper, texts: Sequence[Column], changes: Sequence[_Change]) -> int:
    table = texts[0].quoted_table
    gone = [change.place for change in changes if change.values is None]
    kept = [(change.place, change.values) for change in changes if change.values is not None]
    written = 0
    if gone:
        cursor.execute(f"DELETE FROM {table} WHERE ctid = ANY(%s::tid[])", [gone])
        written += cursor.rowcount
    if kept:
        made = "".join(f", \"{name}\" = ''" for name in _MADE_FROM.get(texts[0].table, ()))
        # A column of limited length cuts the mark off rather than refusing it.
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
