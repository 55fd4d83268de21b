"""Forgetting in the demo's half year: weekly runs, a run held after a mistyped half-life, an undone run, and restores.

The runs are made after all retrievals, each with its own time, so that none archives a topic that the story uses later.
"""

import datetime as dt

from django_q.models import Schedule

from memory.access.principal import Principal
from memory.core.scopes import ROOT
from memory.forgetting.manual_actions import topics_restore
from memory.forgetting.manual_runs import BY_HAND
from memory.forgetting.runs import run_undo
from memory.forgetting.triggers import scheduled_run
from memory.models import ForgetAction, Rung, Topic
from memory.policy.cron import cron_next
from memory.policy.effective import policies_current
from memory.policy.rekey import half_lives_rekey
from memory.policy.save import policy_rollback, policy_save
from memory.policy.schedules import FUNCTION
from memory.recall.reinforcement import lookup_record
from memory.stores.queue import schedules_here

OPERATOR = Principal(identity="mara", actor="mara", role="operator")

SMALL = {"topic_count_soft_limit": 200}
WEEKS = 12
MISTYPED_BEFORE = dt.timedelta(days=23)
UNDONE_WEEK = 6
WANTED_BACK = 3


def forgetting_load(*, topics: int, now: dt.datetime) -> None:
    """Make the policies and runs of the half year before ``now``. Does nothing if the store has policies or other
    topics, because a demo must not forget the other topics."""
    if Topic.objects.count() != topics or policies_current().numbers:
        return
    policy_save(
        ROOT,
        preset="balanced",
        values=SMALL,
        author=OPERATOR.actor,
        reason="the defaults, but for a small memory",
        now=now - dt.timedelta(days=150),
    )
    for week in reversed(range(WEEKS)):
        at = now - dt.timedelta(weeks=week, hours=7)
        if week == int(MISTYPED_BEFORE.days // 7):
            _half_life_mistype(now - MISTYPED_BEFORE)
        run = scheduled_run(ROOT, now=at, seconds=600)
        if week == UNDONE_WEEK and run is not None and run.applied:
            run_undo(
                run.id, principal=OPERATOR, reason="too early, the move was not over", now=at + dt.timedelta(hours=9)
            )
    _some_restore(now)
    _policies_set(now)
    _schedules_ahead(now)


def _half_life_mistype(at: dt.datetime) -> None:
    policy_save(
        ROOT,
        preset="balanced",
        values={**SMALL, "half_life_days": 0.3},
        author=OPERATOR.actor,
        reason="forget noise sooner",
        now=at,
    )
    half_lives_rekey(now=at, budget_seconds=600)
    scheduled_run(ROOT, now=at + dt.timedelta(hours=2), seconds=600)
    policy_rollback(
        ROOT, to=1, author=OPERATOR.actor, reason="30 days were meant; the run was held", now=at + dt.timedelta(hours=8)
    )
    half_lives_rekey(now=at, budget_seconds=600)


def _some_restore(now: dt.datetime) -> None:
    """Look up and restore a few archived topics, so that the demo shows regret."""
    archived = ForgetAction.objects.filter(
        state=ForgetAction.State.APPLIED,
        to_rung=Rung.ARCHIVED,
        topic__rung=Rung.ARCHIVED,
        at__lt=now - dt.timedelta(days=6),
    ).exclude(run__event=BY_HAND)
    wanted = archived.order_by("-why__score").select_related("topic__scope")[:WANTED_BACK]
    for place, action in enumerate(wanted):
        at = now - dt.timedelta(days=1 + place)
        lookup_record(action.topic_id, scope=action.topic.scope.path, principal=OPERATOR, now=at)
        topics_restore([action.topic_id], principal=OPERATOR, reason="needed again", now=at + dt.timedelta(minutes=2))


def _policies_set(now: dt.datetime) -> None:
    """Set the policies of two scopes, with times a few days ago, so that pages can show what the next run would
    change."""
    policy_save(
        "/session",
        preset=None,
        values={"forget_salience_threshold": 0.08, "prune_after_days": 14},
        author=OPERATOR.actor,
        reason="notes of a session are of use for two weeks",
        now=now - dt.timedelta(days=3),
    )
    policy_save(
        "/user/mara/health",
        preset=None,
        values={"mode": "review"},
        rules=["auto_pin"],
        author=OPERATOR.actor,
        reason="nothing about health goes unasked",
        now=now - dt.timedelta(days=2),
    )


def _schedules_ahead(now: dt.datetime) -> None:
    """Move the schedules to their next times. The policies were saved with past times, so their next runs are in the
    past, and the worker would start them at once."""
    schedules = list(schedules_here().filter(func=FUNCTION))
    for schedule in schedules:
        schedule.next_run = cron_next(schedule.cron, now=now)
    Schedule.objects.bulk_update(schedules, ["next_run"])
