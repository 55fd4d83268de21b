"""Duplicates: possible duplicates side by side, and decisions about them."""

import dataclasses
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse
from django.urls import path, reverse
from django.utils import timezone

from memory.console.duplicate_forms import DecideForm, FindForm, MergeConfirmForm, PairsForm, pairs_chosen, pairs_pack
from memory.console.list_page import ListPage, ListRequest
from memory.console.page import OPERATOR, READER, ConsoleRequest, go, page, show
from memory.console.titles import titled
from memory.console.undo import back_to, go_back, pair_undo_offer, undo_offer
from memory.core.differences import Piece, pieces_shorten, words_differ
from memory.core.errors import Conflict, MemoryProblem
from memory.core.scopes import ROOT
from memory.duplicates.detect import duplicates_find
from memory.duplicates.pair_actions import pair_keep_both, pair_merge, pair_supersede, pair_undo, pairs_merge
from memory.duplicates.pairs import (
    PairFilter,
    duplicate_settings,
    pair_detail,
    pair_next,
    pair_summary,
    pairs_count,
    pairs_list,
    pairs_select,
    waiting_count,
)
from memory.duplicates.replies import PairCompared, PairOut
from memory.duplicates.verdict import differences_words
from memory.jobs import tasks

COLUMNS = (
    "id",
    "scope",
    "kind",
    "verdict",
    "state",
    "similarity",
    "same_title",
    "held",
    "held_because",
    "newer_id",
    "newer_title",
    "older_id",
    "older_title",
    "survivor",
    "found_at",
    "decided_at",
    "decided_by",
    "reason",
    "run_id",
)
# The most characters of equal text that a list shows between two differences.
MAX_SAME = 90
# If more topics than this are not compared yet, the worker compares them instead of the request.
LOOKED_AT_ONCE = 200
MAX_COUNTED = 10_000
LIST = "console:duplicates"


@page(get=OPERATOR, post=OPERATOR)
def duplicates_look(request: ConsoleRequest) -> HttpResponse:
    """Ask for a scope, and compare the topics there that are not compared yet. The worker compares them if they are
    many."""
    form = FindForm(request.POST if request.method == "POST" else None, initial={"scope": request.GET.get("scope", "")})
    if not form.is_valid():
        return show(request, "duplicates_look.html", {"form": form}, status=422 if form.is_bound else 200)
    scope = form.cleaned_data["scope"]
    waiting = waiting_count(scope or ROOT, at_most=MAX_COUNTED)
    if waiting > LOOKED_AT_ONCE:
        tasks.duplicates_enqueue(scope or ROOT)
        messages.info(
            request, f"{waiting:,} memories are not compared yet. The worker compares them; reload the page soon."
        )
    else:
        found = duplicates_find(scope or ROOT, now=timezone.now())
        messages.success(request, f"{_pairs_words(found, 'new ') if found else 'No new pair'} found.")
    return go(request, f"{reverse(LIST)}?{urlencode({'scope': scope})}" if scope else LIST)


@page(get=OPERATOR, post=OPERATOR)
def duplicates_merge(request: ConsoleRequest) -> HttpResponse:
    """Show two groups of the selected pairs: those to merge, and those to skip. A posted form merges exactly the first
    group. Two queries for the page, about thirty for each merged pair."""
    now = timezone.now()
    if request.method == "POST":
        form = MergeConfirmForm(request.POST)
        if form.is_valid():
            return _merge(request, form.cleaned_data)
        ids: list[uuid.UUID] = form.cleaned_data.get("pairs") or []
    else:
        ids = pairs_chosen(request.GET, principal=request.principal)
        form = MergeConfirmForm(initial={"next": request.GET.get("next", ""), "seen_at": now.isoformat()})
    found = pairs_select(ids, principal=request.principal)
    form.initial["pairs"] = pairs_pack([pair["id"] for pair in found.taken])
    return show(
        request,
        "duplicates_merge.html",
        {"form": form, "found": found, "back": _back(request, request.GET.get("next", ""))},
        status=422 if form.errors else 200,
    )


def _merge(request: ConsoleRequest, said: dict[str, Any]) -> HttpResponse:
    done = pairs_merge(
        said["pairs"], principal=request.principal, reason=said["reason"], now=timezone.now(), seen_at=said["seen_at"]
    )
    for run in {run.pk: run for _pair, run in done.merged}.values():
        pairs = [pair for pair, of_run in done.merged if of_run.pk == run.pk]
        one = _merge_words(request, pairs[0]) if len(pairs) == 1 else ""
        undo_offer(request, one or f"{len(pairs):,} pairs were merged.", run)
    if done.skipped:
        why = " ".join(f"{why} ({times:,})" for why, times in Counter(why for _pair, why in done.skipped).items())
        left = "1 pair was" if len(done.skipped) == 1 else f"{len(done.skipped):,} pairs were"
        messages.warning(request, f"{left} skipped. {why}")
    return go(request, _back(request, said["next"]))


