"""Released topics, page by page: when each was released, by whom and why. Read-only."""

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Any, Literal

from memory.access.principal import Principal
from memory.console.queries.archive_list import Journaled
from memory.core.cursors import cursor_make, cursor_parse, cursor_time
from memory.forgetting.topic_state import MADE
from memory.models.formulas_sql import rung_label_sql
from memory.models.labels import label_sql
from memory.models.statements import rows_read
from memory.predicates.binding import Bound, scope_sql
from memory.predicates.sql import text_sql

Sort = Literal["released", "-released", "title", "-title"]
# The orders of the list: the key, its type, its parser in a cursor, and the direction.
_ORDERS: dict[str, tuple[str, str, Any, str]] = {
    "released": ("t.released_at", "timestamptz", cursor_time, "DESC"),
    "-released": ("t.released_at", "timestamptz", cursor_time, "ASC"),
    "title": (label_sql(), "text", str, "ASC"),
    "-title": (label_sql(), "text", str, "DESC"),
}

# ``a`` is the last action that released the topic and was not undone, or the undone action that had made it. It is read
# only for the topics on the page.
_PAGE_SQL = """
SELECT f.key, f.id, {label}, s.path, t.kind, t.released_at, {rung}, a.why, a.run_id, r.actor, r.event, n.id,
       CASE WHEN n.id IS NOT NULL THEN {newer_label} END
FROM (SELECT {key} AS key, t.id {found} ORDER BY key {way}, t.id {way} LIMIT {limit:d}) f
JOIN memory_topic t ON t.id = f.id JOIN memory_scope s ON s.id = t.scope_id
LEFT JOIN LATERAL (
    SELECT CASE WHEN l.state = 'undone' THEN '{{"by": "undo"}}' ELSE l.why END AS why, l.run_id,
           (l.changes->>'by')::uuid AS newer
    FROM memory_forgetaction l
    WHERE l.topic_id = f.id AND (l.changes->>'released' = 'true' AND l.state IN ('applied', 'conflict')
                                 OR l.action IN {made} AND l.state = 'undone')
    ORDER BY l.id DESC LIMIT 1
) a ON true
LEFT JOIN memory_forgetrun r ON r.id = a.run_id
LEFT JOIN memory_topic n ON n.id = a.newer
ORDER BY f.key {way}, f.id {way}
"""


@dataclass(frozen=True, slots=True)
class ReleasedFilter:
    """Which released topics are listed; None means all. ``scope`` is canonical and includes the scopes below it."""

    scope: str = "/"
    kind: str | None = None
    text: str | None = None
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    sort: Sort = "released"


@dataclass(slots=True)
class ReleasedTopic(Journaled):
    """A row of the list. ``newer_id`` is the topic that replaced the released one, or None."""

    topic_id: uuid.UUID
    title: str
    scope: str
    kind: str
    released_at: dt.datetime
    rung: str
    journal: str | None
    run_id: uuid.UUID | None
    by: str | None
    event: str | None
    newer_id: uuid.UUID | None
    newer_title: str | None


def released_list(
    filters: ReleasedFilter, *, principal: Principal, cursor: str | None, limit: int
) -> tuple[list[ReleasedTopic], str | None]:
    """Return (released topics, cursor of the next page). One query. Raises ``NotVisible`` and ``ValueRefused``."""
    key, kind, read, way = _ORDERS[filters.sort]
    bound = Bound()
    found = _found(filters, principal, bound)
    if cursor is not None:
        value, last = cursor_parse(cursor, read, uuid.UUID)
        place = f"({bound.bind(value)}::{kind}, {bound.bind(last)}::uuid)"
        found += f" AND ({key}, t.id) {'<' if way == 'DESC' else '>'} {place}"
    sql = _PAGE_SQL.format(
        label=label_sql(),
        newer_label=label_sql("n"),
        rung=rung_label_sql("t.rung"),
        made=MADE,
        key=key,
        found=found,
        way=way,
        limit=limit + 1,
    )
    rows = rows_read(sql, bound.values)
    following = cursor_make(*rows[limit - 1][:2]) if len(rows) > limit else None
    return [ReleasedTopic(*row[1:]) for row in rows[:limit]], following


def released_count(filters: ReleasedFilter, *, principal: Principal, at_most: int) -> int:
    """Return the number of matching topics, at most ``at_most`` + 1. One query."""
    bound = Bound()
    found = _found(filters, principal, bound)
    return int(rows_read(f"SELECT count(*) FROM (SELECT 1 {found} LIMIT {at_most + 1:d}) x", bound.values)[0][0])


def released_ids(filters: ReleasedFilter, *, principal: Principal, at_most: int) -> list[uuid.UUID]:
    """Return the matching topics, at most ``at_most`` + 1. One query."""
    bound = Bound()
    found = _found(filters, principal, bound)
    sql = f"SELECT t.id {found} ORDER BY t.released_at DESC, t.id DESC LIMIT {at_most + 1:d}"
    return [topic_id for (topic_id,) in rows_read(sql, bound.values)]


def _found(filters: ReleasedFilter, principal: Principal, bound: Bound) -> str:
    bind = bound.bind
    scope = scope_sql("t.scope_id", principal.scope_chosen(filters.scope), bind)
    where = ["t.released_at IS NOT NULL", "t.merged_into_id IS NULL", scope]
    if filters.kind is not None:
        where.append(f"t.kind = {bind(filters.kind)}")
    if filters.text is not None:
        where.append(text_sql(filters.text, bind))
    for sign, moment in ((">=", filters.since), ("<", filters.until)):
        if moment is not None:
            where.append(f"t.released_at {sign} {bind(moment)}::timestamptz")
    return f"FROM memory_topic t WHERE {' AND '.join(where)}"
