"""The clock of a policy: under ``active``, a day without a question or a write ages nothing."""

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.access.principal import SYSTEM
from memory.forgetting.runs import run_undo
from memory.formulas.salience import SECONDS_PER_DAY, salience_effective
from memory.models import Field, ForgetRun, PartitionActivity, Vitality
from memory.policy.rekey import half_lives_rekey, half_lives_stray_check
from memory.recall.access_fold import accesses_fold
from tests.cast import Caller, Clock, worker_turn
from tests.forgetting.shop import NOON, policy_put, run, rungs
from tests.transfer.shop import emptied, exported, imported


@pytest.fixture(autouse=True)
def _active(settings: Any, clock: Clock) -> None:
    settings.MEMSTATE_KNOBS = {"clock": "active", "topic_count_soft_limit": 0, "max_archive_share": 1.0}
    clock.set(NOON)


def look(caller: Caller, **more: Any) -> None:
    """Ask without using what is found: a look at the past."""
    caller.query("anything", as_of=NOON.isoformat(), **more)


def fading(*columns: str) -> list[Any]:
    """Return what fades, in order."""
    names = columns or ("salience", "reinforced_at", "idle_before", "half_life", "wall", "fade")
    return [list(model.objects.order_by("pk").values_list("pk", *names)) for model in (Vitality, Field)]


def rekeyed(now: dt.datetime) -> None:
    while half_lives_rekey(now=now, budget_seconds=60):
        pass


def test_after_months_of_silence_the_next_question_archives_nothing(agent: Caller, operator: Caller, clock: Clock):
    # From new ones to some that are nearly due.
    made = [agent.remember(f"Memory {n}", values={"n": str(n)}, salience=0.3 + n / 20) for n in range(40)]
    before = {topic_id: agent.topic(topic_id)["salience"] for topic_id in made}
    clock.forward(days=120)
    assert run(operator)["results"] == []
    agent.ingest(title="I am back")
    worker_turn()
    clock.forward(hours=1)
    worker_turn()
    preview = operator.post("/v1/policies/preview", {"values": {"clock": "active"}}).ok()
    done = run(operator, dry_run=False)
    assert (done["results"], preview["affected"]) == ([], [])
    assert rungs(agent, *made) == ["active"] * len(made)
    # The day of return counts, and no other.
    for topic_id in made:
        assert agent.topic(topic_id)["salience"] == pytest.approx(before[topic_id] * 0.5 ** (1 / 30), rel=0.02)
    # The clock of the wall would have taken most of them.
    draft = operator.post("/v1/policies/preview", {"values": {"clock": "wall"}, "limit": 100}).ok()
    assert len(draft["affected"]) > len(made) / 2
    policy_put(operator, clock="wall")
    rekeyed(clock.now)
    got = run(operator, dry_run=False)
    assert sorted(got["results"]) == sorted(f"{each['action']}:{each['topic_id']}" for each in draft["affected"])


def test_days_with_a_question_a_lookup_or_a_write_count(agent: Caller, operator: Caller, clock: Clock):
    policy_put(operator, half_life_days=2, prune_after_days=3)
    topic_id = agent.remember("Tea", salience=1.0)
    other = agent.remember("Coffee", salience=1.0)
    comes = (
        lambda: look(agent),
        lambda: agent.get(f"/v1/topics/{other}").ok(),
        lambda: agent.ingest(title="Milk"),
        lambda: agent.patch(f"/v1/topics/{other}", {"summary": "black"}).ok(),
        lambda: look(agent),
    )
    for come in comes:
        clock.forward(days=1)
        come()
        # Three idle days after each.
        clock.forward(days=3)
        assert f"archived:{topic_id}" not in run(operator)["results"]
    assert agent.topic(topic_id)["salience"] == pytest.approx(0.5 ** (5.5 / 2))
    for _day in range(4):
        clock.forward(days=1)
        look(agent)
    assert f"archived:{topic_id}" in run(operator)["results"]
    row = PartitionActivity.objects.get()
    assert len(row.idle_spans) == 2 * len(comes)
    spans = zip(row.idle_spans[::2], row.idle_spans[1::2], strict=True)
    # The look at the topic above came a day before the end of the last one.
    assert [(end - start) / SECONDS_PER_DAY for start, end in spans] == [3, 3, 3, 3, 2]