@page(get=READER)
def duplicate(request: ConsoleRequest, pair_id: uuid.UUID) -> HttpResponse:
    """Show the two topics of a pair side by side, and a link to the next pair. Nine queries at most."""
    return _pair(request, pair_id, DecideForm())


@page(get=READER)
def duplicate_peek(request: ConsoleRequest, pair_id: uuid.UUID) -> HttpResponse:
    """Return the differences between the topics of a pair, for a panel beside the list. Eight queries at most."""
    if not request.htmx:
        return go(request, "console:duplicate", pair_id)
    pair = pair_detail(pair_id, principal=request.principal, now=timezone.now())
    return show(request, "parts/pair_peek.html", {"pair": pair, "differing": _differing(pair)})


@page(post=OPERATOR)
def duplicate_merge(request: ConsoleRequest, pair_id: uuid.UUID) -> HttpResponse:
    """Merge a pair, and go on to the next one."""

    def merge(reason: str) -> None:
        run = pair_merge(pair_id, principal=request.principal, reason=reason, now=timezone.now())
        undo_offer(request, _merge_words(request, pair_id), run)

    return _decide(request, pair_id, merge)


@page(post=OPERATOR)
def duplicate_keep(request: ConsoleRequest, pair_id: uuid.UUID) -> HttpResponse:
    """Keep both topics, and go on to the next pair."""

    def keep(reason: str) -> None:
        pair_keep_both(pair_id, principal=request.principal, reason=reason, now=timezone.now())
        title = _title(request, pair_id)
        pair_undo_offer(request, f"Kept both of {title}. The pair is suggested again if one of them changes.", pair_id)

    return _decide(request, pair_id, keep)


@page(post=OPERATOR)
def duplicate_supersede(request: ConsoleRequest, pair_id: uuid.UUID) -> HttpResponse:
    """Supersede the older topic, and go on to the next pair."""

    def supersede(reason: str) -> None:
        run = pair_supersede(pair_id, principal=request.principal, reason=reason, now=timezone.now())
        undo_offer(request, f"Superseded {_title(request, pair_id)}: recalls return the newer memory only.", run)

    return _decide(request, pair_id, supersede)


@page(post=OPERATOR)
def duplicate_undo(request: ConsoleRequest, pair_id: uuid.UUID) -> HttpResponse:
    """Undo the decision about a pair. Redirect to the URL ``next`` of the form, else to the pair."""
    form = DecideForm(request.POST)
    if not form.is_valid():
        return _pair(request, pair_id, form, status=422)
    try:
        left = pair_undo(pair_id, principal=request.principal, reason=form.cleaned_data["reason"], now=timezone.now())
    except Conflict as problem:
        return _pair(request, pair_id, form, refused=problem, status=409)
    if not left:
        messages.success(request, "Undone: the pair waits for a decision again.")
    else:
        whys = " ".join(sorted({why for _topic, why in left}))
        messages.warning(request, f"Nothing was undone: one of the memories has changed since. {whys}")
    return go_back(request, _back(request, request.POST.get("next") or _pair_url(request, pair_id)))


def _pair(
    request: ConsoleRequest,
    pair_id: uuid.UUID,
    form: DecideForm,
    *,
    refused: MemoryProblem | None = None,
    status: int = 200,
) -> HttpResponse:
    pair = pair_detail(pair_id, principal=request.principal, now=timezone.now())
    following, left = pair_next(_list_filter(request), pair_id, principal=request.principal)
    return show(
        request,
        "duplicate.html",
        {
            "pair": pair,
            "differing": _differing(pair),
            "form": form,
            "refused": refused,
            "following": following,
            "left": left,
            "query": _query(request),
        },
        status=status,
    )


def _differing(pair: PairCompared) -> list[str]:
    """Return a sentence for each difference that matters."""
    return differences_words([each | {"one": each["older"], "other": each["newer"]} for each in pair["differences"]])


def _decide(request: ConsoleRequest, pair_id: uuid.UUID, do: Callable[[str], None]) -> HttpResponse:
    """Execute the decision ``do``. Redirect to the URL ``next`` of the form, else to the next open pair."""
    form = DecideForm(request.POST)
    if not form.is_valid():
        return _pair(request, pair_id, form, status=422)
    try:
        do(form.cleaned_data["reason"])
    except Conflict as problem:
        if request.htmx:
            raise
        return _pair(request, pair_id, form, refused=problem, status=409)
    if request.POST.get("next"):
        return go_back(request, _back(request, request.POST["next"]))
    waiting = dataclasses.replace(_list_filter(request), state="open")
    following, _left = pair_next(waiting, pair_id, principal=request.principal)
    if following is None:
        return go(request, f"{reverse(LIST)}{_query(request)}")
    return go(request, _pair_url(request, following))


