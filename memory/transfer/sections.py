"""The sections of an export: one for each sort of line, read from the tables page by page.

The database writes the lines itself, so that numbers, moments and JSON stand in them exactly as it holds them. Pages
go by key, and the last line of a file tells where the next one goes on.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.backends.utils import CursorWrapper

from memory.models.expressions import path_within_sql
from memory.transfer import shape
from memory.transfer.shape import REVISIONS_IN_LINE, Rows

PAGE = 1000
# A topic carries its fields with their history.
TOPICS = 200

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
    """Where a file ends: its last whole line, how many lines of that sort it holds, and how many in all."""

    line: Mapping[str, Any]
    count: int
    lines: int

    @property
    def sort(self) -> str:
        """The sort of the last line."""
        return str(self.line.get("type"))


@dataclass(frozen=True, slots=True)
class Section:
    """Lines of one sort. ``told`` are the members behind ``type``, of the row ``r`` of ``source``; ``key`` orders the
    rows, and ``members`` say where it stands in a line. Without members, the lines that are there are counted: such
    rows are only ever added behind the last. ``within`` narrows to a scope, None leaves all of them out there."""

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
        """Return the statement for one page: the line of each row, and its key."""
        key = ", ".join(self.key)
        beyond = ", ".join(f"%(after_{place})s" for place in range(len(self.key)))
        told = f"(SELECT row_to_json(j)::text FROM (SELECT '{self.sort}' AS type, {self.told}) j)"
        return (
            f"SELECT {told}, {key} FROM (SELECT * FROM {self.source} r WHERE {where} "
            f"{f'AND ({key}) > ({beyond})' if after else ''} ORDER BY {key} LIMIT %(limit)s) r ORDER BY {key}"
        )


def sections_make(*, vectors: bool) -> tuple[Section, ...]:
    """Return the sections, in the order of the file."""
    by_id = ("r.id",)
    return (
        Section(
            "policy", "(SELECT DISTINCT scope FROM memory_policyversion)",
            f"r.scope, {_list(shape.POLICY_VERSION, 'v', 'v.scope = r.scope', 'v.number')} AS versions",
            ('r.scope COLLATE "C"',), ("scope",), within=_in_scope("r.scope"),
        ),
        _topics(vectors=vectors),
        Section(
            "reference",
            "(SELECT v.ref_topic_id, v.id, f.topic_id FROM memory_revision v JOIN memory_field f ON f.id = v.field_id "
            "WHERE v.ref_topic_id IS NOT NULL)",
            'r.topic_id AS topic, r.id AS revision, r.ref_topic_id AS "to"', ("r.ref_topic_id", "r.id"),
            ("to", "revision"), within=f"{_topic('r.topic_id')} AND {_topic('r.ref_topic_id')}",
        ),
        Section(
            "merged", "memory_topic", 'r.id AS topic, r.merged_into_id AS "into"', ("r.merged_into_id", "r.id"),
            ("into", "topic"), within=f"r.scope_id IN {_SCOPES}", where="r.merged_into_id IS NOT NULL",
        ),
        _flat("link", shape.LINK, by_id, ("id",), f"{_topic('r.source_id')} AND {_topic('r.target_id')}"),
        _flat("run", shape.RUN, by_id, ("id",), _in_scope("r.scope")),
        _flat(
            "action", shape.ACTION, by_id, (),
            f"{_owner('memory_forgetrun', 'r.run_id')} AND {_topic('r.topic_id')}",
        ),
        _flat("pair", shape.PAIR, by_id, ("id",), f"r.scope_id IN {_SCOPES}"),
        _flat("access", shape.ACCESS, by_id, ("id",), _in_scope("r.scope")),
        _flat(
            "shadow", shape.SHADOW, by_id, (),
            f"{_owner('memory_accesslog', 'r.access_id')} AND {_topic('r.topic_id')}",
        ),
        # It counts for the whole log.
        _flat("watermark", shape.WATERMARK, ('r.name COLLATE "C"',), ("name",), None),
        # A part of a chain proves nothing.
        _flat("receipt", shape.RECEIPT, ("r.number",), ("number",), None),
        _flat(
            "audit", shape.AUDIT, by_id, (), f"{_in_scope('r.scope')} AND r.action <> 'purged'",
            where=f"r.action NOT IN ({_LEFT_OUT})",
        ),
        _conversations(),
    )  # fmt: skip


def section_lines(
    cursor: CursorWrapper, section: Section, *, wanted: dict[str, Any], scoped: bool, place: Place | None
) -> Iterator[bytes]:
    """Yield the lines of a section, those up to ``place`` left out. One statement per page."""
    where = section.rows_sql(scoped=scoped)
    if where is None:
        return
    size = TOPICS if section.sort == "topic" else PAGE
    after: tuple[Any, ...] | None = None
    if place is not None:
        after = _after(cursor, section, where, place, wanted)
        if section.sort == "topic":
            yield from _histories_rest(cursor, place.line)
    while True:
        told = {f"after_{at}": part for at, part in enumerate(after or ())}
        cursor.execute(section.page_sql(where, after=after is not None), {**wanted, **told, "limit": size})
        rows = cursor.fetchall()
        histories = _long_fields(cursor, [row[1] for row in rows]) if section.sort == "topic" else {}
        for line, *key in rows:
            yield line.encode() + b"\n"
            yield from _histories(cursor, histories.get(str(key[0]), []))
        if len(rows) < size:
            return
        after = tuple(rows[-1][1:])


def _histories_rest(cursor: CursorWrapper, line: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the older revisions of a topic that come behind ``line``, which is of the topic or holds some of them."""
    topic_id = line.get("topic", line.get("id"))
    fields = _long_fields(cursor, [topic_id]).get(topic_id, [])
    if line["type"] == "history":
        field, seq = line["field"], line["revisions"][-1]["seq"]
        fields = [(each, last, seq if each == field else done) for each, last, done in fields if each >= field]
    yield from _histories(cursor, fields)


