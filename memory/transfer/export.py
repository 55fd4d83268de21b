"""Export: the topics and policies of a store, or of one of its scopes, as lines of JSON from one snapshot. Two stores
with the same content give the same file, byte for byte. The database builds the lines."""

import datetime as dt
import itertools
import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from pydantic import BaseModel

from memory.access.principal import Principal
from memory.core.scopes import ROOT
from memory.ingest.history import PastEdit, PastField, PastRevision, PastSalience, PastSummary
from memory.models import AuditEvent
from memory.models.formulas_sql import partition_end_sql, path_within_sql
from memory.policy.restore import PastVersion
from memory.transfer.lines import END, FORMAT, VERSION

# The size of an export is estimated from this number of lines of each kind.
SAMPLE = 200
# Rows are fetched in chunks of at most FETCH rows and about FETCH_BYTES, estimated from the previous chunk.
FETCH, FETCH_BYTES = 100, 4 * 1024 * 1024
# The line of a topic has the newest revisions: at most REVISIONS_IN_LINE of each field and LINE_BYTES together. Older
# revisions are in separate lines.
REVISIONS_IN_LINE, LINE_BYTES = 500, 4 * 1024 * 1024

_WITHIN = path_within_sql("{}", path="%(path)s::text", below="%(below)s::text", beyond="%(beyond)s::text")
_SCOPES = f"IN (SELECT id FROM memory_scope WHERE {_WITHIN.format(*['path'] * 3)})"


class Section(NamedTuple):
    """All lines of one kind, as parts of an SQL statement: ``members`` are the columns, ``source`` are the joined
    tables, ``key`` is the order, and ``scoped`` is the condition that a row belongs to a scope."""

    kind: str
    source: str
    members: str
    key: str
    scoped: str

    def rows_sql(self, scope: str) -> str:
        """Return ``source`` with the condition that its rows are within ``scope``."""
        return f"{self.source} WHERE {'true' if scope == ROOT else self.scoped}"


def store_export(*, principal: Principal, scope: str | None = None, vectors: bool = False) -> Iterator[bytes]:
    """Return the lines of an export of ``scope``, each with its line end. The last line states their number.
    ``vectors`` adds the embeddings. One statement for each kind of line, one that finds long histories, and two for
    each line of older revisions. Raises ``NotAllowed`` unless the caller is an operator, ``NotVisible``."""
    principal.require("operator")
    return _lines(principal.scope_chosen(scope), vectors=vectors)


def export_note(*, principal: Principal, now: dt.datetime, scope: str | None = None, vectors: bool = False) -> None:
    """Journal an export. One statement. Raises the errors of ``store_export``."""
    principal.require("operator")
    AuditEvent.objects.create(
        at=now,
        actor=principal.actor,
        action="exported",
        scope=principal.scope_chosen(scope),
        reason="",
        after={"vectors": vectors},
    )


def export_size(
    *, principal: Principal, scope: str | None = None, vectors: bool = False, sample: int = SAMPLE
) -> tuple[int, int]:
    """Return (lines, bytes) of an export, without the lines of older revisions. The bytes are estimated from the first
    ``sample`` lines of each kind. Two statements for each kind. Raises the errors of ``store_export``."""
    principal.require("operator")
    where = principal.scope_chosen(scope)
    lines, size = 2, 0.0
    with transaction.atomic(), connection.cursor() as cursor:
        for section in _sections(vectors=vectors):
            cursor.execute(f"SELECT count(*) FROM {section.rows_sql(where)}", _scope_parameters(where))
            count = int(cursor.fetchone()[0])
            rows = itertools.islice(_rows(section, where, shown={}), sample if count else 0)
            found = [len(line) for _id, line in rows]
            lines, size = lines + count, size + count * sum(found) / max(1, len(found))
    return lines, round(size)


def _lines(scope: str, *, vectors: bool) -> Iterator[bytes]:
    yield _line({"type": FORMAT, "version": VERSION, "scope": scope, "vectors": vectors})
    count = 2
    with _snapshot(), connection.cursor() as cursor:
        within = "true" if scope == ROOT else f"t.scope_id {_SCOPES}"
        cursor.execute(
            _LONG_TOPICS_SQL.format(within=within),
            {**_scope_parameters(scope), "most": REVISIONS_IN_LINE, "bytes": LINE_BYTES},
        )
        long: dict[uuid.UUID, dict[uuid.UUID, int]] = {}
        for topic, field, through in cursor.fetchall():
            long.setdefault(topic, {})[field] = through
        shown = {str(field): through for fields in long.values() for field, through in fields.items()}
        for section in _sections(vectors=vectors):
            for topic_id, line in _rows(section, scope, shown=shown):
                yield line.encode() + b"\n"
                count += 1
                for older in _older_lines(cursor, long.get(topic_id, {}) if section.kind == "topic" else {}):
                    yield older
                    count += 1
    yield _line({"type": END, "lines": count})


