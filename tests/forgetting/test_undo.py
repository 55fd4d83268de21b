"""Undo: identity for every topic that no one has touched since, and a reason for each of the others."""

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.formulas.salience import fade_key
from memory.models import AuditEvent, Field, FieldSummary, TopicEdit, Vitality
from memory.recall.access_fold import accesses_fold
from tests.cast import Caller, Clock, worker_turn
from tests.forgetting.shop import JOURNALS, NOON, actions, dump, policy_put, run, rungs, topics_make
from tests.waits import turns_until_done

# What only ever grows: summaries that were taken back stay on record, and so does what a topic was edited from.
KEPT = ("memory_fieldsummary", "memory_topicedit")


@pytest.fixture(autouse=True)
def _noon(clock: Clock, operator: Caller) -> None:
    clock.set(NOON)
    policy_put(operator, strategy="static", prune_after_days=0, topic_count_soft_limit=0)


def undo(operator: Caller, got: Any) -> Any:
    return operator.post(f"/v1/runs/{got['run_id']}/undo", {"reason": "was better"}).ok()


def reported_of(undone: Any) -> dict[str, str]:
    return {conflict["topic_id"]: conflict["why"] for conflict in undone["conflicts"]}


def written(agent: Caller, title: str, salience: float) -> str:
    topic_id = agent.remember(title, salience=salience)
    for number in range(9):
        value = {"name": "berth", "value": f"berth {number}"}
        agent.ingest("extend_topic", topic_id=topic_id, fields=[value, {"name": "price", "value": str(number)}])
    return topic_id


def counted() -> None:
    turns_until_done(worker_turn)


@pytest.mark.parametrize("salience", [0.2, 0.1, 0.01, 0.0, 5e-324])
def test_undo_is_identity_on_each_rung(agent: Caller, operator: Caller, salience: float):
    written(agent, "The harbor", salience)
    Field.objects.filter(name="price").update(salience=0.01)
    operator.post("/v1/policies/preview", {}).ok()
    policy_put(operator, strategy="static", prune_after_days=0, topic_count_soft_limit=0, mode="review")
    counted()
    before = dump(*JOURNALS, *KEPT)
    got = run(operator, dry_run=False)
    got = operator.post(f"/v1/runs/{got['run_id']}/approve").ok() if got["status"] == "held" else got
    assert got["applied"] == 1
    assert undo(operator, got) == {"run_id": got["run_id"], "restored": 1, "conflicts": [], "conflict_count": 0}
    assert not FieldSummary.objects.filter(withdrawn_at=None).exists()
    counted()
    assert dump(*JOURNALS, *KEPT) == before


def test_undo_of_a_climb_puts_the_summaries_back_in_force(agent: Caller, operator: Caller):
    topic_id = written(agent, "The harbor", 0.1)
    Field.objects.filter(name="price").update(salience=0.01)
    run(operator, dry_run=False)
    operator.patch(f"/v1/topics/{topic_id}", {"salience": 1}).ok()
    before = dump(*JOURNALS)
    summaries = list(FieldSummary.objects.filter(withdrawn_at=None).order_by("id").values())
    assert len(summaries) == 2
    got = run(operator, dry_run=False)
    assert got["results"] == [f"restored:{topic_id}"]
    assert not FieldSummary.objects.filter(withdrawn_at=None).exists()
    assert undo(operator, got)["restored"] == 1
    assert dump(*JOURNALS) == before
    assert list(FieldSummary.objects.filter(withdrawn_at=None).order_by("id").values()) == summaries


def test_undo_brings_topics_back_into_retrieval_with_their_words(agent: Caller, operator: Caller):
    hub, gone = agent.remember("Kitchen"), agent.remember("Tea in the cellar", salience=0.01)
    agent.ingest("extend_topic", topic_id=hub, edges=[{"to_topic_id": gone, "kind": "holds"}])
    got = run(operator, dry_run=False)
    assert agent.found("tea cellar", topic_ids=[gone]) == []
    undo(operator, got)
    assert gone in agent.found("tea cellar")
    (bundle,) = agent.query("?", stages=["structural"], topic_ids=[hub])["candidates"]
    assert [each["topic_id"] for each in bundle["neighbors"]] == [gone]


