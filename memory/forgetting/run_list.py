"""Lists of runs and of their actions, in pages. Read only."""

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django.db.models import Count, Q, QuerySet

from memory.access.principal import Principal
from memory.core.cursors import cursor_as_number
from memory.core.replies import TypedDict, one_of
from memory.core.scopes import scope_ancestors
from memory.forgetting.manual_runs import BY_HAND, REVISE
from memory.forgetting.run_text import event_words, run_policy, run_sentence, run_status, run_took, why_words
from memory.forgetting.runs import run_get
from memory.models import ForgetAction, ForgetRun, Rung
from memory.models.newest_first import newest_page
from memory.predicates.binding import path_q

# The most held runs that are listed by name.
HELD_NAMED = 5
# The number of earlier runs in which ``versions_before`` looks. A policy that none of these used counts as new.
EARLIER_RUNS = 50


class ActionOut(TypedDict):
    """What a run does to one topic."""

    place: int
    topic_id: str
    title: str
    action: str
    state: Annotated[str, one_of(ForgetAction.State.values)]
    from_rung: str
    to_rung: str
    score: float | None
    why: dict[str, Any]
    changes: dict[str, Any]
    salience_before: float | None
    salience_after: float | None
    note: str
    at: dt.datetime | None


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a list shows; None means all. ``scope`` is canonical and includes the scopes below it.

    Manual changes and merges of duplicates are listed only if ``event`` names them. A held run that was replaced by a
    new plan has the status failed; ``replaced`` chooses only these runs, or excludes them.
    """

    scope: str
    status: str | None = None
    event: str | None = None
    dry_run: bool | None = None
    replaced: bool | None = None
    since: dt.datetime | None = None
    until: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class ActionFilter:
    """Which actions of a run a list shows; None means all."""

    action: str | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True)
class ActionCounts:
    """How many actions a run has, by action and by state."""

    by_action: dict[str, int]
    by_state: dict[str, int]


def runs_list(wanted: RunFilter, *, cursor: str | None, limit: int) -> tuple[list[ForgetRun], str | None]:
    """Return runs, newest first, and the cursor of the next page. One query. Raises ``ValueRefused`` for an invalid
    cursor."""
    return newest_page(_runs(wanted), cursor=cursor, limit=limit)


def runs_count(wanted: RunFilter, *, at_most: int) -> int:
    """Return the number of runs, or ``at_most`` + 1 if there are more than ``at_most``. One query."""
    return _runs(wanted)[: at_most + 1].count()


def runs_held() -> tuple[list[ForgetRun], int]:
    """Return (the newest held runs, the number of all held runs). One query, which uses the index of open runs."""
    held = list(ForgetRun.objects.filter(status=ForgetRun.Status.HELD).order_by("-created_at", "-id"))
    return held[:HELD_NAMED], len(held)


def runs_scheduled_last(scopes: Sequence[str]) -> dict[str, ForgetRun]:
    """Return the last scheduled run over each of these scopes; scopes without such a run are left out. One query."""
    rows = ForgetRun.objects.filter(event="cron", dry_run=False, scope__in=scopes)
    return {run.scope: run for run in rows.order_by("scope", "-created_at").distinct("scope")}


def run_as_json(run: ForgetRun) -> dict[str, Any]:
    """Return a run as lists and exports show it."""
    policy = run_policy(run)
    return {
        "run_id": str(run.pk),
        "at": run.created_at,
        "scope": run.scope,
        "event": run.event,
        "event_words": event_words(run.event),
        "status": run_status(run),
        "sentence": run_sentence(run),
        "dry_run": run.dry_run,
        "policy": policy[0] if policy else None,
        "version": policy[1] if policy else None,
        "counts": run.counts,
        "planned": run.planned,
        "applied": run.applied,
        "skipped": run.skipped,
        "left_over": run.left_over,
        "actor": run.actor,
        "approved_by": run.approved_by or None,
        "undone_by": run.undone_by or None,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "undone_at": run.undone_at,
        "took": run_took(run),
        "held_because": run.held_because or None,
        "gate": run.gate or None,
        "failure": run.failure or None,
    }


def versions_before(run: ForgetRun) -> dict[str, int]:
    """Return the policy versions that were last used before this run, by path. One query.

    The function looks at runs that changed something, over the scope of this run or over a scope above it.
    """
    earlier = ForgetRun.objects.filter(scope__in=scope_ancestors(run.scope), created_at__lt=run.created_at)
    earlier = earlier.filter(applied__gt=0).exclude(event__in=(BY_HAND, REVISE)).order_by("-created_at", "-id")
    found: dict[str, int] = {}
    for versions in earlier.values_list("policy_versions", flat=True)[:EARLIER_RUNS]:
        found = {**versions, **found}
    return found


def run_action_counts(run_id: uuid.UUID) -> ActionCounts:
    """Return the number of actions of a run, by action and by state. One query."""
    by_action: dict[str, int] = {}
    by_state: dict[str, int] = {}
    rows = ForgetAction.objects.filter(run=run_id).values_list("action", "state").annotate(times=Count("id"))
    for action, state, times in rows:
        by_action[action] = by_action.get(action, 0) + times
        by_state[state] = by_state.get(state, 0) + times
    return ActionCounts(dict(sorted(by_action.items())), dict(sorted(by_state.items())))


def run_actions(
    run_id: uuid.UUID, wanted: ActionFilter, *, principal: Principal, cursor: str | None, limit: int
) -> tuple[list[ActionOut], str | None]:
    """Return the actions of a run in their order, with titles, and the cursor of the next page. Two queries.

    Raises ``NotVisible`` for a run outside the caller's scope, ``ValueRefused`` for an invalid cursor.
    """
    run = run_get(run_id, principal=principal)
    after = 0 if cursor is None else cursor_as_number(cursor)
    actions = _actions(run.pk, wanted).filter(place__gt=after).order_by("place")
    rows = list(actions.select_related("topic")[: limit + 1])
    following = str(rows[limit - 1].place) if len(rows) > limit else None
    return [_action_as_dict(each) for each in rows[:limit]], following


def run_actions_worded(
    run_id: uuid.UUID, wanted: ActionFilter, *, principal: Principal, cursor: str | None, limit: int
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the rows of ``run_actions``, each with ``why_words``. Two queries. Raises as ``run_actions``."""
    rows, following = run_actions(run_id, wanted, principal=principal, cursor=cursor, limit=limit)
    return [{**row, "why_words": why_words(row["why"], row["action"])} for row in rows], following