def _rows(section: Section, scope: str, *, shown: Mapping[str, int]) -> Iterator[tuple[uuid.UUID, str]]:
    """Yield (first column of the key, line) for each line of a section. Needs a transaction."""
    sql = (
        f"SELECT {section.key.split(',')[0]}, (SELECT row_to_json(j)::text FROM "
        f"(SELECT '{section.kind}' AS type, {section.members}) j) FROM {section.rows_sql(scope)} ORDER BY {section.key}"
    )
    limit = FETCH
    with connection.chunked_cursor() as cursor:
        cursor.execute(sql, _scope_parameters(scope) | {"shown": json.dumps(shown)})
        while rows := cursor.fetchmany(limit):
            yield from rows
            limit = max(1, min(FETCH, FETCH_BYTES * len(rows) // sum(len(line) for _id, line in rows)))


def _older_lines(cursor: CursorWrapper, fields: Mapping[uuid.UUID, int]) -> Iterator[bytes]:
    """Yield lines with the older revisions of fields, the oldest first. ``fields`` maps the id of each field to the
    number of its last revision to yield. Two statements for each line."""
    for field, last in sorted(fields.items()):
        after = 0
        while after < last:
            wanted: dict[str, Any] = {"field": field, "after": after, "last": min(after + REVISIONS_IN_LINE, last)}
            wanted["bytes"] = LINE_BYTES
            cursor.execute(_THROUGH_SQL, wanted)
            (through,) = cursor.fetchone()
            cursor.execute(_HISTORY, wanted | {"last": through})
            yield cursor.fetchone()[0].encode() + b"\n"
            after = through


def _columns(row: str, model: type[BaseModel], *but: str) -> str:
    return ", ".join(f'{row}."{name}"' for name in model.model_fields if name not in but)


def _list(columns: str, source: str) -> str:
    return f"array_to_json(ARRAY(SELECT row_to_json(x) FROM (SELECT {columns} FROM {source}) x))"


_BYTES = "octet_length(v.value) + octet_length(v.why_changed) + octet_length(v.impact_expected)"
# For each field that does not fit into the line of its topic: the number of the last revision that must be in a
# separate line. The newest revisions are in the line of the topic. Without MATERIALIZED, the statistics of a store that
# was empty until now let the planner group all revisions once for each field.
_LONG_TOPICS_SQL = f"""
WITH long AS MATERIALIZED (
    SELECT f.topic_id FROM memory_topic t JOIN memory_field f ON f.topic_id = t.id
    JOIN memory_revision v ON v.field_id = f.id WHERE {{within}}
    GROUP BY 1 HAVING max(f.last_seq) > %(most)s OR sum({_BYTES}) > %(bytes)s
)
SELECT topic_id, field_id, through FROM (
    SELECT x.topic_id, x.field_id,
           coalesce(min(x.seq) FILTER (WHERE x.size <= %(bytes)s) - 1, x.last_seq - 1) AS through
    FROM (
        SELECT f.topic_id, f.id AS field_id, f.last_seq, v.seq,
               sum({_BYTES}) OVER (PARTITION BY f.topic_id ORDER BY f.last_seq - v.seq, f.id) AS size
        FROM long JOIN memory_field f ON f.topic_id = long.topic_id
        JOIN memory_revision v ON v.field_id = f.id AND v.seq > f.last_seq - %(most)s
    ) x GROUP BY x.topic_id, x.field_id, x.last_seq
) y WHERE through > 0
"""
_THROUGH_SQL = f"""
SELECT max(seq) FROM (
    SELECT v.seq, sum({_BYTES}) OVER (ORDER BY v.seq) - ({_BYTES}) AS before FROM memory_revision v
    WHERE v.field_id = %(field)s AND v.seq > %(after)s AND v.seq <= %(last)s
) x WHERE before < %(bytes)s
"""
_REVISION = _columns("v", PastRevision)
_HISTORY = (
    "SELECT row_to_json(j)::text FROM (SELECT 'history' AS type, f.topic_id AS topic, f.name AS field, "
    "%(after)s::int AS after, "
    + _list(
        _REVISION,
        "memory_revision v WHERE v.field_id = f.id AND v.seq > %(after)s AND v.seq <= %(last)s ORDER BY v.seq",
    )
    + " AS revisions FROM memory_field f WHERE f.id = %(field)s) j"
)
_NEWEST = (
    "memory_revision v WHERE v.field_id = f.id AND v.seq > coalesce((%(shown)s::jsonb->>f.id::text)::int, 0) "
    "ORDER BY v.seq"
)
# The seconds are rounded, so that a store and its import give the same export.
_COUNTED = (
    f"round(({partition_end_sql('t.scope_id')} - extract(epoch from {{row}}.reinforced_at)::float8 + "
    "{row}.idle_before)::numeric, 3)::float8 AS counted_seconds"
)
_VECTOR_SQL = """
(SELECT row_to_json(x) FROM (SELECT w.model, w.text_hash, w.embedding::text::json AS embedding FROM memory_topicvector w
 WHERE w.topic_id = t.id AND w.embedding IS NOT NULL) x)
"""


def _sections(*, vectors: bool) -> tuple[Section, ...]:
    field = ", ".join(
        (
            _columns("f", PastField, "revisions", "summaries", "counted_seconds"),
            _COUNTED.format(row="f"),
            f"{_list(_REVISION, _NEWEST)} AS revisions",
            _list(_columns("m", PastSummary), "memory_fieldsummary m WHERE m.field_id = f.id ORDER BY m.id")
            + " AS summaries",
        )
    )
    # A merged topic is exported as released. This state remains if the topic into which it was merged is not imported.
    topic = ", ".join(
        (
            "t.id, s.path AS scope, t.kind, t.title, t.summary, t.categories, t.provenance, t.created_at, t.updated_at",
            "t.rung, v.pinned, v.pin_reason",
            "coalesce(t.released_at, CASE WHEN t.merged_into_id IS NOT NULL THEN t.updated_at END) AS released_at",
            _columns("v", PastSalience, "counted_seconds"),
            _COUNTED.format(row="v"),
            # Empty fields are left out. Their values were moved into another topic.
            _list(field, "memory_field f WHERE f.topic_id = t.id AND f.last_seq > 0 ORDER BY f.created_at, f.id")
            + " AS fields",
            _list(_columns("e", PastEdit), "memory_topicedit e WHERE e.topic_id = t.id ORDER BY e.at, e.id")
            + " AS edits",
            f"{_VECTOR_SQL if vectors else 'NULL'} AS vector",
        )
    )
    versions = _list(_columns("v", PastVersion), "memory_policyversion v WHERE v.scope = p.scope ORDER BY v.number")
    return (
        Section(
            "policy",
            "(SELECT DISTINCT scope FROM memory_policyversion) p",
            f"p.scope, {versions} AS versions",
            'p.scope COLLATE "C"',
            _WITHIN.format(*["p.scope"] * 3),
        ),
        Section(
            "topic",
            "memory_topic t JOIN memory_vitality v ON v.topic_id = t.id JOIN memory_scope s ON s.id = t.scope_id",
            topic,
            "t.id",
            f"t.scope_id {_SCOPES}",
        ),
        Section(
            "reference",
            "memory_revision r JOIN memory_field f ON f.id = r.field_id JOIN memory_topic a ON a.id = f.topic_id "
            "JOIN memory_topic b ON b.id = r.ref_topic_id",
            'f.topic_id AS topic, f.name AS field, r.seq, r.ref_topic_id AS "to"',
            'r.ref_topic_id, f.topic_id, f.name COLLATE "C", r.seq',
            f"a.scope_id {_SCOPES} AND b.scope_id {_SCOPES}",
        ),
        Section(
            "merged",
            "memory_topic t JOIN memory_topic i ON i.id = t.merged_into_id",
            't.id AS topic, t.merged_into_id AS "into", t.released_at',
            "t.merged_into_id, t.id",
            f"t.scope_id {_SCOPES} AND i.scope_id {_SCOPES}",
        ),
        Section(
            "link",
            "memory_link l JOIN memory_topic a ON a.id = l.source_id JOIN memory_topic b ON b.id = l.target_id",
            "l.source_id AS source, l.target_id AS target, l.kind, l.created_at, l.actor",
            'l.source_id, l.target_id, l.kind COLLATE "C"',
            f"a.scope_id {_SCOPES} AND b.scope_id {_SCOPES}",
        ),
    )


def _line(members: dict[str, Any]) -> bytes:
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _scope_parameters(scope: str) -> dict[str, Any]:
    return {"path": scope, "below": f"{scope}/", "beyond": f"{scope}0"}


@contextmanager
def _snapshot() -> Iterator[None]:
    """Read from one snapshot: that of the caller's transaction, or that of a new transaction."""
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            # No time-out, because the reader of the lines may be slow.
            cursor.execute("SET LOCAL statement_timeout = 0")
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        yield
