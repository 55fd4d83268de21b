"""Manual changes of topics are runs with the event ``by_hand``, so that they can be planned, shown and undone like any
run. Each applied action also has an audit event."""

import datetime as dt
import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper

from memory.core.ids import uuid7_at
from memory.core.scopes import ROOT
from memory.forgetting.topic_state import FIELDS, STATE
from memory.models import ForgetRun
from memory.models.formulas_sql import rung_label_sql
from memory.models.identities import uuid_sql

# The event of manual changes. No policy or rule uses this event, and lists show its runs only on request.
BY_HAND = "by_hand"
# The event of changes by the search for duplicates.
REVISE = "revise"
# The actions that set a pin.
PINS = ("pinned", "unpinned")
# The actions of a merge: on the topic that is merged into the other, and on the topic that stays.
MERGED, TOOK_IN = "merged", "took_in"

_WRITE_SQL = f"""
WITH now_states AS (
    SELECT t.id, {STATE} AS state FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id
    WHERE t.id = ANY(%(topics)s)
), actions (run_id, place, topic_id, action, from_rung, to_rung, changes, why, state,
      before, after, note, at) AS MATERIALIZED (
    SELECT %(run)s, %(after)s + d.place, d.id, d.action, (d.before->>'rung')::int,
           (s.state->>'rung')::int, d.changes,
           jsonb_build_object('by', %(by)s::text, 'reason', %(reason)s::text), 'applied', d.before, s.state, '', %(now)s
    FROM unnest(%(topics)s::uuid[], %(actions)s::text[], %(befores)s::jsonb[], %(changes)s::jsonb[])
         WITH ORDINALITY AS d (id, action, before, changes, place)
    JOIN now_states s ON s.id = d.id
)
INSERT INTO memory_forgetaction
    (run_id, place, topic_id, action, from_rung, to_rung, changes, why, state, before, after, note, at)
SELECT * FROM actions
"""

# The event has the state before the action. The state after it is the given one, or is read from the action.
_JOURNAL_SQL = f"""
WITH events (at, actor, action, topic_id, scope, reason, before, after) AS MATERIALIZED (
    SELECT %(now)s::timestamptz, %(actor)s::text, a.action, a.topic_id, s.path, a.why->>'reason',
           jsonb_build_object(
               'rung', {rung_label_sql("(a.before->>'rung')::int")}, 'released', a.before->>'released_at' IS NOT NULL,
               'pinned', a.before->'pinned', 'salience', a.before->'salience',
               'reinforced_at', a.before->'reinforced_at'),
           jsonb_build_object('run', a.run_id) || coalesce(d.after, CASE
               WHEN a.changes ? 'pinned' THEN jsonb_build_object('pinned', a.changes->'pinned')
               WHEN a.changes ? 'released' THEN jsonb_build_object('released', a.changes->'released')
               ELSE jsonb_build_object('rung', {rung_label_sql("a.to_rung")}) END)
    FROM unnest(%(topics)s::uuid[], %(afters)s::jsonb[]) AS d (id, after)
    JOIN memory_forgetaction a ON a.run_id = %(run)s AND a.topic_id = d.id
    JOIN memory_topic t ON t.id = a.topic_id JOIN memory_scope s ON s.id = t.scope_id
    ORDER BY a.place
)
INSERT INTO memory_auditevent (at, actor, action, topic_id, scope, reason, before, after)
SELECT * FROM events
"""

_PLAN_SQL = f"""
WITH actions (run_id, place, topic_id, action, from_rung, to_rung, changes, why, state, before, note) AS MATERIALIZED (
    SELECT %(run)s::uuid, d.place, t.id, %(action)s::text, t.rung,
           CASE WHEN d.note = '' THEN coalesce(%(rung)s, t.rung) ELSE t.rung END, d.changes,
           jsonb_build_object('by', 'hand', 'reason', %(reason)s::text),
           CASE WHEN d.note = '' THEN 'planned' ELSE 'skipped' END, {STATE}, d.note
    FROM unnest(%(topics)s::uuid[], %(changes)s::jsonb[], %(notes)s::text[])
         WITH ORDINALITY AS d (id, changes, note, place)
    JOIN memory_topic t ON t.id = d.id JOIN memory_vitality v ON v.topic_id = t.id
)
INSERT INTO memory_forgetaction
    (run_id, place, topic_id, action, from_rung, to_rung, changes, why, state, before, note)
SELECT * FROM actions
RETURNING id, topic_id, action, from_rung, to_rung, place, why, changes
"""

