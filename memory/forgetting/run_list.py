"""Lists of runs and of their actions, in pages. Read only."""

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django.db.models import Count, Q, QuerySet

from memory.access.principal import Principal
from memory.core.cursors import cursor_as_number, cursor_number, cursor_time
from memory.core.replies import TypedDict, one_of
from memory.core.scopes import scope_ancestors
from memory.forgetting.manual_runs import BY_HAND, REVISE
from memory.forgetting.run_text import event_words, run_policy, run_sentence, run_status, run_took, why_words
from memory.forgetting.runs import run_get
from memory.forgetting.undo import undo_outcome
from memory.models import AuditEvent, ForgetAction, ForgetRun, Rung
from memory.models.labels import labels_read
from memory.models.newest_first import Order, sorted_page
from memory.predicates.binding import path_q

# At most this many held runs are listed by name.
HELD_NAMED = 5
# ``versions_before`` reads at most this many earlier runs. A policy that none of these runs used counts as new.
EARLIER_RUNS = 50
# The orders of the list of runs.
ORDERS = {"time": Order("created_at", cursor_time), "memories": Order("planned", cursor_number, among="created_at")}


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
    """Which runs a list shows; None means all. ``scope`` includes the scopes below it.

    Manual changes and merges are listed only if ``event`` names them. ``replaced`` selects (True) or excludes (False)
    held runs that a new plan replaced; their status is failed. ``sort`` names an order of ``ORDERS``; a leading ``-``
    reverses it.
    """

    scope: str
    status: str | None = None
    event: str | None = None
    dry_run: bool | None = None
    replaced: bool | None = None
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    sort: str = "time"


@dataclass(frozen=True, slots=True)
class ActionFilter:
    """Which actions of a run a list shows; None means all."""

    action: str | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True)
class ActionCounts:
    """How many actions a run has, by action and by state. ``by_action`` is without the skipped ones."""

    by_action: dict[str, int]
    by_state: dict[str, int]


def runs_list(wanted: RunFilter, *, cursor: str | None, limit: int) -> tuple[list[ForgetRun], str | None]:
    """Return runs and the cursor of the next page. One query. Raises ``ValueRefused``."""
    return sorted_page(_runs(wanted), ORDERS, wanted.sort, cursor=cursor, limit=limit)


def runs_count(wanted: RunFilter, *, at_most: int) -> int:
    """Return the number of runs, or ``at_most`` + 1 if there are more than ``at_most``. One query."""
    return _runs(wanted)[: at_most + 1].count()


def runs_held() -> tuple[list[ForgetRun], int]:
    """Return (the newest held runs, the number of all held runs). One query, which uses the index of open runs."""
    held = list(ForgetRun.objects.filter(status=ForgetRun.Status.HELD).order_by("-created_at", "-id"))
    return held[:HELD_NAMED], len(held)


def runs_scheduled_last(scopes: Sequence[str]) -> dict[str, ForgetRun]:
    """Return the last scheduled run over each scope in ``scopes``, keyed by scope. Scopes without such a run are left
    out. One query."""
    rows = ForgetRun.objects.filter(event="cron", dry_run=False, scope__in=scopes)
    return {run.scope: run for run in rows.order_by("scope", "-created_at").distinct("scope")}


def run_as_json(run: ForgetRun) -> dict[str, Any]:
    """Return a run as lists and exports show it."""
    policy = run_policy(run)
    return {
        "run_id": str(run.pk),
        "at": run.created_at,
        "event_words": event_words(run.event),
        "status": run_status(run),
        "sentence": run_sentence(run),
        "policy": policy[0] if policy else None,
        "version": policy[1] if policy else None,
        "took": run_took(run),
        **{name: getattr(run, name) for name in _SHOWN},
        **{name: getattr(run, name) or None for name in _SHOWN_IF_ANY},
    }


def run_detail(run: ForgetRun) -> dict[str, Any]:
    """Return a run as the pages of an action show it: as in lists, with the outcome of its undo. Two queries for an
    undone run, none for another."""
    undone = undo_outcome(run.pk) if run.status == ForgetRun.Status.UNDONE else None
    return run_as_json(run) | {"sentence": run_sentence(run, undone=undone)}


