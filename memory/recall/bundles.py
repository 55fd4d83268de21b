"""Loads bundles, which are topics with their fields, histories and neighbours, in one statement."""

import datetime as dt
import json
import uuid
from collections.abc import Sequence
from typing import cast

from memory.models import Rung
from memory.models.formulas_sql import (
    partition_idle_sql,
    rung_label_sql,
    salience_effective_sql,
    scope_within_sql,
    skipped_sql,
)
from memory.models.labels import label_sql
from memory.models.prepared import rows_prepared
from memory.recall.filters import rung_below_sql, topic_conditions
from memory.recall.replies import Candidate
from memory.recall.request import QueryRequest

MAX_NEIGHBORS = 50

_REVISION = """
jsonb_build_object('id', r.id, 'value', r.value, 'valid_from', r.valid_from, 'provenance', r.provenance,
                   'why_changed', r.why_changed, 'impact_expected', r.impact_expected,
                   'recorded_at', r.recorded_at, 'seq', r.seq)
"""

# The value of a member at a past time: the first edit after this time contains the value before the edit.
_PAST = """
coalesce((SELECT {value} FROM memory_topicedit e
          WHERE e.topic_id = {row}.id AND e.at > %(as_of)s::timestamptz AND e.before ? '{member}'
          ORDER BY e.at, e.id LIMIT 1), {row}.{member})
"""

# The columns of the statement.
_COLUMNS = (
    "topic_id title summary label topic_kind salience scope rung categories pinned created_at updated_at "
    "retrieval_count last_retrieved_at neighbors fields"
)


def field_summary_sql(field: str, *, as_of: bool = False) -> str:
    """Return an SQL expression for the newest summary of ``field``, a row of Field, as JSON or null. With ``as_of``, it
    is the summary in force at ``%(as_of)s``."""
    # Without cold revisions there is no summary now, but a revision that is warm now may have been cold at ``as_of``.
    may_exist, in_force = f"{field}.cold_through > 0", "m.withdrawn_at IS NULL"
    if as_of:
        may_exist = "true"
        in_force = (
            "m.created_at <= %(as_of)s::timestamptz "
            "AND (m.withdrawn_at IS NULL OR m.withdrawn_at > %(as_of)s::timestamptz)"
        )
    return f"""
        CASE WHEN {may_exist} THEN (
            SELECT jsonb_build_object('text', m.text, 'from_seq', m.from_seq, 'through_seq', m.through_seq,
                                      'method', m.method, 'depth', m.depth)
            FROM memory_fieldsummary m WHERE m.field_id = {field}.id AND {in_force} ORDER BY m.id DESC LIMIT 1
        ) END"""


