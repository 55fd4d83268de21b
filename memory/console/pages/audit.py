"""Audit: every change, who made it and why."""

from typing import Any

from django import forms

from memory.console.fields import DayField, ScopeField, end_of, start_of
from memory.console.list_page import FilterForm, ListPage
from memory.insight.audit_list import AuditFilter, audit_count, audit_list

COLUMNS = ("at", "actor", "action", "topic_id", "title", "scope", "reason", "before", "after")


class AuditForm(FilterForm[AuditFilter]):
    """The filter of the list."""

    actor = forms.CharField(
        required=False,
        max_length=200,
        label="Who",
        widget=forms.TextInput(attrs={"placeholder": "a user, a key or system"}),
    )
    action = forms.CharField(
        required=False, max_length=50, label="What", widget=forms.TextInput(attrs={"placeholder": "restored"})
    )
    scope = ScopeField(required=False)
    topic = forms.UUIDField(required=False, label="Topic", widget=forms.TextInput(attrs={"placeholder": "its id"}))
    since = DayField(required=False, label="From")
    until = DayField(required=False, label="Until")

    def to_filter(self) -> AuditFilter:
        """Return the filter; invalid fields are ignored."""
        cleaned: dict[str, Any] = self.cleaned_data
        return AuditFilter(
            scope=cleaned.get("scope") or "/",
            actor=cleaned.get("actor") or None,
            action=cleaned.get("action") or None,
            topic_id=cleaned.get("topic"),
            since=start_of(cleaned.get("since")),
            until=end_of(cleaned.get("until")),
        )


# The journal, newest first. One query for a page, one to count.
AUDIT = ListPage(
    name="audit",
    address="audit/",
    form=AuditForm,
    fetch=lambda asked, cursor, limit: audit_list(asked.filter, principal=asked.principal, cursor=cursor, limit=limit),
    count=lambda asked, most: audit_count(asked.filter, principal=asked.principal, at_most=most),
    noun="change",
    columns=COLUMNS,
)

urlpatterns = AUDIT.urlpatterns