# The members of a run that are shown as stored. An empty text in ``_SHOWN_IF_ANY`` is shown as null.
_TIMES = ("started_at", "finished_at", "undone_at")
_SHOWN = ("scope", "event", "dry_run", "counts", "planned", "applied", "skipped", "left_over", "actor", *_TIMES)
_SHOWN_IF_ANY = ("approved_by", "undone_by", "held_because", "gate", "failure")


def versions_before(run: ForgetRun) -> dict[str, int]:
    """Return the policy versions that earlier runs used last, keyed by the path of the policy. Only runs over the scope
    of ``run`` or over a scope above it count. One query."""
    earlier = ForgetRun.objects.filter(scope__in=scope_ancestors(run.scope), created_at__lt=run.created_at)
    earlier = earlier.filter(applied__gt=0).exclude(event__in=(BY_HAND, REVISE)).order_by("-created_at", "-id")
    found: dict[str, int] = {}
    for versions in earlier.values_list("policy_versions", flat=True)[:EARLIER_RUNS]:
        found = {**versions, **found}
    return found


def run_reasons(run: ForgetRun) -> list[tuple[str, str, str]]:
    """Return (action, actor, reason) for each journaled decision about a run: to make it by hand, apply it, approve it,
    refuse it or undo it. One query, which reads the journal by time."""
    times = [at for at in (run.started_at, run.finished_at, run.undone_at) if at is not None]
    found = AuditEvent.objects.filter(at__in=times, after__run=str(run.pk)).order_by("at", "action")
    return list(found.values_list("action", "actor", "reason").distinct())


def run_action_counts(run_id: uuid.UUID) -> ActionCounts:
    """Return the number of actions of a run, by action and by state. One query."""
    by_action: Counter[str] = Counter()
    by_state: Counter[str] = Counter()
    rows = ForgetAction.objects.filter(run=run_id).values_list("action", "state").annotate(times=Count("id"))
    for action, state, times in rows:
        by_state[state] += times
        if state != ForgetAction.State.SKIPPED:
            by_action[action] += times
    return ActionCounts(dict(sorted(by_action.items())), dict(sorted(by_state.items())))


def run_actions(
    run_id: uuid.UUID, wanted: ActionFilter, *, principal: Principal, cursor: str | None, limit: int
) -> tuple[list[ActionOut], str | None]:
    """Return the actions of a run in their order, with labels, and the cursor of the next page. Three queries. Raises
    ``NotVisible`` and ``ValueRefused``."""
    run = run_get(run_id, principal=principal)
    after = 0 if cursor is None else cursor_as_number(cursor)
    actions = _actions(run.pk, wanted).filter(place__gt=after).order_by("place")
    rows = list(actions[: limit + 1])
    following = str(rows[limit - 1].place) if len(rows) > limit else None
    labels = labels_read(each.topic_id for each in rows[:limit])
    return [_action_as_dict(each, labels[each.topic_id]) for each in rows[:limit]], following


def run_actions_worded(
    run_id: uuid.UUID, wanted: ActionFilter, *, principal: Principal, cursor: str | None, limit: int
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the rows of ``run_actions``, each with ``why_words``. Same queries and errors as ``run_actions``."""
    rows, following = run_actions(run_id, wanted, principal=principal, cursor=cursor, limit=limit)
    return [{**row, "why_words": why_words(row["why"], row["action"])} for row in rows], following


def run_actions_count(run_id: uuid.UUID, wanted: ActionFilter, *, principal: Principal, at_most: int) -> int:
    """Return the number of actions of a run, at most ``at_most`` + 1. Two queries. Raises ``NotVisible``."""
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


def _action_as_dict(action: ForgetAction, label: str) -> ActionOut:
    after = action.after or {}
    return {
        "place": action.place,
        "topic_id": str(action.topic_id),
        "title": label,
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
