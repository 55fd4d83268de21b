"""Refuses held runs: on request, together with the policies that caused them, or because their plan is out of date."""

import datetime as dt
import uuid
from typing import Any

from django.db import transaction

from memory.access.principal import SYSTEM, Principal
from memory.core.errors import Conflict
from memory.forgetting.plan import planner_wait
from memory.forgetting.run_list import versions_before
from memory.forgetting.runs import run_get
from memory.models import AuditEvent, ForgetRun
from memory.notifications.outbox import occurrences_end
from memory.policy.effective import policies_current
from memory.policy.save import policy_rollback

OUTDATED = "The policy has changed since the run was planned."


def run_refuse(
    run_id: uuid.UUID, *, principal: Principal, reason: str, now: dt.datetime, roll_back: bool = False
) -> ForgetRun:
    """Refuse a held run, so that it no longer waits and cannot be approved. No memory changes. With ``roll_back``, the
    policies that are new since the previous run are rolled back in the same transaction (see ``policies_new``).

    About eight queries, and ten for each policy. Raises ``NotVisible`` and ``NotAllowed``, also for a policy outside
    the caller's scope, and ``Conflict`` if the run does not wait or there is no policy to roll back.
    """
    run_get(run_id, principal=principal)
    principal.require("operator")
    with transaction.atomic():
        planner_wait()
        run = ForgetRun.objects.select_for_update(no_key=True).get(pk=run_id)
        if run.status != ForgetRun.Status.HELD:
            raise Conflict(f"Run {run.id} is {run.status}, not held, so it cannot be refused.")
        targets = policies_new(run) if roll_back else {}
        if roll_back and not targets:
            raise Conflict(
                f"No policy has changed between run {run.id} and the run before it, so there is nothing to roll back."
            )
        for scope, number in targets.items():
            policy_rollback(
                principal.scope_chosen(scope),
                to=number,
                author=principal.actor,
                reason=reason or f"Run {run.id} was refused.",
                now=now,
            )
        _end(run, actor=principal.actor, reason=reason, now=now, rolled_back=targets)
    return run


def policies_new(run: ForgetRun) -> dict[str, int]:
    """Return the policies that this run was the first to use in their present version: path, and the version that was
    in force before, 0 for none. Two queries."""
    before, newest = versions_before(run), policies_current().numbers
    return {
        path: before.get(path, number - 1)
        for path, number in run.policy_versions.items()
        if before.get(path) != number and newest.get(path) == number
    }


def outdated_refuse(*, now: dt.datetime) -> int:
    """Refuse the held runs whose policies have changed, because they cannot be approved any more. Return their number.
    Upkeep calls this. One query if no run waits, otherwise about six for each run."""
    refused = 0
    for run_id in ForgetRun.objects.filter(status=ForgetRun.Status.HELD).values_list("pk", flat=True):
        with transaction.atomic():
            planner_wait()
            run = ForgetRun.objects.select_for_update(no_key=True).get(pk=run_id)
            changed = run.policy_versions != policies_current().versions_touching(run.scope)
            if run.status == ForgetRun.Status.HELD and changed:
                _end(run, actor=SYSTEM.actor, reason=OUTDATED, now=now)
                refused += 1
    return refused


def _end(
    run: ForgetRun, *, actor: str, reason: str, now: dt.datetime, rolled_back: dict[str, int] | None = None
) -> None:
    run.status, run.finished_at = ForgetRun.Status.REFUSED, now
    run.save(update_fields=["status", "finished_at"])
    after: dict[str, Any] = {"run": str(run.id), "counts": run.counts}
    if rolled_back:
        after["rolled_back"] = rolled_back
    AuditEvent.objects.create(at=now, actor=actor, action="run_refused", scope=run.scope, reason=reason, after=after)
    occurrences_end("run_held", {str(run.pk): f"The run over {run.scope} was refused."}, now=now)