def test_whatever_happened_to_a_topic_since_stays_and_is_reported(agent: Caller, operator: Caller, clock: Clock):
    names = ("restored", "pinned", "retrieved", "weighed", "edited", "untouched")
    made = {name: agent.remember(name, salience=0.11) for name in names}
    got = run(operator, dry_run=False)
    assert len(got["results"]) == len(names)
    operator.post(f"/v1/topics/{made['restored']}/archive").ok()
    operator.post(f"/v1/topics/{made['restored']}/restore").ok()
    operator.post(f"/v1/topics/{made['pinned']}/pin").ok()
    operator.query("?", stages=["structural"], topic_ids=[made["retrieved"]])
    assert accesses_fold(now=NOON)
    operator.patch(f"/v1/topics/{made['weighed']}", {"salience": 0.1}).ok()
    operator.patch(f"/v1/topics/{made['edited']}", {"topic_kind": "finding"}).ok()
    before = {name: operator.topic(topic_id) for name, topic_id in made.items()}
    undone = undo(operator, got)
    assert (undone["restored"], undone["conflict_count"]) == (1, 5)
    assert reported_of(undone) == {
        made["restored"]: "It has since been moved: it is active now.",
        made["pinned"]: "It was pinned since.",
        made["retrieved"]: "It was recalled since.",
        made["weighed"]: "Its salience was changed since.",
        made["edited"]: "It was edited since.",
    }
    assert rungs(operator, made["untouched"]) == ["active"]
    for name in names[:-1]:
        assert operator.topic(made[name]) == before[name]
    listed = {item["topic_id"]: item["note"] for item in actions(operator, got["run_id"], state="conflict")}
    assert listed == reported_of(undone)


def test_what_a_later_run_moved_further_is_a_conflict_and_undoing_in_turn_is_none(agent: Caller, operator: Caller):
    topic_id = agent.remember("Tea", salience=0.1)
    first = run(operator, dry_run=False)
    policy_put(
        operator,
        strategy="static",
        prune_after_days=0,
        topic_count_soft_limit=0,
        theta_detach=0.2,
        forget_salience_threshold=0.15,
    )
    second = run(operator, dry_run=False)
    assert (first["results"], second["results"]) == ([f"detached:{topic_id}"], [f"archived:{topic_id}"])
    assert rungs(operator, topic_id) == ["archived"]
    undo(operator, second)
    assert rungs(operator, topic_id) == ["detached"]
    assert reported_of(undo(operator, first)) == {}
    assert (rungs(operator, topic_id), Vitality.objects.get().salience) == (["active"], 0.1)


def test_undoing_the_earlier_of_two_runs_leaves_the_later_ones_work(agent: Caller, operator: Caller):
    topic_id = agent.remember("Tea", salience=0.1)
    first = run(operator, dry_run=False)
    operator.post(f"/v1/topics/{topic_id}/archive").ok()
    assert reported_of(undo(operator, first)) == {topic_id: "It has since been moved: it is archived now."}
    assert rungs(operator, topic_id) == ["archived"]


def test_undoing_twice_tells_the_outcome_again_and_changes_nothing(agent: Caller, operator: Caller):
    made = topics_make(operator, 3, salience=0.01)
    got = run(operator, dry_run=False)
    operator.post(f"/v1/topics/{made[0]}/restore").ok()
    undone = undo(operator, got)
    before = dump(*JOURNALS)
    assert undo(operator, got) == undone
    assert dump(*JOURNALS) == before
    event = AuditEvent.objects.get(action="run_undone")
    assert (event.actor, event.reason) == ("key:operator", "was better")
    assert event.after == {"run": got["run_id"], "restored": 2, "conflicts": 1}
    read = operator.get(f"/v1/runs/{got['run_id']}").ok()
    assert (read["status"], read["undone_by"], sorted(read["results"])) == (
        "undone",
        "key:operator",
        sorted(got["results"]),
    )


def test_what_was_undone_is_archived_again_by_the_next_run(agent: Caller, operator: Caller):
    topic_id = agent.remember("Tea", salience=0.01)
    undo(operator, run(operator, dry_run=False))
    assert run(operator, dry_run=False)["results"] == [f"archived:{topic_id}"]
    assert Vitality.objects.get().salience == 0.005


