"""Plans a run: stores its actions in one SQL statement, and decides whether the run may begin."""

import datetime as dt
import json
import uuid
from typing import Any

from django.db import transaction
from django.db.models import Q

from memory.core.errors import Conflict
from memory.core.ids import uuid7_at
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import scope_within
from memory.forgetting.breaker import hold_reason
from memory.forgetting.candidates import COUNTS, candidates_possible, candidates_sql, groups_find
from memory.forgetting.pause import paused_scopes
from memory.forgetting.soft_limit import Gate, gate_of
from memory.forgetting.topic_state import COMPACTED, COUNTED, STATE
from memory.models import ForgetRun
from memory.models.locks import Lock, lock_wait
from memory.models.statements import rows_read
from memory.notifications.outbox import occurrence_begin
from memory.policy.snapshot import Policies
from memory.stores.pending import after_commit, work_pending

# The counts of a run contain these names even if the number is 0.
_ALWAYS_COUNTED = ("summarized", "detached", "archived", "restored")

# Groups to compact come last. The place after each group stays free for the new topic. A group is planned entirely or
# not at all.
_WRITE_SQL = """
WITH candidates AS MATERIALIZED (
    {candidates}
), ranked AS (
    SELECT c.*, g.number, row_number() OVER (ORDER BY g.position NULLS FIRST, c.score, c.topic_id) AS rank
    FROM candidates c
    LEFT JOIN unnest(%(members)s::uuid[], %(numbers)s::int[]) WITH ORDINALITY AS g (id, number, position)
      ON g.id = c.topic_id AND c.action = 'archived'
), placed AS (
    SELECT *, rank + coalesce(number - 1, 0) AS place,
           CASE WHEN number IS NULL THEN rank ELSE max(rank) OVER (PARTITION BY number) END AS last
    FROM ranked
), actions (run_id, place, topic_id, action, from_rung, to_rung, changes, why, state, before, note) AS MATERIALIZED (
    SELECT %(run)s, p.place, p.topic_id, p.action, p.from_rung, p.to_rung,
           p.changes || CASE WHEN number IS NULL THEN '{{}}' ELSE jsonb_build_object('group', number) END,
           p.why, 'planned', {state}, ''
    FROM placed p JOIN memory_vitality v ON v.topic_id = p.topic_id JOIN memory_topic t ON t.id = p.topic_id
    WHERE p.last <= %(most)s
), written AS (
    INSERT INTO memory_forgetaction
        (run_id, place, topic_id, action, from_rung, to_rung, changes, why, state, before, note)
    SELECT * FROM actions
    RETURNING action, changes
)
SELECT (SELECT count(*) FROM candidates), (SELECT count(*) FROM written),
(SELECT coalesce(jsonb_object_agg(name, times), '{{}}') FROM (
    SELECT name, count(*) AS times FROM written a CROSS JOIN LATERAL {counted} AS x (name)
    WHERE name IS NOT NULL GROUP BY name
    UNION ALL
    SELECT 'compacted', count(DISTINCT changes->'group') FROM written HAVING count(changes->'group') > 0
) counted), (SELECT coalesce(jsonb_object_agg(policy, times), '{{}}') FROM (
    SELECT why->>'policy' AS policy, count(*) AS times FROM candidates
    WHERE action IN ('archived', 'released') GROUP BY 1
) leaving)
"""


class _Unchanged(Exception):
    """Raised to roll back the savepoint of a new plan, because a held run has the same plan."""


def run_plan(
    scope: str,
    *,
    event: str,
    dry_run: bool,
    actor: str,
    policies: Policies,
    judged_at: dt.datetime,
    now: dt.datetime,
    held_because: str = "",
) -> ForgetRun:
    """Store the plan of a run over ``scope``. Return the run, whose status is planned (a dry run), held, applying, or
    done if nothing is due. One transaction of about nine SQL statements. Raises ``Conflict`` if another run is applying
    in an overlapping scope.

    Partitions below their soft limit are skipped. A dry run is never held. Any other run is held if ``held_because``
    gives a reason, the policy of ``scope`` has mode ``review``, or the circuit breaker opens. If a held run of the
    scope has the same plan, the held run is returned. If ``judged_at`` is after ``now``, all days between them count as
    active.
    """
    if judged_at > now:
        policies = policies.projected(now)
    with transaction.atomic():
        planner_wait()
        held = None if dry_run else overlap_refuse(scope)
        run = ForgetRun(
            id=uuid7_at(now),
            scope=scope,
            event=event,
            dry_run=dry_run,
            actor=actor,
            status=ForgetRun.Status.PLANNED,
            policy_version=policies.effective(scope).version,
            policy_versions=policies.versions_touching(scope),
            judged_at=judged_at,
            created_at=now,
        )
        # A dry run ignores pauses and shows what would be due. ``begin_refuse`` checks pauses before its plan is
        # applied.
        gate = gate_of(policies, scope, event=event, paused=() if dry_run else paused_scopes(now))
        run.gate = gate.sentence
        if gate.closed:
            _finish_empty(run)
            return run
        try:
            with transaction.atomic():
                _plan_store(run, policies, gate, held, held_because)
        except _Unchanged:
            return ForgetRun.objects.get(scope=scope, status=ForgetRun.Status.HELD)
        return run


