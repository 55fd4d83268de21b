"""One topic: its state and the reason, its text and history, its salience, and its uses.

Viewing a topic here is not recorded in the access log. A lookup by an agent shows that the topic was needed, and counts
as regret if the topic was archived. A person who only inspects the store would distort this measure.
"""

import datetime as dt
import uuid
from typing import Any

from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from memory.agents.chat.conversations import conversations_behind
from memory.console.listing import ROWS
from memory.console.page import READER, ConsoleRequest, go, page, show
from memory.console.pages import topic_actions, topic_forget
from memory.console.topic_chart import salience_figure
from memory.console.topic_graph import graph_place
from memory.console.topic_why import answer, lines
from memory.insight.accesses import accesses_of
from memory.insight.audit_list import AuditFilter, audit_list
from memory.insight.replies import WhyReply
from memory.insight.salience_history import salience_history
from memory.insight.timeline import field_timeline, topic_timeline
from memory.insight.why import topic_why
from memory.policy.effective import policies_current
from memory.recall.lookup import topic_get

LAST_CHANGES = 5
# The maximum number of conversations listed as writers of a topic.
TALKS = 3
REVISIONS = 30


@page(get=READER)
def topic(request: ConsoleRequest, topic_id: uuid.UUID) -> HttpResponse:
    """Show one topic. Eighteen queries at most; salience and uses load separately."""
    now = timezone.now()
    detail = topic_timeline(topic_id, principal=request.principal, now=now)
    changes, _more = audit_list(
        AuditFilter(topic_id=topic_id), principal=request.principal, cursor=None, limit=LAST_CHANGES
    )
    why = topic_why(topic_id, principal=request.principal, now=now)
    by_runs = [entry for entry in why["history"] if entry["by"] == "run" and entry["state"] in ("applied", "undone")]
    return show(
        request,
        "topic.html",
        {
            "topic": detail,
            **_why(why, now),
            "changes": sorted([*changes, *by_runs], key=lambda each: each["at"], reverse=True)[:LAST_CHANGES],
            "talks": conversations_behind(topic_id, principal=request.principal, most=TALKS),
            "also_from": detail["also_from"],
            "graph": graph_place(detail["label"], detail["neighbors"]),
        },
    )


@page(get=READER)
def topic_peek(request: ConsoleRequest, topic_id: uuid.UUID) -> HttpResponse:
    """Return the first part of the page of a topic, for a panel beside a list. Eighteen queries at most."""
    if not request.htmx:
        return go(request, "console:topic", topic_id)
    now = timezone.now()
    detail = topic_get(topic_id, principal=request.principal, now=now)
    why = topic_why(topic_id, principal=request.principal, now=now)
    return show(request, "parts/topic_peek.html", {"topic": detail, **_why(why, now)})


def _why(card: WhyReply, now: dt.datetime) -> dict[str, Any]:
    mode = policies_current().knobs(card["scope"]).mode
    return {"why": card, "answer": answer(card, now=now), "lines": lines(card, now=now, mode=mode)}


@page(get=READER)
def topic_salience(request: ConsoleRequest, topic_id: uuid.UUID) -> HttpResponse:
    """Show salience over time and the forecast. Six queries at most."""
    now = timezone.now()
    history = salience_history(topic_id, principal=request.principal, now=now)
    return show(
        request,
        "parts/topic_salience.html" if request.htmx else "topic_salience.html",
        {"topic_id": topic_id, "history": history, "figure": salience_figure(history)},
    )


@page(get=READER)
def topic_uses(request: ConsoleRequest, topic_id: uuid.UUID) -> HttpResponse:
    """Show the retrievals of the topic, newest first. Three queries."""
    found = accesses_of(
        topic_id,
        principal=request.principal,
        cursor=request.GET.get("cursor"),
        limit=10 if request.htmx else ROWS,
        now=timezone.now(),
    )
    return show(
        request,
        "parts/topic_uses.html" if request.htmx else "topic_uses.html",
        {"topic_id": topic_id, "found": found, "next": found.next},
    )


@page(get=READER)
def topic_field(request: ConsoleRequest, topic_id: uuid.UUID) -> HttpResponse:
    """Show all revisions of the field ``name``, newest first. Three queries."""
    now, name = timezone.now(), request.GET.get("name", "")
    revisions, following = field_timeline(
        topic_id, name, principal=request.principal, cursor=request.GET.get("cursor"), limit=REVISIONS, now=now
    )
    topic = topic_get(topic_id, principal=request.principal, now=now)
    return show(request, "topic_field.html", {"topic": topic, "name": name, "revisions": revisions, "next": following})


urlpatterns = [
    path("topics/<uuid:topic_id>/", topic, name="topic"),
    path("topics/<uuid:topic_id>/peek/", topic_peek, name="topic_peek"),
    path("topics/<uuid:topic_id>/salience/", topic_salience, name="topic_salience"),
    path("topics/<uuid:topic_id>/uses/", topic_uses, name="topic_uses"),
    path("topics/<uuid:topic_id>/field/", topic_field, name="topic_field"),
    *topic_actions.urlpatterns,
    *topic_forget.urlpatterns,
]
