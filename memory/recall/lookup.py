"""Looks up topics without a question: lists, one topic on any rung, the history of a field."""

import datetime as dt
import json
import uuid
from dataclasses import dataclass
from typing import Any

from memory.access.principal import Principal
from memory.core.cursors import cursor_as_number, cursor_make, cursor_parse, cursor_time
from memory.core.errors import NotVisible, ValueRefused
from memory.models import Rung
from memory.models.formulas_sql import rung_label_sql, salience_now_sql, scope_of_sql
from memory.models.labels import label_sql
from memory.models.statements import dicts_read
from memory.predicates.binding import Bound, path_sql
from memory.predicates.form_fields import predicate_from_fields
from memory.predicates.sql import predicate_sql, words_sql
from memory.recall.bundles import field_summary_sql
from memory.recall.filters import created_conditions
from memory.recall.replies import HistoryPage, MergedTopic, ScopePage, TopicDetail, TopicPage, TopicRow
from memory.recall.search import TopicSearch, search_sql

MAX_LINKS = 200

_TOPIC_SQL = f"""
SELECT t.id::text AS topic_id, t.title, t.summary, {label_sql()} AS label, t.kind AS topic_kind, s.path AS scope,
       {rung_label_sql("t.rung")} AS rung, t.rung = {int(Rung.ARCHIVED)} AS archived, t.categories, t.created_at,
       t.updated_at, {salience_now_sql("v", "%(now)s::timestamptz", scope="v.scope_id")} AS salience,
       0::float8 AS failed_salience, v.pinned, v.pin_reason, v.retrieval_count, v.last_retrieved_at, t.released_at,
       t.merged_into_id::text AS merged_into, t.provenance
FROM memory_topic t
JOIN memory_scope s ON s.id = t.scope_id
JOIN memory_vitality v ON v.topic_id = t.id
"""


@dataclass(frozen=True, slots=True)
class TopicListFilter:
    """Conditions on the topics of a list; None means all. Archived topics are left out unless ``rung`` or the search
    names a state. Released topics are listed only if the search names them."""

    scope: str
    # Whether topics in scopes below ``scope`` are listed.
    below: bool = True
    title: str | None = None
    search: TopicSearch | None = None
    words: str | None = None
    kind: str | None = None
    rung: str | None = None
    pinned: bool | None = None
    created_after: dt.datetime | None = None
    created_before: dt.datetime | None = None


def topics_list(filters: TopicListFilter, *, cursor: str | None, limit: int, now: dt.datetime) -> TopicPage:
    """Return topics, newest first. One query; a filter by kind, text or pin also reads the topics that do not match.
    Raises ``ValueRefused`` for an unknown rung, an empty period and an invalid cursor."""
    conditions, parameters = _conditions(filters)
    if cursor is not None:
        conditions.append("(t.created_at, t.id) < (%(at)s, %(id)s)")
        parameters["at"], parameters["id"] = cursor_parse(cursor, cursor_time, uuid.UUID)
    sql = f"{_TOPIC_SQL} WHERE {' AND '.join(conditions)} ORDER BY t.created_at DESC, t.id DESC LIMIT %(limit)s"
    rows = dicts_read(sql, {**parameters, "limit": limit + 1, "now": now})
    last = rows[limit - 1] if len(rows) > limit else None
    return {"items": rows[:limit], "next": cursor_make(last["created_at"], last["topic_id"]) if last else None}


def scopes_list(scope: str, *, kind: str | None, cursor: str | None, limit: int) -> ScopePage:
    """Return the scopes at and below ``scope`` that have topics, in the order of their paths, with the number of topics
    in each. Released and merged topics are not counted. One query. Raises ``ValueRefused`` for an invalid cursor."""
    after = "" if cursor is None else cursor_parse(cursor, str)[0]
    bound = Bound()
    sql = f"""
SELECT s.path AS scope, x.topics FROM memory_scope s CROSS JOIN LATERAL (
    SELECT count(*) AS topics FROM memory_topic t
    WHERE t.scope_id = s.id AND t.released_at IS NULL AND t.merged_into_id IS NULL
      AND (%(kind)s::text IS NULL OR t.kind = %(kind)s::text)
) x
WHERE x.topics > 0 AND {path_sql("s.path", scope, bound.bind)} AND s.path > %(after)s COLLATE "C"
ORDER BY s.path COLLATE "C" LIMIT %(limit)s
"""
    rows = dicts_read(sql, {**bound.values, "after": after, "kind": kind, "limit": limit + 1})
    return {"items": rows[:limit], "next": cursor_make(rows[limit - 1]["scope"]) if len(rows) > limit else None}


