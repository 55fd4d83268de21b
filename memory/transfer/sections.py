"""The sections of an export: one for each sort of line, read from the tables page by page.

The database writes the lines itself, so that numbers, moments and JSON stand in them exactly as it holds them. Pages
go by key, and the last line of a file tells where the next one goes on.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.backends.utils import CursorWrapper

from memory.domain.errors import Conflict
from memory.domain.problem_codes import ProblemCode
from memory.models.expressions import path_within_sql
from memory.transfer import shape
from memory.transfer.shape import REVISIONS_IN_LINE, Rows

PAGE = 1000
# A topic carries its fields with their history.
TOPICS = 200
# A page ends with the row that reaches this, and so does what one line holds of histories.
PAGE_BYTES = 4 * 1024 * 1024

STALE = (
    "What this export holds so far is no longer what the store holds: something was erased or written in between. "
    "Remove it and start anew."
)

_WITHIN = {"path": "%(path)s::text", "below": "%(below)s::text", "beyond": "%(beyond)s::text"}
_SCOPES = f"(SELECT id FROM memory_scope WHERE {path_within_sql('path', **_WITHIN)})"
_LEFT_OUT = ", ".join(f"'{action}'" for action in shape.AUDIT_LEFT_OUT)


def _in_scope(column: str) -> str:
    return path_within_sql(column, **_WITHIN)


def _topic(column: str) -> str:
    return f"EXISTS (SELECT 1 FROM memory_topic x WHERE x.id = {column} AND x.scope_id IN {_SCOPES})"


def _owner(table: str, column: str) -> str:
    return f"EXISTS (SELECT 1 FROM {table} o WHERE o.id = {column} AND {_in_scope('o.scope')})"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file ends: its last whole line, how many lines of that sort it holds, and how many in all; the last line
    of a topic; and the number of the last receipt that was there when it was looked at."""

    line: Mapping[str, Any]
    count: int
    lines: int
    topic: Mapping[str, Any] | None = None
    receipts: int = 0

    @property
    def sort(self) -> str:
        """The sort of the last line."""
        return str(self.line.get("type"))


@dataclass(frozen=True, slots=True)
class Section:
    """Lines of one sort. ``told`` are the members behind ``type``, of the row ``r`` of ``source``; ``key`` orders the
    rows, and ``members`` say where it stands in a line. Without members, the lines that are there are counted, and the
    last has to be the one that is there. ``within`` narrows to a scope, None leaves all of them out there."""

    sort: str
    source: str
    told: str
    key: tuple[str, ...]
    members: tuple[str, ...] = ()
    within: str | None = "true"
    where: str = "true"

    def holds(self, place: Place) -> bool:
        """Tell whether a file ends within it."""
        return place.sort == self.sort or (place.sort == "history" and self.sort == "topic")

    def rows_sql(self, *, scoped: bool) -> str | None:
        """Return which rows belong to it; None for none."""
        if not scoped:
            return self.where
        return None if self.within is None else f"{self.where} AND {self.within}"

    def page_sql(self, where: str, *, after: bool) -> str:
        """Return the statement for one page: the line of each row, how many rows there are, and its key."""
        key = [f"r.k{place}" for place in range(len(self.key))]
        named = ", ".join(f"{each} AS k{place}" for place, each in enumerate(self.key))
        told = f"(SELECT row_to_json(j)::text FROM (SELECT '{self.sort}' AS type, {self.told}) j)"
        # The server reads all rows of the page, and sends as many as are not too much.
        size = f"sum(octet_length(r.line)) OVER (ORDER BY {', '.join(key)} ROWS UNBOUNDED PRECEDING)"
        return (
            f"SELECT r.line, r.rows, {', '.join(key)} FROM ("
            f"SELECT r.*, {size} - octet_length(r.line) AS before, count(*) OVER () AS rows FROM ("
            # Without the last words, each line would be made three times.
            f"SELECT {told} AS line, {named} FROM ({self.rows_page_sql(where, after=after)}) r OFFSET 0) r) r "
            f"WHERE r.before < %(bytes)s ORDER BY {', '.join(key)}"
        )

    def rows_page_sql(self, where: str, *, after: bool) -> str:
        """Return the statement for the rows of one page."""
        key = ", ".join(self.key)
        beyond = ", ".join(f"%(after_{place})s" for place in range(len(self.key)))
        return (
            f"SELECT * FROM {self.source} r WHERE {where} "
            f"{f'AND ({key}) > ({beyond})' if after else ''} ORDER BY {key} LIMIT %(limit)s"
        )


