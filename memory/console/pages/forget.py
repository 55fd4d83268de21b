"""Forget: release and purge by text or by filter. First create a list of topics, then execute exactly this list."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from memory.console.fields import Attempt, problem_shown
from memory.console.forget_forms import PURGE, ForgetConfirmForm, ForgetForm, PickForm
from memory.console.list_page import ListPage, ListRequest, NoFilter
from memory.console.page import OPERATOR, READER, ConsoleRequest, go, page, refusal, show
from memory.console.undo import topics_words, undo_offer
from memory.erasure.check import erasure_check_start
from memory.erasure.filters import ForgetFilter
from memory.erasure.forget_list_create import forget_execute, forget_list, listing_narrow, listing_repeat
from memory.erasure.forget_list_read import (
    listing_get,
    listing_matches_page,
    listing_others,
    listing_tally,
    listings_count,
    listings_list,
    spellings_of,
)
from memory.erasure.replies import ForgetMatch
from memory.forgetting.run_list import run_detail
from memory.forgetting.runs import run_get
from memory.jobs.tasks import erasure_check_enqueue
from memory.models import ForgetListing
from memory.text.keys import keys_placed
from memory.text.name_match import names_of

# The most words of names that are offered as lookups.
MAX_PARTS = 6
COLUMNS = (
    "topic_id",
    "title",
    "scope",
    "kind",
    "standing",
    "pinned",
    "why",
    "confidence",
    "excerpt",
    "spelling",
    "chosen",
    "keeps",
)


@page(get=READER, post=OPERATOR)
def forget(request: ConsoleRequest) -> HttpResponse:
    """Show the earlier lists and the form of a new one. A posted form creates the list. One query for the page.
    Creating a list runs the queries of ``forget_list``."""
    now, status = timezone.now(), 200
    if request.method == "POST":
        form = ForgetForm(request.POST)
        if form.is_valid():
            with problem_shown(form):
                listing = forget_list(
                    form.cleaned_data["verb"],
                    query=form.cleaned_data["query"] or None,
                    wanted=form.to_filter(),
                    scope=form.cleaned_data["scope"] or None,
                    reason=form.cleaned_data["reason"],
                    principal=request.principal,
                    now=now,
                )
                return go(request, "console:forget_list", listing.id)
        status = 422
    else:
        # Values in the URL are suggestions; they are validated when the form is sent.
        form = ForgetForm(initial={name: request.GET.get(name, "") for name in ForgetForm.base_fields})
    return show(request, "forget.html", {**LISTINGS.context(request), "form": form}, status=status)


@page(get=READER, post=OPERATOR)
def forget_listed(request: ConsoleRequest, listing_id: uuid.UUID) -> HttpResponse:
    """Show the topics of a list and why each is on it. A confirmation executes the list. Eight queries at most."""
    listing = listing_get(listing_id, principal=request.principal)
    form = _confirm_form(listing, request.POST if request.method == "POST" else None)
    if form.is_bound and listing.state == "executed":
        # The form was sent twice, and the first request has executed the list.
        return go(request, "console:forget_list", listing_id)
    attempt = Attempt(form)
    with attempt:
        if form.is_valid():
            said = form.cleaned_data
            return _execute(request, listing, verify=said["verify"], reason=said.get("reason") or None)
    if attempt.refused:
        listing = listing_get(listing_id, principal=request.principal)
    context = MATCHES.context(request, listing_id=listing_id)
    matches: Sequence[ForgetMatch] = context["rows"]
    operates = request.principal.role == OPERATOR
    run = run_detail(run_get(listing.run_id, principal=request.principal)) if listing.run_id else None
    others = listing_others(matches, query=listing.query)
    names = [" ".join(name) for name in names_of(listing.query, [])]
    return show(
        request,
        "forget_list.html",
        {
            **context,
            "listing": listing,
            "words": _filter_words(listing),
            "form": form,
            "refused": attempt.refused,
            "is_first": not request.GET.get("cursor"),
            "rows": _rows(matches, others),
            "ticked": sum(match["chosen"] for match in matches),
            "offered": len(listing.entries) - listing.count,
            "sure": len({match["confidence"] for match in matches}) < 2,
            "tally": listing_tally(listing_id),
            "heading": _heading(listing, run),
            "button": _button(listing),
            "is_mine": listing.actor == request.principal.actor,
            "run": run,
            "parts": _name_parts(listing, names),
            "sought": _sought(listing, names),
            "can_pick": operates and listing.state != "executed" and len(listing.entries) > 1,
        },
        status=attempt.status,
    )


@page(post=OPERATOR)
def forget_pick(request: ConsoleRequest, listing_id: uuid.UUID) -> HttpResponse:
    """Create a list without the topics that are unticked in another list."""
    listing = listing_get(listing_id, principal=request.principal)
    form = PickForm(request.POST, listed=[entry["id"] for entry in listing.chosen])
    if not form.is_valid():
        (wrong, *_more) = form.non_field_errors().as_data()
        return refusal(request, 422, "No list created", " ".join(wrong.messages), str(wrong.code))
    made = listing_narrow(listing, form.ids, principal=request.principal, now=timezone.now())
    return go(request, "console:forget_list", made.id)


@page(post=OPERATOR)
def forget_anew(request: ConsoleRequest, listing_id: uuid.UUID) -> HttpResponse:
    """Create a list from the request of an earlier list and the current content of the store."""
    listing = listing_get(listing_id, principal=request.principal)
    made = listing_repeat(listing, principal=request.principal, now=timezone.now())
    return go(request, "console:forget_list", made.id)


def _rows(matches: Sequence[ForgetMatch], others: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Return the rows of the table. ``begins`` marks the first one with another spelling of the name."""
    return [
        {
            "match": match,
            "others": others.get(match["topic_id"], ()),
            "begins": bool(match["spelling"]) and not (before is not None and before["spelling"]),
        }
        for before, match in zip([None, *matches], matches, strict=False)
    ]


