"""The audit journal, page by page: every change with actor and reason. Nothing here changes anything."""

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from memory.access.principal import Principal
from memory.domain.cursors import cursor_make, cursor_parse, moment_read
from memory.models import AuditEvent


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries are shown; None stands for all. ``scope`` is canonical and takes in what is below it; an
    ``action`` that ends in a star takes in all that begin so, such as ``ingest_*``."""

    scope: str = "/"
    actor: str | None = None
    action: str | None = None
    topic_id: uuid.UUID | None = None
    since: dt.datetime | None = None
    until: dt.datetime | None = None


def audit_list(
    wanted: AuditFilter, *, principal: Principal, cursor: str | None, limit: int
) -> tuple[list[dict[str, Any]], str | None]:
    """Return entries, newest first, and the cursor of the next page. One query, along the index of times.

    Raises ``NotVisible`` for a scope outside the caller's, ``ValueRefused`` for a foreign cursor.
    """
    events = _events(wanted, principal).order_by("-at", "-id")
    if cursor is not None:
        at, number = cursor_parse(cursor, moment_read, int)
        events = events.filter(Q(at__lt=at) | Q(at=at, id__lt=number))
    rows = list(events[: limit + 1])
    following = cursor_make(rows[limit - 1].at, rows[limit - 1].pk) if len(rows) > limit else None
    return [_told(event) for event in rows[:limit]], following


def audit_count(wanted: AuditFilter, *, principal: Principal, at_most: int) -> int:
    """Return how many entries there are, ``at_most`` + 1 if there are more than that. One query."""
    return _events(wanted, principal)[: at_most + 1].count()


def _events(wanted: AuditFilter, principal: Principal) -> QuerySet[AuditEvent]:
    scope = principal.scope_chosen(wanted.scope)
    events = AuditEvent.objects.all()
    if scope != "/":
        events = events.filter(Q(scope=scope) | Q(scope__startswith=f"{scope}/"))
    if wanted.actor is not None:
        events = events.filter(actor=wanted.actor)
    if wanted.action is not None and wanted.action.endswith("*"):
        events = events.filter(action__startswith=wanted.action.removesuffix("*"))
    elif wanted.action is not None:
        events = events.filter(action=wanted.action)
    if wanted.topic_id is not None:
        events = events.filter(topic_id=wanted.topic_id)
    if wanted.since is not None:
        events = events.filter(at__gte=wanted.since)
    if wanted.until is not None:
        events = events.filter(at__lt=wanted.until)
    return events


def _told(event: AuditEvent) -> dict[str, Any]:
    return {
        "id": event.pk,
        "at": event.at,
        "actor": event.actor,
        "action": event.action,
        "topic_id": str(event.topic_id) if event.topic_id else None,
        "scope": event.scope,
        "reason": event.reason,
        "before": event.before,
        "after": event.after,
    }
