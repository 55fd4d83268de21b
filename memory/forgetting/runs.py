"""Starts, applies, approves and undoes runs, and returns their results."""

import datetime as dt
import time
import uuid
from collections.abc import Collection

from django.db import connection, transaction

from memory.access.principal import Principal
from memory.core.callbacks import Enqueue
from memory.core.errors import Conflict, NotVisible, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.rules import EVENTS
from memory.forgetting.apply import actions_skip, run_step
from memory.forgetting.manual_actions import topics_pin
from memory.forgetting.manual_runs import BY_HAND, MERGED, TOOK_IN, hand_reason_set
from memory.forgetting.plan import planner_wait, run_plan
from memory.forgetting.previews import BEGUN, begin_refuse, plan_compare
from memory.forgetting.undo import Undone, run_revert
from memory.models import AuditEvent, ForgetAction, ForgetRun
from memory.notifications.outbox import occurrence_note
from memory.policy.effective import policies_current
from memory.stores.pending import after_commit, work_pending

# A request spends at most this many seconds on a run. The worker does the rest.
REQUEST_SECONDS = 8.0


def run_start(
    scope: str,
    *,
    event: str,
    dry_run: bool,
    principal: Principal,
    now: dt.datetime,
    judged_at: dt.datetime | None = None,
    held_because: str = "",
    enqueue: Enqueue | None = None,
) -> ForgetRun:
    """Plan a run over ``scope``, and apply the run unless it is a dry run or held. A reason in ``held_because`` holds
    the run. After ``REQUEST_SECONDS``, the rest of the run is left to the worker.

    Raises ``NotAllowed`` without an operator key, ``ValueRefused`` for an unknown event or for ``judged_at`` without a
    dry run, and ``Conflict`` if another run is applying in an overlapping scope.
    """
    principal.require("operator")
    if event not in EVENTS:
        raise ValueRefused(f"Event {event!r} does not exist. Use one of {', '.join(EVENTS)}.", member="event")
    if judged_at is not None and not dry_run:
        raise ValueRefused(
            "`now` requires a dry run, because nothing can be forgotten at another time.",
            code=ProblemCode.CONTRADICTORY_REQUEST,
            member="now",
        )
    run = run_plan(
        scope,
        event=event,
        dry_run=dry_run,
        actor=principal.actor,
        policies=policies_current(),
        judged_at=judged_at or now,
        now=now,
        held_because=held_because,
    )
    if run.status == ForgetRun.Status.APPLYING:
        return run_work(run.id, now=now, seconds=REQUEST_SECONDS, enqueue=enqueue)
    return run


def run_work(run_id: uuid.UUID, *, now: dt.datetime, seconds: float, enqueue: Enqueue | None = None) -> ForgetRun:
    """Apply batches of a run until it is done or ``seconds`` have passed, and return the run. ``enqueue`` is called for
    an unfinished run.

    Safe to call from several processes at once, and again after a kill. If a step fails twice with the same error, the
    run ends as failed. A failed run can be undone.
    """
    until = time.monotonic() + seconds
    more = True
    while more and time.monotonic() < until:
        try:
            more = run_step(run_id, now=now, until=until)
        except Exception as problem:
            _failure_note(run_id, problem, now)
            raise
    if more and enqueue is not None:
        enqueue(run_id)
    return ForgetRun.objects.get(pk=run_id)


def _failure_note(run_id: uuid.UUID, problem: Exception, now: dt.datetime) -> None:
    reason = (str(problem).strip().splitlines() or ["no reason"])[0]
    with transaction.atomic():
        run = ForgetRun.objects.select_for_update(no_key=True).get(pk=run_id)
        failure = f"Failed after {run.applied + run.skipped} actions: {reason}"
        if run.status == ForgetRun.Status.APPLYING:
            if run.failure == failure:
                run.status, run.finished_at = ForgetRun.Status.FAILED, now
                occurrence_note(
                    "job_failed",
                    str(run.pk),
                    text=f"A run over {run.scope} failed after {run.applied:,} changes, which can be undone.",
                    page=f"/runs/{run.pk}/",
                    scope=run.scope,
                    now=now,
                )
            run.failure = failure
            run.save(update_fields=["status", "finished_at", "failure"])


def runs_open() -> list[uuid.UUID]:
    """Return the runs that are applying, oldest first. One query."""
    runs = ForgetRun.objects.filter(status=ForgetRun.Status.APPLYING).order_by("created_at")
    return list(runs.values_list("id", flat=True))


