"""The audit journal, page by page: every change with actor and reason. Read-only.

The list combines audit events, saved policies and runs of forgetting. Saved policies and runs that needed no approval
have no audit event; their entries come from ``PolicyVersion`` and ``ForgetRun``.
"""

import datetime as dt
import json
import uuid
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from django.db import connection

from memory.access.principal import Principal
from memory.core.callers import caller_names
from memory.core.cursors import cursor_make, cursor_number, cursor_parse, cursor_time
from memory.forgetting.manual_runs import BY_HAND, REVISE
from memory.forgetting.run_text import counts_sentences, event_words
from memory.insight.action_words import action_words, actions_of
from memory.predicates.binding import Bound, path_sql

_RUN = 2
# A summary counts at most this many of the newest entries.
SUMMARIZED = 50_000
By = Literal["people", "agents", "automatic"]
# The labels of actors begin with their type.
_BY = {"people": "user:%%", "agents": "key:%%"}
# Ids are compared as texts, so numbers are padded to the same length.
_EVENTS_SQL = """
SELECT at, 0 AS kind, lpad(id::text, 20, '0') AS id, actor, action, topic_id, scope, reason, before, after
FROM memory_auditevent
"""
_VERSIONS_SQL = """
SELECT created_at AS at, 1 AS kind, lpad(id::text, 20, '0') AS id, author AS actor,
       CASE WHEN rolled_back_to IS NULL THEN 'policy_saved' ELSE 'policy_rolled_back' END AS action,
       NULL::uuid AS topic_id, scope, reason, '{}'::jsonb AS before,
       jsonb_strip_nulls(jsonb_build_object('version', number, 'rolled_back_to', rolled_back_to, 'diff', diff)) AS after
FROM memory_policyversion
"""
# Applied dry runs and approved runs have an audit event; manual changes have one for each topic.
_RUNS_SQL = f"""
SELECT created_at AS at, 2 AS kind, id::text AS id, actor, 'run_applied' AS action, NULL::uuid AS topic_id, scope,
       event AS reason, '{{}}'::jsonb AS before, jsonb_build_object('run', id, 'counts', counts) AS after
FROM memory_forgetrun
WHERE applied > 0 AND NOT dry_run AND approved_by = '' AND event NOT IN ('{BY_HAND}', '{REVISE}')
"""
# Purged topics have no title.
_TITLED_SQL = """
SELECT f.*, t.title FROM ({found}) f LEFT JOIN memory_topic t ON t.id = f.topic_id
ORDER BY f.at DESC, f.kind DESC, f.id DESC
"""


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries are shown; None means all. ``scope`` is canonical and includes the scopes below it. ``actor`` may
    be given without ``user:`` or ``key:``. ``action`` is the words that pages show, such as ``Created``, or a name or
    its first words, such as ``ingest``, with spaces or underscores."""

    scope: str = "/"
    actor: str | None = None
    action: str | None = None
    topic_id: uuid.UUID | None = None
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    by: By | None = None


@dataclass(frozen=True, slots=True)
class AuditSummary:
    """How many entries each action and each actor has, the most frequent first. ``partial`` means that only the newest
    ``SUMMARIZED`` entries were counted."""

    actions: list[tuple[str, int]]
    actors: list[tuple[str, int]]
    partial: bool

    @property
    def total(self) -> int:
        """The number of entries counted."""
        return sum(count for _action, count in self.actions)


class _Entry(NamedTuple):
    """A row of ``_TITLED_SQL``."""

    at: dt.datetime
    kind: int
    id: str
    actor: str
    action: str
    topic_id: uuid.UUID | None
    scope: str
    reason: str
    before: str
    after: str
    title: str | None


def audit_list(
    filters: AuditFilter, *, principal: Principal, cursor: str | None, limit: int
) -> tuple[list[dict[str, Any]], str | None]:
    """Return entries, newest first, and the cursor of the next page. One query, along the index of times.

    Raises ``NotVisible`` for a scope outside the caller's scope, ``ValueRefused`` for an invalid cursor.
    """
    conditions, bound = _conditions(filters, principal)
    if cursor is not None:
        at, kind, number = map(bound.bind, cursor_parse(cursor, cursor_time, cursor_number, str))
        conditions.append(f"(at, kind, id) < ({at}, {kind}, {number})")
        # The row comparison cannot use the index by time, because ``kind`` is a constant. This condition can.
        conditions.append(f"at <= {at}")
    with connection.cursor() as database:
        found = _joined(conditions, "*", f"ORDER BY at DESC, kind DESC, id DESC LIMIT {limit + 1:d}")
        database.execute(_TITLED_SQL.format(found=found), bound.values)
        rows = [_Entry(*row) for row in database.fetchall()]
    following = cursor_make(*rows[limit - 1][:3]) if len(rows) > limit else None
    return [_entry_as_dict(row) for row in rows[:limit]], following


def audit_count(filters: AuditFilter, *, principal: Principal, at_most: int) -> int:
    """Return the number of entries, at most ``at_most`` + 1. One query."""
    conditions, bound = _conditions(filters, principal)
    with connection.cursor() as database:
        found = _joined(conditions, "1", f"LIMIT {at_most + 1:d}")
        database.execute(f"SELECT count(*) FROM ({found}) counted", bound.values)
        return int(database.fetchone()[0])


def audit_summary(filters: AuditFilter, *, principal: Principal) -> AuditSummary:
    """Return the counts by action and by actor of the newest ``SUMMARIZED`` entries. One query, along the index of
    times. Raises ``NotVisible`` for a scope outside the caller's scope."""
    conditions, bound = _conditions(filters, principal)
    found = _joined(conditions, "at, action, actor", f"ORDER BY at DESC LIMIT {SUMMARIZED + 1:d}")
    with connection.cursor() as database:
        database.execute(
            f"SELECT action, actor, count(*) FROM ({found}) e GROUP BY GROUPING SETS ((action), (actor))"
            " ORDER BY count(*) DESC, action, actor",
            bound.values,
        )
        rows = database.fetchall()
    actions = [(action, count) for action, _actor, count in rows if action is not None]
    actors = [(actor, count) for action, actor, count in rows if action is None]
    return AuditSummary(actions, actors, partial=sum(count for _action, count in actions) > SUMMARIZED)


