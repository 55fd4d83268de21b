"""Explicit lookup: lists, one topic at any rung, the history of a field. A lookup does not raise salience."""

import datetime as dt
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from memory.access.principal import Principal
from memory.core.cursors import cursor_as_number, cursor_make, cursor_parse, cursor_time
from memory.core.errors import NotVisible, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.models import Rung
from memory.models.expressions import salience_effective_sql
from memory.predicates.binding import Bound
from memory.predicates.fields import predicate_from_fields
from memory.predicates.sql import predicate_sql
from memory.recall.bundles import field_summary_sql

RUNGS = {rung.label: int(rung) for rung in Rung}


@dataclass(frozen=True, slots=True)
class TopicListFilter:
    """Which topics a list shows; None means all. Without a rung, archived topics are left out."""

    scope: str
    kind: str | None = None
    rung: str | None = None
    pinned: bool | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows, and the cursor of the next page (None on the last)."""

    items: list[dict[str, Any]]
    next: str | None


_COLUMNS = f"""
t.id, t.title, t.summary, t.kind, s.path, t.rung, t.categories, t.created_at, t.updated_at,
{salience_effective_sql("v", "%(now)s::timestamptz")}, v.pinned, v.pin_reason, v.retrieval_count, v.last_retrieved_at,
t.released_at, t.merged_into_id, t.provenance
"""

_FROM = """
FROM memory_topic t
JOIN memory_scope s ON s.id = t.scope_id
JOIN memory_vitality v ON v.topic_id = t.id
"""


def topics_list(wanted: TopicListFilter, *, cursor: str | None, limit: int, now: dt.datetime) -> Page:
    """Return topics, newest first. One query.

    Its cost depends on the page and not on the store for one scope, all scopes or a rung. A filter by kind, text or
    pinned also reads the topics that do not match.

    Raises ``ValueRefused`` for an unknown rung or an invalid cursor.
    """
    conditions, parameters = _conditions(wanted, now)
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
        rows = [_topic(row) for row in database.fetchall()]
    more = len(rows) > limit
    last = rows[limit - 1] if more else None
    return Page(rows[:limit], cursor_make(last["created_at"], last["topic_id"]) if last else None)


def topic_get(topic_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> dict[str, Any]:
    """Return one topic at any rung, released and merged ones included. One query.

    Raises ``NotVisible`` if it does not exist or is outside the caller's scope.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_COLUMNS} {_FROM} WHERE t.id = %(id)s", {"id": topic_id, "now": now})
        row = cursor.fetchone()
    if row is None or not principal.sees(row[4]):
        raise NotVisible(f"Topic {topic_id} does not exist.", code=ProblemCode.TOPIC_NOT_FOUND)
    return _topic(row)


# The scope of the topic that a revision refers to: the reference is shown only to callers who see that topic.
_REF_SCOPE = """
(SELECT rs.path FROM memory_topic rt JOIN memory_scope rs ON rs.id = rt.scope_id WHERE rt.id = r.ref_topic_id)
"""

_DETAIL_FIELDS = f"""
SELECT f.id, f.name, r.field_type, r.ref_topic_id, r.id, r.value, r.valid_from, r.provenance, r.why_changed,
       r.impact_expected, r.recorded_at, r.seq, f.last_seq, f.cold_through, f.detached,
       {salience_effective_sql("f", "%(now)s::timestamptz")}, {field_summary_sql("f")}, {_REF_SCOPE}
FROM memory_field f JOIN memory_revision r ON r.field_id = f.id AND r.seq = f.last_seq
WHERE f.topic_id = %(id)s ORDER BY f.created_at, f.id
"""

_DETAIL_LINKS = """
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

_ALSO = """
WITH RECURSIVE into_it AS (
    SELECT t.id, t.merged_into_id FROM memory_topic t WHERE t.merged_into_id = %(id)s
    UNION
    SELECT t.id, t.merged_into_id FROM memory_topic t JOIN into_it i ON t.merged_into_id = i.id
)
SELECT t.id, t.title, t.provenance, t.created_at, i.merged_into_id
FROM into_it i JOIN memory_topic t ON t.id = i.id ORDER BY t.updated_at DESC, t.id
"""

MOST_LINKS = 200


def topic_detail(topic_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> dict[str, Any]:
    """Return one topic with its fields (detached ones too), its links, and the topics merged into it. Four queries.

    Raises ``NotVisible``.

    Links lead to topics within the caller's scope, at any rung, the newest ``MOST_LINKS`` in each direction.
    """
    topic = topic_get(topic_id, principal=principal, now=now)
    with connection.cursor() as cursor:
        cursor.execute(_DETAIL_FIELDS, {"id": topic_id, "now": now})
        topic["fields"] = [_field(row, principal) for row in cursor.fetchall()]
        cursor.execute(_DETAIL_LINKS, {"id": topic_id, "most": MOST_LINKS})
        topic["neighbors"] = [
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
    topic["also_from"] = also_from(topic_id)
    return topic


def also_from(topic_id: uuid.UUID) -> list[dict[str, Any]]:
    """Return the topics merged into a topic, directly or through another, the latest first: ``{topic_id, title,
    provenance, created_at, merged_into}``. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_ALSO, {"id": topic_id})
        return [
            {
                "topic_id": str(row[0]),
                "title": row[1],
                "provenance": row[2],
                "created_at": row[3],
                "merged_into": str(row[4]),
            }
            for row in cursor.fetchall()
        ]


