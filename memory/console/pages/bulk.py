"""One change to many topics. Selected topics are changed immediately, and the notice offers Undo. A change of all
topics that match a filter needs a confirmation: a page shows which topics will change and which will be skipped. A
confirmation changes exactly the topics that were shown for the change. A release or purge becomes a list to forget.

Lists post the selected topics or, with ``all=<list>``, their filter. The confirmation page contains the ids of the
topics. So topics that begin to match the filter later are not changed.
"""

import base64
import binascii
import datetime as dt
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.urls import path
from django.utils import timezone

from memory.access.principal import Principal
from memory.console.fields import ReasonField
from memory.console.forget_forms import PURGE, RELEASE
from memory.console.page import OPERATOR, ConsoleRequest, go, page, show
from memory.console.pages.archived import archived_chosen
from memory.console.pages.released import released_chosen
from memory.console.undo import back_to, go_back, undo_offer
from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.erasure.filters import ForgetFilter
from memory.erasure.forget_list_create import forget_list
from memory.forgetting.manual_actions import MAX_AT_ONCE, TopicsPreview, TopicState, topics_move, topics_preview
from memory.models import Rung

# The most topics shown per group. Counts include all topics.
SHOWN = 50
MAX_REASON = 500
# Bytes per topic: its id, and whether it was pinned.
PACKED = 17


@dataclass(frozen=True, slots=True)
class BulkVerb:
    """The texts of a change to many topics."""

    title: str
    done: str
    means: str


WORDS = {
    "restore": BulkVerb(
        "Restore",
        "restored",
        "They become active: recalls return them again, and their salience is set to that of a new memory. "
        "For memories that a run archived, this counts as regret.",
    ),
    "archive": BulkVerb(
        "Archive",
        "archived",
        "Recalls and lists no longer show them. They are still found by their id and in the archive, and can be "
        "restored.",
    ),
    "pin": BulkVerb("Pin", "pinned", "Runs skip them, whatever their score, until they are unpinned."),
    "unpin": BulkVerb("Unpin", "unpinned", "The policy applies to them again, based on their score."),
}

# Form fields that do not belong in the URL of the confirmation page.
_FORM_ONLY = ("csrfmiddlewaretoken", "seen_at")
Chosen = Callable[..., list[uuid.UUID]]
# For each list in which all topics that match the filter can be selected: the function that returns their ids.
LISTS: dict[str, Chosen] = {"archived": archived_chosen, "released": released_chosen}


class PickedForm(forms.Form):
    """When the list was shown, and where to go afterwards."""

    seen_at = forms.DateTimeField(widget=forms.HiddenInput)
    next = forms.CharField(widget=forms.HiddenInput, required=False, max_length=2000)


class BulkConfirmForm(PickedForm):
    """The topics shown on the page, and the reason of the change."""

    topics = forms.CharField(widget=forms.HiddenInput, max_length=MAX_AT_ONCE * 24)
    reason = ReasonField(max_length=MAX_REASON, required=False)

    def clean_topics(self) -> dict[uuid.UUID, bool]:
        """Return for each id whether the topic was pinned. Raises ``ValidationError`` if the text cannot be read."""
        try:
            packed = base64.b64decode(self.cleaned_data["topics"], validate=True)
            pieces = [packed[place : place + PACKED] for place in range(0, len(packed), PACKED)]
            return {uuid.UUID(bytes=piece[:-1]): bool(piece[-1]) for piece in pieces}
        except (binascii.Error, ValueError) as problem:
            raise forms.ValidationError(
                "The selected memories cannot be read. Select them again.", code=ProblemCode.INVALID_ID
            ) from problem


def topics_pack(rows: Sequence[TopicState]) -> str:
    """Return the ids of topics, and whether each is pinned, as one short text. Django refuses forms with thousands of
    fields."""
    return base64.b64encode(b"".join(row.id.bytes + bytes([row.pinned]) for row in rows)).decode()


def ids_chosen(members: QueryDict, *, principal: Principal) -> list[uuid.UUID]:
    """Return the ids of the named topics, or of all topics that match the filter. At most one query. Raises
    ``ValueRefused`` for an invalid id, and if too many topics match."""
    source = LISTS.get(members.get("all", ""))
    if source is not None:
        found = source(members, principal=principal, at_most=MAX_AT_ONCE)
        if len(found) > MAX_AT_ONCE:
            raise ValueRefused(
                f"More than {MAX_AT_ONCE:,} memories match, and at most {MAX_AT_ONCE:,} can be changed at once. "
                "Go back and narrow the filter.",
                code=ProblemCode.TOO_MANY_TOPICS,
            )
        return found
    try:
        return list(dict.fromkeys(uuid.UUID(text) for text in members.getlist("topic")))
    except ValueError as problem:
        raise ValueRefused("One of the values is not a memory id.", code=ProblemCode.INVALID_ID) from problem


