"""Runs and their actions, page by page. Nothing here changes anything."""

import uuid
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from memory.access.principal import Principal
from memory.domain.cursors import cursor_make, cursor_parse, moment_read, place_read
from memory.forgetting.runs import run_get
from memory.models import ForgetAction, ForgetRun, Rung


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a list shows; None stands for all. ``scope`` is canonical and includes what is below."""

    scope: str
    status: str | None = None
    event: str | None = None


def runs_list(wanted: RunFilter, *, cursor: str | None, limit: int) -> tuple[list[ForgetRun], str | None]:
    """Return runs, newest first, and the cursor of the next page. One query. Raises ``ValueRefused``."""
    runs = ForgetRun.objects.order_by("-created_at", "-id")
    if wanted.scope != "/":
        runs = runs.filter(Q(scope=wanted.scope) | Q(scope__startswith=wanted.scope + "/"))
    if wanted.status is not None:
        runs = runs.filter(status=wanted.status)
    if wanted.event is not None:
        runs = runs.filter(event=wanted.event)
    if cursor is not None:
        at, run_id = cursor_parse(cursor, moment_read, uuid.UUID)
        runs = runs.filter(Q(created_at__lt=at) | Q(created_at=at, id__lt=run_id))
    found = list(runs[: limit + 1])
    if len(found) <= limit:
        return found, None
    last = found[limit - 1]
    return found[:limit], cursor_make(last.created_at, last.id)


def run_actions(
    run_id: uuid.UUID, *, principal: Principal, cursor: str | None, limit: int, state: str | None = None
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the actions of a run in their order, with titles, and the cursor of the next page. Two queries.

    Raises ``NotVisible`` for a run outside the caller's scope, ``ValueRefused`` for a foreign cursor.
    """
    run = run_get(run_id, principal=principal)
    after = 0 if cursor is None else place_read(cursor)
    actions = ForgetAction.objects.filter(run=run, place__gt=after).order_by("place")
    if state is not None:
        actions = actions.filter(state=state)
    rows = list(actions.select_related("topic")[: limit + 1])
    following = str(rows[limit - 1].place) if len(rows) > limit else None
    return [_told(action) for action in rows[:limit]], following


def _told(action: ForgetAction) -> dict[str, Any]:
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
            name: action.changes[name] for name in ("pinned", "released", "categories") if name in action.changes
        },
        "salience_before": action.before.get("salience"),
        "salience_after": after.get("salience"),
        "note": action.note,
        "at": action.at,
    }
