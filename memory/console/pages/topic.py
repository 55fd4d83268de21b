"""One topic: its state and the reason, its text and history, its salience, and its uses.

Viewing a topic here is not recorded in the access log. A lookup by an agent shows that the topic was needed, and counts
as regret if the topic was archived. A person who only inspects the store would distort this measure.
"""

import datetime as dt
import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.urls import path, reverse
from django.utils import timezone

from memory.agents.chat.conversations import conversations_behind
from memory.console.fields import ReasonField, problem_shown
from memory.console.listing import ROWS
from memory.console.page import OPERATOR, READER, ConsoleRequest, go, page, show
from memory.console.pages import topic_actions, topic_forget
from memory.console.pages.add import item_ingest
from memory.console.pages.topic_actions import LinesField, lines_plain
from memory.console.queries.activity import AuditFilter, audit_list
from memory.console.queries.timeline import field_timeline, topic_timeline
from memory.console.topic_chart import salience_figure
from memory.console.topic_why import sentence_html
from memory.core.errors import NotVisible
from memory.core.problem_codes import ProblemCode
from memory.erasure.receipts import receipt_of_topic
from memory.explain.accesses import accesses_of
from memory.explain.replies import WhyReply
from memory.explain.salience_history import salience_history
from memory.explain.why import topic_why
from memory.explain.why_sentences import card_sentences
from memory.policy.effective import policies_current
from memory.recall.lookup import topic_get

LAST_CHANGES = 5
# The maximum number of conversations listed as writers of a topic.
TALKS = 3
REVISIONS = 30


@page(get=READER)
def topic(request: ConsoleRequest, topic_id: uuid.UUID) -> HttpResponse:
    """Show one topic. Eighteen queries at most; salience and uses load separately. A purged topic answers with 410 and
    its receipt."""
    now = timezone.now()
    try:
        detail = topic_timeline(topic_id, principal=request.principal, now=now)
    except NotVisible:
        receipt = receipt_of_topic(topic_id, principal=request.principal)
        if receipt is None:
            raise
        return show(request, "purged.html", {"receipt": receipt, "code": ProblemCode.NOT_FOUND}, status=410)
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
    first, *others = (sentence_html(each, now=now) for each in card_sentences(card, mode=mode))
    return {"why": card, "answer": first, "lines": others}


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


class ValueForm(forms.Form):
    """A new value of a field."""

    value = LinesField(rows=2, label="New value")
    reason = ReasonField(required=False)


@page(get=READER, post=OPERATOR)
def topic_field(request: ConsoleRequest, topic_id: uuid.UUID) -> HttpResponse:
    """Show all revisions of the field ``name``, newest first. A posted form adds a value. Three queries for the page;
    a new value runs the queries of an ingest."""
    now, name = timezone.now(), request.GET.get("name", "")
    form = ValueForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        field = {
            "name": name,
            "value": lines_plain(form.cleaned_data["value"]),
            "why_changed": form.cleaned_data["reason"],
            "provenance": "console",
        }
        with problem_shown(form):
            item_ingest(request, {"placement": "version_field", "topic_id": str(topic_id), "fields": [field]})
            messages.success(request, f"{name}: the new value is stored. The former values are kept.")
            return go(request, f"{reverse('console:topic', args=[topic_id])}#says")
    revisions, following = field_timeline(
        topic_id, name, principal=request.principal, cursor=request.GET.get("cursor"), limit=REVISIONS, now=now
    )
    topic = topic_get(topic_id, principal=request.principal, now=now)
    context = {"topic": topic, "name": name, "revisions": revisions, "next": following, "form": form}
    return show(request, "topic_field.html", context, status=422 if form.errors else 200)


urlpatterns = [
    path("topics/<uuid:topic_id>/", topic, name="topic"),
    path("topics/<uuid:topic_id>/peek/", topic_peek, name="topic_peek"),
    path("topics/<uuid:topic_id>/salience/", topic_salience, name="topic_salience"),
    path("topics/<uuid:topic_id>/uses/", topic_uses, name="topic_uses"),
    path("topics/<uuid:topic_id>/field/", topic_field, name="topic_field"),
    *topic_actions.urlpatterns,
    *topic_forget.urlpatterns,
]