def _merge_words(request: ConsoleRequest, pair_id: uuid.UUID) -> str:
    pair = pair_summary(pair_id, principal=request.principal)
    older, newer = titled(pair["older"]["title"]), titled(pair["newer"]["title"])
    into = "" if older == newer else f" into “{newer}”"
    return f"Merged “{older}”{into}: the newer memory has the content of both."


def _title(request: ConsoleRequest, pair_id: uuid.UUID) -> str:
    return f"“{titled(pair_summary(pair_id, principal=request.principal)['newer']['title'])}”"


def _list_filter(request: ConsoleRequest) -> PairFilter:
    """Return the filter of the list from which a pair was opened. The URL of the pair's page contains this filter."""
    form = PairsForm(request.GET)
    form.is_valid()
    return form.to_filter()


def _query(request: ConsoleRequest) -> str:
    """Return the filter of the list as a query string with its question mark."""
    said = {name: request.GET[name] for name in PairsForm.base_fields if request.GET.get(name)}
    return f"?{urlencode(said)}" if said else ""


def _pair_url(request: ConsoleRequest, pair_id: uuid.UUID) -> str:
    return reverse("console:duplicate", args=[pair_id]) + _query(request)


def _back(request: ConsoleRequest, wanted: str) -> str:
    return back_to(request, wanted, otherwise=LIST)


def _pairs_words(count: int, which: str = "") -> str:
    return f"1 {which}pair" if count == 1 else f"{count:,} {which}pairs"


def _marked(pair: PairOut) -> dict[str, Any]:
    """Return a pair as a row of the list, with marked differences between the summaries, and between the titles if they
    differ."""
    older, newer = pair["older"], pair["newer"]
    older_text, newer_text = _sides(older["summary"], newer["summary"])
    mergeable = pair["state"] == "open" and pair["verdict"] != "supersedes" and not pair["held"]
    row: dict[str, Any] = {**pair, "older_text": older_text, "newer_text": newer_text, "mergeable": mergeable}
    if older["title"] != newer["title"]:
        row["older_title"], row["newer_title"] = _sides(older["title"], newer["title"])
    return row


def _sides(older: str, newer: str) -> tuple[list[Piece], list[Piece]]:
    pieces = pieces_shorten(words_differ(older, newer), most=MAX_SAME)
    return [each for each in pieces if each.kind != "added"], [each for each in pieces if each.kind != "removed"]


def _flat(pair: PairOut) -> dict[str, Any]:
    newer, older = pair["newer"], pair["older"]
    return {
        **pair,
        "newer_id": newer["topic_id"],
        "newer_title": newer["title"],
        "older_id": older["topic_id"],
        "older_title": older["title"],
    }


def _page_context(asked: ListRequest[PairFilter], pairs: Sequence[PairOut]) -> dict[str, Any]:
    """Return the pairs with marked differences, and everything else that the page shows. One query."""
    request, scope = asked.request, asked.filter.scope
    rows = [_marked(pair) for pair in pairs]
    return {
        "rows": rows,
        "scope": scope,
        "filters": [(name, request.GET[name]) for name in PairsForm.base_fields if request.GET.get(name)],
        "settings": duplicate_settings(scope),
        "uncompared": waiting_count(scope, at_most=MAX_COUNTED),
        "pickable": any(row["mergeable"] for row in rows),
    }


# Pairs, newest first. Two queries for a page, one for the count.
PAIRS = ListPage(
    name="duplicates",
    address="duplicates/",
    form=PairsForm,
    fetch=lambda asked, cursor, limit: pairs_list(asked.filter, principal=asked.principal, cursor=cursor, limit=limit),
    count=lambda asked, most: pairs_count(asked.filter, principal=asked.principal, at_most=most),
    noun="pair",
    columns=COLUMNS,
    exported=_flat,
    more=_page_context,
    # Pairs are taller than table rows, so a page has fewer.
    limit=20,
)

urlpatterns = [
    *PAIRS.urlpatterns,
    path("duplicates/look/", duplicates_look, name="duplicates_look"),
    path("duplicates/merge/", duplicates_merge, name="duplicates_merge"),
    path("duplicates/<uuid:pair_id>/", duplicate, name="duplicate"),
    path("duplicates/<uuid:pair_id>/peek/", duplicate_peek, name="duplicate_peek"),
    path("duplicates/<uuid:pair_id>/merge/", duplicate_merge, name="duplicate_merge"),
    path("duplicates/<uuid:pair_id>/keep/", duplicate_keep, name="duplicate_keep"),
    path("duplicates/<uuid:pair_id>/supersede/", duplicate_supersede, name="duplicate_supersede"),
    path("duplicates/<uuid:pair_id>/undo/", duplicate_undo, name="duplicate_undo"),
]
