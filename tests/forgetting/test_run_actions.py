"""Rules in runs: what each action does, what is reported of it, and that a second run finds nothing left to do."""

from typing import Any

import pytest

from memory.models import Topic, TopicEdit, Vitality
from tests.cast import Caller, Clock, store_rows
from tests.forgetting.shop import JOURNALS, NOON, actions, dump, policy_put, run, rungs, topics_make


@pytest.fixture(autouse=True)
def _noon(clock: Clock) -> None:
    clock.set(NOON)


def rules_put(operator: Caller, *rules: dict[str, Any] | str, **values: Any) -> None:
    """Set rules beside a policy that forgets nothing by itself."""
    named = [{"name": f"rule {place}", **rule} if isinstance(rule, dict) else rule for place, rule in enumerate(rules)]
    three = dict.fromkeys(("theta_summary", "theta_detach", "forget_salience_threshold"), 0)
    policy_put(operator, rules=named, topic_count_soft_limit=0, strategy="static", **{**three, **values})


def compare(field: str, op: str, value: Any) -> dict[str, Any]:
    return {"field": field, "op": op, "value": value}


def made_by_rule(operator: Caller) -> Any:
    """Run, check that a second run changes nothing, and return the result of the first."""
    got = run(operator, dry_run=False)
    before = dump(*JOURNALS)
    assert run(operator, dry_run=False)["results"] == []
    assert dump(*JOURNALS) == before
    return got


def test_each_kind_lives_as_long_as_it_says(operator: Caller, clock: Clock):
    rules_put(operator, "ttl_by_kind")
    lives = {"session_state": 1, "tool_output": 7, "project_status": 30, "decision": 365, "preference": 730}
    made = {kind: operator.remember(kind, topic_kind=kind) for kind in (*lives, "identity", "observation")}
    for kind, days in lives.items():
        clock.set(NOON)
        clock.forward(days=days, seconds=-1)
        assert run(operator, dry_run=False)["results"] == []
        clock.forward(seconds=1)
        got = made_by_rule(operator)
        assert got["results"] == [f"archived:{made[kind]}"]
        (action,) = actions(operator, got["run_id"])
        assert action["why"]["rule"] == f"{kind} lives {'24h' if days == 1 else f'{days}d'}"
    clock.forward(days=10_000)
    assert run(operator, dry_run=False)["results"] == []
    assert rungs(operator, made["identity"], made["observation"]) == ["active", "active"]


def test_the_scope_and_its_age_decide(operator: Caller, clock: Clock):
    rules_put(operator, "scope_and_age")
    old = operator.remember("Plan", scope="/project/old/deep")
    operator.remember("Plan", scope="/project/older")
    clock.forward(days=30)
    assert run(operator, dry_run=False)["results"] == []
    clock.forward(seconds=1)
    assert made_by_rule(operator)["results"] == [f"archived:{old}"]


def test_one_run_unpins_and_archives(operator: Caller):
    topic_id = operator.remember("Draft", pinned=True)
    kept = operator.remember("Final", pinned=True)
    draft = compare("title", "contains", "draft")
    rules_put(operator, {"condition": draft, "action": "unpin"}, {"condition": draft, "action": "archive"})
    got = made_by_rule(operator)
    assert got["results"] == [f"archived:{topic_id}", f"unpinned:{topic_id}"]
    assert got["counts"] == {"summarized": 0, "detached": 0, "archived": 1, "restored": 0, "unpinned": 1}
    assert (Vitality.objects.get(pk=topic_id).pinned, Vitality.objects.get(pk=topic_id).pin_reason) == (False, "")
    assert rungs(operator, topic_id, kept) == ["archived", "active"]
    operator.post(f"/v1/runs/{got['run_id']}/undo").ok()
    row = Vitality.objects.get(pk=topic_id)
    assert (row.rung, row.live, row.pinned, row.pin_reason) == (0, True, True, "asked for on ingest")


def test_what_a_rule_pins_is_spared_by_the_same_run(operator: Caller):
    topic_id = operator.remember("Allergic to nuts", salience=0.01)
    rules_put(
        operator,
        "auto_pin",
        {"condition": compare("salience", "<", 1), "action": "archive"},
        theta_summary=1,
        theta_detach=1,
        forget_salience_threshold=1,
    )
    # Ingest pins as well, so that this topic is from before the rule.
    got = made_by_rule(operator)
    assert got["results"] == [f"pinned:{topic_id}"]
    row = Vitality.objects.get()
    assert (row.rung, row.pinned, row.pin_reason) == (0, True, f"a rule, in run {got['run_id']}")


