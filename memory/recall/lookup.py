"""Looks up topics without a question: lists, one topic on any rung, the history of a field. Salience does not
change."""

import datetime as dt
import json
import uuid
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from memory.access.principal import Principal
from memory.core.cursors import cursor_as_number, cursor_make, cursor_parse, cursor_time
from memory.core.errors import NotVisible, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.models import Rung
from memory.models.expressions import salience_now_sql, scope_of_sql
from memory.predicates.binding import Bound
from memory.predicates.fields import predicate_from_fields
from memory.predicates.sql import predicate_sql
from memory.recall.bundles import field_summary_sql
from memory.recall.replies import (
    DetailField,
    DetailNeighbor,
    HistoryPage,
    HistoryRevision,
    MergedTopic,
    RevisionOut,
    TopicDetail,
    TopicPage,
    TopicRow,
)

RUNGS = {rung.label: int(rung) for rung in Rung}


@dataclass(frozen=True, slots=True)
class TopicListFilter:
    """Conditions on the topics of a list; None means all. Without a rung, archived topics are left out."""

    scope: str
    kind: str | None = None
    rung: str | None = None
    pinned: bool | None = None
    text: str | None = None


_COLUMNS = f"""
t.id, t.title, t.summary, t.kind, s.path, t.rung, t.categories, t.created_at, t.updated_at,
{salience_now_sql("v", "%(now)s::timestamptz", scope="v.scope_id")},
v.pinned, v.pin_reason, v.retrieval_count, v.last_retrieved_at, t.released_at, t.merged_into_id, t.provenance
"""

_FROM = """
FROM memory_topic t
JOIN memory_scope s ON s.id = t.scope_id
JOIN memory_vitality v ON v.topic_id = t.id
"""


def topics_list(filters: TopicListFilter, *, cursor: str | None, limit: int, now: dt.datetime) -> TopicPage:
    """Return topics, newest first. One query.

    A list of one scope, all scopes or a rung costs the same in a store of any size. A filter by kind, text or pin also
    reads the topics that do not match.

    Raises ``ValueRefused`` for an unknown rung or an invalid cursor.
    """
    conditions, parameters = _conditions(filters, now)
    if cursor is not None:
        conditions.append("(t.created_at, t.id) < (%(at)s, %(id)s)")
        parameters["at"], parameters["id"] = cursor_parse(cursor, cursor_time, uuid.UUID)
    parameters["limit"] = limit + 1
    sql = f"""
        SELECT {_COLUMNS} {_FROM} WHERE {" AND ".join(conditions)}
        ORDER BY t.created_at DESC, t.id DESC LIMIT %(limit)s
    """
    with connection.cursor() as database:
        database.execute(sql, parameters)
        rows = [_topic(*row) for row in database.fetchall()]
    more = len(rows) > limit
    last = rows[limit - 1] if more else None
    following = cursor_make(last["created_at"], last["topic_id"]) if last else None
    return {"items": rows[:limit], "next": following}


