"""Agents: the list of agents with what they did, and the page of one caller, who is an agent or a person."""

from django import forms
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from memory.access.keys import key_as_json
from memory.console.list_page import FilterForm, ListPage, SortColumn, sort_field
from memory.console.page import READER, ConsoleRequest, page, show
from memory.console.queries.activity import AuditFilter, audit_list
from memory.console.queries.agents import DAYS, Sort, agent_days, agent_keys, agents_count, agents_list
from memory.console.queries.daily_counts import live_days
from memory.console.queries.recalls import RecallFilter, recalls_list
from memory.console.sparklines import rung_bar, spark_bars, spark_line
from memory.explain.regret import regret_days
from memory.explain.topic_counts import topic_counts

# The columns by which the list can be sorted.
SORTS = {
    "name": SortColumn("name", descending=False),
    "written": SortColumn("written"),
    "recalls": SortColumn("recalls"),
    "forgotten": SortColumn("forgotten"),
}
# The maximum number of recalls, and of changes, on the page of a caller.
LATEST = 20


class AgentsForm(FilterForm[Sort]):
    """The order of the list."""

    sort = sort_field(SORTS)

    def to_filter(self) -> Sort:
        """Return the order, by name if none is given."""
        return self.cleaned_data.get("sort") or "name"


class CallerForm(forms.Form):
    """The name of a caller in a URL."""

    name = forms.CharField(max_length=200)


# The agents, by name. One query for a page, one for the count.
AGENTS = ListPage(
    name="agents",
    address="agents/",
    form=AgentsForm,
    fetch=lambda asked, cursor, limit: agents_list(
        sort=asked.filter, principal=asked.principal, now=asked.now, cursor=cursor, limit=limit
    ),
    count=lambda asked, most: agents_count(principal=asked.principal, now=asked.now, at_most=most),
    noun="agent",
    more=lambda _asked, _rows: {"days": DAYS},
    sorts=SORTS,
)


@page(get=READER)
def caller(request: ConsoleRequest) -> HttpResponse:
    """Show one caller: the activity, the latest recalls and changes, the keys, and what became of the memories that the
    caller wrote. At most thirteen queries."""
    form = CallerForm(request.GET)
    name, now = form.cleaned_data["name"] if form.is_valid() else "", timezone.now()
    recalls, more_recalls = recalls_list(
        RecallFilter(actor=name), principal=request.principal, cursor=None, limit=LATEST
    )
    changes, more_changes = audit_list(AuditFilter(actor=name), principal=request.principal, cursor=None, limit=LATEST)
    keys = [] if name.startswith("user:") else agent_keys(name, principal=request.principal)
    days = agent_days(name, days=DAYS, principal=request.principal, now=now)
    scope = request.principal.scope
    counts = topic_counts(scope, writer=name)
    topics = live_days(counts.live, days=DAYS, now=now, scope=scope, writer=name)
    regrets = regret_days(days=DAYS, principal=request.principal, now=now, scope=scope, writer=name)
    numbers = {
        "written": [day.written for day in days],
        "recalls": [day.recalls for day in days],
        "forgotten": [day.forgotten for day in days],
        "archived": [day.archived for day in topics],
        "regretted": [day.regretted for day in regrets],
    }
    return show(
        request,
        "caller.html",
        {
            "name": name,
            "is_person": name.startswith("user:"),
            "rows": recalls,
            "more_recalls": more_recalls,
            "changes": changes,
            "more_changes": more_changes,
            "keys": [key_as_json(key, now=now) for key in keys],
            "asks_with": next((key.pk for key in keys if key.revoked_at is None and not key.is_expired(now)), None),
            "counts": counts,
            "pieces": rung_bar(counts.rungs),
            "live": spark_line([day.live for day in topics]),
            "gained": sum(day.change for day in topics),
            "days": DAYS,
            "since": days[0].day,
            "bars": {noun: spark_bars([day.day for day in days], each, noun) for noun, each in numbers.items()},
            "totals": {noun: sum(each) for noun, each in numbers.items()},
        },
    )


urlpatterns = [*AGENTS.urlpatterns, path("callers/", caller, name="caller")]
