"""Actions on one topic: edit, pin, archive, restore, release."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.urls import path, reverse
from django.utils import timezone

from memory.console.fields import ReasonField, SuggestInput, form_error
from memory.console.page import OPERATOR, ConsoleRequest, go, page, show
from memory.console.titles import titled
from memory.console.undo import back_to, go_back, undo_offer
from memory.core.errors import Conflict, MemoryProblem
from memory.core.problem_codes import ProblemCode
from memory.forgetting.manual_actions import topics_archive, topics_pin, topics_release, topics_restore
from memory.ingest.edit import TopicChange, topic_edit
from memory.models import ForgetRun
from memory.models.labels import labels_read
from memory.recall.lookup import topic_get

# The limits of the API, in characters or categories.
MAX_TEXT, MAX_NAME, MAX_CATEGORIES, MAX_REASON = 20_000, 200, 50, 500
MEMBERS = ("title", "summary", "kind", "categories", "salience")


def lines_plain(text: str | None) -> str:
    """Return a text with LF line ends; browsers send CRLF."""
    return (text or "").replace("\r\n", "\n").replace("\r", "\n")


class LineField(forms.CharField):
    """A text in one line. Browsers drop line ends, which does not count as a change."""

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Return whether the text was changed."""
        return lines_plain(initial).replace("\n", "") != lines_plain(data).replace("\n", "")