_REASON_SQL = """
UPDATE memory_forgetaction SET why = why || jsonb_build_object('reason', %s::text) WHERE run_id = %s
"""

# One audit event per topic that was restored by an undo.
_UNDONE_SQL = f"""
WITH events (at, actor, action, topic_id, scope, reason, before, after) AS MATERIALIZED (
    SELECT %(now)s, %(actor)s, 'undone', a.topic_id, s.path, %(reason)s,
           jsonb_build_object('action', a.action, 'at', a.at),
           jsonb_build_object('run', a.run_id, 'rung', {rung_label_sql("t.rung")})
    FROM memory_forgetaction a JOIN memory_topic t ON t.id = a.topic_id JOIN memory_scope s ON s.id = t.scope_id
    WHERE a.id = ANY(%(actions)s) ORDER BY a.place
)
INSERT INTO memory_auditevent (at, actor, action, topic_id, scope, reason, before, after)
SELECT * FROM events
"""


@dataclass(slots=True)
class HandAction:
    """A change of one topic that is already made. ``before`` is the earlier state, and ``after`` is the new state for
    the audit event. ``changes`` is what changed besides the rung. ``action`` is empty if it equals the action of the
    run."""

    topic_id: uuid.UUID
    scope: str
    before: str
    after: dict[str, Any]
    changes: dict[str, Any] = field(default_factory=dict)
    action: str = ""


def by_hand_sql(alias: str) -> str:
    """Return the condition that the action in the row ``alias`` is part of a manual change or a merge. All such actions
    have audit events."""
    return f"coalesce({alias}.why->>'by', '') IN ('hand', '{REVISE}')"


def undone_sql(event: str) -> str:
    """Return the condition that a manual change was undone. ``event`` is the alias of the row of its audit event."""
    run = uuid_sql(f"{event}.after->>'run'")
    return f"""EXISTS (
        SELECT 1 FROM memory_forgetaction u
        WHERE u.topic_id = {event}.topic_id AND u.run_id = {run} AND u.state = 'undone'
    )"""


def fields_read(cursor: CursorWrapper, topics: Sequence[uuid.UUID]) -> dict[uuid.UUID, str]:
    """Return what ``FIELDS`` reads for locked topics: the states of their fields as JSON, keyed by topic id. One
    query."""
    cursor.execute(FIELDS, {"topics": list(topics)})
    return dict(cursor.fetchall())


def hand_run_write(
    cursor: CursorWrapper,
    actions: Sequence[HandAction],
    *,
    action: str,
    actor: str,
    reason: str,
    now: dt.datetime,
    event: str = BY_HAND,
    run: ForgetRun | None = None,
) -> ForgetRun:
    """Write the run and the audit events of a manual change, in the transaction of the change. Return the run. Three
    SQL statements. ``event`` is ``REVISE`` for changes by the search for duplicates. With ``run``, a locked run of
    other topics with the same action, the change becomes part of it."""
    named = [each.action or action for each in actions]
    scopes = [each.scope for each in actions]
    after = run.planned if run else 0
    if run is None:
        counts = {action: named.count(action)}
        run = hand_run_create(scopes, counts, planned=len(actions), at_once=True, actor=actor, now=now, event=event)
    else:
        run.scope = _scope_around([run.scope, *scopes])
        run.counts[action] += named.count(action)
        run.planned = run.applied = after + len(actions)
        run.save(update_fields=["scope", "counts", "planned", "applied"])
    parameters: dict[str, Any] = {
        "run": run.id,
        "after": after,
        "actions": named,
        "reason": reason,
        "now": now,
        "by": "hand" if event == BY_HAND else event,
        "topics": [each.topic_id for each in actions],
        "befores": [each.before for each in actions],
        "changes": [json.dumps(each.changes) for each in actions],
    }
    cursor.execute(_WRITE_SQL, parameters)
    hand_journal(cursor, run, {each.topic_id: json.dumps(each.after) for each in actions}, now=now)
    return run