def sections_make(*, vectors: bool) -> tuple[Section, ...]:
    """Return the sections, in the order of the file."""
    by_id = ("r.id",)
    return (
        Section(
            "policy",
            "(SELECT DISTINCT scope FROM memory_policyversion)",
            f"r.scope, {_list(shape.POLICY_VERSION, 'v', 'v.scope = r.scope', 'v.number')} AS versions",
            ('r.scope COLLATE "C"',),
            ("scope",),
            within=_in_scope("r.scope"),
        ),
        _topics(vectors=vectors),
        Section(
            "reference",
            "(SELECT v.ref_topic_id, v.id, f.topic_id FROM memory_revision v JOIN memory_field f ON f.id = v.field_id "
            "WHERE v.ref_topic_id IS NOT NULL)",
            'r.topic_id AS topic, r.id AS revision, r.ref_topic_id AS "to"',
            ("r.ref_topic_id", "r.id"),
            ("to", "revision"),
            within=f"{_topic('r.topic_id')} AND {_topic('r.ref_topic_id')}",
        ),
        Section(
            "merged",
            "memory_topic",
            'r.id AS topic, r.merged_into_id AS "into"',
            ("r.merged_into_id", "r.id"),
            ("into", "topic"),
            within=f"r.scope_id IN {_SCOPES}",
            where="r.merged_into_id IS NOT NULL",
        ),
        _flat("link", shape.LINK, by_id, ("id",), f"{_topic('r.source_id')} AND {_topic('r.target_id')}"),
        _flat("run", shape.RUN, by_id, ("id",), _in_scope("r.scope")),
        _flat(
            "action", shape.ACTION, by_id, (), f"{_owner('memory_forgetrun', 'r.run_id')} AND {_topic('r.topic_id')}"
        ),
        _flat("pair", shape.PAIR, by_id, ("id",), f"r.scope_id IN {_SCOPES}"),
        _flat("access", shape.ACCESS, by_id, ("id",), _in_scope("r.scope")),
        _flat(
            "shadow", shape.SHADOW, by_id, (), f"{_owner('memory_accesslog', 'r.access_id')} AND {_topic('r.topic_id')}"
        ),
        # It counts for the whole log.
        _flat("watermark", shape.WATERMARK, ('r.name COLLATE "C"',), ("name",), None),
        # A part of a chain proves nothing.
        _flat("receipt", shape.RECEIPT, ("r.number",), ("number",), None),
        _flat(
            "audit",
            shape.AUDIT,
            by_id,
            (),
            f"{_in_scope('r.scope')} AND r.action <> 'purged'",
            where=f"r.action NOT IN ({_LEFT_OUT})",
        ),
        _conversations(),
    )


def section_lines(
    cursor: CursorWrapper, section: Section, *, wanted: dict[str, Any], scoped: bool, place: Place | None
) -> Iterator[bytes]:
    """Yield the lines of a section, those up to ``place`` left out. One statement per page, of topics two, and two per
    line of a long history. Raises ``Conflict`` if what is there does not stand before the place any more."""
    where = section.rows_sql(scoped=scoped)
    if where is None:
        return
    topics = section.sort == "topic"
    limit = most = TOPICS if topics else PAGE
    after: tuple[Any, ...] | None = None
    if place is not None:
        after = _after(cursor, section, where, place, wanted)
        if topics:
            yield from _histories_rest(cursor, place)
    while True:
        told = wanted | {f"after_{at}": part for at, part in enumerate(after or ())}
        told |= {"limit": limit, "bytes": PAGE_BYTES}
        long = _long_fields(cursor, section.rows_page_sql(where, after=after is not None), told) if topics else []
        told["shown_from"] = json.dumps({field.field: field.through for field in long})
        cursor.execute(section.page_sql(where, after=after is not None), told)
        rows = cursor.fetchall()
        for line, _count, *key in rows:
            yield line.encode() + b"\n"
            yield from _histories(cursor, [field for field in long if field.topic == str(key[0])])
        count = rows[0][1] if rows else 0
        if len(rows) == count < limit:
            return
        after = tuple(rows[-1][2:])
        limit = max(1, len(rows)) if len(rows) < count else min(most, 2 * limit)


