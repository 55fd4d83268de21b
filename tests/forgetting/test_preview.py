"""POST /v1/policies/preview: what a draft would do to the live data, now and later; nothing is written."""

import datetime as dt
from typing import Any

import pytest

from tests.cast import Caller, Clock
from tests.forgetting.shop import NOON, dump, policy_put, run, topics_make

# Salience as stored decides, so that the numbers below are easy to follow.
PLAIN: dict[str, Any] = {"strategy": "static", "prune_after_days": 0, "topic_count_soft_limit": 0}


@pytest.fixture(autouse=True)
def _noon(clock: Clock) -> None:
    clock.set(NOON)


def preview(operator: Caller, /, **asked: Any) -> Any:
    return operator.post("/v1/policies/preview", asked).ok()


def affected(operator: Caller, /, **asked: Any) -> list[Any]:
    """Return the whole list, page by page."""
    found: list[Any] = []
    while True:
        page = preview(operator, **asked)
        found += page["affected"]
        if page["next"] is None:
            return found
        asked["cursor"] = page["next"]


@pytest.fixture
def twelve(operator: Caller) -> dict[float, list[str]]:
    """Topics of each rung, by salience, under a policy without decay."""
    policy_put(operator, **PLAIN)
    return {salience: topics_make(operator, 3, salience=salience) for salience in (0.01, 0.1, 0.2, 1.0)}


def test_without_a_draft_it_tells_what_a_run_would_do_now(operator: Caller, twelve: dict[float, list[str]]):
    found = preview(operator)
    assert (found["scope"], found["active"]) == ("/", 12)
    for step in ("summarize", "detach", "archive"):
        assert found["rungs"][step] == {"now": 3, "draft": 3, "gained": 0, "lost": 0}
    assert [topic["topic_id"] for topic in found["affected"]] == sorted(twelve[0.01]) + sorted(twelve[0.1]) + sorted(
        twelve[0.2]
    )
    assert {topic["new"] for topic in found["affected"]} == {False}
    assert run(operator)["counts"] == {"summarized": 3, "detached": 3, "archived": 3, "restored": 0}


def test_a_draft_is_counted_beside_the_policy_in_force(operator: Caller, twelve: dict[float, list[str]]):
    draft = {**PLAIN, "theta_summary": 0.15, "theta_detach": 0.12, "forget_salience_threshold": 0.11}
    found = preview(operator, values=draft)
    assert found["rungs"] == {
        "summarize": {"now": 3, "draft": 0, "gained": 0, "lost": 3},
        "detach": {"now": 3, "draft": 0, "gained": 0, "lost": 3},
        "archive": {"now": 3, "draft": 6, "gained": 3, "lost": 0},
    }
    new = affected(operator, values=draft, only_new=True, limit=2)
    assert sorted(topic["topic_id"] for topic in new) == sorted(twelve[0.1])
    assert {(topic["action"], topic["from_rung"], topic["to_rung"], topic["new"]) for topic in new} == {
        ("archived", "active", "archived", True)
    }
    every = affected(operator, values=draft, limit=2)
    assert [topic["new"] for topic in every] == [False] * 3 + [True] * 3


def test_each_topic_tells_its_score_and_the_threshold(operator: Caller, twelve: dict[float, list[str]]):
    topic = preview(operator)["affected"][0]
    assert (topic["title"][:5], topic["scope"], topic["action"], topic["score"]) == ("topic", "/", "archived", 0.01)
    assert topic["why"] == {
        "threshold": "forget_salience_threshold",
        "theta": 0.05,
        "score": 0.01,
        "strategy": "static",
        "policy": "/",
        "version": 1,
    }


def test_it_projects_to_any_moment_as_a_dry_run_for_that_moment_does(operator: Caller):
    policy_put(operator, topic_count_soft_limit=0)
    topics_make(operator, 3)
    topics_make(operator, 2, salience=4)
    moments = [(NOON + dt.timedelta(days=days)) for days in (61, 95, 131, 400)]
    found = preview(operator, at=[moment.isoformat() for moment in moments])
    assert [each["rungs"] for each in found["projections"]] == [
        {"summarize": 3, "detach": 0, "archive": 0},
        {"summarize": 0, "detach": 3, "archive": 0},
        {"summarize": 2, "detach": 0, "archive": 3},
        {"summarize": 0, "detach": 0, "archive": 5},
    ]
    for moment, projection in zip(moments, found["projections"], strict=True):
        assert projection["present"] == projection["rungs"]
        plan = run(operator, now=moment.isoformat())
        names = {"summarize": "summarized", "detach": "detached", "archive": "archived"}
        assert {step: plan["counts"][name] for step, name in names.items()} == projection["rungs"]


def test_unless_asked_it_projects_to_30_and_90_days(operator: Caller):
    found = preview(operator)
    assert [dt.datetime.fromisoformat(each["at"]) for each in found["projections"]] == [
        NOON + dt.timedelta(days=30),
        NOON + dt.timedelta(days=90),
    ]


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_the_histogram_holds_every_topic_once(operator: Caller, twelve: dict[float, list[str]], scale: str):
    run(operator, dry_run=False)
    histogram = preview(operator, scale=scale)["histogram"]
    assert len(histogram["edges"]) == 65
    assert histogram["edges"] == sorted(histogram["edges"])
    assert {rung: sum(bins) for rung, bins in histogram["rungs"].items()} == {
        "active": 3,
        "summarized": 3,
        "detached": 3,
        "archived": 3,
    }
    # Each where its salience lies; archiving has halved that of the archived ones.
    for rung, salience in {"active": 1.0, "summarized": 0.2, "detached": 0.1, "archived": 0.005}.items():
        (place,) = [place for place, count in enumerate(histogram["rungs"][rung]) if count]
        assert histogram["edges"][place] <= salience * (1 + 1e-9)
        assert salience < histogram["edges"][place + 1] * (1 + 1e-9)


