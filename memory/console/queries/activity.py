"""The audit journal, page by page: every change with actor and reason. Read-only.

Saved policies and runs without approval have no audit event. They are read from ``PolicyVersion`` and ``ForgetRun``.
"""

import datetime as dt
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from memory.access.principal import Principal
from memory.core.callers import caller_names
from memory.core.cursors import cursor_make, cursor_number, cursor_parse, cursor_time
from memory.explain.action_words import action_words, actions_of
from memory.forgetting.manual_runs import BY_HAND, REVISE
from memory.forgetting.run_text import counts_sentences, event_words
from memory.models.formulas_sql import agent_sql, automatic_sql, person_sql
from memory.models.labels import label_sql
from memory.models.statements import dicts_read, rows_read
from memory.predicates.binding import Bound, path_sql

_RUN = 2
# A summary counts at most this many of the newest entries.
SUMMARIZED = 50_000
# Entries of one change to many topics are at most this far apart.
GROUPED_WITHIN = dt.timedelta(minutes=10)
By = Literal["people", "agents", "automatic"]
_BY_SQL: dict[By, str] = {
    "people": person_sql("actor"),
    "agents": agent_sql("actor"),
    "automatic": automatic_sql("actor"),
}
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
# Applied dry runs, approved runs and manual changes are left out, because they have audit events.
_RUNS_SQL = f"""
SELECT created_at AS at, 2 AS kind, id::text AS id, actor, 'run_applied' AS action, NULL::uuid AS topic_id, scope,
       event AS reason, '{{}}'::jsonb AS before, jsonb_build_object('run', id, 'counts', counts) AS after
FROM memory_forgetrun
WHERE applied > 0 AND NOT dry_run AND approved_by = '' AND event NOT IN ('{BY_HAND}', '{REVISE}')
"""
# Purged topics have no title.
_TITLED_SQL = """
SELECT f.*, CASE WHEN t.id IS NOT NULL THEN {label} END AS title
FROM ({found}) f LEFT JOIN memory_topic t ON t.id = f.topic_id
ORDER BY f.at DESC, f.kind DESC, f.id DESC
"""


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries are shown; None means all. ``scope`` is canonical and includes the scopes below it. ``actor`` may
    omit ``user:`` or ``key:``. ``action`` is either the words that pages show, such as ``Created``, or the first words
    of the name of an action, such as ``ingest``. Words are separated by spaces or underscores."""

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


def audit_list(
    filters: AuditFilter, *, principal: Principal, cursor: str | None, limit: int
) -> tuple[list[dict[str, Any]], str | None]:
    """Return (newest entries, cursor of the next page). Each entry has the cursor of the page after it. One query.
    Raises ``NotVisible`` and ``ValueRefused``."""
    conditions, bound = _conditions(filters, principal)
    if cursor is not None:
        at, kind, number = map(bound.bind, cursor_parse(cursor, cursor_time, cursor_number, str))
        conditions.append(f"(at, kind, id) < ({at}, {kind}, {number})")
        # The row comparison cannot use the index by time, because ``kind`` is a constant. This condition can.
        conditions.append(f"at <= {at}")
    found = _joined(conditions, "*", f"ORDER BY at DESC, kind DESC, id DESC LIMIT {limit + 1:d}")
    rows = dicts_read(_TITLED_SQL.format(found=found, label=label_sql()), bound.values)
    entries = [_entry_as_dict(row) for row in rows[:limit]]
    return entries, entries[-1]["cursor"] if len(rows) > limit else None


def audit_groups(entries: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Group the entries of one change to many topics: consecutive entries with the same actor, action, reason and run,
    within ``GROUPED_WITHIN``. Other entries are groups of one."""
    groups: list[list[dict[str, Any]]] = []
    for entry in entries:
        first = groups[-1][0] if groups else None
        alike = first and entry["topic_id"] and first["topic_id"] and _change_of(first) == _change_of(entry)
        if first and alike and first["at"] - entry["at"] < GROUPED_WITHIN:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups


def _change_of(entry: dict[str, Any]) -> tuple[Any, ...]:
    return entry["actor"], entry["action"], entry["reason"], entry["after"].get("run")


def audit_count(filters: AuditFilter, *, principal: Principal, at_most: int) -> int:
    """Return the number of entries, at most ``at_most`` + 1. One query."""
    conditions, bound = _conditions(filters, principal)
    found = _joined(conditions, "1", f"LIMIT {at_most + 1:d}")
    return int(rows_read(f"SELECT count(*) FROM ({found}) counted", bound.values)[0][0])


def audit_summary(filters: AuditFilter, *, principal: Principal) -> AuditSummary:
    """Return the counts by action and by actor of the newest ``SUMMARIZED`` entries. One query, which reads the index
    by time. Raises ``NotVisible`` for a scope outside the caller's scope."""
    conditions, bound = _conditions(filters, principal)
    found = _joined(conditions, "at, action, actor", f"ORDER BY at DESC LIMIT {SUMMARIZED + 1:d}")
    rows = rows_read(
        f"SELECT action, actor, count(*) FROM ({found}) e GROUP BY GROUPING SETS ((action), (actor))"
        " ORDER BY count(*) DESC, action, actor",
        bound.values,
    )
    actions = [(action, count) for action, _actor, count in rows if action is not None]
    actors = [(actor, count) for action, actor, count in rows if action is None]
    return AuditSummary(actions, actors, partial=sum(count for _action, count in actions) > SUMMARIZED)


def _joined(conditions: list[str], columns: str, tail: str) -> str:
    """Return the SQL statement over all kinds of entries. ``tail`` has the order and the limit. The part for each kind
    repeats ``tail``, because it would otherwise read all rows."""
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
    if filters.by is not None:
        conditions.append(_BY_SQL[filters.by])
    if filters.topic_id is not None:
        conditions.append(f"topic_id = {bound.bind(filters.topic_id)}")
    if filters.since is not None:
        conditions.append(f"at >= {bound.bind(filters.since)}")
    if filters.until is not None:
        conditions.append(f"at < {bound.bind(filters.until)}")
    return conditions, bound


def _entry_as_dict(row: dict[str, Any]) -> dict[str, Any]:
    kind = row.pop("kind")
    cursor = cursor_make(row["at"], kind, row["id"])
    after, reason = json.loads(row["after"]), row["reason"]
    if kind == _RUN:
        reason = f"{event_words(reason)}: {counts_sentences(after['counts'], done=True) or 'nothing'}."
    return {
        **row,
        "id": f"{('event', 'policy', 'run')[kind]} {row['id'].lstrip('0')}",
        "did": action_words(row["action"]),
        "topic_id": str(row["topic_id"]) if row["topic_id"] else None,
        "reason": reason,
        "before": json.loads(row["before"]),
        "after": after,
        "run_id": row["id"] if kind == _RUN else None,
        "cursor": cursor,
    }
