"""Audit: every change, who made it and why."""

from typing import Any

from django import forms
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import path

from memory.console.fields import DayField, ScopeField, end_of, start_of
from memory.console.listing import ROWS, count_words, export, filter_refused
from memory.console.page import READER, ConsoleRequest, page, show
from memory.hindsight.journal import AuditFilter, audit_count, audit_list

COLUMNS = ("at", "actor", "action", "topic_id", "title", "scope", "reason", "before", "after")


class AuditForm(forms.Form):
    """What the list can be filtered by."""

    actor = forms.CharField(
        required=False,
        max_length=200,
        label="Who",
        widget=forms.TextInput(attrs={"placeholder": "user:… key:… system"}),
    )
    action = forms.CharField(
        required=False, max_length=50, label="What", widget=forms.TextInput(attrs={"placeholder": "restored"})
    )
    scope = ScopeField(required=False)
    topic = forms.UUIDField(required=False, label="Topic", widget=forms.TextInput(attrs={"placeholder": "its id"}))
    since = DayField(required=False, label="From")
    until = DayField(required=False, label="Until")

    def wanted(self) -> AuditFilter:
        """Return the filter; a form with errors filters nothing beyond what could be read."""
        said: dict[str, Any] = self.cleaned_data
        return AuditFilter(
            scope=said.get("scope") or "/",
            actor=said.get("actor") or None,
            action=said.get("action") or None,
            topic_id=said.get("topic"),
            since=start_of(said.get("since")),
            until=end_of(said.get("until")),
        )


@page(get=READER)
def audit(request: ConsoleRequest) -> HttpResponse:
    """Show the journal, newest first. One query."""
    form = AuditForm(request.GET)
    form.is_valid()
    events, following = audit_list(
        form.wanted(), principal=request.principal, cursor=request.GET.get("cursor"), limit=ROWS
    )
    return show(request, "audit.html", {"form": form, "events": events, "next": following})


@page(get=READER)
def audit_counted(request: ConsoleRequest) -> HttpResponse:
    """Say how many entries the filter finds. One query."""
    form = AuditForm(request.GET)
    form.is_valid()
    return count_words(
        request, lambda most: audit_count(form.wanted(), principal=request.principal, at_most=most), "change"
    )


@page(get=READER)
def audit_export(request: ConsoleRequest, form: str) -> HttpResponseBase:
    """Stream exactly what the filter finds."""
    filters = AuditForm(request.GET)
    if not filters.is_valid():
        return filter_refused(request, filters)
    wanted, principal = filters.wanted(), request.principal
    return export(
        "audit",
        form=form,
        columns=COLUMNS,
        fetch=lambda cursor, limit: audit_list(wanted, principal=principal, cursor=cursor, limit=limit),
    )


urlpatterns = [
    path("audit/", audit, name="audit"),
    path("audit/count/", audit_counted, name="audit_count"),
    path("audit/export.<exportform:form>", audit_export, name="audit_export"),
]