def run_begin(
    run_id: uuid.UUID,
    status: ForgetRun.Status,
    *,
    principal: Principal,
    reason: str,
    now: dt.datetime,
    enqueue: Enqueue | None = None,
    seconds: float | None = None,
) -> ForgetRun:
    """Apply the plan of a dry run (``status`` PLANNED) exactly, or approve and apply a held run (HELD).

    If topics have changed since the plan was made, a held run or a manual change skips them, and a dry run raises
    ``Conflict``. Also
    raises ``NotVisible`` and ``NotAllowed``, and ``Conflict`` if ``begin_refuse`` refuses the run.
    """
    run_get(run_id, principal=principal)
    principal.require("operator")
    with transaction.atomic():
        planner_wait()
        run = ForgetRun.objects.select_for_update(no_key=True).get(pk=run_id)
        begin_refuse(run, status=status)
        if run.event == BY_HAND:
            hand_reason_set(run, reason)
        elif status == ForgetRun.Status.PLANNED:
            _drift_refuse(run)
        run.status, run.started_at, run.approved_by = ForgetRun.Status.APPLYING, now, principal.actor
        run.save(update_fields=["status", "started_at", "approved_by"])
        # If this process dies, upkeep continues the run.
        after_commit(work_pending)
        AuditEvent.objects.create(
            at=now,
            actor=principal.actor,
            action=f"run_{BEGUN[status]}",
            scope=run.scope,
            reason=reason,
            after={"run": str(run.id), "counts": run.counts},
        )
    return run_work(run.id, now=now, seconds=REQUEST_SECONDS if seconds is None else seconds, enqueue=enqueue)


def run_undo(
    run_id: uuid.UUID, *, principal: Principal, reason: str, now: dt.datetime, only: Collection[uuid.UUID] | None = None
) -> Undone:
    """Undo a run: see ``run_revert``. Raises ``Conflict``, ``NotVisible`` and ``NotAllowed``."""
    run_get(run_id, principal=principal)
    principal.require("operator")
    return run_revert(run_id, actor=principal.actor, reason=reason, now=now, only=only)


def run_keep(run_id: uuid.UUID, topic_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> ForgetRun:
    """Take a topic out of a plan that is not applied yet, and pin it, so that later runs skip it too. Return the run of
    the pin. About fifteen SQL statements. Raises ``NotVisible``, ``NotAllowed``, and ``Conflict`` if the run is no
    longer a plan or does not contain the topic."""
    run_get(run_id, principal=principal)
    principal.require("operator")
    with transaction.atomic(), connection.cursor() as cursor:
        run = ForgetRun.objects.select_for_update(no_key=True).get(pk=run_id)
        action = run.actions.filter(topic=topic_id, state=ForgetAction.State.PLANNED).first()
        if action is None or run.status not in (ForgetRun.Status.PLANNED, ForgetRun.Status.HELD):
            raise Conflict(f"Run {run_id} does not plan to change memory {topic_id}.")
        kept = topics_pin([topic_id], pinned=True, principal=principal, reason=f"kept in run {run_id}", now=now)
        actions_skip(cursor, run, {action.pk: "It was pinned, so that it is kept."}, now=now)
        run.save(update_fields=["counts", "skipped"])
    return kept


def run_get(run_id: uuid.UUID, *, principal: Principal) -> ForgetRun:
    """Return one run. One query. Raises ``NotVisible`` if the run does not exist or is outside the caller's scope."""
    run = ForgetRun.objects.filter(pk=run_id).first()
    if run is None or not principal.sees(run.scope):
        raise NotVisible(f"Run {run_id} does not exist.")
    return run


def _drift_refuse(run: ForgetRun) -> None:
    changed = plan_compare(run)
    if changed.left:
        first = changed.named[0]
        others = f" So did {changed.left - 1:,} more." if changed.left > 1 else ""
        raise Conflict(
            f"Memory {first['topic_id']} changed since run {run.id} was planned: {first['why']}{others} Plan it anew.",
            code=ProblemCode.CHANGED_MEANWHILE,
        )


def run_results(run: ForgetRun) -> list[str]:
    """Return the applied or planned actions of a run as ``archived:<topic_id>``, in order. One query."""
    states = [ForgetAction.State.APPLIED]
    if run.status not in (ForgetRun.Status.FAILED, ForgetRun.Status.UNDONE, ForgetRun.Status.REFUSED):
        # The remaining actions of a failed or refused run are never applied.
        states.append(ForgetAction.State.PLANNED)
    if run.status == ForgetRun.Status.UNDONE:
        states += [ForgetAction.State.UNDONE, ForgetAction.State.CONFLICT]
    rows = run.actions.filter(state__in=states).order_by("place").values_list("action", "topic_id", "changes")
    results = []
    for action, topic_id, changes in rows:
        if action == TOOK_IN:
            # This topic is listed with the topic that was merged into it.
            continue
        results.append(f"{action}:{topic_id}" + (f"->:{changes['into']}" if action == MERGED else ""))
        if "pinned" in changes and action not in ("pinned", "unpinned"):
            results.append(f"{'pinned' if changes['pinned'] else 'unpinned'}:{topic_id}")
        if "categories" in changes and action != "categorized":
            results.append(f"categorized:{topic_id}")
    return results
