"""Home: its figures are right, every number leads to its list, and what is wrong comes first."""

import datetime as dt
import html
import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from django_q.models import Failure, OrmQ

from memory import health
from memory.access.principal import SYSTEM
from memory.console.queries.daily_counts import activity_days, live_days
from memory.console.queries.first_steps import first_steps
from memory.console.sparklines import limit_gauge, rung_bar, spark_bars, spark_line
from memory.duplicates.detect import duplicates_find
from memory.explain.regret import regretted_list
from memory.explain.topic_counts import topic_counts
from memory.forgetting.manual_actions import topics_archive, topics_restore
from memory.forgetting.runs import run_start
from memory.forgetting.soft_limit import SoftLimit
from memory.jobs import tasks
from memory.models import AccessLog, ApiKey, ForgetRun, Topic, TopicDocument, TopicVector
from memory.policy.schedules import cron_schedules_sync
from memory.stores.models import WorkerHeartbeat
from memstate_site.staticfiles import release_make
from tests.cast import Caller, Clock, worker_turn
from tests.console.people import statements_of
from tests.forgetting.shop import policy_put, topics_make

pytestmark = pytest.mark.django_db
PART = {"HX-Request": "true"}
PARTS = ("inbox", "health", "gauges", "regret")


def text_of(client: Client, address: str, **options: Any) -> str:
    reply = client.get(address, **options)
    assert reply.status_code == 200, (address, reply.status_code)
    return reply.content.decode()