def test_a_draft_of_another_half_life_is_tried_on_rows_that_have_the_old_one(operator: Caller, clock: Clock):
    policy_put(operator, topic_count_soft_limit=0)
    topics_make(operator, 4)
    clock.forward(days=40)
    assert preview(operator)["rungs"]["archive"]["draft"] == 0
    draft = {"topic_count_soft_limit": 0, "half_life_days": 5}
    found = preview(operator, values=draft)
    assert found["rungs"]["archive"] == {"now": 0, "draft": 4, "gained": 4, "lost": 0}
    assert len(found["affected"]) == 4
    # Saved, before and after the rows have been given it, the run does just that.
    policy_put(operator, **draft)
    plan = run(operator)
    assert plan["counts"]["archived"] == 4
    from memory.policy.rekey import half_lives_rekey

    assert half_lives_rekey(now=clock.now, budget_seconds=10)
    assert run(operator)["results"] == plan["results"]


def test_a_draft_of_rules_and_presets_is_tried_too(operator: Caller, clock: Clock):
    policy_put(operator, **PLAIN)
    topics_make(operator, 2, topic_kind="tool_output")
    pinned = topics_make(operator, 1, topic_kind="tool_output", pinned=True)
    topics_make(operator, 2, topic_kind="identity")
    clock.forward(days=8)
    found = preview(operator, values=PLAIN, rules=["ttl_by_kind"])
    assert found["rungs"]["archive"]["gained"] == 2
    assert {topic["why"]["rule"] for topic in found["affected"]} == {"tool_output lives 7d"}
    assert pinned[0] not in {topic["topic_id"] for topic in found["affected"]}
    assert preview(operator, preset="graduated")["rungs"]["archive"]["gained"] == 2
    # Rules that answer other events play no part.
    assert preview(operator, values=PLAIN, rules=["ttl_by_kind"], event="ingest_complete")["affected"] == []


def test_release_is_counted_with_what_is_archived_and_reported_apart_in_the_list(operator: Caller):
    policy_put(operator, **PLAIN)
    topics_make(operator, 2)
    rule = {"name": "all", "action": "release", "condition": {"field": "age", "op": ">=", "value": 0}}
    found = preview(operator, values=PLAIN, rules=[rule])
    assert found["rungs"]["archive"] == {"now": 0, "draft": 2, "gained": 2, "lost": 0}
    assert {topic["action"] for topic in found["affected"]} == {"released"}


def test_what_climbs_back_is_in_the_list(operator: Caller, twelve: dict[float, list[str]]):
    run(operator, dry_run=False)
    lower = {**PLAIN, "theta_summary": 0.06, "theta_detach": 0.055}
    found = preview(operator, values=lower)
    assert sorted((topic["topic_id"], topic["action"]) for topic in found["affected"]) == sorted(
        (topic_id, "restored") for salience in (0.1, 0.2) for topic_id in twelve[salience]
    )
    assert found["rungs"]["archive"]["draft"] == found["rungs"]["detach"]["draft"] == 0


def test_a_draft_for_a_scope_leaves_the_others_out(operator: Caller):
    policy_put(operator, **PLAIN)
    inside = topics_make(operator, 2, scope="/a/deep")
    topics_make(operator, 5, scope="/b")
    three = dict.fromkeys(("theta_summary", "theta_detach", "forget_salience_threshold"), 2)
    found = preview(operator, scope="/a", values=three)
    assert (found["scope"], found["active"], found["rungs"]["archive"]["gained"]) == ("/a", 2, 2)
    assert sorted(topic["topic_id"] for topic in found["affected"]) == sorted(inside)
    # A policy further below keeps what it says itself.
    policy_put(operator, "/a/deep", theta_summary=0.25, theta_detach=0.12, forget_salience_threshold=0.05)
    assert preview(operator, scope="/a", values=three)["affected"] == []


def test_a_preview_writes_nothing(operator: Caller, twelve: dict[float, list[str]]):
    before = dump("memory_apikey")
    preview(operator, preset="relevance", values={"half_life_days": 1}, rules=["graduated_retention"], limit=3)
    assert dump("memory_apikey") == before


def test_an_empty_store_can_be_previewed(operator: Caller):
    found = preview(operator)
    assert (found["active"], found["affected"], found["next"]) == (0, [], None)
    assert sum(map(sum, found["histogram"]["rungs"].values())) == 0


def test_pages_meet_every_topic_once_where_all_scores_are_the_same(operator: Caller):
    policy_put(operator, **PLAIN)
    made = topics_make(operator, 23, salience=0.01)
    found = affected(operator, limit=5)
    assert [topic["topic_id"] for topic in found] == sorted(made)


def test_a_topic_whose_score_is_a_threshold_is_counted_as_it_is_listed(operator: Caller, clock: Clock) -> None:
    clock.set(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    # One digit more than the threshold, which the fade key cannot tell from it: a sum of 0.2 and 0.1.
    for salience in (0.30000000000000004, 0.3, 0.29):
        operator.remember(f"Skis {salience}", salience=salience)
    values = {"theta_summary": 0.3, "theta_detach": 0.0, "forget_salience_threshold": 0.0}

    got = operator.post("/v1/policies/preview", {"scope": "/", "values": values, "event": "manual"}).ok()

    assert [topic["title"] for topic in got["affected"]] == ["Skis 0.29"]
    assert got["rungs"]["summarize"]["draft"] == 1