def test_categories_are_added_once_and_the_old_ones_stay_on_record(operator: Caller):
    topic_id = operator.remember("Harbor crowd", categories=["art", "zoo"])
    rules_put(
        operator,
        {"condition": compare("title", "contains", "crowd"), "action": "categorize", "category": "loud"},
        {"condition": compare("category", "has", "loud"), "action": "detach"},
    )
    got = made_by_rule(operator)
    assert got["results"] == [f"detached:{topic_id}", f"categorized:{topic_id}"]
    assert got["counts"]["categorized"] == got["counts"]["detached"] == 1
    assert Topic.objects.get().categories == ["art", "loud", "zoo"]
    edit = TopicEdit.objects.get()
    assert (edit.before, edit.actor) == ({"categories": ["art", "zoo"]}, f"run {got['run_id']}")
    (action,) = actions(operator, got["run_id"])
    assert action["changes"] == {"categories": ["loud"]}


def test_released_topics_are_gone_from_every_query_and_can_be_restored(agent: Caller, operator: Caller):
    gone, kept = agent.remember("Old tea"), agent.remember("New tea")
    rules_put(operator, {"condition": compare("title", "contains", "old"), "action": "release"})
    before = store_rows()
    got = made_by_rule(operator)
    assert (got["results"], got["counts"]["released"]) == ([f"released:{gone}"], 1)
    assert agent.found("Old tea", include_archived=True) == [kept]
    assert agent.found("?", stages=[], topic_ids=[gone], include_archived=True) == []
    after = store_rows()
    assert all(after[table] >= rows for table, rows in before.items())
    operator.post(f"/v1/topics/{gone}/restore").ok()
    assert gone in agent.found("Old tea")


def test_release_by_rule_trips_the_circuit_breaker_as_archiving_does(operator: Caller):
    topics_make(operator, 60)
    rules_put(operator, {"condition": compare("title", "contains", "topic"), "action": "release"})
    got = run(operator, dry_run=False)
    assert (got["status"], got["counts"]["released"]) == ("held", 60)
    assert "60 of 60" in got["held_because"]


def test_a_rule_spares_pinned_topics_exempt_kinds_and_exempt_scopes(operator: Caller):
    everything = compare("age", ">=", 0)
    kept = [
        operator.remember("Pinned", pinned=True),
        operator.remember("Me", topic_kind="identity"),
        operator.remember("Ours", topic_kind="active_decision"),
        operator.remember("Theirs", scope="/user/alice"),
    ]
    gone = operator.remember("Plain")
    rules_put(operator, {"condition": everything, "action": "archive"}, exempt_scopes=["/user"])
    assert made_by_rule(operator)["results"] == [f"archived:{gone}"]
    assert rungs(operator, *kept) == ["active"] * 4


def test_the_first_rule_that_matches_decides_and_the_ladder_may_go_further(operator: Caller):
    old, faded = operator.remember("Old"), operator.remember("Old and faded", salience=0.01)
    rules_put(
        operator,
        {"condition": compare("title", "contains", "old"), "action": "summarize"},
        {"condition": compare("title", "contains", "old"), "action": "archive"},
        theta_summary=0.05,
        theta_detach=0.05,
        forget_salience_threshold=0.05,
    )
    got = made_by_rule(operator)
    assert sorted(got["results"]) == sorted([f"summarized:{old}", f"archived:{faded}"])
    why = {item["topic_id"]: item["why"] for item in actions(operator, got["run_id"])}
    assert why[old]["rule"] == "rule 0"
    assert why[faded]["threshold"] == "forget_salience_threshold"


def test_what_a_rule_has_moved_climbs_back_when_the_rule_is_gone(operator: Caller):
    topic_id = operator.remember("Old")
    rules_put(operator, {"condition": compare("title", "contains", "old"), "action": "detach"})
    made_by_rule(operator)
    rules_put(operator)
    assert made_by_rule(operator)["results"] == [f"restored:{topic_id}"]


def test_a_rule_of_a_scope_holds_there_and_below_and_only_on_its_events(operator: Caller):
    here, beside = operator.remember("A", scope="/a/deep"), operator.remember("B", scope="/b")
    rules_put(operator)
    rule = {"name": "all", "condition": compare("age", ">=", 0), "action": "archive", "events": ["cron"]}
    policy_put(operator, "/a", rules=[rule])
    assert run(operator, dry_run=False)["results"] == []
    got = run(operator, event="cron", dry_run=False)
    assert got["results"] == [f"archived:{here}"]
    assert got["policy_versions"] == {"/": 1, "/a": 1}
    (action,) = actions(operator, got["run_id"])
    assert (action["why"]["rule"], action["why"]["rule_scope"], action["why"]["policy"]) == ("all", "/a", "/a")
    assert rungs(operator, beside) == ["active"]


def test_a_rule_that_is_switched_off_does_nothing(operator: Caller):
    operator.remember("Old")
    rules_put(operator, {"condition": compare("age", ">=", 0), "action": "archive", "enabled": False})
    assert run(operator, dry_run=False)["results"] == []