def hand_run_create(
    scopes: Collection[str],
    counts: Mapping[str, int],
    *,
    planned: int,
    at_once: bool,
    actor: str,
    now: dt.datetime,
    event: str = BY_HAND,
) -> ForgetRun:
    """Create a run without actions over the lowest scope that contains all of ``scopes``: a planned one, or a finished
    one if its change is made ``at_once``. One SQL statement."""
    done: dict[str, Any] = {"applied": planned, "started_at": now, "finished_at": now}
    return ForgetRun.objects.create(
        id=uuid7_at(now),
        scope=_scope_around(scopes),
        event=event,
        actor=actor,
        dry_run=not at_once,
        status=ForgetRun.Status.DONE if at_once else ForgetRun.Status.PLANNED,
        policy_version=0,
        judged_at=now,
        created_at=now,
        counts=counts,
        planned=planned,
        **(done if at_once else {}),
    )


@dataclass(slots=True)
class HandPlan:
    """The action to plan for one topic: what changes besides the rung, or why the topic is skipped."""

    topic_id: uuid.UUID
    changes: dict[str, Any]
    skipped: str = ""


def hand_plan_write(
    cursor: CursorWrapper, run: ForgetRun, plans: Sequence[HandPlan], *, action: str, reason: str, rung: int | None
) -> list[tuple[Any, ...]]:
    """Write the actions of a saved run on locked topics. ``rung`` is the new rung; None keeps it. Return the columns of
    ``Action``, with JSON as text. One SQL statement."""
    parameters: dict[str, Any] = {
        "run": run.id,
        "action": action,
        "reason": reason,
        "rung": rung,
        "topics": [each.topic_id for each in plans],
        "changes": [json.dumps(each.changes) for each in plans],
        "notes": [each.skipped for each in plans],
    }
    cursor.execute(_PLAN_SQL, parameters)
    return list(cursor.fetchall())


def hand_reason_set(run: ForgetRun, reason: str) -> None:
    """Set the reason of all actions of a planned manual change. One SQL statement."""
    with connection.cursor() as cursor:
        cursor.execute(_REASON_SQL, [reason, run.id])


def hand_journal(
    cursor: CursorWrapper, run: ForgetRun, topics: Mapping[uuid.UUID, str | None], *, now: dt.datetime
) -> None:
    """Write an audit event for each of ``topics``, from its applied action. The value of ``topics`` is the new state as
    JSON; None takes it from the action. One SQL statement."""
    parameters: dict[str, Any] = {
        "run": run.id,
        "actor": run.approved_by or run.actor,
        "now": now,
        "topics": list(topics),
        "afters": list(topics.values()),
    }
    cursor.execute(_JOURNAL_SQL, parameters)


def undone_journal(cursor: CursorWrapper, actions: Sequence[int], *, actor: str, reason: str, now: dt.datetime) -> None:
    """Write an AuditEvent for each topic that the undo of a manual change restored. One SQL statement."""
    if actions:
        cursor.execute(_UNDONE_SQL, {"actions": list(actions), "actor": actor, "reason": reason, "now": now})


def _scope_around(scopes: Collection[str]) -> str:
    """Return the lowest scope that contains all of ``scopes``."""
    parts = [scope.strip("/").split("/") for scope in set(scopes)]
    common = [each[0] for each in takewhile(lambda level: len(set(level)) == 1, zip(*parts, strict=False))]
    return "/" + "/".join(common) if any(common) else ROOT
