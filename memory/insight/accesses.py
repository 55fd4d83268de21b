"""Who was given a topic, when, and for which question: the access log, read for one topic."""

import datetime as dt
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db import connection

from memory.access.keys import caller_labels
from memory.access.principal import Principal
from memory.core.cursors import cursor_make, cursor_number, cursor_parse, cursor_time
from memory.insight.topic_snapshot import topic_snapshot

# The log has no index by topic: an index over its lists of topics would slow down every query's one INSERT. So a page
# passes over the log by time, and over so many rows at most; the next page goes on from there.
LOOKED_AT = 50_000

_HERE = "at >= %(first)s AND (at, id) < (%(at)s, %(before)s)"

_HITS = f"""
SELECT id, at, kind, actor, scope, query, counted, folded_at IS NOT NULL, bump, array_position(topic_ids, %(id)s::uuid),
       cardinality(topic_ids)
FROM (
    SELECT * FROM memory_accesslog WHERE {_HERE} ORDER BY at DESC, id DESC LIMIT %(most)s
) looked
WHERE %(id)s = ANY(topic_ids) ORDER BY at DESC, id DESC LIMIT %(limit)s
"""

_END = f"""
SELECT at, id FROM memory_accesslog WHERE {_HERE} ORDER BY at DESC, id DESC OFFSET %(most)s - 1 LIMIT 1
"""


class AccessPage(NamedTuple):
    """Accesses, newest first; where the next page begins; until when this one has looked back, if not to the end."""

    items: list[dict[str, Any]]
    next: str | None
    looked_until: dt.datetime | None


def accesses_of(
    topic_id: uuid.UUID, *, principal: Principal, cursor: str | None, limit: int, now: dt.datetime
) -> AccessPage:
    """Return who was given a topic, newest first: queries, counted or not, and lookups by id.

    Three queries, four where little was found in much of the log; at most ``LOOKED_AT`` rows of the log are looked at.
    Questions asked outside the caller's scope are told without who asked what. Raises ``NotVisible``, and
    ``ValueRefused`` for a foreign cursor.
    """
    with connection.cursor() as database:
        row = topic_snapshot(database, topic_id, principal)
        before: list[Any] = [now, 2**62] if cursor is None else cursor_parse(cursor, cursor_time, cursor_number)
        wanted = {
            "id": topic_id,
            "first": min(row.created_at, row.last_retrieved_at or row.created_at),
            "at": before[0],
            "before": before[1],
            "most": LOOKED_AT,
            "limit": limit + 1,
        }
        database.execute(_HITS, wanted)
        found = database.fetchall()
        if len(found) > limit:
            following = cursor_make(found[limit - 1][1], found[limit - 1][0])
            return AccessPage(_all_told(found[:limit], principal), following, None)
        database.execute(_END, wanted)
        end = database.fetchone()
    items = _all_told(found, principal)
    return AccessPage(items, cursor_make(*end) if end else None, end[0] if end else None)


def _all_told(rows: list[tuple[Any, ...]], principal: Principal) -> list[dict[str, Any]]:
    names = caller_labels(row[3] for row in rows)
    return [_told(row, principal, names) for row in rows]


def _told(found: tuple[Any, ...], principal: Principal, names: Mapping[str, str]) -> dict[str, Any]:
    _id, at, kind, actor, scope, query, counted, folded, bump, place, among = found
    seen = principal.sees(scope)
    return {
        "at": at,
        "kind": kind,
        "actor": names.get(actor, actor) if seen else None,
        "scope": scope if seen else None,
        "query": query if seen else None,
        "counted": bool(counted),
        "waiting": not folded,
        "bump": bump,
        "place": place,
        "among": among,
    }