def words_of(page: str) -> str:
    """Return a page as text, without markup."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def story(operator: Caller) -> list[str]:
    """Twelve topics: two archived, one brought back, one released, one pinned, asked about four times."""
    ids = [operator.remember(f"Topic {place}") for place in range(12)]
    for topic in ids[:3]:
        operator.post(f"/v1/topics/{topic}/archive", {"reason": "over"}).ok()
    operator.post(f"/v1/topics/{ids[0]}/restore", {"reason": "not over"}).ok()
    operator.post(f"/v1/topics/{ids[4]}/pin", {"reason": "dear"}).ok()
    Topic.objects.filter(pk=ids[5]).update(released_at=timezone.now())
    Topic.objects.get(pk=ids[5]).vitality.__class__.objects.filter(pk=ids[5]).update(live=False)
    for place in range(4):
        operator.post("/v1/query", {"q": f"Topic {place}"}).ok()
    return ids


def numbers_of(page: str) -> dict[str, tuple[int, str]]:
    """Return the numbers over the page by name, each with the address that it leads to."""
    found = re.findall(
        r'<a class="stat" href="([^"]+)"><span class="stat-name">(?:<span[^>]*>)?(\w+)(?:</span>)?</span>'
        r'<span class="stat-number">([\d,]+)</span>',
        page,
    )
    return {name.lower(): (int(count.replace(",", "")), html.unescape(url)) for url, name, count in found}


def counted(client: Client, url: str) -> int:
    """Return how many rows the list at an address has, as its own count says."""
    path, _mark, query = url.partition("?")
    said = client.get(f"{path}count/?{query}", headers=PART).content.decode()
    return int(said.split()[0].replace(",", ""))


def test_the_numbers_are_the_store_s_and_lead_to_lists_of_as_many(looker: Client, operator: Caller) -> None:
    story(operator)

    numbers = numbers_of(text_of(looker, "/"))

    assert {name: count for name, (count, _url) in numbers.items()} == {
        "active": 9,
        "summarized": 0,
        "detached": 0,
        "archived": 2,
        "pinned": 1,
        "released": 1,
    }
    assert sum(count for name, (count, _url) in numbers.items() if name != "pinned") == Topic.objects.count()
    for name, (count, url) in numbers.items():
        text_of(looker, url)
        assert counted(looker, url) == count, name


def test_every_link_of_the_home_and_its_parts_is_answered(administrator: Client, operator: Caller) -> None:
    story(operator)
    cron_schedules_sync(now=timezone.now())
    # What stands in the frame of every page has tests of its own.
    pages = [text_of(administrator, "/").partition("<main")[2]]
    pages += [text_of(administrator, f"/overview/{part}/", headers=PART) for part in PARTS]
    links = {html.unescape(url) for page in pages for url in re.findall(r'<a [^>]*href="(/[^"]*)"', page)}

    assert len(links) > 20
    for url in links:
        assert administrator.get(url).status_code == 200, url


def test_what_an_undo_took_back_was_not_archived(operator: Caller) -> None:
    ids = [operator.remember(f"Topic {place}") for place in range(3)]
    now = timezone.now()
    topics = list(Topic.objects.filter(pk__in=ids).values_list("pk", flat=True))
    topics_archive(topics, principal=SYSTEM, reason="", now=now)
    run = ForgetRun.objects.get(event="by_hand")
    today = activity_days("/", days=2, principal=SYSTEM, now=timezone.now())[-1]
    assert (today.archived, today.by_hand) == (3, 3)

    operator.post(f"/v1/runs/{run.pk}/undo", {"reason": "no"})

    today = activity_days("/", days=2, principal=SYSTEM, now=timezone.now())[-1]
    assert (today.archived, today.restored) == (0, 0)


def test_days_are_counted_in_utc_and_by_scope(agent: Caller, operator: Caller, clock: Clock) -> None:
    agent.remember("Red", scope="/team/red")
    agent.remember("Reds", scope="/team/reds")
    topic = Topic.objects.get(title="Red")
    topics_archive([topic.pk], principal=SYSTEM, reason="", now=timezone.now())
    topics_restore([topic.pk], principal=SYSTEM, reason="", now=timezone.now())

    days = activity_days("/team/red", days=3, principal=SYSTEM, now=timezone.now())

    assert [day.ingested for day in days] == [0, 0, 1]
    assert (days[-1].archived, days[-1].restored) == (1, 1)
    assert activity_days("/team", days=3, principal=SYSTEM, now=timezone.now())[-1].ingested == 2
    assert activity_days("/", days=1, principal=SYSTEM, now=timezone.now() + dt.timedelta(days=9))[0].ingested == 0


def test_a_check_that_fails_stands_first_with_what_to_do(looker: Client) -> None:
    WorkerHeartbeat.objects.create(name="worker", seen_at=timezone.now() - dt.timedelta(hours=2))
    now = timezone.now()
    Failure.objects.create(id="1", name="x", func="memory.jobs.tasks.tidy", started=now, stopped=now, success=False)

    page = text_of(looker, "/overview/health/", headers=PART)

    assert "2 issues need attention" in page
    # What passed is folded; what failed is not.
    folded, _tag, amiss = page.partition("</details>")
    assert " open" not in folded
    assert "The worker last reported 2 hours ago" in amiss
    assert "All migrations are applied." in folded
    assert "start <code>python manage.py up</code>" in page
    assert "1 job failed in the last 24 hours" in page
    assert f"{len(health.ALL_CHECKS) - 2} checks passed" in page
    assert "All migrations are applied." in page


def test_all_is_well_and_every_check_stays_visible(looker: Client) -> None:
    WorkerHeartbeat.objects.create(name="worker", seen_at=timezone.now())

    page = text_of(looker, "/overview/health/", headers=PART)

    assert f"All {len(health.ALL_CHECKS)} checks passed" in page
    assert "<details" in page
    assert " open" not in page.partition("<details")[2].partition(">")[0]
    assert "data-live" in text_of(looker, "/")


def test_a_held_run_is_a_call_to_look_at_it(looker: Client) -> None:
    now = timezone.now()
    run = ForgetRun.objects.create(
        id="01991f3a-0000-7000-8000-000000000001",
        scope="/team",
        event="cron",
        status="held",
        actor="system",
        policy_version=0,
        judged_at=now,
        created_at=now,
        planned=3,
        counts={"archived": 3},
        held_because="It would archive 3 of 4 active memories.",
    )

    page = text_of(looker, "/")

    assert "waits for approval" in page
    assert "It would archive 3 of 4 active memories." in page
    assert f"/runs/{run.pk}/" in page


def test_first_steps_stay_until_the_first_run(looker: Client, administrator: Client, agent: Caller) -> None:
    page = text_of(looker, "/")
    assert "First steps" in page
    assert "make demo" in page
    for address in ("http://testserver/v1/ingest", "http://testserver/v1/client.py", "http://testserver/mcp"):
        assert address in page
    assert "X-API-Key: $MEMSTATE_KEY" in page
    assert "/keys/new/" not in page
    page = text_of(administrator, "/")
    assert "/keys/new/" in page
    assert 'action="/demo/"' in page

    def undone() -> int:
        return text_of(looker, "/").partition('<ol class="first-steps">')[2].partition("</ol>")[0].count("<li>")

    assert undone() == 4
    agent.remember("Something")
    assert undone() == 2
    agent.query("What is there?")
    assert undone() == 1
    run_start("/", event="manual", dry_run=True, principal=SYSTEM, now=timezone.now())
    assert "First steps" not in text_of(looker, "/")


def test_the_recalls_of_the_demo_take_no_step(agent: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "DEMO_TOPICS", 30)
    tasks.demo_load()
    assert AccessLog.objects.filter(kind="query").exists()
    steps = first_steps()
    assert (steps.topics, steps.key, steps.recall) == (True, False, False)
    agent.query("What is there?")
    steps = first_steps()
    assert (steps.key, steps.recall) == (True, True)


def test_the_demo_is_loaded_by_the_worker_into_an_empty_store_only(
    op: Client, looker: Client, agent: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert looker.post("/demo/").status_code == 403
    assert op.post("/demo/").status_code == 302
    assert [each.func() for each in OrmQ.objects.all()] == ["memory.jobs.tasks.demo_load"]
    assert '<progress max="2000" value="0"' in text_of(op, "/demo/progress/", headers=PART)
    monkeypatch.setattr(tasks, "DEMO_TOPICS", 30)
    assert 30 == tasks.demo_load() <= Topic.objects.count()
    assert tasks.demo_load() == 0
    OrmQ.objects.all().delete()
    assert "memories already" in op.post("/demo/", follow=True).content.decode()
    assert not OrmQ.objects.exists()


def test_the_first_look_is_light_and_draws_without_plotly(
    looker: Client, operator: Caller, settings: Any, tmp_path: Path
) -> None:
    story(operator)
    settings.MEMSTATE_RELEASE_DIR = tmp_path / "static"
    folder = release_make()
    page = text_of(looker, "/")
    assert page.count('class="spark"') == 4
    files = re.findall(r'(?:href|src)="[^"]*?/((?:console|django_htmx|fonts|plotly)/[^"]+\.(?:css|js|svg|ttf))"', page)
    assert len(files) >= 5
    assert not any("plotly" in name for name in files)
    sizes = [(folder / f"{name}.gz").stat().st_size for name in files]
    parts = sum(len(text_of(looker, f"/overview/{part}/", headers=PART)) for part in PARTS)
    assert sum(sizes) + len(page) + parts < 200_000


def test_what_waits_is_counted_in_the_menu_and_named_at_home(looker: Client) -> None:
    page = text_of(looker, "/")
    assert 'class="waits' not in page
    assert "Nothing waits for you." in page
    now = timezone.now()
    Failure.objects.create(id="1", name="x", func="memory.jobs.tasks.tidy", started=now, stopped=now, success=False)
    page = text_of(looker, "/")
    assert re.search(r'Settings <span class="waits num" title="Waiting">1</span>', page)
    assert "1 job</a> failed in the last 24 hours" in page
    assert 'class="waits' in text_of(looker, "/audit/")


def test_what_was_missed_and_what_is_alike_is_decided_from_home(
    administrator: Client, looker: Client, operator: Caller
) -> None:
    (faded,) = topics_make(operator, 1, salience=0.001)
    policy_put(operator, preset="memstate", topic_count_soft_limit=0, max_archive_share=1.0)
    run_start("/", event="cron", dry_run=False, principal=SYSTEM, now=timezone.now())
    assert operator.topic(faded)["rung"] == "archived"
    operator.get(f"/v1/topics/{faded}").ok()
    for _time in range(2):
        operator.remember("The boiler is serviced in May")
    duplicates_find("/", now=timezone.now())
    now = timezone.now()
    ApiKey.objects.update(created_at=now - dt.timedelta(days=30), last_used_at=None)
    ApiKey.objects.filter(name="agent").update(expires_at=now + dt.timedelta(days=2))

    inbox = text_of(administrator, "/overview/inbox/", headers=PART)
    assert f'formaction="/topics/{faded}/restore/"' in inbox
    assert "1 pair</a> may be one memory each" in inbox
    assert "agent</a> expires" in inbox
    assert "never used" in inbox
    # A reader sees what waits, and neither buttons nor keys.
    seen = text_of(looker, "/overview/inbox/", headers=PART)
    assert f'href="/topics/{faded}/"' in seen
    assert "formaction" not in seen
    assert "never used" not in seen

    (merge,) = re.findall(r'href="(/duplicates/merge/[^"]+)"', inbox)
    assert "The boiler is serviced in May" in text_of(administrator, html.unescape(merge))
    administrator.post(f"/topics/{faded}/restore/", {"reason": "", "next": "/"})
    assert operator.topic(faded)["rung"] == "active"
    assert str(faded) not in text_of(administrator, "/overview/inbox/", headers=PART)


def test_the_line_of_live_topics_follows_what_was_written_and_archived(operator: Caller, clock: Clock) -> None:
    noon = dt.datetime(2026, 3, 10, 12, tzinfo=dt.UTC)
    clock.set(noon)
    ids = [operator.remember(f"Topic {place}") for place in range(5)]
    clock.set(noon + dt.timedelta(days=2))
    topics_archive([uuid.UUID(each) for each in ids[:2]], principal=SYSTEM, reason="", now=noon + dt.timedelta(days=2))
    now = noon + dt.timedelta(days=3)
    clock.set(now)
    topics_restore([uuid.UUID(ids[0])], principal=SYSTEM, reason="", now=now)

    assert topic_counts().live == 4
    assert [day.live for day in live_days(4, days=5, now=now)] == [0, 5, 5, 3, 4]


def test_it_is_said_whether_anything_leaves_the_machine(looker: Client, settings: Any) -> None:
    assert "Nothing leaves this machine." in text_of(looker, "/")

    settings.MEMSTATE_LLM_MODEL = "a-model"
    settings.MEMSTATE_LLM_BASE_URL = "https://user:hush@models.example/v1?key=hush"
    page = text_of(looker, "/")
    assert "Some texts leave this machine." in page
    assert "models.example" in page
    assert "hush" not in page

    settings.MEMSTATE_LLM_MODEL = ""
    settings.MEMSTATE_EMBEDDER = "openai"
    settings.MEMSTATE_OPENAI_BASE_URL = ""
    assert "api.openai.com to become vectors" in text_of(looker, "/")


def test_parts_are_pages_of_their_own_without_script(looker: Client, agent: Caller) -> None:
    agent.remember("Something")
    page = text_of(looker, "/")
    # Without script, missed memories are behind their number.
    assert all(f'href="/overview/{part}/"' in page for part in ("health", "regret"))
    for part in PARTS:
        alone = text_of(looker, f"/overview/{part}/")
        assert "<h1>" in alone
        assert "<h1>" not in text_of(looker, f"/overview/{part}/", headers=PART)


def test_it_costs_the_same_for_few_topics_and_many(looker: Client, agent: Caller) -> None:
    def costs() -> dict[str, int]:
        addresses = ("/", *(f"/overview/{part}/" for part in PARTS), "/recalls/")
        return {
            address: statements_of(lambda address=address: looker.get(address, headers=PART)) for address in addresses
        }

    for place in range(10):
        agent.remember(f"Topic {place}")
    agent.query("Topic 1")
    costs()
    few = costs()
    for place in range(190):
        agent.remember(f"Topic {place + 10}")
        if place % 10 == 0:
            agent.post("/v1/query", {"q": f"Topic {place}"}).ok()

    assert costs() == few
    assert few["/"] <= 16
    assert max(few.values()) <= 24
    print(few)


def test_the_bar_of_rungs_fills_its_width_and_shows_even_few() -> None:
    pieces = rung_bar({"active": 10_000, "summarized": 1, "detached": 0, "archived": 5_000})

    assert [piece["rung"] for piece in pieces] == ["active", "summarized", "archived"]
    assert all(piece["width"] >= 5 for piece in pieces)
    assert abs(pieces[-1]["x"] + pieces[-1]["width"] - 1000) <= 2
    assert rung_bar({"active": 0}) == []


def test_a_gauge_never_leaves_its_scale() -> None:
    for active, limit in ((0, 0), (1, 0), (0, 500), (500, 500), (9_000_000, 1)):
        gauge = limit_gauge(SoftLimit("/", active, limit, "auto"))
        assert 0 <= gauge["part"] <= 1000
        assert 0 <= gauge["mark"] <= 1000


def test_the_gauge_the_gate_and_the_card_count_alike_over_nested_limits(looker: Client, operator: Caller) -> None:
    values = {"strategy": "static", "prune_after_days": 0, "max_archive_share": 1.0}
    for scope, limit in (("/", 3), ("/a", 3), ("/a/b", 4)):
        policy_put(operator, scope, **values, topic_count_soft_limit=limit)
    # One that counts although it is no longer active, and in each scope one that is due.
    (faded,) = topics_make(operator, 1, scope="/a", salience=0.2)
    run_start("/a", event="manual", dry_run=False, principal=SYSTEM, now=timezone.now())
    assert operator.topic(faded)["rung"] == "summarized"
    topics_make(operator, 1, scope="/a")
    due = {scope: topics_make(operator, 1, scope=scope, salience=0.01)[0] for scope in ("/c", "/a", "/a/b")}

    gauges = words_of(text_of(looker, "/")) + words_of(text_of(looker, "/overview/gauges/", headers=PART))
    found = re.findall(r"(\d+) live(?: in (\S+))? · soft limit (\d+) (Above|Below)", gauges)
    assert found == [("1", "", "3", "Below"), ("3", "/a", "3", "Above"), ("1", "/a/b", "4", "Below")]
    gates = {scope: operator.get(f"/v1/topics/{topic}/why").ok()["next"]["gate"] for scope, topic in due.items()}
    assert gates["/a"] == ""
    assert gates["/c"].startswith("/ has 1 live memory, fewer than its soft limit of 3")
    assert gates["/a/b"].startswith("/a/b has 1 live memory, fewer than its soft limit of 4")
    assert all(gates[scope] in words_of(text_of(looker, f"/topics/{topic}/")) for scope, topic in due.items())
    run_start("/", event="cron", dry_run=False, principal=SYSTEM, now=timezone.now())
    assert {scope: operator.topic(topic)["rung"] for scope, topic in due.items()} == {
        "/c": "active",
        "/a": "archived",
        "/a/b": "active",
    }


def test_sparklines_stay_in_their_picture() -> None:
    days = [dt.date(2026, 3, 1) + dt.timedelta(days=place) for place in range(30)]
    for counts in ([0] * 30, [5] * 30, list(range(30)), [10_000, *[1] * 29]):
        bars = spark_bars(days, counts, "recalls")
        assert len(bars) == 30
        assert all(0 <= bar["y"] <= 40 and abs(bar["y"] + bar["height"] - 40) < 0.2 for bar in bars)
        assert all(bar["none"] == (not count) for bar, count in zip(bars, counts, strict=True))
        heights = [float(point.split(",")[1]) for point in spark_line(counts)["line"].lstrip("M").split("L")]
        assert all(0 <= height <= 40 for height in heights)
    assert spark_bars(days, [0] * 29 + [1], "recalls")[-1]["words"] == "30 Mar: 1 recalls"


def test_the_share_of_regret_is_of_runs_and_leads_to_a_list_of_as_many(looker: Client, operator: Caller) -> None:
    values = {"strategy": "static", "prune_after_days": 0, "topic_count_soft_limit": 0}
    operator.put("/v1/policies/", {"values": values, "reason": "for the test"}).ok()
    ids = [operator.remember(f"Topic {place}", salience=0.001) for place in range(5)]
    run_start("/", event="cron", dry_run=False, principal=SYSTEM, now=timezone.now())
    operator.get(f"/v1/topics/{ids[0]}").ok()
    topics_restore([uuid.UUID(each) for each in ids[:2]], principal=SYSTEM, reason="", now=timezone.now())
    # What people archive and restore says nothing of the policy.
    topics_archive([uuid.UUID(ids[0])], principal=SYSTEM, reason="", now=timezone.now())
    topics_restore([uuid.UUID(ids[0])], principal=SYSTEM, reason="", now=timezone.now())

    part = text_of(looker, "/overview/regret/", headers=PART)
    url = html.unescape(re.findall(r'href="(/overview/regretted/[^"]+)"', part)[0])

    assert "40.0%" in part
    assert "2 of 5 by runs" in part
    assert counted(looker, url) == 2
    assert text_of(looker, url).count('<td class="title">') == 2
    assert counted(looker, "/overview/regretted/") == 2
    assert counted(looker, "/overview/regretted/?by=anyone") == 3
    assert counted(looker, "/overview/regretted/?by=hand") == 1


def test_regretted_archivings_follow_each_other_without_a_gap_or_a_repeat(operator: Caller) -> None:
    ids = [uuid.UUID(operator.remember(f"Topic {place}")) for place in range(3)]
    for _again in range(3):
        topics_archive(ids, principal=SYSTEM, reason="", now=timezone.now())
        topics_restore(ids, principal=SYSTEM, reason="", now=timezone.now())
    now, seen, cursor = timezone.now(), [], None
    while True:
        rows, cursor = regretted_list(scope="/", principal=SYSTEM, now=now, cursor=cursor, limit=2)
        seen += [(row["regretted_at"], row["topic_id"], row["archived_at"]) for row in rows]
        if cursor is None:
            break
    assert len(seen) == 9
    assert seen == sorted(set(seen), reverse=True)


def test_home_tells_how_far_search_is_prepared(looker: Client, agent: Caller) -> None:
    ids = [agent.remember(f"Note {number}") for number in range(3)]
    TopicDocument.objects.filter(pk=ids[0]).update(outdated=True)
    TopicVector.objects.filter(pk__in=ids[:2]).update(embedding=None)
    for address, options in (("/", {}), ("/overview/search/", {"headers": PART})):
        shown = words_of(text_of(looker, address, **options))
        assert "By words: 2 of 3 " in shown
        assert "By meaning: 1 of 3 " in shown
    worker_turn()
    assert words_of(text_of(looker, "/overview/search/", headers=PART)) == ""
    assert "of 3 memories are ready" not in text_of(looker, "/")
