"""Recalls: what agents asked and what they got; one recall, then and now."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from django import forms
from django.http import HttpResponse
from django.urls import path, reverse
from django.utils import timezone

from memory.console.fields import DayField, ScopeField, end_of, start_of
from memory.console.list_page import FilterForm, ListPage, ListRequest
from memory.console.page import READER, ConsoleRequest, go, page, show
from memory.console.people import callers_suggested
from memory.core.scopes import ROOT
from memory.insight.recalls import RecallFilter, recall_get, recalls_count, recalls_list
from memory.models import Scope

# The time ranges of the list, by their name in the address.
RANGES = {
    "1h": ("1 h", dt.timedelta(hours=1)),
    "24h": ("24 h", dt.timedelta(hours=24)),
    "7d": ("7 d", dt.timedelta(days=7)),
    "30d": ("30 d", dt.timedelta(days=30)),
}
CUSTOM = "custom"
SUGGESTED = 200


class RecallsForm(FilterForm[RecallFilter]):
    """The filter of the list."""

    q = forms.CharField(required=False, max_length=1000, label="Question contains")
    actor = forms.CharField(
        required=False,
        max_length=200,
        label="Who",
        widget=forms.TextInput(attrs={"placeholder": "a user or a key", "list": "callers", "autocomplete": "off"}),
    )
    scope = ScopeField(required=False)
    since = DayField(required=False, label="From")
    until = DayField(required=False, label="Until")
    range = forms.ChoiceField(
        required=False, choices=[("", ""), (CUSTOM, ""), *((name, "") for name in RANGES)], widget=forms.HiddenInput
    )
    run = forms.UUIDField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["scope"].widget.attrs |= {"list": "scopes", "autocomplete": "off"}

    def shown(self) -> list[forms.BoundField]:
        """Return the fields to draw: days only where they are asked for."""
        days = self.data.get("range") == CUSTOM or self.data.get("since") or self.data.get("until")
        return [field for field in self if not field.is_hidden and (days or field.name not in ("since", "until"))]

    def kept(self) -> list[forms.BoundField]:
        """Return the hidden fields that have a value, which the form sends again."""
        return [field for field in self.hidden_fields() if field.value()]

    def to_filter(self) -> RecallFilter:
        """Return the filter; invalid fields are ignored."""
        cleaned: dict[str, Any] = self.cleaned_data
        since = start_of(cleaned.get("since"))
        if cleaned.get("range") in RANGES:
            since = timezone.now() - RANGES[cleaned["range"]][1]
        return RecallFilter(
            scope=cleaned.get("scope") or ROOT,
            actor=cleaned.get("actor") or None,
            text=cleaned.get("q") or None,
            since=since,
            until=end_of(cleaned.get("until")),
            run=cleaned.get("run"),
        )


def _suggested(asked: ListRequest[RecallFilter], _rows: Sequence[Any]) -> dict[str, Any]:
    """Return the ranges, and what the filters suggest. Three queries."""
    chosen = asked.request.GET.get("range", "")
    days = asked.request.GET.get("since") or asked.request.GET.get("until")
    return {
        "ranges": [(name, label, name == chosen) for name, (label, _length) in RANGES.items()],
        "is_custom": chosen == CUSTOM or bool(days and chosen not in RANGES),
        "is_any": chosen not in (CUSTOM, *RANGES) and not days,
        "callers": callers_suggested(most=SUGGESTED),
        "scopes": Scope.objects.order_by("path").values_list("path", flat=True)[:SUGGESTED],
    }


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


# Every query through the API, newest first. One query for a page, one to count, and those of labels and suggestions.
RECALLS = ListPage(
    name="recalls",
    address="recalls/",
    form=RecallsForm,
    fetch=lambda asked, cursor, limit: recalls_list(
        asked.filter, principal=asked.principal, cursor=cursor, limit=limit
    ),
    count=lambda asked, most: recalls_count(asked.filter, principal=asked.principal, at_most=most),
    noun="recall",
    more=_suggested,
)

urlpatterns = [
    *RECALLS.urlpatterns,
    path("recalls/<int:access_id>/", recall, name="recall"),
    path("overview/queries/", queries, name="overview_queries"),
]