def test_a_day_is_noted_once(agent: Caller, clock: Clock):
    agent.remember("Tea")
    counts = []
    for _time in range(3):
        clock.forward(days=2)
        for _again in range(2):
            with CaptureQueriesContext(connection) as queries:
                agent.ingest(title="Milk")
            counts.append(sum("UPDATE memory_partitionactivity" in query["sql"] for query in queries))
    assert counts == [1, 0] * 3


def test_each_policy_has_days_of_its_own(agent: Caller, alice: Caller, operator: Caller, clock: Clock):
    policy_put(operator, "/user/alice", half_life_days=10)
    policy_put(operator, half_life_days=10)
    hers, ours = alice.remember("Hers"), agent.remember("Ours", scope="/work")
    for _day in range(20):
        clock.forward(days=1)
        look(agent, scope="/work")
    assert (agent.topic(ours)["salience"], agent.get("/v1/topics?scope=/user/alice").ok()["items"][0]["salience"]) == (
        pytest.approx(0.25),
        # Until midnight of the day on which she came.
        pytest.approx(0.5**0.05),
    )
    # A question from above that returns topics of hers counts for her, too.
    assert hers in agent.found("Hers")
    clock.forward(days=1)
    worker_turn()
    noted = dict(PartitionActivity.objects.values_list("scope", "active_until"))
    assert noted["/user/alice"] == noted["/"]


def test_a_scope_that_had_a_policy_keeps_its_days(agent: Caller, alice: Caller, operator: Caller, clock: Clock):
    policy_put(operator, "/user/alice", half_life_days=30)
    hers, ours = alice.remember("Hers", salience=0.5), agent.remember("Ours", salience=0.5, scope="/work")
    for _day in range(100):
        clock.forward(days=1)
        look(agent, scope="/work")
    operator.put("/v1/policies/user/alice", {"values": {}, "reason": "as everywhere"}).ok()
    rekeyed(clock.now)
    preview = operator.post("/v1/policies/preview", {"values": {}}).ok()
    assert [each["topic_id"] for each in preview["affected"]] == [ours]
    assert run(operator, dry_run=False)["results"] == [f"archived:{ours}"]
    assert rungs(agent, hers) == ["active"]


def test_a_scope_that_gets_a_policy_goes_on_from_the_days_above(alice: Caller, operator: Caller, clock: Clock):
    alice.remember("Hers", salience=0.5)
    clock.forward(days=50)
    look(alice)
    before = fading()
    policy_put(operator, "/user/alice", query_salience_bump=0.2)
    parent, child = PartitionActivity.objects.order_by("scope")
    assert (child.active_until, child.idle_spans) == (parent.active_until, parent.idle_spans)
    assert fading() == before
    assert run(operator)["results"] == []


def test_uses_of_several_days_are_folded_at_their_own_days(agent: Caller, operator: Caller, clock: Clock):
    policy_put(operator, half_life_days=5, query_salience_bump=0.5, reinforce_min_relevance=0)
    topic_id = agent.remember("The boiler needs water in spring", salience=2.0)
    expected, last = 2.0, 0.0
    # The worker is down; days without a question lie between those with one.
    for days, counts in ((1, 1.0), (7, 1.0), (30, 1.0), (1, 1.0)):
        clock.forward(days=days)
        assert agent.found("boiler water in spring") == [topic_id]
        expected = salience_effective(
            expected, reinforced_at=last, half_life=5 * SECONDS_PER_DAY, now=last + counts * SECONDS_PER_DAY
        )
        expected += 0.5
    clock.forward(days=20)
    assert accesses_fold(now=clock.now) == 4
    clock.forward(days=20)
    # Half a day is left of the last one.
    assert agent.topic(topic_id)["salience"] == pytest.approx(expected * 0.5 ** (0.5 / 5))
    row = Vitality.objects.get(pk=topic_id)
    assert row.idle_before == (6 + 29) * SECONDS_PER_DAY


def test_to_the_wall_and_back_nothing_is_lost(agent: Caller, operator: Caller, clock: Clock):
    policy_put(operator, half_life_days=20)
    for n in range(8):
        agent.remember(f"Memory {n}", values={"a": "b"}, salience=n / 2)
        clock.forward(days=3 + n)
    look(agent)
    before, shown = fading(), agent.get("/v1/topics?limit=100").ok()["items"]
    policy_put(operator, half_life_days=20, clock="wall")
    assert run(operator)["results"] == run(operator)["results"]
    rekeyed(clock.now)
    for topic in Vitality.objects.all():
        aged = salience_effective(
            topic.salience,
            reinforced_at=topic.reinforced_at.timestamp(),
            half_life=20 * SECONDS_PER_DAY,
            now=clock.now.timestamp(),
        )
        assert topic.wall
        assert agent.topic(str(topic.pk))["salience"] == pytest.approx(aged)
    policy_put(operator, half_life_days=20)
    rekeyed(clock.now)
    assert fading() == before
    assert agent.get("/v1/topics?limit=100").ok()["items"] == shown