def run_actions_count(run_id: uuid.UUID, wanted: ActionFilter, *, principal: Principal, at_most: int) -> int:
    """Return the number of actions of a run, or ``at_most`` + 1 if there are more than ``at_most``. Two queries. Raises
    ``NotVisible``."""
    run = run_get(run_id, principal=principal)
    return _actions(run.pk, wanted)[: at_most + 1].count()


def _runs(wanted: RunFilter) -> QuerySet[ForgetRun]:
    runs = ForgetRun.objects.filter(path_q(wanted.scope))
    if wanted.status is not None:
        runs = runs.filter(status=wanted.status)
    runs = runs.exclude(event__in=(BY_HAND, REVISE)) if wanted.event is None else runs.filter(event=wanted.event)
    if wanted.dry_run is not None:
        runs = runs.filter(dry_run=wanted.dry_run)
    if wanted.replaced is not None:
        replaced = Q(status=ForgetRun.Status.FAILED, started_at=None) & ~Q(held_because="")
        runs = runs.filter(replaced if wanted.replaced else ~replaced)
    if wanted.since is not None:
        runs = runs.filter(created_at__gte=wanted.since)
    if wanted.until is not None:
        runs = runs.filter(created_at__lt=wanted.until)
    return runs


def _actions(run_id: uuid.UUID, wanted: ActionFilter) -> QuerySet[ForgetAction]:
    actions = ForgetAction.objects.filter(run=run_id)
    if wanted.action is not None:
        actions = actions.filter(action=wanted.action)
    if wanted.state is not None:
        actions = actions.filter(state=wanted.state)
    return actions


def _action_as_dict(action: ForgetAction) -> ActionOut:
    after = action.after or {}
    return {
        "place": action.place,
        "topic_id": str(action.topic_id),
        "title": action.topic.title,
        "action": action.action,
        "state": action.state,
        "from_rung": Rung(action.from_rung).label,
        "to_rung": Rung(action.to_rung).label,
        "score": action.why.get("score"),
        "why": action.why,
        "changes": {
            name: action.changes[name]
            for name in ("pinned", "released", "categories", "group", "into", "from")
            if name in action.changes
        },
        "salience_before": action.before.get("salience"),
        "salience_after": after.get("salience"),
        "note": action.note,
        "at": action.at,
    }