def topic_get(topic_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> TopicRow:
    """Return one topic on any rung, also if it is released or merged. One query.

    Raises ``NotVisible`` if the topic does not exist or is outside the caller's scope.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_COLUMNS} {_FROM} WHERE t.id = %(id)s", {"id": topic_id, "now": now})
        row = cursor.fetchone()
    if row is None or not principal.sees(row[4]):
        raise NotVisible(f"Topic {topic_id} does not exist.", code=ProblemCode.TOPIC_NOT_FOUND)
    return _topic(*row)


# The scope of the topic to which a revision refers. Only callers who see that topic see the reference.
_REF_SCOPE_SQL = """
(SELECT rs.path FROM memory_topic rt JOIN memory_scope rs ON rs.id = rt.scope_id WHERE rt.id = r.ref_topic_id)
"""

_REVISION = """
r.id, r.value, r.valid_from, r.provenance, r.why_changed, r.impact_expected, r.recorded_at, r.seq
"""

_DETAIL_FIELDS_SQL = f"""
SELECT f.id, f.name, r.field_type, r.ref_topic_id, {_REF_SCOPE_SQL}, f.last_seq, f.cold_through, f.detached,
       {salience_now_sql("f", "%(now)s::timestamptz", scope=scope_of_sql("f"))}, {field_summary_sql("f")}, {_REVISION}
FROM memory_field f JOIN memory_revision r ON r.field_id = f.id AND r.seq = f.last_seq
WHERE f.topic_id = %(id)s ORDER BY f.created_at, f.id
"""

_DETAIL_LINKS_SQL = """
SELECT x.direction, x.kind, t.id, t.title, t.summary, t.kind, t.rung, s.path FROM (
    (SELECT 'out' AS direction, kind, target_id AS topic_id, id FROM memory_link WHERE source_id = %(id)s
     ORDER BY id DESC LIMIT %(most)s)
    UNION ALL
    (SELECT 'in', kind, source_id, id FROM memory_link WHERE target_id = %(id)s ORDER BY id DESC LIMIT %(most)s)
) x
JOIN memory_topic t ON t.id = x.topic_id AND t.released_at IS NULL AND t.merged_into_id IS NULL
JOIN memory_scope s ON s.id = t.scope_id
ORDER BY x.direction DESC, x.id
"""

_ALSO_SQL = """
WITH RECURSIVE into_it AS (
    SELECT t.id, t.merged_into_id FROM memory_topic t WHERE t.merged_into_id = %(id)s
    UNION
    SELECT t.id, t.merged_into_id FROM memory_topic t JOIN into_it i ON t.merged_into_id = i.id
)
SELECT t.id, t.title, t.provenance, t.created_at, i.merged_into_id
FROM into_it i JOIN memory_topic t ON t.id = i.id ORDER BY t.updated_at DESC, t.id
"""

MOST_LINKS = 200


def topic_detail(topic_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> TopicDetail:
    """Return one topic with all fields, its links, and the topics merged into it. Four queries. Raises ``NotVisible``.

    The links are the newest ``MOST_LINKS`` in each direction, to topics on any rung within the caller's scope.
    """
    topic = topic_get(topic_id, principal=principal, now=now)
    with connection.cursor() as cursor:
        cursor.execute(_DETAIL_FIELDS_SQL, {"id": topic_id, "now": now})
        fields = [_field(principal, *row) for row in cursor.fetchall()]
        cursor.execute(_DETAIL_LINKS_SQL, {"id": topic_id, "most": MOST_LINKS})
        neighbors: list[DetailNeighbor] = [
            {
                "topic_id": str(other),
                "kind": kind,
                "direction": direction,
                "depth": 1,
                "title": title,
                "summary": summary,
                "topic_kind": topic_kind,
                "rung": Rung(rung).label,
            }
            for direction, kind, other, title, summary, topic_kind, rung, scope in cursor.fetchall()
            if principal.sees(scope)
        ]
    return {**topic, "fields": fields, "neighbors": neighbors, "also_from": also_from(topic_id)}


def also_from(topic_id: uuid.UUID) -> list[MergedTopic]:
    """Return the topics merged into a topic, directly or through others, newest first. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_ALSO_SQL, {"id": topic_id})
        return [
            {
                "topic_id": str(merged),
                "title": title,
                "provenance": provenance,
                "created_at": created_at,
                "merged_into": str(into),
            }
            for merged, title, provenance, created_at, into in cursor.fetchall()
        ]


_HISTORY_SQL = f"""
SELECT r.field_type, r.ref_topic_id, {_REF_SCOPE_SQL}, r.actor, r.seq <= f.cold_through, {_REVISION}
FROM memory_field f JOIN memory_revision r ON r.field_id = f.id
WHERE f.topic_id = %(id)s AND f.name = %(name)s AND r.seq < %(before)s
ORDER BY r.seq DESC LIMIT %(limit)s
"""


def field_history(
    topic_id: uuid.UUID, name: str, *, principal: Principal, cursor: str | None, limit: int, now: dt.datetime
) -> HistoryPage:
    """Return all revisions of a field, warm and cold, newest first. Two queries.

    Raises ``NotVisible`` if the caller cannot see the topic or the topic does not have the field, ``ValueRefused`` for
    an invalid cursor.
    """
    topic_get(topic_id, principal=principal, now=now)
    if "\x00" in name:
        # PostgreSQL refuses NUL in a parameter, and no name contains it.
        raise NotVisible(f"Topic {topic_id} has no field {name!r}.", code=ProblemCode.FIELD_NOT_FOUND)
    before = 2**31 - 1 if cursor is None else cursor_as_number(cursor)
    with connection.cursor() as database:
        database.execute(_HISTORY_SQL, {"id": topic_id, "name": name, "before": before, "limit": limit + 1})
        rows = [_history_revision(principal, *row) for row in database.fetchall()]
    if not rows and cursor is None:
        raise NotVisible(f"Topic {topic_id} has no field {name!r}.", code=ProblemCode.FIELD_NOT_FOUND)
    return {"items": rows[:limit], "next": str(rows[limit - 1]["seq"]) if len(rows) > limit else None}


