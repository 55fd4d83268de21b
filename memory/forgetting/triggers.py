"""The reasoner: answers what happened in a scope with a run, if there is anything to do. It never runs in a request.

An event leaves a wake-up, one per scope and event. The worker takes them up, finds the policy that governs each scope,
and asks once for that policy's whole ground: a thousand users who wrote something are one question.
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
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import scope_normalize
from memory.forgetting.plan import run_is_due, run_plan
from memory.forgetting.runs import run_work, runs_open
from memory.forgetting.token_usage import pressure_due
from memory.models import ForgetRun, Scope
from memory.models.locks import Lock, lock_try
from memory.policy.effective import policies_current
from memory.policy.snapshot import Policies

logger = structlog.get_logger(__name__)

# In this order: pressure first, since it is not gated.
_ORDER = ("memory_pressure", "ingest_complete", "query_complete")


# Without a lock on the rows: whoever writes in these scopes need not wait until the runs are planned.
_HAPPENED = """
SELECT w.id, w.times, s.path, w.event FROM memory_wakeup w JOIN memory_scope s ON s.id = w.scope_id ORDER BY w.id
"""

# What happened again meanwhile has another number by now, and stays; so does what is happening at this moment.
_ANSWERED = """
WITH answered AS MATERIALIZED (
    SELECT w.id FROM memory_wakeup w
    JOIN unnest(%(ids)s::bigint[], %(times)s::bigint[]) AS d (id, times) ON d.id = w.id AND d.times = w.times
    FOR UPDATE OF w SKIP LOCKED
)
DELETE FROM memory_wakeup w USING answered WHERE w.id = answered.id
"""

_RAISE = """
INSERT INTO memory_wakeup (scope_id, event, first_at, last_at, times) VALUES (%(scope)s, %(event)s, %(now)s, %(now)s, 1)
ON CONFLICT (scope_id, event) DO UPDATE SET last_at = excluded.last_at, times = memory_wakeup.times + 1
"""


def event_raise(scope: str, *, event: str, now: dt.datetime) -> None:
    """Leave word that ``event`` happened in ``scope``; the worker answers. At most three queries.

    Raises ``ValueRefused`` for an event that nobody may raise by hand.
    """
    if event != "memory_pressure":
        raise ValueRefused(
            f"The only event that can be raised is memory_pressure; {event!r} is not it.",
            code=ProblemCode.UNKNOWN_EVENT,
        )
    place, _made = Scope.objects.get_or_create(path=scope_normalize(scope))
    with connection.cursor() as cursor:
        cursor.execute(_RAISE, {"scope": place.pk, "event": event, "now": now})


def wake_ups_answer(*, now: dt.datetime, seconds: float) -> int:
    """Take up what happened and run where something is due; returns the number of runs that were planned.

    Each ground is a transaction of its own: its wake-ups are gone with the commit that plans its run, so that a kill
    loses none and no two workers answer the same, and a ground that cannot be planned leaves the others alone. Where
    another run is in the way they stay, and are answered after it. With nothing due, a governed ground costs a few
    queries. Runs that were left applying are worked on first; ``seconds`` are for all runs together, and what is left
    after them stays applying.
    """
    until = time.monotonic() + seconds
    for run_id in runs_open():
        _work(run_id, now=now, until=until)
    policies = policies_current()
    grounds: dict[str, list[_Happened]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_HAPPENED)
        for row in cursor.fetchall():
            happened = _Happened(*row)
            grounds[_ground_asked(happened.path, happened.event, policies)].append(happened)
    planned = 0
    for ground, of_ground in sorted(grounds.items()):
        try:
            run = _ground_answer(ground, of_ground, policies, now)
        except Conflict as problem:
            # That run may have been planned before this happened, or for less than this ground.
            logger.info("wake_up_left", scope=ground, why=problem.sentence)
            continue
        except DatabaseError as problem:
            logger.warning("wake_up_failed", scope=ground, problem=str(problem))
            continue
        if run is not None:
            planned += 1
            _work(run.id, now=now, until=until)
    return planned


class _Happened(NamedTuple):
    """One wake-up as it was read; ``times`` tells whether it has been renewed since."""

    id: int
    times: int
    path: str
    event: str


def _ground_answer(ground: str, happened: list[_Happened], policies: Policies, now: dt.datetime) -> ForgetRun | None:
    """Plan the run that answers what happened on one ground, and take the wake-ups away. None if nothing is due."""
    with transaction.atomic(), connection.cursor() as cursor:
        if not lock_try(Lock.ANSWER_WAKE_UPS):
            return None
        cursor.execute("SELECT id FROM memory_wakeup WHERE id = ANY(%s)", [[each.id for each in happened]])
        present = {row[0] for row in cursor.fetchall()}
        events = {each.event for each in happened if each.id in present}
        if "ingest_complete" in events and pressure_due(policies, ground):
            events.add("memory_pressure")
        run = None
        for event in (event for event in _ORDER if event in events):
            run = _plan_one(ground, event, policies, now)
            if run is not None:
                # What this run does not do now is done at the next event: two runs of one ground would be in each
                # other's way.
                break
        cursor.execute(_ANSWERED, {"ids": [each.id for each in happened], "times": [each.times for each in happened]})
        return run


def _work(run_id: uuid.UUID, *, now: dt.datetime, until: float) -> None:
    try:
        run_work(run_id, now=now, seconds=until - time.monotonic())
    except Exception as problem:
        # It is written down with the run; what else has happened is answered all the same.
        logger.warning("run_step_failed", run=str(run_id), problem=str(problem))


def _ground_asked(path: str, event: str, policies: Policies) -> str:
    """Return the scope that is asked about when ``event`` has happened at ``path``.

    Pressure is raised for a scope by somebody who may speak for that scope, so it asks there and no further. Everything
    else asks for the whole ground of the policy that governs it.
    """
    return path if event == "memory_pressure" else policies.node_of(path)


def _plan_one(node: str, event: str, policies: Policies, now: dt.datetime) -> ForgetRun | None:
    if not run_is_due(policies, node, event=event, now=now):
        return None
    waiting = ForgetRun.objects.filter(scope=node, status=ForgetRun.Status.HELD).first()
    if waiting is not None and waiting.policy_versions == policies.versions_touching(node):
        # A plan for this place waits for an operator. The schedule plans it anew once a day; each event need not.
        return None
    with transaction.atomic():
        return run_plan(node, event=event, dry_run=False, actor=SYSTEM.actor, policies=policies, judged_at=now, now=now)


def scheduled_run(scope: str, *, now: dt.datetime, seconds: float) -> ForgetRun | None:
    """Make the run of the schedule over ``scope``, and leave a record even if nothing is due.

    None if a run is at work there already, which does the same.
    """
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