@page(get=OPERATOR, post=OPERATOR)
def bulk(request: ConsoleRequest, verb: str) -> HttpResponse:
    """Change selected topics immediately. For all topics that match a filter, show the topics to change and the topics
    to skip. A posted confirmation changes exactly the topics shown for the change. Two queries for the page,
    sixteen for the change."""
    now = timezone.now()
    if request.method == "POST" and "topics" not in request.POST:
        picked = PickedForm(request.POST)
        ids = [] if request.POST.get("all") else ids_chosen(request.POST, principal=request.principal)
        if not ids or not picked.is_valid():
            return _confirmation(request)
        return _change(request, verb, {**picked.cleaned_data, "reason": ""}, ids, None, now)
    if request.method == "POST":
        form = BulkConfirmForm(request.POST)
        if form.is_valid():
            topics = form.cleaned_data["topics"]
            pinned = {topic_id for topic_id, was_pinned in topics.items() if was_pinned}
            return _change(request, verb, form.cleaned_data, list(topics), pinned, now)
        ids = list(form.cleaned_data.get("topics") or {})
    else:
        ids = ids_chosen(request.GET, principal=request.principal)
        form = BulkConfirmForm(initial={"next": request.GET.get("next", ""), "seen_at": now.isoformat()})
    found = topics_preview(verb, ids, principal=request.principal)
    form.initial["topics"] = topics_pack(found.touched)
    return show(
        request,
        "bulk.html",
        {
            "verb": verb,
            "words": WORDS[verb],
            "form": form,
            "back": back_to(request, request.GET.get("next", "")),
            **_selection_context(found),
        },
        status=422 if form.errors else 200,
    )


def _confirmation(request: ConsoleRequest) -> HttpResponse:
    """Redirect to the confirmation page. Its URL contains the selected topics, or with ``all`` only the filter."""
    members = request.POST.copy()
    for name in (*_FORM_ONLY, *(["topic"] if members.get("all") else [])):
        members.pop(name, None)
    return go(request, f"{request.path}?{members.urlencode()}")


def _change(
    request: ConsoleRequest,
    verb: str,
    said: dict[str, Any],
    ids: list[uuid.UUID],
    pinned: set[uuid.UUID] | None,
    now: dt.datetime,
) -> HttpResponse:
    moved = topics_move(
        verb, ids, seen_at=said["seen_at"], principal=request.principal, reason=said["reason"], now=now, pinned=pinned
    )
    if moved.run is not None:
        undo_offer(request, f"{topics_words(moved.run.applied)} {WORDS[verb].done}.", moved.run)
    if moved.left:
        why = " ".join(f"{why[:-1]}: {times:,}." for why, times in Counter(why for *_row, why in moved.left).items())
        messages.warning(request, f"{topics_words(len(moved.left))} skipped. {why}")
    return go_back(request, back_to(request, said["next"]))


@page(post=OPERATOR)
def bulk_forget(request: ConsoleRequest, verb: str) -> HttpResponse:
    """Create a list of selected topics to release or purge, which is confirmed on its own page. Costs as much as
    ``forget_list``, and one more query for a filter."""
    ids = ids_chosen(request.POST, principal=request.principal)
    if not ids:
        raise ValueRefused("No memory was selected. Go back and select memories.", code=ProblemCode.NOTHING_NAMED)
    listing = forget_list(verb, wanted=ForgetFilter(ids=ids), principal=request.principal, now=timezone.now())
    return go(request, "console:forget_list", listing.id)


def topics_words(count: int) -> str:
    """Return `1 memory is` or `37 memories are`."""
    return "1 memory is" if count == 1 else f"{count:,} memories are"


def _selection_context(found: TopicsPreview) -> dict[str, Any]:
    touched = [_row(row) for row in found.touched[:SHOWN]]
    groups: dict[str, list[dict[str, Any]]] = {}
    counts = Counter(why for *_row, why in found.left)
    for topic_id, row, why in found.left:
        rows = groups.setdefault(why, [])
        if len(rows) < SHOWN:
            rows.append(_row(row) if row else {"id": topic_id, "title": str(topic_id)})
    return {
        "touched": touched,
        "count": len(found.touched),
        "released": sum(row.released for row in found.touched),
        "pinned": sum(row.pinned for row in found.touched),
        "most": SHOWN,
        "left": [{"why": why, "count": counts[why], "rows": rows} for why, rows in groups.items()],
        "left_count": len(found.left),
    }


def _row(row: TopicState) -> dict[str, Any]:
    return {"id": row.id, "title": row.title, "scope": row.scope, "rung": Rung(row.rung).label}


urlpatterns = [path(f"bulk/{verb}/", bulk, {"verb": verb}, name=f"bulk_{verb}") for verb in WORDS]
urlpatterns += [path(f"bulk/{verb}/", bulk_forget, {"verb": verb}, name=f"bulk_{verb}") for verb in (RELEASE, PURGE)]
