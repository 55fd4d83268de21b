"""Each preset does what the design does that it reproduces."""

from typing import Any

import pytest

from memory.models import ForgetRun
from tests.cast import Caller, Clock, worker_turn
from tests.forgetting.shop import NOON, actions, policy_put, run, rungs, topics_make


@pytest.fixture(autouse=True)
def _noon(clock: Clock) -> None:
    clock.set(NOON)


def stored(caller: Caller, topic_id: str) -> float:
    from memory.models import Vitality

    return Vitality.objects.get(pk=topic_id).salience


@pytest.fixture
def six_hundred(operator: Caller) -> list[str]:
    """560 topics as they are made, and 40 with a salience of 0.04, whose ids are returned."""
    policy_put(operator, preset="memstate")
    topics_make(operator, 560)
    return topics_make(operator, 40, salience=0.04)


def forty_are_archived(operator: Caller, got: Any, faded: list[str]) -> None:
    assert sorted(got["results"]) == sorted(f"archived:{topic_id}" for topic_id in faded)
    assert got["counts"] == {"summarized": 0, "detached": 0, "archived": 40, "restored": 0}
    assert {stored(operator, topic_id) for topic_id in faded} == {0.02}
    assert {action["salience_after"] for action in actions(operator, got["run_id"])} == {0.02}
    from memory.models import Topic

    assert set(map(str, Topic.objects.filter(rung=3).values_list("id", flat=True))) == set(faded)


def test_memstate_archives_exactly_the_forty_after_an_ingest(operator: Caller, six_hundred: list[str]):
    got = run(operator, event="ingest_complete", dry_run=False)
    assert (got["status"], got["gate"]) == ("done", None)
    forty_are_archived(operator, got, six_hundred)


def test_memstate_archives_exactly_the_forty_when_the_worker_takes_up_the_ingest(
    agent: Caller, operator: Caller, six_hundred: list[str]
):
    agent.remember("One more")
    worker_turn()
    (made,) = ForgetRun.objects.all()
    assert (made.event, made.actor) == ("ingest_complete", "system")
    forty_are_archived(operator, operator.get(f"/v1/runs/{made.id}").ok(), six_hundred)


def test_memstate_forgets_nothing_with_499_topics_whoever_asks(operator: Caller):
    policy_put(operator, preset="memstate")
    topics_make(operator, 459)
    faded = topics_make(operator, 40, salience=0.04)
    got = run(operator, event="ingest_complete", dry_run=False)
    assert (got["status"], got["results"], got["planned"]) == ("done", [], 0)
    assert "499 live memories" in got["gate"]
    worker_turn()
    assert ForgetRun.objects.count() == 1
    assert set(rungs(operator, *faded)) == {"active"}
    # With the 500th the same ingest does.
    operator.remember("The five hundredth")
    worker_turn()
    assert set(rungs(operator, *faded)) == {"archived"}


def test_under_memory_pressure_the_gate_of_memstate_does_not_matter(operator: Caller):
    policy_put(operator, preset="memstate")
    topics_make(operator, 260)
    faded = topics_make(operator, 40, salience=0.04)
    worker_turn()
    assert not ForgetRun.objects.exists()
    assert operator.post("/v1/events", {"event": "memory_pressure"}).status == 202
    worker_turn()
    (made,) = ForgetRun.objects.all()
    assert made.event == "memory_pressure"
    forty_are_archived(operator, operator.get(f"/v1/runs/{made.id}").ok(), faded)


def test_under_memstate_time_alone_takes_nothing_away(operator: Caller, clock: Clock):
    policy_put(operator, preset="memstate")
    kept = topics_make(operator, 3, salience=0.05)
    clock.forward(days=10_000)
    assert run(operator, dry_run=False)["results"] == []
    assert operator.topic(kept[0])["salience"] == pytest.approx(0.05)


def test_under_memstate_each_retrieval_adds_a_tenth(agent: Caller, operator: Caller):
    policy_put(operator, preset="memstate")
    topic_id = agent.remember("Tea")
    for _time in range(3):
        agent.query("tea")
    worker_turn()
    assert operator.topic(topic_id)["salience"] == pytest.approx(1.3)


def test_importance_decay_archives_after_thirty_days_below_a_twentieth_and_spares_users(operator: Caller, clock: Clock):
    policy_put(operator, preset="importance-decay")
    plain, weighty = operator.remember("Plain"), operator.remember("Weighty", salience=10)
    pinned, theirs = operator.remember("Pinned", pinned=True), operator.remember("Theirs", scope="/user/alice")
    identity = operator.remember("Who I am", topic_kind="identity")
    # A salience of 1 passes 0.05 after 30 * log2(20) = 129.66 days.
    clock.forward(days=129.6)
    assert run(operator, dry_run=False)["results"] == []
    clock.forward(days=0.1)
    assert run(operator, dry_run=False)["results"] == [f"archived:{plain}"]
    # One of 10 after 229.3.
    clock.forward(days=99.5)
    assert run(operator, dry_run=False)["results"] == []
    clock.forward(days=0.2)
    assert run(operator, dry_run=False)["results"] == [f"archived:{weighty}"]
    clock.forward(days=5000)
    assert run(operator, dry_run=False)["results"] == []
    assert rungs(operator, pinned, theirs, identity) == ["active"] * 3