@dataclass(frozen=True, slots=True)
class _Long:
    """A field whose revisions behind ``after`` and up to ``through`` stand in lines of their own."""

    topic: str
    field: str
    through: int
    after: int = 0


_BYTES = " + ".join(f'octet_length(v."{column.name}")' for column in shape.REVISION.columns if column.sort == "text")
# Of each topic, the newest revisions are in its line: so many of each field, and together so many bytes, of each field
# the newest first.
_LONG = f"""
SELECT topic_id::text, field_id::text, through FROM (
    SELECT x.topic_id, x.field_id, coalesce(min(x.seq) FILTER (WHERE x.size <= %(bytes)s) - 1, x.last_seq) AS through
    FROM (
        SELECT f.topic_id, f.id AS field_id, f.last_seq, v.seq,
               sum({_BYTES}) OVER (PARTITION BY f.topic_id ORDER BY f.last_seq - v.seq, f.id) AS size
        FROM ({{page}}) p JOIN memory_field f ON f.topic_id = p.id
        JOIN memory_revision v ON v.field_id = f.id AND v.seq > f.last_seq - {REVISIONS_IN_LINE}
    ) x GROUP BY x.topic_id, x.field_id, x.last_seq
) y WHERE through > 0 ORDER BY topic_id, field_id
"""
_THROUGH = f"""
SELECT max(seq) FROM (
    SELECT v.seq, sum({_BYTES}) OVER (ORDER BY v.seq) - ({_BYTES}) AS before FROM memory_revision v
    WHERE v.field_id = %(field)s::uuid AND v.seq > %(after)s AND v.seq <= %(through)s
) x WHERE before < %(bytes)s
"""


def _long_fields(cursor: CursorWrapper, page: str, told: Mapping[str, Any]) -> list[_Long]:
    cursor.execute(_LONG.format(page=page), told)
    return [_Long(*row) for row in cursor.fetchall()]


def _histories_rest(cursor: CursorWrapper, place: Place) -> Iterator[bytes]:
    """Yield the older revisions of the last topic that come behind the place, as far as its line has left them out."""
    topic, line = place.topic or place.line, place.line
    fields = [
        _Long(topic["id"], field["id"], field["last_seq"] - len(field["revisions"]))
        for field in sorted(topic["fields"], key=lambda field: str(field["id"]))
    ]
    if line["type"] == "history":
        own, seq = line["field"], line["revisions"][-1]["seq"]
        fields = [
            _Long(each.topic, each.field, each.through, seq if each.field == own else 0)
            for each in fields
            if each.field >= own
        ]
    yield from _histories(cursor, fields)


def _histories(cursor: CursorWrapper, fields: Sequence[_Long]) -> Iterator[bytes]:
    """Yield the lines with the older revisions of each field. Two statements per line."""
    for field in fields:
        done = field.after
        while done < field.through:
            told: dict[str, Any] = {"topic": field.topic, "field": field.field, "after": done, "bytes": PAGE_BYTES}
            cursor.execute(_THROUGH, told | {"through": min(done + REVISIONS_IN_LINE, field.through)})
            (through,) = cursor.fetchone()
            cursor.execute(_HISTORY, told | {"through": through})
            yield cursor.fetchone()[0].encode() + b"\n"
            done = through


