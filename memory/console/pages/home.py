"""Home: what needs a decision, four numbers over the last days, health, and the next runs. Slow parts load later."""

import datetime as dt
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from memory.access.keys import keys_expiring, keys_unused
from memory.console.fields import ActorField, ScopeField, filter_choice
from memory.console.list_page import ListPage
from memory.console.page import ADMINISTRATOR, OPERATOR, READER, ConsoleRequest, go, page, show
from memory.console.people import may
from memory.console.queries.daily_counts import activity_days, live_days
from memory.console.queries.first_steps import first_steps
from memory.console.queries.search_progress import search_progress
from memory.console.sparklines import limit_gauge, rung_bar, spark_bars, spark_line
from memory.console.time_ranges import MinuteField, RangeForm
from memory.core.scopes import ROOT, scope_within
from memory.duplicates.pair_actions import MAX_AT_ONCE
from memory.duplicates.pairs import PairFilter, pairs_count
from memory.explain.regret import regret_days, regretted_count, regretted_list
from memory.explain.topic_counts import topic_counts
from memory.forgetting.pause import pauses_active
from memory.forgetting.run_list import RunFilter, run_as_json, runs_held, runs_list
from memory.forgetting.soft_limit import limit_scopes, soft_limits
from memory.health import health_watch, outside_check, worker_check
from memory.jobs import tasks
from memory.policy.effective import policies_current
from memory.policy.schedules import schedules_next

DAYS = 30
LAST_RUNS = 5
NEXT_RUNS = 4
SCOPES = 5
# What was archived within these days and needed again is listed as missed, until it is restored.
MISSED_DAYS = 7
MISSED_SHOWN = 3
# The most archivings that are read, and the most keys that are listed.
MAX_READ = 500
KEYS_SHOWN = 3
# Listed are keys that expire within these days, and those that were created before them and never used.
KEY_DAYS = 7

# For each health check: the URL name of the page to open, and its label.
FINDING_PAGES = {
    "worker": ("schedules", "Worker and queue"),
    "queue": ("schedules", "Worker and queue"),
    "failures": ("schedules", "Worker and queue"),
    "reinforcement": ("schedules", "Worker and queue"),
    "reasoner": ("schedules", "Worker and queue"),
    "embeddings": ("schedules", "Worker and queue"),
    "policies": ("policies", "Policies"),
    "runs": ("runs", "Runs"),
    "model": ("model", "Model"),
}


class RegrettedForm(RangeForm[dict[str, Any]]):
    """The filter of the list of archived topics that were needed afterwards. The time is that of the archiving."""

    scope = ScopeField(required=False)
    author = ActorField(required=False, label="Written by", placeholder="a user or a key")
    by = filter_choice("Archived by", [("", "A run"), ("hand", "A person"), ("anyone", "Anyone")])
    since = MinuteField(label="Archived from (UTC)")

    field_order = ("scope", "author", "by")

    def to_filter(self) -> dict[str, Any]:
        """Return the filter; invalid fields are ignored."""
        cleaned: dict[str, Any] = self.cleaned_data
        since, until = self.period()
        return {
            "scope": cleaned.get("scope") or ROOT,
            "writer": cleaned.get("author") or None,
            # Only archivings by runs measure the policy.
            "by": {"hand": "hand", "anyone": None}.get(cleaned.get("by", ""), "run"),
            "since": since,
            "until": until,
        }


@page(get=READER)
def home(request: ConsoleRequest) -> HttpResponse:
    """Show the numbers, what needs a decision, and placeholders for the slow parts. At most twenty queries."""
    now = timezone.now()
    standing, steps = topic_counts(), first_steps()
    policies = policies_current()
    runs, _following = runs_list(RunFilter(ROOT, dry_run=False), cursor=None, limit=LAST_RUNS)
    days = activity_days(ROOT, days=DAYS, principal=request.principal, now=now)
    topics = live_days(standing.live, days=DAYS, now=now)
    dates = [day.day for day in days]
    by_hand = sum(day.by_hand for day in days)
    pauses = pauses_active(now)
    return show(
        request,
        "home.html",
        {
            "standing": standing,
            "pieces": rung_bar(standing.rungs),
            "live": spark_line([day.live for day in topics]),
            "gained": sum(day.change for day in topics),
            # For an empty store, no charts are drawn.
            "recalls": spark_bars(dates, [day.queries for day in days], "recalls") if standing.total else None,
            "recalled": sum(day.queries for day in days),
            "archivings": spark_bars(dates, [day.archived for day in days], "archived") if standing.total else None,
            "archived": sum(day.archived for day in days),
            "archived_hint": f"in {DAYS} days, of which {by_hand:,} by hand" if by_hand else f"in {DAYS} days",
            "since": dates[0],
            "gauge": limit_gauge(soft_limits(policies, [ROOT])[0]),
            "outside": outside_check(),
            **_decisions(request, now),
            "runs": [run_as_json(run) for run in runs],
            "pauses": pauses,
            "coming": [
                {**run, "braked": any(scope_within(run["scope"], pause.scope) for pause in pauses)}
                for run in schedules_next(most=NEXT_RUNS)
            ],
            "worker": worker_check(now),
            "scopes": min(SCOPES, len(limit_scopes(policies)) - 1),
            "days": DAYS,
            "steps": steps,
            # The demo begins in an empty store. It is in progress until its topics have vectors.
            "demo": None if steps.topics and steps.embedded else tasks.demo_progress(),
            "search": search_progress(standing.total, now=now),
        },
    )