def test_a_value_written_since_stays_and_the_rest_comes_back(agent: Caller, operator: Caller):
    topic_id = written(agent, "The harbor", 0.2)
    got = run(operator, dry_run=False)
    agent.ingest("extend_topic", topic_id=topic_id, fields=[{"name": "berth", "value": "later"}])
    assert undo(operator, got)["restored"] == 1
    field = Field.objects.get(name="berth")
    assert (field.last_seq, field.cold_through) == (10, 0)
    values = operator.get(f"/v1/topics/{topic_id}/fields/berth/history").ok()["items"]
    assert (values[0]["value"], len(values)) == ("later", 10)
    assert rungs(operator, topic_id) == ["active"]


def test_a_half_life_changed_since_stays_and_the_keys_follow(agent: Caller, operator: Caller, clock: Clock):
    policy_put(operator, topic_count_soft_limit=0)
    agent.remember("Tea", salience=0.9)
    clock.forward(days=200)
    got = run(operator, dry_run=False)
    assert got["counts"]["archived"] == 1
    policy_put(operator, topic_count_soft_limit=0, half_life_days=10)
    counted()
    assert undo(operator, got)["restored"] == 1
    row = Vitality.objects.get()
    assert (row.rung, row.live, row.salience, row.half_life) == (0, True, 0.9, 864_000.0)
    key = fade_key(0.9, reinforced_at=NOON.timestamp(), half_life=864_000.0)
    assert row.fade == row.fade_floor == pytest.approx(key, abs=1e-3)


def test_categories_pins_and_releases_by_rules_are_taken_back(agent: Caller, operator: Caller):
    def of(title: str, action: str, **more: str) -> dict[str, Any]:
        condition = {"field": "title", "op": "contains", "value": title}
        return {"name": title, "condition": condition, "action": action, **more}

    rules = [
        of("crowd", "categorize", category="loud"),
        of("nuts", "pin"),
        of("diary", "unpin"),
        of("secret", "release"),
    ]
    policy_put(operator, rules=rules, strategy="static", prune_after_days=0, topic_count_soft_limit=0)
    agent.remember("crowd", categories=["zoo", "art"])
    agent.remember("nuts")
    agent.remember("diary", pinned=True)
    secret = agent.remember("secret")
    counted()
    before = dump(*JOURNALS, *KEPT, "memory_accesslog")
    got = run(operator, dry_run=False)
    assert sorted(result.partition(":")[0] for result in got["results"]) == [
        "categorized",
        "pinned",
        "released",
        "unpinned",
    ]
    assert agent.found("secret", include_archived=True, topic_ids=[secret]) == []
    assert undo(operator, got)["restored"] == 4
    counted()
    assert dump(*JOURNALS, *KEPT, "memory_accesslog") == before
    assert secret in agent.found("secret")
    assert TopicEdit.objects.count() == 2


def test_as_of_shows_the_categories_that_held_between_a_run_and_its_undo(agent: Caller, operator: Caller, clock: Clock):
    rule = {
        "name": "crowds",
        "condition": {"field": "title", "op": "contains", "value": "crowd"},
        "action": "categorize",
        "category": "loud",
    }
    policy_put(operator, rules=[rule], strategy="static", prune_after_days=0, topic_count_soft_limit=0)
    topic_id = agent.remember("crowd", categories=["art"])
    moments = [NOON + dt.timedelta(minutes=30)]
    clock.forward(hours=1)
    got = run(operator, dry_run=False)
    moments.append(clock.now + dt.timedelta(minutes=30))
    clock.forward(hours=1)
    undo(operator, got)
    moments.append(clock.now + dt.timedelta(minutes=30))
    clock.forward(hours=1)

    def found_as(moment: dt.datetime) -> bool:
        return agent.found("crowd", categories=["loud"], as_of=moment.isoformat()) == [topic_id]

    assert operator.topic(topic_id)["categories"] == ["art"]
    shown = [found_as(moment) for moment in moments]
    assert shown in ([False, True, False], [False, False, False])


def test_undo_costs_the_same_number_of_statements_for_10_and_for_200_topics(operator: Caller):
    counts = []
    for number in (10, 200):
        topics_make(operator, number, salience=0.01)
        plan = run(operator)
        got = operator.post(f"/v1/runs/{plan['run_id']}/apply").ok()
        assert got["applied"] == number
        with CaptureQueriesContext(connection) as queries:
            assert undo(operator, got)["restored"] == number
        counts.append(len(queries))
        operator.post(f"/v1/runs/{run(operator)['run_id']}/apply").ok()
    assert counts[0] == counts[1]
