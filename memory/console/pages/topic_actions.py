"""What an operator does to one topic: edit it, pin it, archive it, bring it back, release it."""

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from memory.access.principal import Principal
from memory.console.fields import ReasonField
from memory.console.page import OPERATOR, ConsoleRequest, go, page, show
from memory.console.undo import undo_offer
from memory.domain.errors import Conflict, MemoryProblem
from memory.forgetting.standing import topics_archive, topics_pin, topics_release, topics_restore
from memory.ingest.edit import TopicChange, topic_edit
from memory.models import ForgetRun
from memory.recall.lookup import topic_get

# As the API takes them.
MOST_TEXT, MOST_NAME, MOST_CATEGORIES, MOST_REASON = 20_000, 200, 50, 500


class TopicForm(forms.Form):
    """What a topic says about itself."""

    title = forms.CharField(max_length=1000)
    summary = forms.CharField(
        max_length=MOST_TEXT, required=False, strip=False, widget=forms.Textarea(attrs={"rows": 6})
    )
    kind = forms.CharField(max_length=MOST_NAME, required=False)
    categories = forms.CharField(
        max_length=MOST_TEXT, required=False, help_text="Separated by commas."
    )  # fmt: skip
    salience = forms.FloatField(
        min_value=0, max_value=10, required=False, help_text="Empty leaves it as it is.",
        widget=forms.NumberInput(attrs={"step": "any"}),
    )  # fmt: skip
    reason = ReasonField(max_length=MOST_REASON, required=False)
    seen_at = forms.DateTimeField(widget=forms.HiddenInput)

    def clean_summary(self) -> str:
        """Return the text with the line ends that everybody else writes; browsers send those of old teletypes."""
        text: str = self.cleaned_data["summary"]
        return text.replace("\r\n", "\n")

    def clean_categories(self) -> list[str]:
        """Return the names. Raises ``ValidationError`` for too many, or one that is too long."""
        names = [name.strip() for name in self.cleaned_data["categories"].split(",") if name.strip()]
        if len(names) > MOST_CATEGORIES:
            raise forms.ValidationError(f"At most {MOST_CATEGORIES} categories.")
        if any(len(name) > MOST_NAME for name in names):
            raise forms.ValidationError(f"A category has at most {MOST_NAME} letters.")
        return names

    def change(self) -> TopicChange:
        """Return what is asked for; the same words again change nothing."""
        said = self.cleaned_data
        return TopicChange(
            title=said["title"], summary=said["summary"], kind=said["kind"], categories=said["categories"],
            salience=said["salience"],
        )  # fmt: skip


class ActForm(forms.Form):
    """Why something is done to a topic."""

    reason = ReasonField(max_length=MOST_REASON, required=False)

    def __init__(self, *args: Any, why: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["reason"].label = why
        self.fields["reason"].widget.attrs["autofocus"] = True


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that can be done to a topic, in words and in deed."""

    title: str
    means: tuple[str, ...]
    button: str
    done: str
    do: Callable[[uuid.UUID, Principal, str, dt.datetime], ForgetRun]
    tone: str = "primary"
    reason_label: str = "Reason"


def _pin(pinned: bool) -> Callable[[uuid.UUID, Principal, str, dt.datetime], ForgetRun]:
    return lambda topic_id, principal, reason, now: topics_pin(
        [topic_id], pinned=pinned, principal=principal, reason=reason, now=now
    )


ACTS = {
    "pin": Act(
        "Pin", ("No run will summarize, detach, archive or release it, whatever its score, until somebody unpins it.",),
        "Pin it", "is pinned. No run touches it.", _pin(True),
    ),
    "unpin": Act(
        "Unpin", ("From then on the policy decides about it again, by its score as it stands.",),
        "Unpin it", "is no longer pinned.", _pin(False),
    ),
    "archive": Act(
        "Archive",
        ("Queries and lists leave it out from then on.",
         "It is found by its id, in the archive, and by queries that ask for archived topics.",
         "Its salience is lowered as the policy says.",
         "Nothing is removed: it can be restored whole."),
        "Archive it", "is archived.",
        lambda topic_id, principal, reason, now: topics_archive(
            [topic_id], principal=principal, reason=reason, now=now),
        tone="danger",
    ),
    "restore": Act(
        "Restore",
        ("It becomes active: queries find it again, with all its fields and links.",
         "Its salience starts as that of a new topic, or with what it had if that was more.",
         "If a run archived it, this counts as regret."),
        "Restore it", "is active again.",
        lambda topic_id, principal, reason, now: topics_restore(
            [topic_id], principal=principal, reason=reason, now=now),
    ),
    "release": Act(
        "Release",
        ("No query and no list shows it from then on, not even where archived topics are asked for.",
         "Other topics no longer show it as a neighbour.",
         "It stays in the store, is found by its id, and can be restored."),
        "Release it", "is released. No query returns it.",
        lambda topic_id, principal, reason, now: topics_release(
            [topic_id], principal=principal, reason=reason, now=now),
        tone="danger",
    ),
}  # fmt: skip


@page(get=OPERATOR, post=OPERATOR)
def topic_edited(request: ConsoleRequest, topic_id: uuid.UUID) -> HttpResponse:
    """Change what a topic says. Who comes second keeps their words, and sees what the other made of it."""
    now = timezone.now()
    form = TopicForm(request.POST if request.method == "POST" else None)
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                topic_edit(
                    topic_id, form.change(), principal=request.principal, reason=form.cleaned_data["reason"], now=now,
                    seen_at=form.cleaned_data["seen_at"],
                )  # fmt: skip
            except MemoryProblem as problem:
                status = 409 if isinstance(problem, Conflict) else 422
                form.add_error(None, problem.sentence)
            else:
                messages.success(request, f"“{form.cleaned_data['title']}” is saved.")
                return go(request, "console:topic", topic_id)
    told = topic_get(topic_id, principal=request.principal, now=now)
    if not form.is_bound:
        form.initial = {**told, "kind": told["topic_kind"], "categories": ", ".join(told["categories"]),
                        "salience": None}  # fmt: skip
    # Whoever saves again has seen what it says now.
    seen = told["updated_at"].isoformat() if status in (200, 409) else request.POST.get("seen_at", "")
    return show(request, "topic_edit.html", {"form": form, "topic": told, "seen_at": seen,
                                             "collided": status == 409}, status=status)  # fmt: skip


@page(get=OPERATOR, post=OPERATOR)
def topic_act(request: ConsoleRequest, topic_id: uuid.UUID, verb: str) -> HttpResponse:
    """Say what an act means and ask for the reason; then do it. About a dozen queries."""
    act, now = ACTS[verb], timezone.now()
    told = topic_get(topic_id, principal=request.principal, now=now)
    form = ActForm(request.POST if request.method == "POST" else None, why=act.reason_label)
    if request.method == "POST" and form.is_valid():
        run = act.do(topic_id, request.principal, form.cleaned_data["reason"], now)
        undo_offer(request, f"“{told['title']}” {act.done}", run)
        return go(request, "console:topic", topic_id)
    return show(request, "topic_act.html", {"act": act, "form": form, "topic": told},
                status=422 if form.errors else 200)  # fmt: skip


urlpatterns = [
    path("topics/<uuid:topic_id>/edit/", topic_edited, name="topic_edit"),
    *(path(f"topics/<uuid:topic_id>/{verb}/", topic_act, {"verb": verb}, name=f"topic_{verb}") for verb in ACTS),
]