class LinesField(forms.CharField):
    """A text of several lines, with spaces unchanged."""

    def __init__(self, *, rows: int, **options: Any) -> None:
        widget = forms.Textarea(attrs={"rows": rows})
        super().__init__(max_length=MAX_TEXT, required=False, strip=False, widget=widget, **options)

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Return whether the text was changed."""
        return lines_plain(initial) != lines_plain(data)


class TopicForm(forms.Form):
    """The editable members of a topic. ``detail`` is its present state, as ``topic_get`` returns it."""

    title = LineField(max_length=1000, required=False)
    summary = LinesField(rows=6)
    kind = LineField(max_length=MAX_NAME, required=False, widget=SuggestInput("kind"))
    categories = LinesField(rows=3, help_text="One per line.")
    salience = forms.FloatField(
        min_value=0,
        max_value=10,
        required=False,
        help_text="Leave empty to keep the current value.",
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    reason = ReasonField(max_length=MAX_REASON, required=False)
    seen_at = forms.DateTimeField(widget=forms.HiddenInput)

    def __init__(self, data: Any, *, detail: Mapping[str, Any]) -> None:
        self.known = list(detail["categories"])
        shown = {**detail, "kind": detail["topic_kind"], "categories": "\n".join(self.known), "salience": None}
        super().__init__(data, initial={name: shown[name] for name in MEMBERS})

    def clean_summary(self) -> str:
        """Return the text with plain line ends."""
        return lines_plain(self.cleaned_data["summary"])

    def clean_categories(self) -> list[str]:
        """Return the names. Spaces around new names are removed. Raises ``ValidationError`` for too many names, or for
        a name that is too long."""
        lines = lines_plain(self.cleaned_data["categories"]).split("\n")
        names = [line if line in self.known else line.strip() for line in lines if line in self.known or line.strip()]
        if len(names) > MAX_CATEGORIES:
            raise forms.ValidationError(f"At most {MAX_CATEGORIES} categories.", code=ProblemCode.TOO_LARGE)
        if any(len(name) > MAX_NAME for name in names):
            raise forms.ValidationError(f"Use at most {MAX_NAME} characters per category.", code=ProblemCode.TOO_LARGE)
        return names

    def change(self) -> TopicChange:
        """Return the changed members."""
        return TopicChange(**{name: self.cleaned_data[name] for name in MEMBERS if name in self.changed_data})


class TopicActionForm(forms.Form):
    """The reason of an action on a topic, and where to go afterwards."""

    next = forms.CharField(widget=forms.HiddenInput, required=False, max_length=2000)
    reason = ReasonField(max_length=MAX_REASON, required=False)

    def __init__(self, *args: Any, why: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["reason"].label = why
        self.fields["reason"].widget.attrs["autofocus"] = True


@dataclass(frozen=True, slots=True)
class TopicAction:
    """One action on a topic: its texts and its function."""

    title: str
    means: tuple[str, ...]
    button: str
    done: str
    do: Callable[..., ForgetRun]
    reason_label: str = "Reason"


ACTS = {
    "pin": TopicAction(
        "Pin",
        ("No run summarizes, detaches, archives or releases it, whatever its score, until it is unpinned.",),
        "Pin memory",
        "is pinned. Runs skip it.",
        partial(topics_pin, pinned=True),
    ),
    "unpin": TopicAction(
        "Unpin",
        ("The policy applies to it again, based on its current score.",),
        "Unpin memory",
        "is no longer pinned.",
        partial(topics_pin, pinned=False),
    ),
    "archive": TopicAction(
        "Archive",
        (
            "Recalls and lists no longer show it.",
            "It is still found by its id, in the archive, and by recalls that include archived memories.",
            "Its salience is lowered according to the policy.",
            "Nothing is deleted: it can be restored completely.",
        ),
        "Archive memory",
        "is archived.",
        topics_archive,
    ),
    "restore": TopicAction(
        "Restore",
        (
            "It becomes active: recalls return it again, with all its fields and links.",
            "Its salience is set to that of a new memory, unless its own is higher.",
            "If a run archived it, this counts as regret.",
        ),
        "Restore memory",
        "is active again.",
        topics_restore,
    ),
    "release": TopicAction(
        "Release",
        (
            "Recalls and lists no longer show it, even if they include archived memories.",
            "Other memories no longer show it as a neighbour.",
            "It stays in the store, can be found by its id, and can be restored.",
        ),
        "Release memory",
        "is released. No recall returns it.",
        topics_release,
    ),
}


@page(get=OPERATOR, post=OPERATOR)
def topic_edited(request: ConsoleRequest, topic_id: uuid.UUID) -> HttpResponse:
    """Edit a topic. If another user has edited it meanwhile, the form keeps the input and shows both versions."""
    now = timezone.now()
    detail = topic_get(topic_id, principal=request.principal, now=now)
    form = TopicForm(request.POST if request.method == "POST" else None, detail=detail)
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                topic_edit(
                    topic_id,
                    form.change(),
                    principal=request.principal,
                    reason=form.cleaned_data["reason"],
                    now=now,
                    seen_at=form.cleaned_data["seen_at"],
                )
            except MemoryProblem as problem:
                status = 409 if isinstance(problem, Conflict) else 422
                form.add_error(None, form_error(problem))
            else:
                if form.change() == TopicChange():
                    messages.info(request, "Nothing was changed.")
                else:
                    messages.success(request, f"“{titled(labels_read([topic_id])[topic_id])}” is saved.")
                return go(request, "console:topic", topic_id)
    if status == 409:
        # The form shows the input and the version of the other user.
        detail = topic_get(topic_id, principal=request.principal, now=now)
    # The next save is based on the version that is shown now.
    seen = detail["updated_at"].isoformat() if status in (200, 409) else request.POST.get("seen_at", "")
    return show(
        request,
        "topic_edit.html",
        {"form": form, "topic": detail, "seen_at": seen, "collided": status == 409},
        status=status,
    )


@page(get=OPERATOR, post=OPERATOR)
def topic_act(request: ConsoleRequest, topic_id: uuid.UUID, verb: str) -> HttpResponse:
    """Explain an action and ask for the reason. A posted form executes the action. Buttons for actions that can be
    undone post directly, without this page. About a dozen queries."""
    act, now = ACTS[verb], timezone.now()
    detail = topic_get(topic_id, principal=request.principal, now=now)
    form = TopicActionForm(request.POST if request.method == "POST" else None, why=act.reason_label)
    if request.method == "POST" and form.is_valid():
        run = act.do([topic_id], principal=request.principal, reason=form.cleaned_data["reason"], now=now)
        undo_offer(request, f"“{titled(detail['label'])}” {act.done}", run)
        page_of = reverse("console:topic", args=[topic_id])
        return go_back(request, back_to(request, form.cleaned_data["next"], otherwise=page_of))
    return show(
        request, "topic_act.html", {"act": act, "form": form, "topic": detail}, status=422 if form.errors else 200
    )


urlpatterns = [
    path("topics/<uuid:topic_id>/edit/", topic_edited, name="topic_edit"),
    *(path(f"topics/<uuid:topic_id>/{verb}/", topic_act, {"verb": verb}, name=f"topic_{verb}") for verb in ACTS),
]