def bundles_load(
    ids: Sequence[uuid.UUID], request: QueryRequest, *, scope: str, caller: str, now: dt.datetime
) -> list[Candidate]:
    """Return the bundles of the topics of ``ids`` that are within ``scope`` and meet the filters of ``request``, in the
    order of ``ids``. One query. Neighbours and references may be anywhere within ``caller``, the scope of the key."""
    if not ids:
        return []
    neighbors = "structural" in request.stages and request.depth > 0
    as_of = request.as_of
    visible = topic_conditions(
        kinds=request.kinds,
        categories=request.categories,
        as_of=as_of,
        created_after=request.created_after,
        created_before=request.created_before,
        field_values=request.field_values,
    )
    if not request.include_archived:
        visible.append(rung_below_sql("t", Rung.ARCHIVED, as_of=as_of))
    if scope != "/":
        visible.append("(s.path = %(scope)s::text OR starts_with(s.path, %(below)s::text))")
    # With OFFSET 0, the idle time of a topic is computed once, and not for each field.
    sql = f"""
        WITH RECURSIVE asked AS (
            SELECT id, place FROM unnest(%(ids)s::uuid[]) WITH ORDINALITY AS a (id, place)
        ), shown AS (
            SELECT t.id, s.path AS scope, t.rung, t.created_at, t.updated_at, a.place,
                   {_member_sql("t", "title", as_of)} AS title, {_member_sql("t", "summary", as_of)} AS summary,
                   {_label_sql("t", as_of)} AS label,
                   {_member_sql("t", "kind", as_of)} AS kind, {_member_sql("t", "categories", as_of)} AS categories
            FROM asked a
            JOIN memory_topic t ON t.id = a.id
            JOIN memory_scope s ON s.id = t.scope_id
            WHERE {" AND ".join(visible)}
        ){_neighbors_sql(as_of, caller) if neighbors else ""}
        SELECT b.id::text, b.title, b.summary, b.label, b.kind,
               {salience_effective_sql("v", "%(now)s::timestamptz", skipped=skipped_sql("v", "i.idle"))},
               b.scope, {rung_label_sql("b.rung")}, b.categories, v.pinned, b.created_at, b.updated_at,
               v.retrieval_count, v.last_retrieved_at,
               {_neighbors_of_sql(as_of) if neighbors else "NULL"}, {_fields_sql(request, caller)}
        FROM shown b
        JOIN memory_vitality v ON v.topic_id = b.id
        CROSS JOIN LATERAL (SELECT {partition_idle_sql("v.scope_id", "%(now)s::timestamptz")} AS idle OFFSET 0) i
        ORDER BY b.place
    """
    parameters = {
        "ids": list(ids),
        "now": now,
        "as_of": as_of,
        "created_after": request.created_after,
        "created_before": request.created_before,
        "scope": scope,
        "below": scope.rstrip("/") + "/",
        "caller": caller,
        "caller_below": caller.rstrip("/") + "/",
        "field_values": None if request.field_values is None else json.dumps(request.field_values),
        "kinds": request.kinds,
        "categories": request.categories,
        "names": request.field_names,
        "depth": request.depth,
    }
    bundles = []
    for row in rows_prepared(sql, parameters):
        bundle = dict(zip(_COLUMNS.split(), row, strict=True))
        # Django's cursors return jsonb as text.
        lists = {name: json.loads(bundle[name] or "[]") for name in ("neighbors", "fields")}
        # ``failed_salience`` is part of the wire format, and always 0.
        bundles.append(cast("Candidate", {**bundle, **lists, "failed_salience": 0.0}))
    return bundles


def _member_sql(row: str, member: str, as_of: dt.datetime | None) -> str:
    """Return the expression for a member of topic ``row``, now or at ``as_of``."""
    if as_of is None:
        return f"{row}.{member}"
    value = f"e.before->>'{member}'"
    if member == "categories":
        value = "ARRAY(SELECT jsonb_array_elements_text(e.before->'categories'))"
    return _PAST.format(row=row, member=member, value=value)


def _fields_sql(request: QueryRequest, caller: str) -> str:
    cold = "" if request.include_cold else "AND r.seq > f.cold_through"
    until = "" if request.as_of is None else "AND r.recorded_at <= %(as_of)s::timestamptz"
    history = f"jsonb_build_array({_REVISION})"
    if "temporal" in request.stages and request.explain:
        history = f"""
            (SELECT coalesce(jsonb_agg({_REVISION} ORDER BY r.seq), '[]') FROM memory_revision r
             WHERE r.field_id = f.id {cold} {until})"""
    # The current revision has the highest number. At a past time, it is the last revision recorded until that time.
    current = "AND r.seq = f.last_seq" if request.as_of is None else f"{until} ORDER BY r.seq DESC LIMIT 1"
    chosen = "" if request.include_detached else "AND NOT f.detached"
    if request.field_names is not None:
        # A field requested by name is shown even if it is detached.
        chosen = "AND f.name = ANY(%(names)s::text[])"
    elif request.as_of is not None:
        # A field that is detached now may not have been detached at that time.
        chosen = ""
    salience = salience_effective_sql("f", "%(now)s::timestamptz", skipped=skipped_sql("f", "i.idle"))
    reference = "r.ref_topic_id"
    if caller != "/":
        seen = scope_within_sql("rt.scope_id", scope="caller", below="caller_below")
        reference = f"(SELECT rt.id FROM memory_topic rt WHERE rt.id = r.ref_topic_id AND {seen})"
    return f"""
        (SELECT jsonb_agg(jsonb_build_object(
                    'id', f.id, 'name', f.name, 'field_type', r.field_type, 'ref_topic_id', {reference},
                    'current', {_REVISION}, 'history', {history},
                    'summary', {field_summary_sql("f", as_of=request.as_of is not None)},
                    'salience', {salience}
                ) ORDER BY f.created_at, f.id)
         FROM memory_field f
         CROSS JOIN LATERAL (SELECT r.* FROM memory_revision r WHERE r.field_id = f.id {current}) r
         WHERE f.topic_id = b.id {chosen})"""