def test_while_the_clock_changes_runs_do_what_they_do_afterwards(agent: Caller, operator: Caller, clock: Clock):
    for n in range(12):
        agent.remember(f"Memory {n}", salience=0.05 + n / 12)
        clock.forward(days=5)
    look(agent)
    policy_put(operator, clock="wall")
    meanwhile = run(operator)["results"]
    rekeyed(clock.now)
    assert meanwhile
    assert run(operator)["results"] == meanwhile
    # A writer that had read the policy before: its key is of the other clock.
    Vitality.objects.update(wall=False)
    assert half_lives_stray_check(now=clock.now) == 1
    rekeyed(clock.now)
    assert run(operator)["results"] == meanwhile


def test_a_card_and_a_plan_for_later_take_the_days_to_come_as_active(agent: Caller, operator: Caller, clock: Clock):
    topic_id = agent.remember("Tea")
    clock.forward(days=50)
    card = agent.get(f"/v1/topics/{topic_id}/why").ok()
    assert card["standing"]["clock"] == "active"
    assert "Idle days do not count." in " ".join(card["sentences"])
    # Half a day has passed; the first step is at the midnight after 59 more days.
    [summarized, *_rest] = [dt.datetime.fromisoformat(step["at"]) for step in card["next"]["steps"]]
    assert summarized == clock.now + dt.timedelta(days=59.5)
    for days, expected in ((59, []), (61, [f"summarized:{topic_id}"])):
        later = clock.now + dt.timedelta(days=days)
        assert run(operator, now=later.isoformat())["results"] == expected
    curve = agent.get(f"/v1/topics/{topic_id}").ok()["salience"]
    assert curve == pytest.approx(0.5 ** (0.5 / 30))


def test_a_rule_on_idle_time_leaves_idle_days_out_and_one_on_age_does_not(
    agent: Caller, operator: Caller, clock: Clock
):
    def ruled(field: str) -> list[str]:
        condition = {"field": field, "op": ">", "value": "10d"}
        rule = {"name": "old", "events": ["manual", "cron"], "condition": condition, "action": "archive"}
        policy_put(operator, rules=[rule], clock="active")
        steps = agent.get(f"/v1/topics/{topic_id}/why").ok()["next"]["steps"]
        first = next(step for step in steps if step["rule"])
        found: list[str] = run(operator)["results"]
        assert first["due"] == bool(found)
        return found

    topic_id = agent.remember("Tea")
    clock.forward(days=30)
    assert ruled("age") == [f"archived:{topic_id}"]
    assert ruled("idle") == []
    for _day in range(10):
        clock.forward(days=1)
        look(agent)
    clock.forward(hours=1)
    assert ruled("idle") == [f"archived:{topic_id}"]


def test_a_restore_starts_the_time_anew_and_undo_brings_the_old_one_back(agent: Caller, operator: Caller, clock: Clock):
    topic_id = agent.remember("Tea", salience=1.0)
    clock.forward(days=40)
    look(agent)
    before = fading()
    operator.post(f"/v1/topics/{topic_id}/archive").ok()
    undone = run_undo(ForgetRun.objects.get().pk, principal=SYSTEM, reason="for the test", now=clock.now)
    assert undone.restored == 1
    assert fading() == before
    operator.post(f"/v1/topics/{topic_id}/archive").ok()
    clock.forward(days=40)
    operator.post(f"/v1/topics/{topic_id}/restore").ok()
    clock.forward(days=40)
    assert agent.topic(topic_id)["salience"] == pytest.approx(1.0)


def test_an_export_brings_the_time_that_counted_along(agent: Caller, operator: Caller, clock: Clock, tmp_path: Any):
    topic_id = agent.remember("Tea", values={"sort": "green"}, salience=2.0)
    for _day in range(10):
        clock.forward(days=1)
        look(agent)
    clock.forward(days=300)
    before, content = agent.topic(topic_id)["salience"], exported()
    emptied()
    imported(content, tmp_path)
    assert agent.topic(topic_id)["salience"] == pytest.approx(before, rel=0.03)
    assert run(operator)["results"] == []
    assert exported() == content
