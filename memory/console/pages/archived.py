"""Archived: what is archived, why, and whether anybody has missed it; bringing it back begins here."""

import uuid
from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import path
from django.utils import timezone

from memory.access.principal import Principal
from memory.console.fields import DayField, ScopeField, end_of, start_of
from memory.console.listing import ROWS, count_words, export, filter_refused
from memory.console.page import READER, ConsoleRequest, page, show
from memory.hindsight.archived import ArchiveFilter, archived_count, archived_ids, archived_list

COLUMNS = (
    "topic_id",
    "title",
    "scope",
    "kind",
    "archived_at",
    "from_rung",
    "because",
    "reason",
    "by",
    "run_id",
    "policy",
    "version",
    "score",
    "salience",
    "pinned",
    "looked_up",
    "looked_up_at",
    "shadow_hits",
    "shadow_rank",
    "restored_before",
)
SORTS = {"archived": "last archived", "score": "highest score", "title": "title"}
# What a list of one run or one version is filtered by; rows and other pages lead there.
ASIDE = ("run", "policy", "version")


class ArchivedForm(forms.Form):
    """What the list can be filtered by."""

    text = forms.CharField(
        required=False,
        max_length=200,
        label="Title or summary",
        widget=forms.TextInput(attrs={"type": "search", "placeholder": "harbor", "data-search": True}),
    )
    scope = ScopeField(required=False)
    kind = forms.CharField(required=False, max_length=200, widget=forms.TextInput(attrs={"placeholder": "finding"}))
    because = forms.ChoiceField(
        required=False,
        label="Because of",
        choices=[("", "anything"), ("threshold", "a threshold"), ("rule", "a rule"), ("hand", "somebody, by hand")],
    )
    regret = forms.ChoiceField(
        required=False, choices=[("", "any"), ("missed", "missed by somebody"), ("unseen", "never looked up")]
    )
    since = DayField(required=False, label="Archived from")
    until = DayField(required=False, label="Until")
    sort = forms.ChoiceField(required=False, label="Sort by", choices=list(SORTS.items()))
    run = forms.UUIDField(required=False)
    policy = ScopeField(required=False, label="Policy of")
    version = forms.IntegerField(required=False, min_value=1, max_value=1_000_000)

    def shown(self) -> list[forms.BoundField]:
        """Return the fields to draw: those of one run or version only where they say something."""
        return [self[name] for name in self.fields if name not in ASIDE or self.data.get(name)]

    def wanted(self) -> ArchiveFilter:
        """Return the filter; a form with errors filters nothing beyond what could be read."""
        said: dict[str, Any] = self.cleaned_data
        return ArchiveFilter(
            scope=said.get("scope") or "/",
            kind=said.get("kind") or None,
            text=said.get("text") or None,
            why=said.get("because") or None,
            run=said.get("run"),
            policy=said.get("policy") or None,
            version=said.get("version"),
            since=start_of(said.get("since")),
            until=end_of(said.get("until")),
            missed=said.get("regret") == "missed",
            unseen=said.get("regret") == "unseen",
            sort=said.get("sort") or "archived",
        )


def archived_chosen(members: Mapping[str, Any], *, principal: Principal, at_most: int) -> list[uuid.UUID]:
    """Return all topics that the filter in an address finds. One query. A filter that cannot be read finds none:
    what somebody does to all of them must not be done to more than they saw."""
    form = ArchivedForm(members)
    return archived_ids(form.wanted(), principal=principal, at_most=at_most) if form.is_valid() else []


@page(get=READER)
def archived(request: ConsoleRequest) -> HttpResponse:
    """Show what is archived. Three queries."""
    form = ArchivedForm(request.GET)
    form.is_valid()
    topics, following = archived_list(
        form.wanted(), principal=request.principal, cursor=request.GET.get("cursor"), limit=ROWS, now=timezone.now()
    )
    filters = [
        (name, value) for name, values in request.GET.lists() if name in form.fields for value in values if value
    ]
    return show(
        request,
        "archived.html",
        {
            "form": form,
            "topics": topics,
            "next": following,
            "filters": filters,
            "filtered": any(name != "sort" for name, _value in filters),
        },
    )


@page(get=READER)
def archived_counted(request: ConsoleRequest) -> HttpResponse:
    """Say how many topics the filter finds. One query."""
    form = ArchivedForm(request.GET)
    form.is_valid()
    return count_words(
        request, lambda most: archived_count(form.wanted(), principal=request.principal, at_most=most), "topic"
    )


@page(get=READER)
def archived_export(request: ConsoleRequest, form: str) -> HttpResponseBase:
    """Stream exactly what the filter finds."""
    filters = ArchivedForm(request.GET)
    if not filters.is_valid():
        return filter_refused(request, filters)
    wanted, principal, now = filters.wanted(), request.principal, timezone.now()
    return export(
        "archived",
        form=form,
        columns=COLUMNS,
        fetch=lambda cursor, limit: archived_list(wanted, principal=principal, cursor=cursor, limit=limit, now=now),
    )


urlpatterns = [
    path("archived/", archived, name="archived"),
    path("archived/count/", archived_counted, name="archived_count"),
    path("archived/export.<exportform:form>", archived_export, name="archived_export"),
]