def _neighbors_sql(as_of: dt.datetime | None, caller: str) -> str:
    """Return the common table expressions that follow links breadth first; ``nearest`` has the shortest paths to each
    neighbour. Detached and archived topics, and topics that the caller cannot see, are not visited."""
    until = "" if as_of is None else "AND l.created_at <= %(as_of)s::timestamptz"
    seen = scope_within_sql("n.scope_id", scope="caller", below="caller_below") if caller != "/" else "true"
    existed = "" if as_of is None else "AND n.created_at <= %(as_of)s::timestamptz"
    # The conditions are before the LIMIT, so that archived neighbours do not replace live ones.
    entered = (
        f"{rung_below_sql('n', Rung.DETACHED, as_of=as_of)} "
        f"AND n.released_at IS NULL AND n.merged_into_id IS NULL AND {seen} {existed}"
    )
    return f"""
, reached (root, topic_id, kind, direction, steps) AS (
    SELECT id, id, NULL::varchar, NULL::text, 0 FROM shown
    UNION
    SELECT from_here.root, next.topic_id, next.kind, next.direction, from_here.steps + 1
    FROM reached from_here
    CROSS JOIN LATERAL (
        (SELECT l.target_id AS topic_id, l.kind, 'out' AS direction
         FROM memory_link l JOIN memory_topic n ON n.id = l.target_id AND {entered}
         WHERE l.source_id = from_here.topic_id {until} ORDER BY l.id DESC LIMIT {MAX_NEIGHBORS})
        UNION ALL
        (SELECT l.source_id, l.kind, 'in'
         FROM memory_link l JOIN memory_topic n ON n.id = l.source_id AND {entered}
         WHERE l.target_id = from_here.topic_id {until} ORDER BY l.id DESC LIMIT {MAX_NEIGHBORS})
    ) next
    WHERE from_here.steps < %(depth)s::int AND next.topic_id <> from_here.root
), nearest AS (
    SELECT root, topic_id, kind, direction, steps
    FROM (SELECT *, min(steps) OVER (PARTITION BY root, topic_id) AS least FROM reached WHERE steps > 0) x
    WHERE steps = least
)
"""


def _label_sql(row: str, as_of: dt.datetime | None) -> str:
    title, summary = _member_sql(row, "title", as_of), _member_sql(row, "summary", as_of)
    return label_sql(row, title=title, summary=summary, until="%(as_of)s::timestamptz" if as_of else "")


def _neighbors_of_sql(as_of: dt.datetime | None) -> str:
    return f"""
(SELECT jsonb_agg(to_jsonb(x) - 'place' ORDER BY x.place, x.direction DESC, x.kind)
 FROM (SELECT y.*, dense_rank() OVER (ORDER BY y.depth, y.title, y.topic_id) AS place
       FROM (SELECT e.topic_id, e.kind, e.direction, e.steps AS depth, {_label_sql("n", as_of)} AS title,
                    {_member_sql("n", "summary", as_of)} AS summary, {_member_sql("n", "kind", as_of)} AS topic_kind
             FROM nearest e JOIN memory_topic n ON n.id = e.topic_id WHERE e.root = b.id) y) x
 WHERE x.place <= {MAX_NEIGHBORS})
"""