def _joined(conditions: list[str], columns: str, tail: str) -> str:
    """Return the statement over all kinds of entries. Each part has the limit too, so that no part is read further."""
    within = " AND ".join(conditions)
    kinds = (_EVENTS_SQL, _VERSIONS_SQL, _RUNS_SQL)
    parts = [f"(SELECT {columns} FROM ({kind}) j WHERE {within} {tail})" for kind in kinds]
    return f"SELECT * FROM ({' UNION ALL '.join(parts)}) all_kinds {tail}"


def _conditions(filters: AuditFilter, principal: Principal) -> tuple[list[str], Bound]:
    bound = Bound()
    conditions = [path_sql("scope", principal.scope_chosen(filters.scope), bound.bind)]
    if filters.actor is not None:
        conditions.append(f"actor = ANY({bound.bind(caller_names(filters.actor))})")
    if filters.action is not None:
        action = bound.bind("_".join(filters.action.lower().removesuffix("*").replace("_", " ").split()))
        shown = bound.bind(actions_of(filters.action))
        conditions.append(f"(action = {action} OR starts_with(action, {action} || '_') OR action = ANY({shown}))")
    if filters.by in _BY:
        conditions.append(f"actor LIKE '{_BY[filters.by]}'")
    elif filters.by is not None:
        conditions.append(" AND ".join(f"actor NOT LIKE '{label}'" for label in _BY.values()))
    if filters.topic_id is not None:
        conditions.append(f"topic_id = {bound.bind(filters.topic_id)}")
    if filters.since is not None:
        conditions.append(f"at >= {bound.bind(filters.since)}")
    if filters.until is not None:
        conditions.append(f"at < {bound.bind(filters.until)}")
    return conditions, bound


def _entry_as_dict(row: _Entry) -> dict[str, Any]:
    before, after = json.loads(row.before), json.loads(row.after)
    reason = row.reason
    if row.kind == _RUN:
        reason = f"{event_words(row.reason)}: {counts_sentences(after['counts'], done=True) or 'nothing'}."
    return {
        "id": f"{('event', 'policy', 'run')[row.kind]} {row.id.lstrip('0')}",
        "at": row.at,
        "actor": row.actor,
        "action": row.action,
        "did": action_words(row.action),
        "topic_id": str(row.topic_id) if row.topic_id else None,
        "title": row.title,
        "scope": row.scope,
        "reason": reason,
        "before": before,
        "after": after,
        "run_id": row.id if row.kind == _RUN else None,
    }