@page(get=READER)
def home_inbox(request: ConsoleRequest) -> HttpResponse:
    """Show what needs a decision. The query for missed memories reads all archivings of ``MISSED_DAYS`` days, so the
    page itself is shown without them. Seven queries at most."""
    now = timezone.now()
    found, _following = regretted_list(
        scope=ROOT,
        principal=request.principal,
        now=now,
        cursor=None,
        limit=MAX_READ,
        since=now - dt.timedelta(days=MISSED_DAYS),
        by="run",
    )
    missed = {row["topic_id"]: row for row in found if row["rung"] == "archived"}
    shown = list(missed.values())[:MISSED_SHOWN]
    context = {**_decisions(request, now), "missed": shown, "missed_more": len(missed) - len(shown)}
    return _part(request, "inbox", "Needs a decision", context)


def _decisions(request: ConsoleRequest, now: dt.datetime) -> dict[str, Any]:
    """Return what needs a decision, without missed memories. Five queries at most."""
    held, waiting = runs_held()
    alike = pairs_count(PairFilter(verdict="duplicate", held=False), principal=request.principal, at_most=MAX_AT_ONCE)
    context: dict[str, Any] = {
        "held": [run_as_json(run) for run in held],
        "held_more": waiting - len(held),
        # More cannot be merged at once.
        "alike": alike if alike <= MAX_AT_ONCE else 0,
    }
    if may(request.role, ADMINISTRATOR):
        soon, long_ago = now + dt.timedelta(days=KEY_DAYS), now - dt.timedelta(days=KEY_DAYS)
        context["expiring"] = keys_expiring(before=soon, now=now, most=KEYS_SHOWN)
        context["unused"] = keys_unused(created_before=long_ago, now=now)
    return context


@page(post=OPERATOR)
def demo_start(request: ConsoleRequest) -> HttpResponse:
    """Enqueue the load of the demo data if the store is empty. Two queries."""
    if topic_counts().total:
        messages.warning(request, "The store has memories already, so no demo data was loaded.")
    else:
        tasks.demo_enqueue()
    return go(request, "console:home")


@page(get=READER)
def demo_progress(request: ConsoleRequest) -> HttpResponse:
    """Return the progress of the demo for the home page, which is reloaded at its end. Two queries."""
    demo = tasks.demo_progress()
    if demo is None or not request.htmx:
        return go(request, "console:home")
    return show(request, "parts/home_demo.html", {"demo": demo})


@page(get=READER)
def home_search(request: ConsoleRequest) -> HttpResponse:
    """Show how far the preparation of search is; nothing if it is complete. Two queries."""
    return _part(request, "search", "Search", {"search": search_progress(topic_counts().total, now=timezone.now())})


@page(get=READER)
def home_health(request: ConsoleRequest) -> HttpResponse:
    """Show the health checks, failed ones first. About twenty queries on small tables."""
    findings = [
        {"name": name, "ok": found.ok, "sentence": found.sentence, "page": FINDING_PAGES.get(name)}
        for name, found in health_watch(now=timezone.now()).items()
    ]
    amiss = [finding for finding in findings if not finding["ok"]]
    return _part(
        request, "health", "Health", {"amiss": amiss, "well": [finding for finding in findings if finding["ok"]]}
    )


@page(get=READER)
def home_limits(request: ConsoleRequest) -> HttpResponse:
    """Show the soft limits of the scopes that set one. Two queries."""
    policies = policies_current()
    limits = soft_limits(policies, limit_scopes(policies)[1 : SCOPES + 1])
    return _part(request, "limits", "Limits", {"limits": [limit_gauge(limit) for limit in limits]})


@page(get=READER)
def home_regret(request: ConsoleRequest) -> HttpResponse:
    """Show how many of the topics that runs archived were needed afterwards. One query over the archivings of the last
    ``DAYS`` days."""
    days = regret_days(days=DAYS, principal=request.principal, now=timezone.now())
    archived, regretted = sum(day.archived for day in days), sum(day.regretted for day in days)
    return _part(
        request,
        "regret",
        "Missed",
        {
            "archived": archived,
            "regretted": regretted,
            "rate": regretted / archived if archived else None,
            "since": days[0].day,
            "bars": spark_bars([day.day for day in days], [day.regretted for day in days], "regretted"),
            "days": DAYS,
        },
    )


def _part(request: ConsoleRequest, name: str, title: str, context: dict[str, Any]) -> HttpResponse:
    """Return a part of the Home page, or without JavaScript a page with this part only."""
    template = f"console/parts/home_{name}.html"
    if request.htmx:
        return show(request, template.removeprefix("console/"), context)
    return show(request, "home_part.html", {"part": template, "title": title, **context})


# Archived topics that were needed afterwards, newest first. One query for a page and one for the count, each over all
# archivings of the period.
REGRETTED = ListPage(
    name="home_regretted",
    address="overview/regretted/",
    form=RegrettedForm,
    fetch=lambda asked, cursor, limit: regretted_list(
        **asked.filter, principal=asked.principal, now=asked.now, cursor=cursor, limit=limit
    ),
    count=lambda asked, most: regretted_count(**asked.filter, principal=asked.principal, now=asked.now, at_most=most),
    noun="archiving",
)
urlpatterns = [
    path("", home, name="home"),
    path("demo/", demo_start, name="demo"),
    path("demo/progress/", demo_progress, name="demo_progress"),
    path("overview/inbox/", home_inbox, name="home_inbox"),
    path("overview/health/", home_health, name="home_health"),
    path("overview/search/", home_search, name="home_search"),
    path("overview/gauges/", home_limits, name="home_limits"),
    path("overview/regret/", home_regret, name="home_regret"),
    *REGRETTED.urlpatterns,
]