def run_is_due(policies: Policies, scope: str, *, event: str, now: dt.datetime) -> bool:
    """Return whether a run would change anything. At most five queries, usually one."""
    if not candidates_possible(policies, scope, event=event, now=now):
        return False
    gate = gate_of(policies, scope, event=event, paused=paused_scopes(now))
    if gate.closed:
        return False
    query = candidates_sql(policies, scope, event=event, now=now, gate=gate)
    if rows_read(f"SELECT EXISTS (SELECT 1 FROM ({query.text}) c)", query.bound.values)[0][0]:
        return True
    most = policies.knobs(scope).max_topics_for_forget_scan
    return bool(groups_find(policies, scope, event=event, now=now, gate=gate, most=most))


def _plan_store(run: ForgetRun, policies: Policies, gate: Gate, held: ForgetRun | None, held_because: str) -> None:
    """Save the run and its actions, and set its status. Raises ``_Unchanged`` if ``held`` has the same plan."""
    run.save(force_insert=True)
    due, run.planned, run.counts, leaving = _actions_write(run, policies, gate)
    run.left_over = due - run.planned
    if not run.planned:
        _finish_empty(run)
        if not run.dry_run:
            _held_replace(held, run)
        return
    if not run.dry_run:
        run.held_because = held_because or hold_reason(run, policies, leaving)
        run.status = ForgetRun.Status.HELD if run.held_because else ForgetRun.Status.APPLYING
        run.started_at = None if run.held_because else run.created_at
        _held_replace(held, run)
        if not run.held_because:
            # If this process dies, upkeep continues the run.
            after_commit(work_pending)
        else:
            occurrence_begin(
                "run_held",
                str(run.id),
                text=f"A run over {run.scope} waits for approval. {run.held_because}",
                page=f"/runs/{run.id}/",
                scope=run.scope,
                now=run.created_at,
            )
    run.save()


def _actions_write(run: ForgetRun, policies: Policies, gate: Gate) -> tuple[int, int, dict[str, int], dict[str, int]]:
    """Store the actions. Return four counts: the due topics, the stored actions, the stored actions of each name, and
    the due topics to archive or release, keyed by the path of their policy."""
    most = policies.knobs(run.scope).max_topics_for_forget_scan
    groups = groups_find(policies, run.scope, event=run.event, now=run.judged_at, gate=gate, most=most)
    members = [topic_id for group in groups for topic_id in group]
    query = candidates_sql(policies, run.scope, event=run.event, now=run.judged_at, gate=gate, grouped=members)
    sql = _WRITE_SQL.format(candidates=query.text, state=STATE, counted=COUNTED)
    parameters: dict[str, Any] = {
        "run": run.id,
        "most": most,
        "members": members,
        "numbers": [number for number, group in enumerate(groups, start=1) for _topic in group],
    }
    due, planned, counted, leaving = rows_read(sql, {**query.bound.values, **parameters})[0]
    found: dict[str, int] = json.loads(counted)
    counts = {name: found.get(name, 0) for name in _ALWAYS_COUNTED}
    counts |= {name: found[name] for name in (*COUNTS, COMPACTED) if name in found}
    return due, planned, counts, json.loads(leaving)


_SAME_SQL = """
SELECT NOT EXISTS (
    (SELECT topic_id, action, to_rung, changes FROM memory_forgetaction WHERE run_id = %(one)s
     EXCEPT SELECT topic_id, action, to_rung, changes FROM memory_forgetaction WHERE run_id = %(other)s)
    UNION ALL
    (SELECT topic_id, action, to_rung, changes FROM memory_forgetaction WHERE run_id = %(other)s
     EXCEPT SELECT topic_id, action, to_rung, changes FROM memory_forgetaction WHERE run_id = %(one)s)
)
"""


def _held_replace(held: ForgetRun | None, run: ForgetRun) -> None:
    """Replace the held plan of the same scope with the new one. Raises ``_Unchanged`` if the plans are equal."""
    if held is None:
        return
    alike = run.held_because == held.held_because and run.policy_versions == held.policy_versions
    if alike and rows_read(_SAME_SQL, {"one": run.id, "other": held.id})[0][0]:
        raise _Unchanged
    held.status, held.finished_at = ForgetRun.Status.FAILED, run.created_at
    held.failure = "The run was planned again before it was approved. Nothing was changed."
    held.save(update_fields=["status", "finished_at", "failure"])


def _finish_empty(run: ForgetRun) -> None:
    run.counts = run.counts or dict.fromkeys(_ALWAYS_COUNTED, 0)
    if not run.dry_run:
        run.status = ForgetRun.Status.DONE
        run.started_at = run.finished_at = run.created_at
    run.save()


def planner_wait() -> None:
    """Take the planner's lock until the transaction ends, so that no other process plans or begins a run. One query."""
    lock_wait(Lock.PLAN_RUN)


def overlap_refuse(scope: str, *, but: uuid.UUID | None = None) -> ForgetRun | None:
    """Raise ``Conflict`` if a run other than ``but`` is applying at, above or below ``scope``. Return the held run of
    ``scope``, or None. One query. The caller must have the planner's lock."""
    held = None
    wanted = Q(status=ForgetRun.Status.APPLYING) | Q(status=ForgetRun.Status.HELD, scope=scope)
    for other in ForgetRun.objects.filter(wanted):
        if other.status == ForgetRun.Status.HELD:
            held = other
        elif other.id != but and (scope_within(other.scope, scope) or scope_within(scope, other.scope)):
            raise Conflict(
                f"Run {other.id} is applying in {other.scope}. Wait until it is done.", code=ProblemCode.BUSY
            )
    return held
