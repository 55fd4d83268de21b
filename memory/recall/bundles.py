"""Loads bundles, which are topics with their fields, histories and neighbours, in one statement."""

import datetime as dt
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from memory.models import Rung
from memory.models.expressions import partition_idle_sql, salience_effective_sql, scope_within_sql, skipped_sql
from memory.models.prepared import rows_prepared
from memory.recall.filters import rung_below_sql, topic_conditions
from memory.recall.replies import Candidate

MAX_NEIGHBORS = 50


@dataclass(frozen=True, slots=True)
class BundleOptions:
    """The topics and parts of topics to load; None means all.

    ``scope`` is the scope of the topics. ``caller`` is the scope of the key, which may contain neighbours and
    references outside ``scope``.
    """

    now: dt.datetime
    scope: str
    caller: str = "/"
    kinds: Sequence[str] | None = None
    categories: Sequence[str] | None = None
    fields: bool = True
    field_names: Sequence[str] | None = None
    history: bool = False
    include_cold: bool = False
    include_archived: bool = False
    as_of: dt.datetime | None = None
    depth: int = 0


_REVISION = """
jsonb_build_object('id', r.id, 'value', r.value, 'valid_from', r.valid_from, 'provenance', r.provenance,
                   'why_changed', r.why_changed, 'impact_expected', r.impact_expected,
                   'recorded_at', r.recorded_at, 'seq', r.seq)
"""

# A member at a past time. The first edit after that time has the value before the edit.
_PAST = """
coalesce((SELECT {value} FROM memory_topicedit e
          WHERE e.topic_id = {row}.id AND e.at > %(as_of)s::timestamptz AND e.before ? '{member}'
          ORDER BY e.at, e.id LIMIT 1), {row}.{member})
"""


def field_summary_sql(field: str, *, as_of: bool = False) -> str:
    """Return an SQL expression: the newest summary of ``field``, a row of Field, as JSON; null without one.

    With ``as_of``, this is the summary that was in force at ``%(as_of)s``. Otherwise most fields cost nothing, because
    they have no cold revisions.
    """
    in_force = "m.withdrawn_at IS NULL"
    asked = f"{field}.cold_through > 0"
    if as_of:
        # A revision that is warm now may have been cold then.
        asked = "true"
        in_force = (
            "m.created_at <= %(as_of)s::timestamptz "
            "AND (m.withdrawn_at IS NULL OR m.withdrawn_at > %(as_of)s::timestamptz)"
        )
    return f"""
        CASE WHEN {asked} THEN (
            SELECT jsonb_build_object('text', m.text, 'from_seq', m.from_seq, 'through_seq', m.through_seq,
                                      'method', m.method, 'depth', m.depth)
            FROM memory_fieldsummary m WHERE m.field_id = {field}.id AND {in_force} ORDER BY m.id DESC LIMIT 1
        ) END"""


def _member_sql(row: str, member: str, options: "BundleOptions") -> str:
    """Return the expression for a member of topic ``row``, now or at ``as_of``."""
    if options.as_of is None:
        return f"{row}.{member}"
    value = f"e.before->>'{member}'"
    if member == "categories":
        value = "ARRAY(SELECT jsonb_array_elements_text(e.before->'categories'))"
    return _PAST.format(row=row, member=member, value=value)


def bundles_load(ids: Sequence[uuid.UUID], options: BundleOptions) -> list[Candidate]:
    """Return one bundle for each visible topic of ``ids``, in their order. One query.

    A topic is visible if it is within ``options.scope`` and neither released, merged nor archived. With
    ``include_archived``, archived topics are visible too. With ``as_of``, a topic must have existed then, and must not
    have been archived then.
    """
    if not ids:
        return []
    # OFFSET 0, so that the idle time of a topic is computed once and not for each field.
    sql = f"""
        WITH RECURSIVE asked AS (
            SELECT id, place FROM unnest(%(ids)s::uuid[]) WITH ORDINALITY AS a (id, place)
        ), shown AS (
            SELECT t.id, s.path AS scope, t.rung, t.created_at, t.updated_at, a.place,
                   {_member_sql("t", "title", options)} AS title, {_member_sql("t", "summary", options)} AS summary,
                   {_member_sql("t", "kind", options)} AS kind, {_member_sql("t", "categories", options)} AS categories
            FROM asked a
            JOIN memory_topic t ON t.id = a.id
            JOIN memory_scope s ON s.id = t.scope_id
            WHERE {_visible(options)}
        ){_neighbors_sql(options) if options.depth else ""}
        SELECT b.id, b.title, b.summary, b.kind, b.scope, b.rung, b.categories, b.created_at, b.updated_at,
               {salience_effective_sql("v", "%(now)s::timestamptz", skipped=skipped_sql("v", "i.idle"))},
               v.pinned, v.retrieval_count, v.last_retrieved_at,
               {_fields_sql(options) if options.fields else "NULL"},
               {_neighbors_of_sql(options) if options.depth else "NULL"}
        FROM shown b
        JOIN memory_vitality v ON v.topic_id = b.id
        CROSS JOIN LATERAL (SELECT {partition_idle_sql("v.scope_id", "%(now)s::timestamptz")} AS idle OFFSET 0) i
        ORDER BY b.place
    """
    parameters = {
        "ids": list(ids),
        "now": options.now,
        "as_of": options.as_of,
        "scope": options.scope,
        "below": options.scope.rstrip("/") + "/",
        "caller": options.caller,
        "caller_below": options.caller.rstrip("/") + "/",
        "kinds": list(options.kinds) if options.kinds is not None else None,
        "categories": list(options.categories) if options.categories is not None else None,
        "names": list(options.field_names) if options.field_names is not None else None,
        "depth": options.depth,
    }
    return [_bundle(*row) for row in rows_prepared(sql, parameters)]


