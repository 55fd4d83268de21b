"""Purge one topic, or supersede a fact in it."""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from memory.console.fields import Attempt, ReasonField, form_error
from memory.console.forget_forms import MAX_REASON, ForgetConfirmForm
from memory.console.page import OPERATOR, ConsoleRequest, go, page, show
from memory.core.errors import Conflict, MemoryProblem, NotVisible
from memory.core.truncate import text_cut
from memory.erasure.purge import topics_purge
from memory.erasure.replies import SupersededOut
from memory.erasure.supersede import MAX_TEXT, supersede
from memory.finding.facts import fact_label, facts_of, topic_contents
from memory.recall.lookup import topic_detail, topic_get

# This number of first characters of an id is enough as confirmation.
SHORT = 8
# The most facts that are offered, the most changes that a notice lists, and the most characters of each text.
MAX_FACTS, MAX_TOLD, EXCERPT = 60, 3, 120


class PurgeForm(ForgetConfirmForm):
    """The reason of a purge, and the typed title or beginning of the id."""

    def __init__(self, data: Any, *, title: str, topic_id: str) -> None:
        short = topic_id[:SHORT]
        # A memory without a title must not be confirmed by an empty text.
        phrases = [text for text in (title, short, topic_id) if text]
        super().__init__(data, phrases=phrases, asks=f"Type the memory title, or the start of its id: {short}")
        if not self.is_bound:
            self.fields["reason"].widget.attrs["autofocus"] = True


@page(get=OPERATOR, post=OPERATOR)
def topic_purged(request: ConsoleRequest, topic_id: uuid.UUID) -> HttpResponse:
    """Show what a purge of one topic erases. A form with the typed title purges the topic and leads to the receipt.
    Three queries, plus those of a purge."""
    now = timezone.now()
    detail = topic_detail(topic_id, principal=request.principal, now=now)
    form = PurgeForm(request.POST if request.method == "POST" else None, title=detail["title"], topic_id=str(topic_id))
    attempt = Attempt(form)
    with attempt:
        if form.is_valid():
            receipt = topics_purge([topic_id], principal=request.principal, reason=form.cleaned_data["reason"], now=now)
            messages.success(request, "Purged 1 memory. This is the receipt; a purge cannot be undone.")
            return go(request, "console:forget_receipt", receipt.pk)
    return show(
        request,
        "topic_purge.html",
        {
            "form": form,
            "topic": detail,
            "refused": attempt.refused,
            "fields": len(detail["fields"]),
            "revisions": sum(field["revisions"] for field in detail["fields"]),
            "links": len(detail["neighbors"]),
        },
        status=attempt.status,
    )


class SupersedeForm(forms.Form):
    """The fact to replace, and the new text."""

    old = forms.ChoiceField(
        widget=forms.RadioSelect,
        label="What is no longer true",
        error_messages={
            "required": "Choose a fact.",
            "invalid_choice": "The memory no longer contains this fact. Choose again.",
        },
    )
    new_text = forms.CharField(
        max_length=MAX_TEXT,
        label="What is true now",
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One self-contained sentence.",
    )
    reason = ReasonField(max_length=MAX_REASON, required=False)

    def __init__(self, data: Any, *, facts: list[tuple[str, str]]) -> None:
        super().__init__(data)
        old = self.fields["old"]
        assert isinstance(old, forms.ChoiceField)
        old.choices = facts
        if len(facts) == 1:
            old.initial = facts[0][0]


@page(get=OPERATOR, post=OPERATOR)
def topic_superseded(request: ConsoleRequest, topic_id: uuid.UUID) -> HttpResponse:
    """Replace one fact of a topic, and the same fact in other topics of its scope. Four queries, plus those of
    ``supersede``."""
    now = timezone.now()
    detail = topic_get(topic_id, principal=request.principal, now=now)
    if detail["merged_into"] or detail["released_at"]:
        raise Conflict("Recalls do not return this memory. Restore it first.")
    facts = _facts(topic_id)
    form = SupersedeForm(request.POST if request.method == "POST" else None, facts=facts[:MAX_FACTS])
    status = 422 if form.is_bound else 200
    if form.is_valid():
        said = form.cleaned_data
        try:
            done = supersede(
                said["old"],
                said["new_text"],
                scope=detail["scope"],
                reason=said["reason"],
                principal=request.principal,
                now=now,
            )
        except MemoryProblem as problem:
            if isinstance(problem, NotVisible):
                raise
            status = 409 if isinstance(problem, Conflict) else 422
            form.add_error(None, form_error(problem))
        else:
            messages.success(request, _superseded_words(done["superseded"]))
            return go(request, "console:topic", done["topic_id"])
    return show(
        request, "topic_supersede.html", {"form": form, "topic": detail, "more": len(facts) - MAX_FACTS}, status=status
    )


def _facts(topic_id: uuid.UUID) -> list[tuple[str, str]]:
    """Return the facts of a topic, each with the label that shows it."""
    topic = topic_contents([topic_id])[topic_id]
    return list({fact.text: fact_label(fact) for fact in facts_of(topic)}.items())


def _superseded_words(done: list[SupersededOut]) -> str:
    if not done:
        return "No memory contained the old fact any more; the new fact was stored."
    lines = []
    for each in done[:MAX_TOLD]:
        change = f"now says “{_short(each['after'])}”" if each["after"] else "removed"
        lines.append(f"“{_short(each['before'])}” {change}")
    topics = "1 memory" if len(done) == 1 else f"{len(done):,} memories"
    return f"Replaced in {topics}: {'; '.join(lines)}. The history keeps the previous text."


def _short(text: str) -> str:
    return text_cut(text, EXCERPT)


urlpatterns = [
    path("topics/<uuid:topic_id>/purge/", topic_purged, name="topic_purge"),
    path("topics/<uuid:topic_id>/supersede/", topic_superseded, name="topic_supersede"),
]