def test_importance_decay_never_archives_before_thirty_days_without_use(operator: Caller, clock: Clock):
    policy_put(operator, preset="importance-decay")
    topic_id = operator.remember("Faint", salience=0.01)
    clock.forward(days=29.9)
    run(operator, dry_run=False)
    assert operator.topic(topic_id)["archived"] is False
    clock.forward(days=0.2)
    assert run(operator, dry_run=False)["results"] == [f"archived:{topic_id}"]


def test_active_forgetting_archives_when_age_has_eaten_all_but_a_tenth(agent: Caller, operator: Caller, clock: Clock):
    policy_put(operator, preset="active-forgetting")
    unused, used = operator.remember("Unused harbor"), operator.remember("Used violin")
    for _time in range(5):
        agent.query("?", stages=["structural"], topic_ids=[used])
        worker_turn()
        clock.forward(seconds=61)
    # 1 - age/360 < 0.1 from 324 days on; five retrievals add 0.179, which are 64.5 days more.
    clock.set(NOON)
    clock.forward(days=323.9)
    assert run(operator, dry_run=False)["results"] == []
    clock.forward(days=0.2)
    assert run(operator, dry_run=False)["results"] == [f"archived:{unused}"]
    clock.forward(days=64.3)
    assert run(operator, dry_run=False)["results"] == []
    clock.forward(days=0.4)
    assert run(operator, dry_run=False)["results"] == [f"archived:{used}"]


def test_relevance_archives_below_a_fifth_and_only_after_ninety_idle_days(operator: Caller, clock: Clock):
    policy_put(operator, preset="relevance")
    kinds = ("tool_output", "observation", "finding", "decision")
    made = {kind: operator.remember(kind, topic_kind=kind) for kind in kinds}
    # 0.3/(1+t/30) + 0.2/(1+t/7) + 0.2*w is below 0.2 with w = 0.3 and 0.5 before day 90, with 0.7 from day 147 on, and
    # with 1.0 never.
    clock.forward(days=90)
    assert run(operator)["counts"]["archived"] == 0
    clock.forward(seconds=1)
    got = run(operator, dry_run=False)
    assert sorted(got["results"]) == sorted(f"archived:{made[kind]}" for kind in ("tool_output", "observation"))
    clock.forward(days=56)
    assert run(operator, dry_run=False)["counts"]["archived"] == 0
    clock.forward(days=2)
    assert run(operator, dry_run=False)["results"] == [f"archived:{made['finding']}"]
    clock.forward(days=5000)
    assert run(operator, dry_run=False)["counts"]["archived"] == 0
    assert operator.topic(made["decision"])["archived"] is False


def test_graduated_goes_by_age_and_kind_alone(operator: Caller, clock: Clock):
    policy_put(operator, preset="graduated")
    kinds = ("tool_output", "finding", "observation", "decision", "identity")
    made = {kind: operator.remember(kind, topic_kind=kind, salience=0.001) for kind in kinds}
    clock.forward(days=6.9)
    assert run(operator, dry_run=False)["results"] == []
    clock.forward(days=0.2)
    assert run(operator, dry_run=False)["results"] == [f"archived:{made['tool_output']}"]
    clock.forward(days=23)
    assert run(operator, dry_run=False)["results"] == [f"summarized:{made['finding']}"]
    clock.forward(days=60)
    got = run(operator, dry_run=False)
    assert sorted(got["results"]) == sorted(f"archived:{made[kind]}" for kind in ("finding", "observation"))
    clock.forward(days=5000)
    assert run(operator, dry_run=False)["results"] == []


def test_balanced_goes_down_the_whole_ladder_as_salience_halves(operator: Caller, clock: Clock):
    policy_put(operator, preset="balanced", clock="wall")
    topic_id = operator.remember("Tea")
    seen = []
    # 0.25 after 60 days, 0.12 after 91.8, 0.05 after 129.7.
    for days in (59.9, 0.2, 31.6, 0.2, 37.7, 0.2):
        clock.forward(days=days)
        seen.append([result.partition(":")[0] for result in run(operator, dry_run=False)["results"]])
    assert seen == [[], ["summarized"], [], ["detached"], [], ["archived"]]
    assert operator.topic(topic_id)["rung"] == "archived"