# Of fields with a longer history than stands in the line of the topic: the last revision that stands behind it.
_LONG = f"""
SELECT topic_id::text, id::text, last_seq - {REVISIONS_IN_LINE} FROM memory_field
WHERE topic_id = ANY(%(topics)s::uuid[]) AND last_seq > {REVISIONS_IN_LINE} ORDER BY topic_id, id::text COLLATE "C"
"""


def _long_fields(cursor: CursorWrapper, topics: list[Any]) -> dict[Any, list[tuple[str, int, int]]]:
    """Return by topic the fields whose older revisions stand in lines of their own, each with the last of these."""
    found: dict[Any, list[tuple[str, int, int]]] = {}
    if topics:
        cursor.execute(_LONG, {"topics": list(map(str, topics))})
        for topic_id, field_id, last in cursor.fetchall():
            found.setdefault(topic_id, []).append((field_id, last, 0))
    return found


def _histories(cursor: CursorWrapper, fields: list[tuple[str, int, int]]) -> Iterator[bytes]:
    """Yield the lines with the revisions of each field from one number up to another. One statement per line."""
    for field_id, last, done in fields:
        while done < last:
            through = min(done + REVISIONS_IN_LINE, last)
            cursor.execute(_HISTORY, {"field": field_id, "after": done, "through": through})
            yield cursor.fetchone()[0].encode() + b"\n"
            done = through


def _after(
    cursor: CursorWrapper, section: Section, where: str, place: Place, wanted: Mapping[str, Any]
) -> tuple[Any, ...] | None:
    if section.members:
        if place.sort == "history":
            return (place.line["topic"],)
        return tuple(place.line[member] for member in section.members)
    cursor.execute(
        f"SELECT r.id FROM {section.source} r WHERE {where} ORDER BY r.id LIMIT 1 OFFSET %(count)s",
        {**wanted, "count": place.count - 1},
    )
    found = cursor.fetchone()
    return None if found is None else (found[0],)


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
    "SELECT row_to_json(j)::text FROM (SELECT 'history' AS type, f.topic_id AS topic, f.id AS field, "
    + _list(shape.REVISION, "v", "v.field_id = f.id AND v.seq > %(after)s AND v.seq <= %(through)s", "v.seq")
    + " AS revisions FROM memory_field f WHERE f.id = %(field)s::uuid) j"
)


def _topics(*, vectors: bool) -> Section:
    newest = f"v.field_id = f.id AND v.seq > f.last_seq - {REVISIONS_IN_LINE}"
    # What was merged into another topic is found as it was once that is undone, and its fields are elsewhere by now.
    merged = "r.merged_into_id IS NOT NULL"
    told = (
        shape.TOPIC.told_sql("r"),
        f"{_one(shape.VITALITY, 'v', 'v.topic_id = r.id')} AS vitality",
        _list(
            shape.FIELD, "f", "f.topic_id = r.id", "f.created_at, f.id",
            f"{_list(shape.REVISION, 'v', newest, 'v.seq')} AS revisions",
            f"{_list(shape.SUMMARY, 's', 's.field_id = f.id', 's.id')} AS summaries",
        ) + " AS fields",
        f"{_list(shape.EDIT, 'e', 'e.topic_id = r.id', 'e.id')} AS edits",
        # What it said when it was compared with its like; nothing if it waits for that.
        "(SELECT d.text_hash FROM memory_duplicatelook d WHERE d.topic_id = r.id AND NOT d.waiting) AS looked",
        _one(
            shape.VECTOR, "w", f"w.topic_id = r.id AND ({merged} {'OR w.embedding IS NOT NULL' if vectors else ''})"
        ) + " AS vector",
        f"(SELECT d.document::text FROM memory_topicdocument d WHERE d.topic_id = r.id AND {merged}) AS document",
        _one(shape.MENTION, "m", f"m.topic_id = r.id AND {merged}") + " AS mention",
    )  # fmt: skip
    return Section("topic", "memory_topic", ", ".join(told), ("r.id",), ("id",), f"r.scope_id IN {_SCOPES}")


def _conversations() -> Section:
    told = (
        shape.CONVERSATION.told_sql("r"),
        f"{_list(shape.TURN, 't', 't.conversation_id = r.id', 't.place')} AS told",
        f"{_list(shape.WRITE, 'w', 'w.conversation_id = r.id', 'w.id')} AS writes",
    )
    return Section(
        "conversation", "memory_conversation", ", ".join(told), ("r.id",), ("id",), _in_scope("r.scope")
    )  # fmt: skip
