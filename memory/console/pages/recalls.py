"""Recalls: what agents asked and what they got; one recall, then and now."""

from typing import Any

from django import forms
from django.http import HttpResponse
from django.urls import path, reverse
from django.utils import timezone

from memory.console.fields import ActorField, ScopeField, filter_choice
from memory.console.list_page import ListPage
from memory.console.page import READER, ConsoleRequest, go, page, show
from memory.console.time_ranges import RangeForm
from memory.core.scopes import ROOT
from memory.insight.recalls import RecallFilter, recall_get, recalls_count, recalls_list


class RecallsForm(RangeForm[RecallFilter]):
    """The filter of the list."""

    q = forms.CharField(required=False, max_length=1000, label="Question contains")
    actor = ActorField(required=False, placeholder="a user or a key")
    scope = ScopeField(required=False)
    result = filter_choice("Result", [("", "Any"), ("nothing", "Nothing returned"), ("irrelevant", "Nothing relevant")])
    run = forms.UUIDField(required=False, widget=forms.HiddenInput)

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
        )


@page(get=READER)
def recall(request: ConsoleRequest, access_id: int) -> HttpResponse:
    """Show one recall, and with ``again`` what it returns now, which is recorded nowhere. Fourteen queries at most."""
    again = "again" in request.GET
    found = recall_get(access_id, principal=request.principal, now=timezone.now(), again=again)
    return show(request, "recall.html", {"recall": found, "again": again})


@page(get=READER)
def queries(request: ConsoleRequest) -> HttpResponse:
    """Redirect from the former address of the list."""
    return go(request, f"{reverse('console:recalls')}?{request.GET.urlencode()}")


# Every query through the API, newest first. One query for a page, one to count, and those of labels.
RECALLS = ListPage(
    name="recalls",
    address="recalls/",
    form=RecallsForm,
    fetch=lambda asked, cursor, limit: recalls_list(
        asked.filter, principal=asked.principal, cursor=cursor, limit=limit
    ),
    count=lambda asked, most: recalls_count(asked.filter, principal=asked.principal, at_most=most),
    noun="recall",
)

urlpatterns = [
    *RECALLS.urlpatterns,
    path("recalls/<int:access_id>/", recall, name="recall"),
    path("overview/queries/", queries, name="home_queries"),
]
