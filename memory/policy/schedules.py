"""One schedule of the job queue for every scope with a policy of its own, and one for the root."""

import ast
import datetime as dt
import hashlib
from typing import Any

from django_q.models import Schedule

from memory.core.scopes import ROOT
from memory.policy.cron import cron_next
from memory.policy.effective import policies_current
from memory.policy.snapshot import Policies

FUNCTION = "memory.jobs.tasks.forget_scheduled"
# How many times a schedule still fires: without end, or not at all while the mode is off.
_FOR_EVER, _NEVER = -1, 0


def cron_wanted(policies: Policies) -> dict[str, tuple[str, bool]]:
    """Return the cron line of every policy, by scope, and whether it rests because the mode is off."""
    return {node.scope: (node.knobs.cron, node.knobs.mode == "off") for node in policies.nodes(ROOT)}


def cron_schedules_sync(*, now: dt.datetime) -> None:
    """Make the schedules those that the policies ask for.

    One statement if nothing differs, at most three more else. A schedule that stays as it is keeps its next run.
    Joins the running transaction, so that a policy that is not saved moves no schedule.
    """
    wanted = {_args(scope): (scope, *said) for scope, said in cron_wanted(policies_current()).items()}
    present = {schedule.args: schedule for schedule in Schedule.objects.filter(func=FUNCTION)}
    changed = []
    gone = present.keys() - wanted.keys()
    if gone:
        Schedule.objects.filter(func=FUNCTION, args__in=gone).delete()
    for args, (scope, cron, rests) in wanted.items():
        schedule = present.get(args) or Schedule(func=FUNCTION, args=args, name=_name(scope))
        repeats = _NEVER if rests else _FOR_EVER
        if (schedule.cron, schedule.repeats, schedule.schedule_type) != (cron, repeats, Schedule.CRON):
            schedule.cron, schedule.repeats, schedule.schedule_type = cron, repeats, Schedule.CRON
            schedule.next_run = cron_next(cron, now=now)
            changed.append(schedule)
    # A new schedule that is saved by itself would take its next run from the clock.
    Schedule.objects.bulk_create([schedule for schedule in changed if schedule.pk is None])
    Schedule.objects.bulk_update(
        [schedule for schedule in changed if schedule.args in present], ["cron", "repeats", "schedule_type", "next_run"]
    )


def schedule_as_json(scope: str, *, cron: str, mode: str, now: dt.datetime) -> dict[str, Any]:
    """Return when the scheduled run of the policy at ``scope`` starts next, None if it rests, and why. One query.

    A policy whose schedule has not been written yet is told by its cron line.
    """
    schedule = Schedule.objects.filter(func=FUNCTION, args=_args(scope)).first()
    paused = mode != "off" and schedule is not None and schedule.repeats == _NEVER
    expected = schedule.next_run if schedule is not None else cron_next(cron, now=now)
    return {
        "scope": scope,
        "cron": cron,
        "next": None if mode == "off" or paused else expected,
        "off": mode == "off",
        "paused": paused,
    }


def schedules_next(*, most: int) -> list[dict[str, Any]]:
    """Return the scheduled runs that start next, the soonest first, at most ``most``: scope, moment, cron line. Those
    that rest are left out. One query."""
    coming = Schedule.objects.filter(func=FUNCTION).exclude(repeats=_NEVER).order_by("next_run", "args")[:most]
    return [
        {"scope": ast.literal_eval(schedule.args)[0], "next": schedule.next_run, "cron": schedule.cron}
        for schedule in coming
    ]


def _args(scope: str) -> str:
    # The queue reads the arguments as a Python literal.
    return repr((scope,))


def _name(scope: str) -> str:
    # The column holds 100 characters, a scope has up to 500.
    name = f"forget {scope}"
    return name if len(name) <= 100 else f"{name[:87]}…{hashlib.sha256(scope.encode()).hexdigest()[:12]}"