def _execute(request: ConsoleRequest, listing: ForgetListing, *, verify: bool, reason: str | None) -> HttpResponse:
    done = forget_execute(str(listing.id), principal=request.principal, now=timezone.now(), reason=reason)
    topics = topics_words(done.count)
    if done.receipt is not None:
        messages.success(request, f"{topics} purged. This is the receipt; a purge cannot be undone.")
        if verify:
            erasure_check_start(principal=request.principal, now=timezone.now(), enqueue=erasure_check_enqueue)
        return go(request, "console:forget_receipt", done.receipt.pk)
    if done.run is not None:
        undo_offer(request, f"{topics} released and no longer returned by recalls.", done.run)
    return go(request, "console:forget_list", listing.id)


def _confirm_form(listing: ForgetListing, data: Any) -> ForgetConfirmForm:
    phrases = [f"purge {listing.count}"] if listing.verb == PURGE else ()
    return ForgetConfirmForm(data, phrases=phrases, reason=listing.reason)


def _topics(count: int) -> str:
    return "1 memory" if count == 1 else f"{count:,} memories"


def _button(listing: ForgetListing) -> str:
    return f"{listing.verb.capitalize()} {_topics(listing.count)}"


def _heading(listing: ForgetListing, run: dict[str, Any] | None) -> str:
    verb = listing.verb.capitalize()
    if run is not None and run["undone_at"]:
        return f"The release of {_topics(listing.count)} was undone"
    if listing.state == "executed":
        return f"{_topics(listing.count)} {'was' if listing.count == 1 else 'were'} {listing.verb}d"
    if listing.state == "empty":
        return f"Nothing to {listing.verb}"
    if listing.state == "ambiguous":
        # Only one memory of the list can be chosen.
        return f"{verb} which memory?"
    return f"{verb} {_topics(listing.count)}{'?' if listing.state == 'open' else ', once listed'}"


def _name_parts(listing: ForgetListing, names: Sequence[str]) -> list[str]:
    """Return the words of each of the requested ``names`` that has several words. A topic that contains only one of
    these words may be about the same person or another one, so the page offers a lookup of each word."""
    if listing.state != "open":
        return []
    split = [name.split() for name in names]
    return list(dict.fromkeys(word for words in split if len(words) > 1 for word in words))[:MAX_PARTS]


def _sought(listing: ForgetListing, names: Sequence[str]) -> list[str]:
    """Return what the page marks, longest first: ``names``, their other spellings and the request's identifiers."""
    keys = (listing.query[start:end] for _key, start, end in keys_placed(listing.query))
    return sorted({*names, *spellings_of(listing), *keys}, key=len, reverse=True)


def _filter_words(listing: ForgetListing) -> str:
    picked = listing.filter.get("ids")
    said = {name: value for name, value in listing.filter.items() if name not in ("ids", "scope")}
    words = [f"{_topics(len(picked))} selected" if picked else "", ForgetFilter(**said).describe()]
    return ", ".join(filter(None, words))


def _listings(asked: ListRequest[None], cursor: str | None, limit: int) -> tuple[list[dict[str, Any]], str | None]:
    """Return the earlier lists, each with its filter in words. One query."""
    listings, following = listings_list(principal=asked.principal, cursor=cursor, limit=limit)
    return [{"listing": listing, "words": _filter_words(listing)} for listing in listings], following


def _file(asked: ListRequest[None]) -> str:
    listing = listing_get(asked.arguments["listing_id"], principal=asked.principal)
    return f"forget-{listing.id}"


# Earlier lists. One query for a page, one for the count.
LISTINGS = ListPage(
    name="forget",
    address="forget/",
    form=NoFilter,
    fetch=_listings,
    count=lambda asked, most: listings_count(principal=asked.principal, at_most=most),
    noun="list",
    view=forget,
)
# The topics of one list. One query for a page.
MATCHES = ListPage(
    name="forget_list",
    address="forget/<uuid:listing_id>/",
    form=NoFilter,
    fetch=lambda asked, cursor, limit: listing_matches_page(
        asked.arguments["listing_id"], principal=asked.principal, cursor=cursor, limit=limit
    ),
    columns=COLUMNS,
    exported=lambda match: {**match, "kind": match["topic_kind"]},
    file=_file,
    view=forget_listed,
)

urlpatterns = [
    *LISTINGS.urlpatterns,
    *MATCHES.urlpatterns,
    path("forget/<uuid:listing_id>/pick/", forget_pick, name="forget_pick"),
    path("forget/<uuid:listing_id>/anew/", forget_anew, name="forget_anew"),
]
