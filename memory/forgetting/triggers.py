"""Wake-ups: stored events that start a run if topics are due. Requests store wake-ups; only the worker answers them.

There is at most one wake-up per scope and type of event. The worker groups them by the policy that governs each scope.
"""

import datetime as dt
import time
import uuid
from collections import defaultdict
from typing import NamedTuple

import structlog
from django.db import DatabaseError, connection, transaction

from memory.access.principal import SYSTEM
from memory.core.errors import Conflict, ValueRefused
from memory.core.scopes import scope_normalize
from memory.forgetting.plan import run_is_due, run_plan
from memory.forgetting.runs import run_work, runs_open
from memory.forgetting.token_usage import pressure_due
from memory.models import ForgetRun, Scope
from memory.models.locks import Lock, lock_try
from memory.models.statements import rows_read
from memory.policy.effective import policies_current
from memory.policy.snapshot import Policies

logger = structlog.get_logger(__name__)

# The order in which events are answered. Memory pressure comes first, because the soft limit does not apply to it.
_ORDER = ("memory_pressure", "ingest_complete", "query_complete")

# The rows are not locked, so that writers in their scopes need not wait until the runs are planned.
_HAPPENED_SQL = """
SELECT w.id, w.times, s.path, w.event FROM memory_wakeup w JOIN memory_scope s ON s.id = w.scope_id ORDER BY w.id
"""

# A wake-up stays if its event happened again, which changes ``times``, or if a writer has locked it.
_ANSWERED_SQL = """
WITH answered AS MATERIALIZED (
    SELECT w.id FROM memory_wakeup w
    JOIN unnest(%(ids)s::bigint[], %(times)s::bigint[]) AS d (id, times) ON d.id = w.id AND d.times = w.times
    FOR UPDATE OF w SKIP LOCKED
)
DELETE FROM memory_wakeup w USING answered WHERE w.id = answered.id
"""

_RAISE_SQL = """
INSERT INTO memory_wakeup (scope_id, event, first_at, last_at, times) VALUES (%(scope)s, %(event)s, %(now)s, %(now)s, 1)
ON CONFLICT (scope_id, event) DO UPDATE SET last_at = excluded.last_at, times = memory_wakeup.times + 1
"""


def event_raise(scope: str, *, event: str, now: dt.datetime) -> None:
    """Store a wake-up. At most three queries. Raises ``ValueRefused`` for events other than ``memory_pressure``."""
    if event != "memory_pressure":
        raise ValueRefused(f"Only memory_pressure can be raised by hand, not {event!r}.", member="event")
    row, _created = Scope.objects.get_or_create(path=scope_normalize(scope))
    with connection.cursor() as cursor:
        cursor.execute(_RAISE_SQL, {"scope": row.pk, "event": event, "now": now})


def wake_ups_answer(*, now: dt.datetime, seconds: float) -> int:
    """Answer the pending wake-ups: plan and apply a run wherever topics are due. Return the number of planned runs.

    Unfinished runs are continued first. For each scope, one transaction plans the run and deletes the wake-ups, so a
    failure does not affect other scopes. If another run is applying in an overlapping scope, the wake-ups stay.
    ``seconds`` is the time for all runs together.
    """
    until = time.monotonic() + seconds
    for run_id in runs_open():
        _work(run_id, now=now, until=until)
    policies = policies_current()
    by_scope: dict[str, list[_WakeUp]] = defaultdict(list)
    for row in rows_read(_HAPPENED_SQL):
        wake_up = _WakeUp(*row)
        # Memory pressure is reported for exactly one scope. Other events concern the scope of the governing policy.
        pressure = wake_up.event == "memory_pressure"
        by_scope[wake_up.path if pressure else policies.node_of(wake_up.path)].append(wake_up)
    planned = 0
    for scope, wake_ups in sorted(by_scope.items()):
        try:
            run = _answer(scope, wake_ups, policies, now)
        except Conflict as problem:
            # The wake-ups stay, because the other run may have been planned before the events or for a smaller scope.
            logger.info("wake_up_left", scope=scope, why=problem.sentence)
            continue
        except DatabaseError as problem:
            logger.warning("wake_up_failed", scope=scope, problem=str(problem))
            continue
        if run is not None:
            planned += 1
            _work(run.id, now=now, until=until)
    return planned


class _WakeUp(NamedTuple):
    """A wake-up as it was read. If ``times`` changes later, the event happened again."""

    id: int
    times: int
    path: str
    event: str


def _answer(scope: str, wake_ups: list[_WakeUp], policies: Policies, now: dt.datetime) -> ForgetRun | None:
    """Plan a run and delete its wake-ups. Return None if nothing is due or another worker is answering."""
    with transaction.atomic(), connection.cursor() as cursor:
        if not lock_try(Lock.ANSWER_WAKE_UPS):
            return None
        cursor.execute("SELECT id FROM memory_wakeup WHERE id = ANY(%s)", [[wake_up.id for wake_up in wake_ups]])
        present = {row[0] for row in cursor.fetchall()}
        events = {wake_up.event for wake_up in wake_ups if wake_up.id in present}
        if "ingest_complete" in events and pressure_due(policies, scope):
            events.add("memory_pressure")
        run = None
        for event in (event for event in _ORDER if event in events):
            run = _plan_one(scope, event, policies, now)
            if run is not None:
                # A second run over the same topics would conflict. What this run leaves is done at the next event.
                break
        cursor.execute(_ANSWERED_SQL, {"ids": [w.id for w in wake_ups], "times": [w.times for w in wake_ups]})
        return run


def _work(run_id: uuid.UUID, *, now: dt.datetime, until: float) -> None:
    try:
        run_work(run_id, now=now, seconds=until - time.monotonic())
    except Exception as problem:
        # The run records the error; the other wake-ups are still answered.
        logger.warning("run_step_failed", run=str(run_id), problem=str(problem))


def _plan_one(node: str, event: str, policies: Policies, now: dt.datetime) -> ForgetRun | None:
    if not run_is_due(policies, node, event=event, now=now):
        return None
    held = ForgetRun.objects.filter(scope=node, status=ForgetRun.Status.HELD).first()
    if held is not None and held.policy_versions == policies.versions_touching(node):
        # A plan for this scope already waits for an operator. The schedule renews this plan, so events need not.
        return None
    with transaction.atomic():
        return run_plan(node, event=event, dry_run=False, actor=SYSTEM.actor, policies=policies, judged_at=now, now=now)


def scheduled_run(scope: str, *, now: dt.datetime, seconds: float) -> ForgetRun | None:
    """Plan, apply and return the scheduled run over ``scope``, even if nothing is due. Return None if the mode is off
    or if another run is applying in an overlapping scope."""
    policies = policies_current()
    if policies.knobs(scope).mode == "off":
        return None
    try:
        run = run_plan(
            scope, event="cron", dry_run=False, actor=SYSTEM.actor, policies=policies, judged_at=now, now=now
        )
    except Conflict as problem:
        logger.info("schedule_left", scope=scope, why=problem.sentence)
        return None
    if run.status == ForgetRun.Status.APPLYING:
        return run_work(run.id, now=now, seconds=seconds)
    return run