def _after(
    cursor: CursorWrapper, section: Section, where: str, place: Place, wanted: Mapping[str, Any]
) -> tuple[Any, ...]:
    if section.members:
        if place.sort == "history":
            return (place.line["topic"],)
        return tuple(place.line[member] for member in section.members)
    # Rows without a key in the file come in the order in which they were written; one that was committed late, or
    # changed since, shows here.
    told = f"(SELECT row_to_json(j)::text FROM (SELECT '{section.sort}' AS type, {section.told}) j)"
    cursor.execute(
        f"SELECT r.id, {told} FROM {section.source} r WHERE {where} ORDER BY r.id LIMIT 1 OFFSET %(count)s",
        {**wanted, "count": place.count - 1},
    )
    found = cursor.fetchone()
    if found is None or json.loads(found[1]) != place.line:
        raise Conflict(STALE, code=ProblemCode.EXPORT_OUTDATED)
    return (found[0],)


def _flat(
    sort: str, rows: Rows, key: tuple[str, ...], members: tuple[str, ...], within: str | None, *, where: str = "true"
) -> Section:
    return Section(sort, rows.table, rows.told_sql("r"), key, members, within, where)


def _list(rows: Rows, row: str, where: str, order: str, *more: str) -> str:
    """Return rows, each as an object, as one array. ``row`` is their alias, ``more`` are further members."""
    told = ", ".join((rows.told_sql(row), *more))
    inner = f"SELECT {told} FROM {rows.table} {row} WHERE {where} ORDER BY {order}"
    return f"array_to_json(ARRAY(SELECT row_to_json(j_{row}) FROM ({inner}) j_{row}))"


def _one(rows: Rows, row: str, where: str) -> str:
    inner = f"SELECT {rows.told_sql(row)} FROM {rows.table} {row} WHERE {where}"
    return f"(SELECT row_to_json(j_{row}) FROM ({inner}) j_{row})"


_HISTORY = (
    "SELECT row_to_json(j)::text FROM (SELECT 'history' AS type, %(topic)s::uuid AS topic, f.id AS field, "
    + _list(shape.REVISION, "v", "v.field_id = f.id AND v.seq > %(after)s AND v.seq <= %(through)s", "v.seq")
    + " AS revisions FROM memory_field f WHERE f.id = %(field)s::uuid) j"
)


def _topics(*, vectors: bool) -> Section:
    newest = "v.field_id = f.id AND v.seq > coalesce((%(shown_from)s::jsonb->>f.id::text)::int, 0)"
    # What was merged into another topic is found as it was once that is undone, and its fields are elsewhere by now.
    merged = "r.merged_into_id IS NOT NULL"
    told = (
        shape.TOPIC.told_sql("r"),
        f"{_one(shape.VITALITY, 'v', 'v.topic_id = r.id')} AS vitality",
        _list(
            shape.FIELD,
            "f",
            "f.topic_id = r.id",
            "f.created_at, f.id",
            f"{_list(shape.REVISION, 'v', newest, 'v.seq')} AS revisions",
            f"{_list(shape.SUMMARY, 's', 's.field_id = f.id', 's.id')} AS summaries",
        )
        + " AS fields",
        f"{_list(shape.EDIT, 'e', 'e.topic_id = r.id', 'e.id')} AS edits",
        # What it said when it was compared with its like; nothing if it waits for that.
        "(SELECT d.text_hash FROM memory_duplicatelook d WHERE d.topic_id = r.id AND NOT d.waiting) AS looked",
        _one(shape.VECTOR, "w", f"w.topic_id = r.id AND ({merged} {'OR w.embedding IS NOT NULL' if vectors else ''})")
        + " AS vector",
        f"(SELECT d.document::text FROM memory_topicdocument d WHERE d.topic_id = r.id AND {merged}) AS document",
        _one(shape.MENTION, "m", f"m.topic_id = r.id AND {merged}") + " AS mention",
    )
    return Section("topic", "memory_topic", ", ".join(told), ("r.id",), ("id",), f"r.scope_id IN {_SCOPES}")


def _conversations() -> Section:
    told = (
        shape.CONVERSATION.told_sql("r"),
        f"{_list(shape.TURN, 't', 't.conversation_id = r.id', 't.place')} AS told",
        f"{_list(shape.WRITE, 'w', 'w.conversation_id = r.id', 'w.id')} AS writes",
    )
    return Section("conversation", "memory_conversation", ", ".join(told), ("r.id",), ("id",), _in_scope("r.scope"))