def topic_get(topic_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> TopicRow:
    """Return one topic on any rung, also if it is released or merged. One query. Raises ``NotVisible``."""
    rows: list[TopicRow] = dicts_read(f"{_TOPIC_SQL} WHERE t.id = %(id)s", {"id": topic_id, "now": now})
    if not rows or not principal.sees(rows[0]["scope"]):
        raise NotVisible(f"Memory {topic_id} does not exist.")
    return rows[0]


_CALLER_SEES = "(s.path = %(caller)s OR starts_with(s.path, %(caller_below)s))"
# The topic to which a revision refers, if the caller sees it.
_REFERENCE = f"""
(SELECT t.id::text FROM memory_topic t JOIN memory_scope s ON s.id = t.scope_id
 WHERE t.id = r.ref_topic_id AND {_CALLER_SEES}) AS ref_topic_id
"""
_REVISION = ("id", "value", "valid_from", "provenance", "why_changed", "impact_expected", "recorded_at", "seq")
_REVISION_SQL = "r.id::text AS id, " + ", ".join(f"r.{member}" for member in _REVISION[1:])

_FIELDS_SQL = f"""
SELECT f.id::text AS field_id, f.name, r.field_type, {_REFERENCE}, f.last_seq AS revisions,
       f.cold_through AS cold_revisions, f.detached, {field_summary_sql("f")} AS summary,
       {salience_now_sql("f", "%(now)s::timestamptz", scope=scope_of_sql("f"))} AS salience, {_REVISION_SQL}
FROM memory_field f JOIN memory_revision r ON r.field_id = f.id AND r.seq = f.last_seq
WHERE f.topic_id = %(id)s ORDER BY f.created_at, f.id
"""

_LINKS_SQL = f"""
SELECT t.id::text AS topic_id, x.kind, x.direction, 1 AS depth, {label_sql()} AS title, t.summary, t.kind AS topic_kind,
       {rung_label_sql("t.rung")} AS rung
FROM (
    (SELECT 'out' AS direction, kind, target_id AS topic_id, id FROM memory_link WHERE source_id = %(id)s
     ORDER BY id DESC LIMIT %(most)s)
    UNION ALL
    (SELECT 'in', kind, source_id, id FROM memory_link WHERE target_id = %(id)s ORDER BY id DESC LIMIT %(most)s)
) x
JOIN memory_topic t ON t.id = x.topic_id AND t.released_at IS NULL AND t.merged_into_id IS NULL
JOIN memory_scope s ON s.id = t.scope_id AND {_CALLER_SEES}
ORDER BY x.direction DESC, x.id
"""

_ALSO_SQL = f"""
WITH RECURSIVE into_it AS (
    SELECT t.id, t.merged_into_id FROM memory_topic t WHERE t.merged_into_id = %(id)s
    UNION
    SELECT t.id, t.merged_into_id FROM memory_topic t JOIN into_it i ON t.merged_into_id = i.id
)
SELECT t.id::text AS topic_id, {label_sql()} AS title, t.provenance, t.created_at, i.merged_into_id::text AS merged_into
FROM into_it i JOIN memory_topic t ON t.id = i.id ORDER BY t.updated_at DESC, t.id
"""

_HISTORY_SQL = f"""
SELECT {_REVISION_SQL}, r.field_type, {_REFERENCE}, r.actor, r.seq <= f.cold_through AS cold
FROM memory_field f JOIN memory_revision r ON r.field_id = f.id
WHERE f.topic_id = %(id)s AND f.name = %(name)s AND r.seq < %(before)s
ORDER BY r.seq DESC LIMIT %(limit)s
"""


def topic_detail(topic_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> TopicDetail:
    """Return one topic with all fields, the topics merged into it, and its newest ``MAX_LINKS`` links in each
    direction to topics that the caller sees. Four queries. Raises ``NotVisible``."""
    topic = topic_get(topic_id, principal=principal, now=now)
    parameters = {**_caller(principal), "id": topic_id, "now": now, "most": MAX_LINKS}
    fields = dicts_read(_FIELDS_SQL, parameters)
    for field in fields:
        field["current"] = {member: field.pop(member) for member in _REVISION}
        field["history"] = [field["current"]]
        field["id"] = field.pop("field_id")
        field["summary"] = json.loads(field["summary"]) if field["summary"] else None
    neighbors = dicts_read(_LINKS_SQL, parameters)
    return {**topic, "fields": fields, "neighbors": neighbors, "also_from": also_from(topic_id)}


def also_from(topic_id: uuid.UUID) -> list[MergedTopic]:
    """Return the topics merged into a topic, directly or through others, newest first. One query."""
    return dicts_read(_ALSO_SQL, {"id": topic_id})


def field_history(
    topic_id: uuid.UUID, name: str, *, principal: Principal, cursor: str | None, limit: int, now: dt.datetime
) -> HistoryPage:
    """Return all revisions of a field, newest first. Two queries. Raises ``NotVisible`` if there is no such topic or
    field, ``ValueRefused`` for an invalid cursor."""
    topic_get(topic_id, principal=principal, now=now)
    missing = NotVisible(f"Memory {topic_id} has no field {name!r}.")
    if "\x00" in name:
        # PostgreSQL refuses NUL in a parameter, and no name contains it.
        raise missing
    before = 2**31 - 1 if cursor is None else cursor_as_number(cursor)
    parameters = {**_caller(principal), "id": topic_id, "name": name, "before": before, "limit": limit + 1}
    rows = dicts_read(_HISTORY_SQL, parameters)
    if not rows and cursor is None:
        raise missing
    return {"items": rows[:limit], "next": str(rows[limit - 1]["seq"]) if len(rows) > limit else None}


def _conditions(filters: TopicListFilter) -> tuple[list[str], dict[str, Any]]:
    bound = Bound()
    now = "%(now)s::timestamptz"
    if filters.search is not None:
        conditions = [search_sql(filters.search, bound, now=now, vitality="v", archived=filters.rung is not None)]
    else:
        conditions = ["t.released_at IS NULL", "t.merged_into_id IS NULL"]
        if filters.rung is None:
            conditions.append(f"t.rung < {int(Rung.ARCHIVED)}")
    if filters.title is not None:
        # The first condition uses the index.
        conditions.append("md5(lower(t.title)) = md5(lower(%(title)s)) AND t.title = %(title)s")
    if not filters.below:
        conditions.append("s.path = %(scope_path)s")
    if filters.words:
        conditions.append(words_sql("t.id", filters.words, bound.bind))
    if filters.rung is not None and filters.rung not in (*Rung.labels, "any"):
        raise ValueRefused(
            f"Stage {filters.rung!r} does not exist. Use one of {', '.join(Rung.labels)}, or any for all of them.",
            member="rung",
        )
    predicate = predicate_from_fields(
        scope=filters.scope,
        kinds=None if filters.kind is None else [filters.kind],
        rung=None if filters.rung == "any" else filters.rung,
        pinned=filters.pinned,
    )
    conditions.append(predicate_sql(predicate, now=now, bind=bound.bind, narrow=False).sql)
    parameters = dict(bound.values)
    conditions += created_conditions(filters.created_after, filters.created_before)
    parameters |= {"created_after": filters.created_after, "created_before": filters.created_before}
    parameters |= {"title": filters.title, "scope_path": filters.scope}
    return conditions, parameters


def _caller(principal: Principal) -> dict[str, Any]:
    return {"caller": principal.scope, "caller_below": principal.scope.rstrip("/") + "/"}
