"""Recalls: the queries of agents with their results, and the page of one recall, with its result then and now."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpResponse
from django.urls import path, reverse
from django.utils import timezone

from memory.console.fields import ActorField, ScopeField, filter_choice
from memory.console.list_page import ListPage, sort_columns, sort_field
from memory.console.page import READER, ConsoleRequest, go, page, show
from memory.console.queries.recalls import ORDERS, RecallFilter, recall_get, recall_missed, recalls_count, recalls_list
from memory.console.time_ranges import RangeForm
from memory.core.scopes import ROOT

SORTS = sort_columns(ORDERS)


class RecallsForm(RangeForm[RecallFilter]):
    """The filter of the list."""

    q = forms.CharField(required=False, max_length=1000, label="Question contains")
    actor = ActorField(required=False, placeholder="a user or a key")
    scope = ScopeField(required=False)
    result = filter_choice("Result", [("", "Any"), ("nothing", "Nothing returned"), ("irrelevant", "Nothing relevant")])
    run = forms.UUIDField(required=False, widget=forms.HiddenInput)
    sort = sort_field(SORTS)

    field_order = ("q", "actor", "scope", "result")

    def to_filter(self) -> RecallFilter:
        """Return the filter; invalid fields are ignored."""
        cleaned: dict[str, Any] = self.cleaned_data
        since, until = self.period()
        return RecallFilter(
            scope=cleaned.get("scope") or ROOT,
            actor=cleaned.get("actor") or None,
            text=cleaned.get("q") or None,
            since=since,
            until=until,
            run=cleaned.get("run"),
            result=cleaned.get("result") or None,
            sort=cleaned.get("sort") or "time",
        )


@page(get=READER)
def recall(request: ConsoleRequest, access_id: int) -> HttpResponse:
    """Show one recall. With ``again``, also show what the same request returns now, which is not recorded. Twelve
    queries at most."""
    found = recall_get(access_id, principal=request.principal, now=timezone.now(), again="again" in request.GET)
    return show(request, "recall.html", {"recall": found, "asked_with": _words(found["request"])})


@page(get=READER)
def recall_archive(request: ConsoleRequest, access_id: int) -> HttpResponse:
    """Show what one recall missed in the archive, as a part of its page or as a page. Nothing is recorded. Seven
    queries, which read the whole scope."""
    found = recall_missed(access_id, principal=request.principal, now=timezone.now())
    return show(request, "parts/recall_archive.html" if request.htmx else "recall_archive.html", {"recall": found})


def _words(asked: Mapping[str, Any]) -> dict[str, str]:
    """Return the members of a request as texts. Of ids, only the number is shown."""
    words = {name: ", ".join(map(str, value)) if isinstance(value, list) else value for name, value in asked.items()}
    if "topic_ids" in asked:
        words["topic_ids"] = f"{len(asked['topic_ids']):,} in all"
    return words


@page(get=READER)
def recall_peek(request: ConsoleRequest, access_id: int) -> HttpResponse:
    """Return the result of a recall, for a panel beside the list. Eight queries at most."""
    if not request.htmx:
        return go(request, "console:recall", access_id)
    found = recall_get(access_id, principal=request.principal, now=timezone.now())
    return show(request, "parts/recall_peek.html", {"recall": found})


@page(get=READER)
def queries(request: ConsoleRequest) -> HttpResponse:
    """Redirect from the former address of the list."""
    return go(request, f"{reverse('console:recalls')}?{request.GET.urlencode()}")


# Every query through the API. One query for a page and one for the count, plus those for the labels of
# callers.
RECALLS = ListPage(
    name="recalls",
    address="recalls/",
    form=RecallsForm,
    fetch=lambda asked, cursor, limit: recalls_list(
        asked.filter, principal=asked.principal, cursor=cursor, limit=limit
    ),
    count=lambda asked, most: recalls_count(asked.filter, principal=asked.principal, at_most=most),
    noun="recall",
    sorts=SORTS,
)

urlpatterns = [
    *RECALLS.urlpatterns,
    path("recalls/<int:access_id>/", recall, name="recall"),
    path("recalls/<int:access_id>/archive/", recall_archive, name="recall_archive"),
    path("recalls/<int:access_id>/peek/", recall_peek, name="recall_peek"),
    path("overview/queries/", queries, name="home_queries"),
]
