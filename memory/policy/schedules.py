"""The schedules of the job queue: one for every scope with a policy, and one for the root. A store other than ``main``
has them only while it has live topics, so that idle stores cost nothing."""

import ast
import datetime as dt
import hashlib
from typing import Any

from django.db import transaction
from django_q.models import Schedule

from memory.core.scopes import ROOT
from memory.models import Vitality
from memory.models.locks import Lock, lock_wait
from memory.policy.cron import cron_next
from memory.policy.effective import policies_current
from memory.policy.snapshot import Policies
from memory.stores.current import MAIN, store_current
from memory.stores.queue import schedule_arguments, schedules_here

FUNCTION = "memory.jobs.tasks.forget_scheduled"
# The remaining repeats of a schedule: -1 means without end, 0 that the schedule is paused.
_FOR_EVER, _NEVER = -1, 0


def cron_wanted(policies: Policies) -> dict[str, tuple[str, bool]]:
    """Return (cron line, whether the schedule is paused because the mode is off) of every policy, keyed by scope."""
    return {node.scope: (node.knobs.cron, node.knobs.mode == "off") for node in policies.nodes(ROOT)}


def schedules_renew(*, now: dt.datetime) -> bool:
    """Create the schedules of the current store if it has got live topics, and delete them if its last live topic is
    gone. Return whether it has schedules now. At most seven SQL statements."""
    with transaction.atomic():
        # Another process may be saving a policy.
        lock_wait(Lock.POLICY_SAVE)
        return cron_schedules_sync(now=now)


def cron_schedules_sync(*, now: dt.datetime) -> bool:
    """Create, change and delete schedules in the current transaction, so that they match the policies. Return whether
    there are any. At most four SQL statements, two more in stores other than ``main``. An unchanged schedule keeps its
    next run."""
    policies = cron_wanted(policies_current()) if store_current() == MAIN or _has_live_topics() else {}
    wanted = {_args(scope): (scope, *line) for scope, line in policies.items()}
    present = {schedule.args: schedule for schedule in schedules_here().filter(func=FUNCTION)}
    changed = []
    obsolete = present.keys() - wanted.keys()
    if obsolete:
        schedules_here().filter(func=FUNCTION, args__in=obsolete).delete()
    for args, (scope, cron, paused) in wanted.items():
        schedule = present.get(args) or Schedule(
            func=FUNCTION, args=args, kwargs=schedule_arguments(), name=_name(scope)
        )
        repeats = _NEVER if paused else _FOR_EVER
        if (schedule.cron, schedule.repeats, schedule.schedule_type) != (cron, repeats, Schedule.CRON):
            schedule.cron, schedule.repeats, schedule.schedule_type = cron, repeats, Schedule.CRON
            schedule.next_run = cron_next(cron, now=now)
            changed.append(schedule)
    # Schedules are created in bulk, because ``save`` would compute the next run from the real time, not ``now``.
    Schedule.objects.bulk_create([schedule for schedule in changed if schedule.pk is None])
    Schedule.objects.bulk_update(
        [schedule for schedule in changed if schedule.args in present], ["cron", "repeats", "schedule_type", "next_run"]
    )
    return bool(wanted)


def _has_live_topics() -> bool:
    live = Vitality.objects.filter(live=True)
    # Two queries, because each partial index covers one of them.
    return live.filter(pinned=False).exists() or live.filter(pinned=True).exists()


def schedule_as_json(scope: str, *, cron: str, mode: str, now: dt.datetime) -> dict[str, Any]:
    """Return when the next scheduled run of the policy at ``scope`` starts; ``next`` is None if the policy is off or
    the schedule is paused. One query."""
    schedule = schedules_here().filter(func=FUNCTION, args=_args(scope)).first()
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
    """Return at most ``most`` scheduled runs, soonest first. Paused schedules are left out. One query."""
    coming = schedules_here().filter(func=FUNCTION).exclude(repeats=_NEVER).order_by("next_run", "args")[:most]
    return [
        {"scope": ast.literal_eval(schedule.args)[0], "next": schedule.next_run, "cron": schedule.cron}
        for schedule in coming
    ]


def _args(scope: str) -> str:
    # The queue reads the arguments as a Python literal.
    return repr((scope,))


def _name(scope: str) -> str:
    # The column has 100 characters, and a scope has up to 500.
    name = f"forget {scope}"
    return name if len(name) <= 100 else f"{name[:87]}…{hashlib.sha256(scope.encode()).hexdigest()[:12]}"
