"""Scopes: the tree of scopes, level by level, and a page for each scope."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django import forms
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from memory.access.keys import key_as_json, keys_reaching
from memory.access.principal import Principal
from memory.console.fields import ActorField, ScopeField
from memory.console.list_page import FilterForm, ListPage, ListRequest, SortColumn, sort_field
from memory.console.page import READER, ConsoleRequest, page, show
from memory.console.pages.policies import scope_of
from memory.console.queries.activity import AuditFilter, audit_list
from memory.console.queries.daily_counts import activity_days, live_days
from memory.console.queries.recalls import RecallFilter, recalls_list
from memory.console.queries.scope_tree import (
    DAYS,
    ScopeFigures,
    Sort,
    scope_children,
    scope_children_count,
    scope_writers,
)
from memory.console.sparklines import rung_bar, spark_bars, spark_line
from memory.core.scopes import ROOT, scope_ancestors, scope_within
from memory.explain.regret import regret_days
from memory.explain.topic_counts import topic_counts
from memory.forgetting.pause import pauses_active
from memory.forgetting.run_list import RunFilter, run_as_json, runs_list
from memory.policy.effective import policies_current
from memory.policy.snapshot import Policies

# The columns by which the tree can be sorted.
SORTS = {
    "size": SortColumn("size"),
    "name": SortColumn("name", descending=False),
    "growth": SortColumn("growth"),
    "recalls": SortColumn("recalls"),
}
# The maximum numbers of child scopes, recalls, runs and keys on the page of a scope. ``LATEST`` also limits changes.
LARGEST, LATEST, LAST_RUNS, KEYS = 8, 10, 5, 20


class Level(NamedTuple):
    """A level of the tree: the scope above it, and its order."""

    parent: str
    sort: Sort


class ScopesForm(FilterForm[Level]):
    """Which level of the tree to show."""

    within = ScopeField(required=False, widget=forms.HiddenInput)
    sort = sort_field(SORTS)

    def to_filter(self) -> Level:
        """Return the level; invalid fields are ignored."""
        cleaned: dict[str, Any] = self.cleaned_data
        return Level(cleaned.get("within") or ROOT, cleaned.get("sort") or "size")


class OpenForm(forms.Form):
    """Which scope or agent to open."""

    scope = ScopeField(label="Open a scope")
    name = ActorField(label="Open an agent", placeholder="key:")


def _level(asked: ListRequest[Level], cursor: str | None, limit: int) -> tuple[list[dict[str, Any]], str | None]:
    """Return the scopes of a level. Each has its policy and its writers: the agents whose keys cover this scope but not
    the whole level. Three queries."""
    found, following = scope_children(
        asked.filter.parent,
        sort=asked.filter.sort,
        principal=asked.principal,
        now=asked.now,
        cursor=cursor,
        limit=limit,
    )
    policies = policies_current()
    above = scope_ancestors(asked.filter.parent)
    writers = scope_writers([each.path for each in found], now=asked.now, excluded=above)
    rows = [_row(each, policies, asked.filter.parent) | {"writers": writers[each.path]} for each in found]
    return rows, following


def _row(figures: ScopeFigures, policies: Policies, parent: str) -> dict[str, Any]:
    return {
        "scope": figures,
        "name": figures.path if parent == ROOT else figures.path.removeprefix(parent),
        "is_rest": figures.path == parent,
        "pieces": rung_bar(figures.rungs, share=figures.share),
        "policy": policies.effective(figures.path),
    }


def _beside_level(asked: ListRequest[Level], rows: Sequence[Any]) -> Mapping[str, Any]:
    """Return the scope whose children a level contains, the agents whose keys cover all of it, the scopes above, and
    the form to open another scope. One query."""
    *above, here = scope_ancestors(asked.filter.parent)
    return {
        "above": above,
        "here": here,
        "jumps": OpenForm(),
        "everywhere": scope_writers([here], now=asked.now)[here],
        "single": any(row["writers"].count for row in rows),
    }


# A level of the tree, largest scope first. Four queries for a page, one for the count.
SCOPES = ListPage(
    name="scopes",
    address="scopes/",
    form=ScopesForm,
    fetch=_level,
    count=lambda asked, most: scope_children_count(asked.filter.parent, principal=asked.principal, at_most=most),
    noun="scope",
    more=_beside_level,
    sorts=SORTS,
)


@page(get=READER)
def scope(request: ConsoleRequest) -> HttpResponse:
    """Show one scope, including the scopes below it: figures over time, the policy, who may write there, and the latest
    events. Fifteen queries."""
    here, principal, now = request.principal.scope_chosen(scope_of(request)), request.principal, timezone.now()
    counts = topic_counts(here)
    policies = policies_current()
    children, more = scope_children(here, sort="size", principal=principal, now=now, cursor=None, limit=LARGEST)
    has_below = any(each.path != here for each in children)
    recalls, _more = recalls_list(RecallFilter(scope=here), principal=principal, cursor=None, limit=LATEST)
    changes, _more = audit_list(AuditFilter(scope=here), principal=principal, cursor=None, limit=LATEST)
    runs, _more = runs_list(RunFilter(here, dry_run=False), cursor=None, limit=LAST_RUNS)
    keys, below = keys_reaching(here, now=now, most=KEYS)
    return show(
        request,
        "scope.html",
        {
            "here": here,
            "above": scope_ancestors(here)[:-1],
            "counts": counts,
            "pieces": rung_bar(counts.rungs),
            "policy": policies.effective(here),
            "policies_below": sum(each != here and scope_within(each, here) for each in policies.policies),
            # If there are no scopes below, there is no level to show.
            "children": [_row(each, policies, here) for each in children] if has_below else [],
            "more_children": more is not None,
            "recalls": recalls,
            "changes": changes,
            "runs": [run_as_json(run) for run in runs],
            "pauses_here": pauses_active(now, here),
            "keys": [key_as_json(key, now=now) for key in keys],
            "keys_below": below,
            "days": DAYS,
            **_figures(here, counts.live, principal),
        },
    )


def _figures(scope: str, live: int, principal: Principal) -> dict[str, Any]:
    """Return the charts and totals of a scope over the last ``DAYS`` days. Three queries."""
    now = timezone.now()
    days = activity_days(scope, days=DAYS, principal=principal, now=now)
    topics = live_days(live, days=DAYS, now=now, scope=scope)
    regrets = regret_days(days=DAYS, principal=principal, now=now, scope=scope)
    dates = [day.day for day in days]
    numbers = {
        "created": [day.created for day in topics],
        "archived": [day.archived for day in days],
        "regretted": [day.regretted for day in regrets],
        "recalls": [day.queries for day in days],
    }
    return {
        "since": dates[0],
        "live": spark_line([day.live for day in topics]),
        "gained": sum(day.change for day in topics),
        "bars": {name: spark_bars(dates, each, name) for name, each in numbers.items()},
        "totals": {name: sum(each) for name, each in numbers.items()},
    }


urlpatterns = [*SCOPES.urlpatterns, path("scope/", scope, name="scope")]
