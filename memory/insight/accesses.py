"""The accesses of one topic from the access log: who received it, when, and for which question."""

import datetime as dt
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db import connection

from memory.access.keys import caller_labels
from memory.access.principal import Principal
from memory.core.cursors import cursor_make, cursor_number, cursor_parse, cursor_time
from memory.insight.topic_snapshot import topic_snapshot
from memory.models.expressions import share_of_topic_sql

# The log has no index by topic, because such an index would slow down the INSERT of every query. So a page scans the
# log by time, at most this many rows, and the next page continues where the scan stopped.
MOST_ROWS_READ = 50_000

_HERE = "at >= %(first)s AND (at, id) < (%(at)s, %(before)s)"

_HITS_SQL = f"""
SELECT id, at, kind, actor, scope, query, counted, folded_at IS NOT NULL,
       bump, {share_of_topic_sql("looked", "%(id)s::uuid")}, relevances[array_position(topic_ids, %(id)s::uuid)],
       array_position(topic_ids, %(id)s::uuid), cardinality(topic_ids)
FROM (
    SELECT * FROM memory_accesslog WHERE {_HERE} ORDER BY at DESC, id DESC LIMIT %(most)s
) looked
WHERE %(id)s = ANY(topic_ids) ORDER BY at DESC, id DESC LIMIT %(limit)s
"""

_END_SQL = f"""
SELECT at, id FROM memory_accesslog WHERE {_HERE} ORDER BY at DESC, id DESC OFFSET %(most)s - 1 LIMIT 1
"""


class _Access(NamedTuple):
    """A row of ``_HITS_SQL``. ``share`` is the part of ``bump`` that the topic got. ``place`` is its rank among the
    ``among`` returned topics."""

    id: int
    at: dt.datetime
    kind: str
    actor: str
    scope: str
    query: str
    counted: bool
    folded: bool
    bump: float
    share: float
    relevance: float | None
    place: int
    among: int


class AccessPage(NamedTuple):
    """Accesses, newest first. ``next`` is the cursor of the next page. ``looked_until`` is the time up to which the
    scan went back; None if the page is full or the scan reached the beginning of the log."""

    items: list[dict[str, Any]]
    next: str | None
    looked_until: dt.datetime | None


def accesses_of(
    topic_id: uuid.UUID, *, principal: Principal, cursor: str | None, limit: int, now: dt.datetime
) -> AccessPage:
    """Return the accesses of a topic, newest first: queries, counted or not, and lookups by id.

    Three queries, four if the page is not full, which read at most ``MOST_ROWS_READ`` rows of the log. Accesses from
    outside the caller's scope are returned without actor, scope and question. Raises ``NotVisible``, and
    ``ValueRefused`` for an invalid cursor.
    """
    with connection.cursor() as database:
        row = topic_snapshot(database, topic_id, principal)
        before: list[Any] = [now, 2**62] if cursor is None else cursor_parse(cursor, cursor_time, cursor_number)
        parameters = {
            "id": topic_id,
            "first": min(row.created_at, row.last_retrieved_at or row.created_at),
            "at": before[0],
            "before": before[1],
            "most": MOST_ROWS_READ,
            "limit": limit + 1,
        }
        database.execute(_HITS_SQL, parameters)
        found = [_Access(*row) for row in database.fetchall()]
        if len(found) > limit:
            following = cursor_make(found[limit - 1].at, found[limit - 1].id)
            return AccessPage(_accesses_as_dicts(found[:limit], principal), following, None)
        database.execute(_END_SQL, parameters)
        end = database.fetchone()
    items = _accesses_as_dicts(found, principal)
    return AccessPage(items, cursor_make(*end) if end else None, end[0] if end else None)


def _accesses_as_dicts(rows: list[_Access], principal: Principal) -> list[dict[str, Any]]:
    names = caller_labels(row.actor for row in rows)
    return [_access_as_dict(row, principal, names) for row in rows]


def _access_as_dict(row: _Access, principal: Principal, names: Mapping[str, str]) -> dict[str, Any]:
    seen = principal.sees(row.scope)
    return {
        "recall_id": row.id if seen and row.kind == "query" else None,
        "at": row.at,
        "kind": row.kind,
        "actor": names.get(row.actor, row.actor) if seen else None,
        "scope": row.scope if seen else None,
        "query": row.query if seen else None,
        "counted": bool(row.counted),
        "waiting": not row.folded,
        "bump": row.bump * row.share,
        # The share is 0 if the relevance was too low.
        "reinforces": row.share > 0,
        "relevance": row.relevance,
        "place": row.place,
        "among": row.among,
    }
