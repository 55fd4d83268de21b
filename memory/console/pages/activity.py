"""Activity: every change by people, agents and automatic runs, with its reason."""

from typing import Any

from django import forms
from django.http import HttpResponse, QueryDict
from django.urls import path

from memory.console.fields import ActionField, ActorField, ScopeField, filter_choice
from memory.console.list_page import ListPage
from memory.console.listing import ROWS
from memory.console.page import READER, ConsoleRequest, page, show
from memory.console.queries.activity import AuditFilter, audit_count, audit_groups, audit_list, audit_summary
from memory.console.time_ranges import ALL, RangeForm
from memory.explain.action_words import ACTIONS, action_words

COLUMNS = ("at", "actor", "action", "topic_id", "title", "scope", "reason", "before", "after")
# The maximum number of kinds, and of people, that the summary names.
MAX_NAMED = 8
# The maximum number of changes that a page reads. It shows at most ``ROWS`` groups of them.
READ = 500


class AuditForm(RangeForm[AuditFilter]):
    """The filter of the list."""

    actor = ActorField(required=False, placeholder="a user, a key or system")
    action = ActionField(required=False, placeholder="Created")
    scope = ScopeField(required=False)
    by = filter_choice("By", [("", "Anyone"), ("people", "People"), ("agents", "Agents"), ("automatic", "Automatic")])
    topic = forms.UUIDField(required=False, label="Memory")

    field_order = ("by", "actor", "action", "scope", "topic")

    def __init__(self, data: QueryDict) -> None:
        # Links may contain the names that journals use for callers and actions. The fields show the words of the page.
        words = data.copy()
        words["actor"] = str(data.get("actor", "")).removeprefix("user:")
        if data.get("action") in ACTIONS:
            words["action"] = action_words(str(data["action"]))
        super().__init__(words)

    def shown(self) -> list[forms.BoundField]:
        """Return the visible fields. The topic is shown only if the URL names one."""
        return [field for field in super().shown() if field.name != "topic" or self.data.get("topic")]

    @property
    def range_default(self) -> str:
        """The last 24 hours, or all time if the URL names a topic."""
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
            by=cleaned.get("by") or None,
            since=since,
            until=until,
        )


@page(get=READER)
def summary(request: ConsoleRequest) -> HttpResponse:
    """Show how many changes match the filter, by kind and by person. One query."""
    form = AuditForm(request.GET)
    form.is_valid()
    found = audit_summary(form.to_filter(), principal=request.principal)
    part = "console/parts/audit_summary.html"
    context = {"title": "Changes by kind and person", "part": part, "summary": found, "most": MAX_NAMED}
    return show(request, part.removeprefix("console/") if request.htmx else "home_part.html", context)


@page(get=READER)
def activity(request: ConsoleRequest) -> HttpResponse:
    """Show the changes, newest first, with one row for a change to many topics. One query."""
    context = AUDIT.context(request)
    groups = audit_groups(context["rows"])
    if len(groups) > ROWS:
        del groups[ROWS:]
        context["next"] = groups[-1][-1]["cursor"]
    return show(request, "audit.html", {**context, "groups": groups})


# The journal. One query for the count.
AUDIT = ListPage(
    name="audit",
    address="audit/",
    form=AuditForm,
    fetch=lambda asked, cursor, limit: audit_list(asked.filter, principal=asked.principal, cursor=cursor, limit=limit),
    count=lambda asked, most: audit_count(asked.filter, principal=asked.principal, at_most=most),
    noun="change",
    columns=COLUMNS,
    view=activity,
    limit=READ,
)

urlpatterns = [*AUDIT.urlpatterns, path("audit/summary/", summary, name="audit_summary")]