def _conditions(filters: TopicListFilter, now: dt.datetime) -> tuple[list[str], dict[str, Any]]:
    conditions = ["t.released_at IS NULL", "t.merged_into_id IS NULL"]
    if filters.rung is None:
        conditions.append(f"t.rung < {int(Rung.ARCHIVED)}")
    elif filters.rung not in (*RUNGS, "any"):
        raise ValueRefused(
            f"Rung {filters.rung!r} does not exist. Use one of {', '.join(RUNGS)}, or any for all of them.",
            code=ProblemCode.UNKNOWN_CHOICE,
        )
    predicate = predicate_from_fields(
        scope=filters.scope,
        kinds=None if filters.kind is None else [filters.kind],
        rung=None if filters.rung == "any" else filters.rung,
        pinned=filters.pinned,
    )
    bound = Bound()
    conditions.append(predicate_sql(predicate, now="%(now)s::timestamptz", bind=bound.bind, narrow=False).sql)
    parameters = {**bound.values, "now": now}
    if filters.text:
        conditions.append(
            "EXISTS (SELECT 1 FROM memory_topicdocument d WHERE d.topic_id = t.id "
            "AND d.document @@ websearch_to_tsquery(%(config)s::regconfig, %(text)s))"
        )
        parameters |= {"config": settings.MEMSTATE_TEXT_SEARCH_CONFIG, "text": filters.text}
    return conditions, parameters


def _topic(
    topic_id: uuid.UUID,
    title: str,
    summary: str,
    kind: str,
    scope: str,
    rung: int,
    categories: list[str],
    created_at: dt.datetime,
    updated_at: dt.datetime,
    salience: float,
    pinned: bool,
    pin_reason: str,
    retrievals: int,
    last_retrieved_at: dt.datetime | None,
    released_at: dt.datetime | None,
    merged_into: uuid.UUID | None,
    provenance: str,
) -> TopicRow:
    """Return a row of ``_COLUMNS`` as a reply."""
    return {
        "topic_id": str(topic_id),
        "title": title,
        "summary": summary,
        "topic_kind": kind,
        "scope": scope,
        "rung": Rung(rung).label,
        "archived": rung == Rung.ARCHIVED,
        "categories": categories,
        "created_at": created_at,
        "updated_at": updated_at,
        "salience": salience,
        "failed_salience": 0.0,
        "pinned": pinned,
        "pin_reason": pin_reason,
        "retrieval_count": retrievals,
        "last_retrieved_at": last_retrieved_at,
        "released_at": released_at,
        "merged_into": str(merged_into) if merged_into else None,
        "provenance": provenance,
    }


def _field(
    principal: Principal,
    field_id: uuid.UUID,
    name: str,
    field_type: str,
    ref: uuid.UUID | None,
    ref_scope: str | None,
    last_seq: int,
    cold_through: int,
    detached: bool,
    salience: float,
    summary: str | None,
    *current: Any,
) -> DetailField:
    """Return a row of ``_DETAIL_FIELDS_SQL`` as a reply, as ``principal`` sees it."""
    revision = _revision(*current)
    return {
        "id": str(field_id),
        "name": name,
        "field_type": field_type,
        "ref_topic_id": str(ref) if ref_scope and principal.sees(ref_scope) else None,
        "current": revision,
        "history": [revision],
        "summary": json.loads(summary) if summary else None,
        "revisions": last_seq,
        "cold_revisions": cold_through,
        "detached": detached,
        "salience": salience,
    }


def _history_revision(
    principal: Principal,
    field_type: str,
    ref: uuid.UUID | None,
    ref_scope: str | None,
    actor: str,
    cold: bool,
    *revision: Any,
) -> HistoryRevision:
    """Return a row of ``_HISTORY_SQL`` as a reply, as ``principal`` sees it."""
    return {
        **_revision(*revision),
        "field_type": field_type,
        "ref_topic_id": str(ref) if ref_scope and principal.sees(ref_scope) else None,
        "actor": actor,
        "cold": cold,
    }


def _revision(
    revision_id: uuid.UUID,
    value: str,
    valid_from: dt.datetime,
    provenance: str,
    why_changed: str,
    impact_expected: str,
    recorded_at: dt.datetime,
    seq: int,
) -> RevisionOut:
    """Return a row of ``_REVISION`` as a reply."""
    return {
        "id": str(revision_id),
        "value": value,
        "valid_from": valid_from,
        "provenance": provenance,
        "why_changed": why_changed,
        "impact_expected": impact_expected,
        "recorded_at": recorded_at,
        "seq": seq,
    }
