"""The accesses of one topic from the access log: who received it, when, and for which question."""

import datetime as dt
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from memory.access.keys import caller_labels
from memory.access.principal import Principal
from memory.core.cursors import cursor_make, cursor_number, cursor_parse, cursor_time
from memory.explain.topic_snapshot import topic_snapshot
from memory.models.formulas_sql import share_of_topic_sql
from memory.models.statements import dicts_read, rows_read

# The log has no index by topic, because every query would have to update this index. Therefore a page scans at most
# this many rows in order of time, and the next page continues where the scan stopped.
MAX_ROWS_READ = 50_000

_HERE = "at >= %(first)s AND (at, id) < (%(at)s, %(before)s)"

# ``share`` is the part of the bump that the topic got; 0 if its relevance was too low. ``place`` is the topic's rank.
_HITS_SQL = f"""
SELECT id, at, kind, actor, scope, query, coalesce(counted, false) AS counted, folded_at IS NULL AS waiting,
       bump, {share_of_topic_sql("looked", "%(id)s::uuid")} AS share,
       relevances[array_position(topic_ids, %(id)s::uuid)] AS relevance,
       array_position(topic_ids, %(id)s::uuid) AS place, cardinality(topic_ids) AS among
FROM (
    SELECT * FROM memory_accesslog WHERE {_HERE} ORDER BY at DESC, id DESC LIMIT %(most)s
) looked
WHERE %(id)s = ANY(topic_ids) ORDER BY at DESC, id DESC LIMIT %(limit)s
"""

_END_SQL = f"""
SELECT at, id FROM memory_accesslog WHERE {_HERE} ORDER BY at DESC, id DESC OFFSET %(most)s - 1 LIMIT 1
"""


class AccessPage(NamedTuple):
    """Accesses, newest first. ``next`` is the cursor of the next page. ``looked_until`` is the time of the oldest row
    scanned; None if the page is full or the scan reached the beginning of the log."""

    items: list[dict[str, Any]]
    next: str | None
    looked_until: dt.datetime | None


def accesses_of(
    topic_id: uuid.UUID, *, principal: Principal, cursor: str | None, limit: int, now: dt.datetime
) -> AccessPage:
    """Return the queries that returned a topic, and its lookups by id, newest first. At most five SQL statements, which
    read at most ``MAX_ROWS_READ`` rows of the log. Raises ``NotVisible`` and ``ValueRefused``."""
    row = topic_snapshot(topic_id, principal)
    at, before = (now, 2**62) if cursor is None else cursor_parse(cursor, cursor_time, cursor_number)
    parameters = {
        "id": topic_id,
        "first": min(row.created_at, row.last_retrieved_at or row.created_at),
        "at": at,
        "before": before,
        "most": MAX_ROWS_READ,
        "limit": limit + 1,
    }
    found = dicts_read(_HITS_SQL, parameters)
    names = caller_labels(each["actor"] for each in found[:limit])
    items = [_access_as_dict(each, principal, names) for each in found[:limit]]
    if len(found) > limit:
        return AccessPage(items, cursor_make(found[limit - 1]["at"], found[limit - 1]["id"]), None)
    for end in rows_read(_END_SQL, parameters):
        return AccessPage(items, cursor_make(*end), end[0])
    return AccessPage(items, None, None)


def _access_as_dict(row: dict[str, Any], principal: Principal, names: Mapping[str, str]) -> dict[str, Any]:
    seen = principal.sees(row["scope"])
    hidden = {} if seen else dict.fromkeys(("actor", "scope", "query"))
    return {
        **row,
        "actor": names.get(row["actor"], row["actor"]),
        "recall_id": row["id"] if seen and row["kind"] == "query" else None,
        "bump": row["bump"] * row["share"],
        "reinforces": row["share"] > 0,
        **hidden,
    }
