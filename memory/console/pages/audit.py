"""Audit: every change, who made it and why."""

from typing import Any

from django import forms

from memory.console.fields import ActionField, ActorField, ScopeField
from memory.console.list_page import ListPage
from memory.console.time_ranges import ALL, RangeForm
from memory.insight.audit_list import AuditFilter, audit_count, audit_list

COLUMNS = ("at", "actor", "action", "topic_id", "title", "scope", "reason", "before", "after")


class AuditForm(RangeForm[AuditFilter]):
    """The filter of the list."""

    actor = ActorField(required=False, placeholder="a user, a key or system")
    action = ActionField(required=False, placeholder="Created")
    scope = ScopeField(required=False)
    topic = forms.UUIDField(required=False, label="Topic", widget=forms.TextInput(attrs={"placeholder": "its id"}))

    field_order = ("actor", "action", "scope", "topic")

    @property
    def range_default(self) -> str:
        """The last 24 hours; everything that happened to one topic."""
        return ALL if self.data.get("topic") else "24h"

    def to_filter(self) -> AuditFilter:
        """Return the filter; invalid fields are ignored."""
        cleaned: dict[str, Any] = self.cleaned_data
        since, until = self.period()
        return AuditFilter(
            scope=cleaned.get("scope") or "/",
            actor=cleaned.get("actor") or None,
            action=cleaned.get("action") or None,
            topic_id=cleaned.get("topic"),
            since=since,
            until=until,
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
