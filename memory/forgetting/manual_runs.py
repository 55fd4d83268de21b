"""Journals manual changes of topics as runs, so that they can be undone like any run.

The run has the event ``by_hand`` and the status done, and one action per topic with the states before and after.
"""

import datetime as dt
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

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
# The actions of a merge: on the topic that is merged into the other, and on the topic that stays.
MERGED, TOOK_IN = "merged", "took_in"

_WRITE_SQL = f"""
WITH now_states AS (
    SELECT t.id, {STATE} AS state FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id
    WHERE t.id = ANY(%(topics)s)
), now_fields AS ({FIELDS}), actions (run_id, place, topic_id, action, from_rung, to_rung, changes, why, state,
      before, after, note, at) AS MATERIALIZED (
    SELECT %(run)s, d.place, d.id, d.action, (d.before->>'rung')::int,
           (s.state->>'rung')::int, d.changes,
           jsonb_build_object('by', %(by)s::text, 'reason', %(reason)s::text), 'applied',
           d.before || CASE WHEN d.fields IS NULL THEN '{{}}' ELSE jsonb_build_object('fields', d.fields) END,
           s.state || CASE WHEN d.fields IS NULL THEN '{{}}' ELSE jsonb_build_object('fields', n.fields) END, '',
           %(now)s
    FROM unnest(
             %(topics)s::uuid[], %(actions)s::text[], %(befores)s::jsonb[], %(fields)s::jsonb[], %(changes)s::jsonb[]
         ) WITH ORDINALITY AS d (id, action, before, fields, changes, place)
    JOIN now_states s ON s.id = d.id LEFT JOIN now_fields n ON n.topic_id = d.id
)
INSERT INTO memory_forgetaction
    (run_id, place, topic_id, action, from_rung, to_rung, changes, why, state, before, after, note, at)
SELECT * FROM actions
"""

# One audit event per topic.
_JOURNAL_SQL = f"""
INSERT INTO memory_auditevent (at, actor, action, topic_id, scope, reason, before, after)
SELECT %(now)s, %(actor)s, d.action, d.id, d.scope, %(reason)s,
       jsonb_build_object(
           'rung', {rung_label_sql("(d.before->>'rung')::int")}, 'released', d.before->>'released_at' IS NOT NULL,
           'pinned', d.before->'pinned', 'salience', d.before->'salience', 'reinforced_at', d.before->'reinforced_at'),
       d.after || jsonb_build_object('run', %(run)s::uuid)
FROM unnest(%(topics)s::uuid[], %(scopes)s::text[], %(actions)s::text[], %(befores)s::jsonb[], %(afters)s::jsonb[])
     WITH ORDINALITY AS d (id, scope, action, before, after, place)
ORDER BY d.place
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
    """A change of one topic. ``before`` is the earlier state, and ``after`` is the new state for the audit event.
    ``changes`` is what changed besides the rung. ``action`` is empty if it equals the action of the run."""

    topic_id: uuid.UUID
    scope: str
    before: str
    after: dict[str, Any]
    fields: str | None = None
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
) -> ForgetRun:
    """Write the run and the audit events of a manual change, in the transaction of the change. Return the run. Three
    SQL statements. ``event`` is ``REVISE`` for changes by the search for duplicates."""
    named = [each.action or action for each in actions]
    run = ForgetRun.objects.create(
        id=uuid7_at(now),
        scope=_scope_around([each.scope for each in actions]),
        event=event,
        actor=actor,
        status=ForgetRun.Status.DONE,
        policy_version=0,
        judged_at=now,
        created_at=now,
        started_at=now,
        finished_at=now,
        counts={action: named.count(action)},
        planned=len(actions),
        applied=len(actions),
    )
    parameters: dict[str, Any] = {
        "run": run.id,
        "actor": actor,
        "actions": named,
        "reason": reason,
        "now": now,
        "by": "hand" if event == BY_HAND else event,
        "topics": [each.topic_id for each in actions],
        "scopes": [each.scope for each in actions],
        "befores": [each.before for each in actions],
        "afters": [json.dumps(each.after) for each in actions],
        "fields": [each.fields for each in actions],
        "changes": [json.dumps(each.changes) for each in actions],
    }
    cursor.execute(_WRITE_SQL, parameters)
    cursor.execute(_JOURNAL_SQL, parameters)
    return run


def undone_journal(cursor: CursorWrapper, actions: Sequence[int], *, actor: str, reason: str, now: dt.datetime) -> None:
    """Write an AuditEvent for each topic that the undo of a manual change restored. One SQL statement."""
    if actions:
        cursor.execute(_UNDONE_SQL, {"actions": list(actions), "actor": actor, "reason": reason, "now": now})


def _scope_around(scopes: Sequence[str]) -> str:
    """Return the lowest scope that contains all of ``scopes``."""
    parts = [scope.strip("/").split("/") for scope in set(scopes)]
    common = [each[0] for each in takewhile(lambda level: len(set(level)) == 1, zip(*parts, strict=False))]
    return "/" + "/".join(common) if any(common) else ROOT