_HISTORY = f"""
SELECT r.id, r.value, r.valid_from, r.provenance, r.why_changed, r.impact_expected, r.recorded_at, r.seq,
       r.field_type, r.ref_topic_id, r.actor, r.seq <= f.cold_through, {_REF_SCOPE}
FROM memory_field f JOIN memory_revision r ON r.field_id = f.id
WHERE f.topic_id = %(id)s AND f.name = %(name)s AND r.seq < %(before)s
ORDER BY r.seq DESC LIMIT %(limit)s
"""


def field_history(
    topic_id: uuid.UUID, name: str, *, principal: Principal, cursor: str | None, limit: int, now: dt.datetime
) -> Page:
    """Return all revisions of a field, warm and cold, newest first. Two queries.

    Raises ``NotVisible`` if the caller sees no such topic or it has no such field, ``ValueRefused`` for a bad cursor.
    """
    topic_get(topic_id, principal=principal, now=now)
    if "\x00" in name:
        # PostgreSQL refuses NUL in a parameter, and no name contains it.
        raise NotVisible(f"Topic {topic_id} has no field {name!r}.", code=ProblemCode.FIELD_NOT_FOUND)
    before = 2**31 - 1 if cursor is None else cursor_as_number(cursor)
    with connection.cursor() as database:
        database.execute(_HISTORY, {"id": topic_id, "name": name, "before": before, "limit": limit + 1})
        rows = [_revision(row, principal) for row in database.fetchall()]
    if not rows and cursor is None:
        raise NotVisible(f"Topic {topic_id} has no field {name!r}.", code=ProblemCode.FIELD_NOT_FOUND)
    return Page(rows[:limit], str(rows[limit - 1]["seq"]) if len(rows) > limit else None)


def _conditions(wanted: TopicListFilter, now: dt.datetime) -> tuple[list[str], dict[str, Any]]:
    conditions = ["t.released_at IS NULL", "t.merged_into_id IS NULL"]
    if wanted.rung is None:
        conditions.append(f"t.rung < {int(Rung.ARCHIVED)}")
    elif wanted.rung not in (*RUNGS, "any"):
        raise ValueRefused(
            f"Rung {wanted.rung!r} does not exist. Use one of {', '.join(RUNGS)}, or any for all of them.",
            code=ProblemCode.UNKNOWN_CHOICE,
        )
    predicate = predicate_from_fields(
        scope=wanted.scope,
        kinds=None if wanted.kind is None else [wanted.kind],
        rung=None if wanted.rung == "any" else wanted.rung,
        pinned=wanted.pinned,
    )
    bound = Bound()
    conditions.append(predicate_sql(predicate, now="%(now)s::timestamptz", bind=bound.bind, narrow=False).sql)
    parameters = {**bound.values, "now": now}
    if wanted.text:
        conditions.append(
            "EXISTS (SELECT 1 FROM memory_topicdocument d WHERE d.topic_id = t.id "
            "AND d.document @@ websearch_to_tsquery(%(config)s::regconfig, %(text)s))"
        )
        parameters |= {"config": settings.MEMSTATE_TEXT_SEARCH_CONFIG, "text": wanted.text}
    return conditions, parameters


def _topic(row: tuple[Any, ...]) -> dict[str, Any]:
    (
        topic_id,
        title,
        summary,
        kind,
        scope,
        rung,
        categories,
        created_at,
        updated_at,
        salience,
        pinned,
        pin_reason,
        retrievals,
        last_retrieved_at,
        released_at,
        merged_into,
        provenance,
    ) = row
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


def _field(row: tuple[Any, ...], principal: Principal) -> dict[str, Any]:
    (
        field_id,
        name,
        field_type,
        ref,
        revision_id,
        value,
        valid_from,
        provenance,
        why,
        impact,
        recorded_at,
        seq,
        last_seq,
        cold_through,
        detached,
        salience,
        summary,
        ref_scope,
    ) = row
    return {
        "id": str(field_id),
        "name": name,
        "field_type": field_type,
        "ref_topic_id": str(ref) if ref and principal.sees(ref_scope) else None,
        "current": {
            "id": str(revision_id),
            "value": value,
            "valid_from": valid_from,
            "provenance": provenance,
            "why_changed": why,
            "impact_expected": impact,
            "recorded_at": recorded_at,
            "seq": seq,
        },
        "history": [],
        "summary": json.loads(summary) if summary else None,
        "revisions": last_seq,
        "cold_revisions": cold_through,
        "detached": detached,
        "salience": salience,
    }


def _revision(row: Sequence[Any], principal: Principal) -> dict[str, Any]:
    names = (
        "id",
        "value",
        "valid_from",
        "provenance",
        "why_changed",
        "impact_expected",
        "recorded_at",
        "seq",
        "field_type",
        "ref_topic_id",
        "actor",
        "cold",
        "ref_scope",
    )
    revision = dict(zip(names, row, strict=True))
    revision["id"] = str(revision["id"])
    ref, ref_scope = revision["ref_topic_id"], revision.pop("ref_scope")
    revision["ref_topic_id"] = str(ref) if ref and principal.sees(ref_scope) else None
    return revision