def _visible(options: BundleOptions) -> str:
    conditions = topic_conditions(kinds=options.kinds, categories=options.categories, as_of=options.as_of)
    if not options.include_archived:
        conditions.append(rung_below_sql("t", Rung.ARCHIVED, as_of=options.as_of))
    if options.scope != "/":
        conditions.append("(s.path = %(scope)s::text OR starts_with(s.path, %(below)s::text))")
    return " AND ".join(conditions)


def _fields_sql(options: BundleOptions) -> str:
    cold = "" if options.include_cold else "AND r.seq > f.cold_through"
    until = "" if options.as_of is None else "AND r.recorded_at <= %(as_of)s::timestamptz"
    history = f"jsonb_build_array({_REVISION})"
    if options.history:
        history = f"""
            (SELECT coalesce(jsonb_agg({_REVISION} ORDER BY r.seq), '[]') FROM memory_revision r
             WHERE r.field_id = f.id {cold} {until})"""
    # The current revision has the last number; at a past time, it is the last one recorded until then.
    current = "AND r.seq = f.last_seq" if options.as_of is None else f"{until} ORDER BY r.seq DESC LIMIT 1"
    chosen = "AND NOT f.detached"
    if options.field_names is not None:
        # A field requested by name is shown even if it is detached.
        chosen = "AND f.name = ANY(%(names)s::text[])"
    elif options.as_of is not None:
        # A field that is detached now may not have been detached then.
        chosen = ""
    salience = salience_effective_sql("f", "%(now)s::timestamptz", skipped=skipped_sql("f", "i.idle"))
    reference = "r.ref_topic_id"
    if options.caller != "/":
        seen = scope_within_sql("rt.scope_id", scope="caller", below="caller_below")
        reference = f"(SELECT rt.id FROM memory_topic rt WHERE rt.id = r.ref_topic_id AND {seen})"
    return f"""
        (SELECT jsonb_agg(jsonb_build_object(
                    'id', f.id, 'name', f.name, 'field_type', r.field_type, 'ref_topic_id', {reference},
                    'current', {_REVISION}, 'history', {history},
                    'summary', {field_summary_sql("f", as_of=options.as_of is not None)},
                    'salience', {salience}
                ) ORDER BY f.created_at, f.id)
         FROM memory_field f
         CROSS JOIN LATERAL (SELECT r.* FROM memory_revision r WHERE r.field_id = f.id {current}) r
         WHERE f.topic_id = b.id {chosen})"""


def _neighbors_sql(options: BundleOptions) -> str:
    """Return the common table expressions that follow links. ``nearest`` has the shortest ways to each neighbour.

    The search is breadth first, in both directions. A topic is visited once per root, kind and depth. Cycles end
    because depth is bounded. Detached and archived topics, and topics that the caller cannot see, are not visited.
    """
    until = "" if options.as_of is None else "AND l.created_at <= %(as_of)s::timestamptz"
    seen = scope_within_sql("n.scope_id", scope="caller", below="caller_below") if options.caller != "/" else "true"
    existed = "" if options.as_of is None else "AND n.created_at <= %(as_of)s::timestamptz"
    # Conditions before the LIMIT, so that archived neighbours do not replace live ones.
    entered = (
        f"{rung_below_sql('n', Rung.DETACHED, as_of=options.as_of)} "
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


def _neighbors_of_sql(options: BundleOptions) -> str:
    return f"""
(SELECT jsonb_agg(to_jsonb(x) - 'place' ORDER BY x.place, x.direction DESC, x.kind)
 FROM (SELECT y.*, dense_rank() OVER (ORDER BY y.depth, y.title, y.topic_id) AS place
       FROM (SELECT e.topic_id, e.kind, e.direction, e.steps AS depth, {_member_sql("n", "title", options)} AS title,
                    {_member_sql("n", "summary", options)} AS summary, {_member_sql("n", "kind", options)} AS topic_kind
             FROM nearest e JOIN memory_topic n ON n.id = e.topic_id WHERE e.root = b.id) y) x
 WHERE x.place <= {MAX_NEIGHBORS})
"""


def _bundle(
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
    retrievals: int,
    last_retrieved_at: dt.datetime | None,
    fields: str | None,
    neighbors: str | None,
) -> Candidate:
    return {
        "topic_id": str(topic_id),
        "title": title,
        "summary": summary,
        "topic_kind": kind,
        "salience": salience,
        # Part of the wire format; always 0.
        "failed_salience": 0.0,
        "scope": scope,
        "rung": Rung(rung).label,
        "categories": categories,
        "pinned": pinned,
        "created_at": created_at,
        "updated_at": updated_at,
        "retrieval_count": retrievals,
        "last_retrieved_at": last_retrieved_at,
        # Django's cursors return jsonb as text.
        "neighbors": json.loads(neighbors) if neighbors else [],
        "fields": json.loads(fields) if fields else [],
    }
