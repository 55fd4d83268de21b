"""GET /v1/regret: archived topics that were wanted afterwards, by what, per version and per rung."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.explain.regret import regret_report
from memory.forgetting.manual_runs import BY_HAND
from memory.forgetting.runs import run_undo
from memory.models import AccessLog, ForgetRun, ShadowHit
from tests.cast import Cast, Clock, principal_like, store_rows
from tests.explain.past import BEGIN, policy_set, run_now

pytestmark = pytest.mark.django_db
FREE = {"topic_count_soft_limit": 0, "max_archive_share": 1.0}


def life(cast: Cast, clock: Clock) -> dict[str, str]:
    """Archive four topics by a run under version 1, one by a run under version 2 after a rest on the ladder, and one by
    hand; then let some of them be wanted."""
    policy_set(**FREE)
    clock.set(BEGIN)
    topics = {name: cast.agent.remember(name, scope="/user/alice") for name in ("tea", "rent", "paint", "quiet")}
    clock.forward(days=400)
    run_now(clock)
    policy_set(**FREE, half_life_days=10)
    topics["late"] = cast.agent.remember("late", scope="/work")
    topics["by hand"] = cast.agent.remember("by hand", scope="/work")
    clock.forward(days=25)
    cast.operator.post(f"/v1/topics/{topics['by hand']}/archive", {"reason": "old"}).ok()
    run_now(clock)
    clock.forward(days=100)
    run_now(clock)
    clock.forward(days=1)
    return topics


def test_lookups_restores_and_shadow_hits_are_reported_apart(cast: Cast, clock: Clock):
    topics = life(cast, clock)
    for _ in range(2):
        clock.forward(minutes=1)
        cast.reader.topic(topics["tea"])
    cast.operator.post(f"/v1/topics/{topics['rent']}/restore", {"reason": "needed"}).ok()
    access = AccessLog.objects.create(
        at=clock.now, actor="key:1", scope="/", query="paint", query_hash="x", topic_ids=[], bump=0.1, field_bump=0.1
    )
    ShadowHit.objects.create(access=access, topic_id=topics["paint"], rank=3, similarity=0.5, at=clock.now)
    cast.reader.topic(topics["by hand"])
    before = store_rows()
    report = cast.reader.get("/v1/regret").ok()
    assert store_rows() == before
    assert (report["archived"], report["regretted"]) == (6, 4)
    assert report["rate"] == pytest.approx(4 / 6)
    assert report["signals"] == {"looked_up": 2, "restored": 1, "shadow": 1}
    by_version = {(entry["by"], entry["version"]): entry for entry in report["by_version"]}
    assert {key: (entry["archived"], entry["regretted"]) for key, entry in by_version.items()} == {
        ("run", 1): (4, 3),
        ("run", 2): (1, 0),
        ("hand", None): (1, 1),
    }
    assert by_version["run", 1]["author"] == "test:operator"
    by_rung = {entry["rung"]: (entry["archived"], entry["regretted"]) for entry in report["by_rung"]}
    assert sum(archived for archived, _regretted in by_rung.values()) == 6
    assert by_rung == {"active": (5, 4), "summarized": (1, 0)}
    got = {entry["title"]: entry for entry in report["topics"]}
    assert {title: entry["signals"] for title, entry in got.items()} == {
        "tea": ["looked_up"],
        "rent": ["restored"],
        "paint": ["shadow"],
        "by hand": ["looked_up"],
    }
    assert (got["tea"]["looked_up"], got["paint"]["shadow_rank"]) == (2, 3)
    assert report["sentence"].startswith("4 of 6 archivings were regretted (66.7%): 2 looked up, 1 restored, 1 found")


def test_what_happened_before_the_archiving_or_after_the_return_is_no_regret(cast: Cast, clock: Clock):
    policy_set(**FREE)
    clock.set(BEGIN)
    topic = cast.agent.remember("tea")
    cast.reader.topic(topic)
    clock.forward(days=400)
    run_now(clock)
    clock.forward(days=1)
    assert cast.reader.get("/v1/regret").ok()["regretted"] == 0
    cast.operator.post(f"/v1/topics/{topic}/restore", {}).ok()
    clock.forward(days=1)
    cast.reader.topic(topic)
    (got,) = cast.reader.get("/v1/regret").ok()["topics"]
    assert (got["signals"], got["looked_up"]) == (["restored"], 0)


def test_each_archiving_of_a_topic_counts_by_itself(cast: Cast, clock: Clock):
    policy_set(**FREE)
    clock.set(BEGIN)
    topic = cast.agent.remember("tea")
    for _ in range(3):
        clock.forward(days=400)
        run_now(clock)
        clock.forward(days=1)
        cast.operator.post(f"/v1/topics/{topic}/restore", {}).ok()
    report = cast.reader.get("/v1/regret").ok()
    assert (report["archived"], report["regretted"], len(report["topics"])) == (3, 3, 3)
    assert len(cast.reader.get(f"/v1/topics/{topic}/why").ok()["regret"]) == 3
    between = cast.reader.get("/v1/regret?since=2027-06-01T00:00:00Z&until=2028-06-01T00:00:00Z").ok()
    assert (between["archived"], len(between["topics"])) == (1, 1)


def test_an_undone_run_archived_nothing(cast: Cast, clock: Clock):
    life(cast, clock)
    for run in ForgetRun.objects.exclude(event=BY_HAND).order_by("-created_at"):
        run_undo(run.id, principal=principal_like("operator"), reason="", now=clock.now)
    report = cast.reader.get("/v1/regret").ok()
    assert [(entry["by"], entry["archived"]) for entry in report["by_version"]] == [("hand", 1)]


def test_a_caller_sees_the_regret_of_its_own_scope(cast: Cast, clock: Clock):
    topics = life(cast, clock)
    for topic in topics.values():
        cast.reader.topic(topic)
    report = cast.auditor.get("/v1/regret").ok()
    assert {entry["scope"] for entry in report["topics"]} == {"/user/alice"}
    assert (report["archived"], report["scope"]) == (4, "/user")
    assert {(entry["author"], entry["reason"]) for entry in report["by_version"]} == {(None, None)}
    assert cast.reader.get("/v1/regret?scope=/work").ok()["archived"] == 2
    answer = cast.auditor.get("/v1/regret?scope=/work")
    assert (answer.status, answer.code) == (404, "not-found")


def test_the_card_of_a_topic_tells_of_its_regret(cast: Cast, clock: Clock):
    topics = life(cast, clock)
    cast.reader.topic(topics["tea"])
    card = cast.reader.get(f"/v1/topics/{topics['tea']}/why").ok()
    assert [entry["signals"] for entry in card["regret"]] == [["looked_up"]]
    assert any(text.endswith("looked up once.") for text in card["sentences"])
    assert cast.reader.get(f"/v1/topics/{topics['quiet']}/why").ok()["regret"] == []


def test_a_store_in_which_nothing_was_archived_says_so(cast: Cast):
    cast.agent.remember("tea")
    report = cast.reader.get("/v1/regret").ok()
    assert (report["archived"], report["rate"], report["topics"]) == (0, 0, [])
    assert report["sentence"] == "Nothing was archived in this period."


def test_bad_limits_and_moments_are_refused(cast: Cast):
    assert cast.reader.get("/v1/regret?limit=100000").status == 422
    assert cast.reader.get("/v1/regret?since=yesterday").status == 422
    assert cast.reader.get("/v1/regret?since=2026-01-01T00:00:00").status == 422


def test_the_report_costs_the_same_number_of_queries_however_much_was_archived(cast: Cast, clock: Clock):
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as caught:
            regret_report(scope="/", principal=principal_like("reader"), now=clock.now)
        counts.append(len(caught))
        for topic in life(cast, clock).values():
            cast.reader.topic(topic)
    assert counts[0] == counts[1] == 2
