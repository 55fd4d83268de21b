"""One change for many topics. What can be undone is done at once to topics that were picked, and the notice offers
Undo. Release, purge, and all topics that match a filter have a page first: it shows what will change and what will be
skipped; then exactly that is done.

Lists post the topics that were picked, or the filter itself with ``all=<list>``. The page that asks for the reason
carries the topics as they were found, so that whatever begins to match meanwhile is not touched.
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
from memory.console.forget_forms import PURGE, IdsForm, ids_pack
from memory.console.page import OPERATOR, ConsoleRequest, go, page, show
from memory.console.pages.archived import archived_chosen
from memory.console.pages.released import released_chosen
from memory.console.undo import back_to, go_back, undo_offer
from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.erasure.filters import ForgetFilter
from memory.erasure.forget_list_create import forget_list
from memory.forgetting.manual_actions import (
    MOST_AT_ONCE,
    TopicsPreview,
    TopicState,
    topics_move,
    topics_preview,
    topics_states,
)
from memory.models import Rung

# Topics shown per group; counts include all.
SHOWN = 50
MOST_REASON = 500
# An id, and whether it was pinned.
PACKED = 17


@dataclass(frozen=True, slots=True)
class BulkVerb:
    """The texts of a verb."""

    title: str
    done: str
    means: str
    tone: str = "primary"
    # Whether topics that were picked are changed without a page that asks.
    at_once: bool = True


WORDS = {
    "restore": BulkVerb(
        "Restore",
        "restored",
        "They become active: queries return them again, and their salience is set to that of a new topic. "
        "For topics that a run archived, this counts as regret.",
    ),
    "archive": BulkVerb(
        "Archive",
        "archived",
        "Queries and lists no longer show them. They are still found by their id and in the archive, and can be "
        "restored.",
    ),
    "release": BulkVerb(
        "Release",
        "released",
        "Queries and lists no longer show them, even if they include archived topics. They stay in the store and can "
        "be restored.",
        at_once=False,
    ),
    "pin": BulkVerb("Pin", "pinned", "Runs skip them, whatever their score, until they are unpinned."),
    "unpin": BulkVerb("Unpin", "unpinned", "The policy applies to them again, based on their score."),
}

# What asks and confirms, in the address of the page that asks.
_NOT_ASKED = ("csrfmiddlewaretoken", "seen_at")
Chosen = Callable[..., list[uuid.UUID]]
# Lists whose filter can select all matching topics.
LISTS: dict[str, Chosen] = {"archived": archived_chosen, "released": released_chosen}


class PickedForm(forms.Form):
    """When the list was shown, and where to go afterwards."""

    seen_at = forms.DateTimeField(widget=forms.HiddenInput)
    next = forms.CharField(widget=forms.HiddenInput, required=False, max_length=2000)


class BulkConfirmForm(PickedForm):
    """The topics shown on the page, and the reason of the change."""

    topics = forms.CharField(widget=forms.HiddenInput, max_length=MOST_AT_ONCE * 24)
    reason = ReasonField(max_length=MOST_REASON, required=False)

    def clean_topics(self) -> dict[uuid.UUID, bool]:
        """Return the ids, each with whether it was pinned. Raises ``ValidationError`` for anything else."""
        try:
            packed = base64.b64decode(self.cleaned_data["topics"], validate=True)
            pieces = [packed[place : place + PACKED] for place in range(0, len(packed), PACKED)]
            return {uuid.UUID(bytes=piece[:-1]): bool(piece[-1]) for piece in pieces}
        except (binascii.Error, ValueError) as problem:
            raise forms.ValidationError(
                "The selected topics cannot be read. Select them again.", code=ProblemCode.INVALID_ID
            ) from problem


def topics_pack(rows: Sequence[TopicState]) -> str:
    """Return topics as one short text, each with whether it is pinned: ten thousand fields of a form would be
    refused."""
    return base64.b64encode(b"".join(row.id.bytes + bytes([row.pinned]) for row in rows)).decode()


def ids_chosen(members: QueryDict, *, principal: Principal) -> list[uuid.UUID]:
    """Return the topics named in a URL, or those that match its filter. At most one query. Raises ``ValueRefused``."""
    source = LISTS.get(members.get("all", ""))
    if source is not None:
        found = source(members, principal=principal, at_most=MOST_AT_ONCE)
        if len(found) > MOST_AT_ONCE:
            raise ValueRefused(
                f"More than {MOST_AT_ONCE:,} topics match, and at most {MOST_AT_ONCE:,} can be changed at once. "
                "Go back and narrow the filter.",
                code=ProblemCode.TOO_MANY_TOPICS,
            )
        return found
    try:
        return list(dict.fromkeys(uuid.UUID(text) for text in members.getlist("topic")))
    except ValueError as problem:
        raise ValueRefused("One of the values is not a topic id.", code=ProblemCode.INVALID_ID) from problem


@page(get=OPERATOR, post=OPERATOR)
def bulk(request: ConsoleRequest, verb: str) -> HttpResponse:
    """Change topics that were picked, if that can be undone; else show what ``verb`` would change and skip, then change
    exactly these topics. Two queries, sixteen for the change."""
    now = timezone.now()
    if request.method == "POST" and "topics" not in request.POST:
        picked = PickedForm(request.POST)
        ids = [] if request.POST.get("all") else ids_chosen(request.POST, principal=request.principal)
        if not ids or not WORDS[verb].at_once or not picked.is_valid():
            return _asked(request)
        return _done(request, verb, {**picked.cleaned_data, "reason": ""}, ids, None, now)
    if request.method == "POST":
        form = BulkConfirmForm(request.POST)
        if form.is_valid():
            topics = form.cleaned_data["topics"]
            pinned = {topic_id for topic_id, was_pinned in topics.items() if was_pinned}
            return _done(request, verb, form.cleaned_data, list(topics), pinned, now)
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


def _asked(request: ConsoleRequest) -> HttpResponse:
    """Lead from a form to the page that asks, whose address holds what was picked; ``all`` means all of them."""
    members = request.POST.copy()
    for name in (*_NOT_ASKED, *(["topic"] if members.get("all") else [])):
        members.pop(name, None)
    return go(request, f"{request.path}?{members.urlencode()}")


def _done(
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


@page(get=OPERATOR, post=OPERATOR)
def bulk_purge(request: ConsoleRequest) -> HttpResponse:
    """Show which topics would be erased; then make a list, which is confirmed on its own page. Two queries."""
    if request.method == "POST" and "topics" not in request.POST:
        return _asked(request)
    form = IdsForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        listing = forget_list(
            PURGE,
            wanted=ForgetFilter(ids=tuple(form.cleaned_data["topics"])),
            reason=form.cleaned_data["reason"],
            principal=request.principal,
            now=timezone.now(),
        )
        return go(request, "console:forget_list", listing.id)
    if form.is_bound:
        ids: list[uuid.UUID] = form.cleaned_data.get("topics", [])
    else:
        ids = ids_chosen(request.GET, principal=request.principal)
        form.initial["next"] = request.GET.get("next", "")
    rows = topics_states(ids, principal=request.principal)
    if not form.is_bound:
        form.initial["topics"] = ids_pack(row.id for row in rows)
    return show(
        request,
        "bulk_purge.html",
        {
            "form": form,
            "count": len(rows),
            "left_count": len(ids) - len(rows),
            "most": SHOWN,
            "touched": [_row(row) for row in rows[:SHOWN]],
            "pinned": sum(row.pinned for row in rows),
            "back": back_to(request, request.POST.get("next") or request.GET.get("next", "")),
        },
        status=422 if form.errors else 200,
    )


def topics_words(count: int) -> str:
    """Return `1 topic is`, `37 topics are`."""
    return "1 topic is" if count == 1 else f"{count:,} topics are"


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
urlpatterns += [path("bulk/purge/", bulk_purge, name="bulk_purge")]
