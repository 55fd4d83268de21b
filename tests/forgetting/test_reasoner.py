"""The reasoner: what happened becomes at most one run for each policy, and the schedule leaves a record."""

from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.forgetting.apply import run_step
from memory.forgetting.plan import run_plan
from memory.jobs import tasks
from memory.models import ForgetRun, WakeUp
from memory.policy.effective import policies_current
from memory.stores.models import WorkerHeartbeat
from tests.cast import Caller, Clock, worker_turn
from tests.forgetting.shop import JOURNALS, NOON, dump, policy_put, run, rungs, topics_make


@pytest.fixture(autouse=True)
def _noon(clock: Clock) -> None:
    clock.set(NOON)


def runs() -> list[tuple[str, str, str]]:
    return list(ForgetRun.objects.order_by("created_at", "scope").values_list("scope", "event", "status"))


def memstate(operator: Caller, scope: str = "/", **values: Any) -> None:
    policy_put(operator, scope, preset="memstate", **{"topic_count_soft_limit": 0, **values})


def test_a_wake_up_is_answered_once(agent: Caller, operator: Caller):
    memstate(operator)
    topic_id = agent.remember("Tea", salience=0.01)
    assert WakeUp.objects.count() == 1
    assert worker_turn()["runs"] == 1
    assert not WakeUp.objects.exists()
    assert runs() == [("/", "ingest_complete", "done")]
    assert rungs(operator, topic_id) == ["archived"]
    assert worker_turn()["runs"] == 0
    assert len(runs()) == 1


def test_with_nothing_due_no_run_is_recorded(agent: Caller, operator: Caller):
    memstate(operator)
    agent.remember("Tea")
    agent.query("tea")
    assert worker_turn()["runs"] == 0
    assert runs() == []
    assert not WakeUp.objects.exists()


def test_many_scopes_under_one_policy_are_one_run(agent: Caller, operator: Caller):
    memstate(operator)
    for name in ("ann", "ben", "cleo"):
        agent.remember("Tea", salience=0.01, scope=f"/user/{name}")
    assert WakeUp.objects.count() == 3
    worker_turn()
    assert runs() == [("/", "ingest_complete", "done")]
    assert ForgetRun.objects.get().applied == 3


def test_each_policy_that_something_happened_under_gets_a_run_of_its_own(agent: Caller, operator: Caller):
    memstate(operator)
    memstate(operator, "/a")
    memstate(operator, "/b")
    for scope in ("/a/x", "/a/y", "/b"):
        agent.remember("Tea", salience=0.01, scope=scope)
    worker_turn()
    assert runs() == [("/a", "ingest_complete", "done"), ("/b", "ingest_complete", "done")]


def test_two_events_at_once_are_one_run(agent: Caller, operator: Caller):
    memstate(operator)
    agent.remember("Tea", salience=0.01)
    agent.query("?", stages=["structural"], topic_ids=[agent.remember("Coffee")])
    operator.post("/v1/events", {"event": "memory_pressure"})
    assert set(WakeUp.objects.values_list("event", flat=True)) >= {"ingest_complete", "memory_pressure"}
    worker_turn()
    assert runs() == [("/", "memory_pressure", "done")]
    assert not WakeUp.objects.exists()


def test_a_query_lets_the_worker_forget_what_is_due(agent: Caller, operator: Caller):
    memstate(operator)
    faded = topics_make(operator, 1, salience=0.01)
    kept = agent.remember("Tea")
    WakeUp.objects.all().delete()
    agent.query("?", stages=["structural"], topic_ids=[kept])
    worker_turn()
    assert runs() == [("/", "query_complete", "done")]
    assert rungs(operator, *faded) == ["archived"]


@pytest.mark.parametrize("event", ["ingest_complete", "query_complete", "cron"])
def test_the_soft_limit_is_a_gate_for_this_event(operator: Caller, event: str):
    memstate(operator, topic_count_soft_limit=5)
    topics_make(operator, 4, salience=0.01)
    got = run(operator, event=event, dry_run=False)
    assert (got["status"], got["planned"], "fewer than its soft limit of 5" in got["gate"]) == ("done", 0, True)
    topics_make(operator, 1)
    got = run(operator, event=event, dry_run=False)
    assert (got["gate"], got["applied"]) == (None, 4)


@pytest.mark.parametrize("event", ["memory_pressure", "manual"])
def test_the_soft_limit_is_no_gate_for_this_event(operator: Caller, event: str):
    memstate(operator, topic_count_soft_limit=500)
    topics_make(operator, 4, salience=0.01)
    assert run(operator, event=event, dry_run=False)["applied"] == 4


def test_the_gate_counts_the_topics_of_the_scope_that_sets_the_limit(operator: Caller):
    memstate(operator, topic_count_soft_limit=5)
    topics_make(operator, 4, salience=0.01, scope="/a")
    topics_make(operator, 10, scope="/b")
    assert run(operator, scope="/a", event="cron", dry_run=False)["applied"] == 4


def test_a_scope_with_its_own_limit_is_left_alone_by_runs_from_above(operator: Caller):
    memstate(operator, topic_count_soft_limit=5)
    policy_put(operator, "/gate", topic_count_soft_limit=500)
    own = topics_make(operator, 3, salience=0.01, scope="/gate/deeper")
    others = topics_make(operator, 6, salience=0.01)
    plan = run(operator, event="cron")
    assert plan["planned"] == 6
    assert "/gate has 3 live memories, fewer than its soft limit of 500" in plan["gate"]
    made = run(operator, event="cron", dry_run=False)
    assert (made["applied"], made["gate"]) == (6, plan["gate"])
    assert set(rungs(operator, *own)) == {"active"}
    assert set(rungs(operator, *others)) == {"archived"}
    # Those of the scope do not count above it either: five topics are not five without them.
    topics_make(operator, 4, salience=0.01)
    topics_make(operator, 3, salience=0.01, scope="/gate")
    assert run(operator, event="cron", dry_run=False)["planned"] == 0
    assert run(operator, scope="/gate", dry_run=False)["applied"] == 6


def test_a_run_names_no_count_of_a_scope_above_it(operator: Caller):
    memstate(operator, topic_count_soft_limit=50)
    topics_make(operator, 7, salience=0.01, scope="/a")
    topics_make(operator, 30, scope="/b")
    gate = run(operator, scope="/a", event="cron")["gate"]
    assert "37" not in gate
    assert "soft limit of 50" in gate


def test_archived_topics_do_not_count_for_the_gate(operator: Caller):
    memstate(operator, topic_count_soft_limit=5)
    topics_make(operator, 5, salience=0.01)
    assert run(operator, event="cron", dry_run=False)["applied"] == 5
    topics_make(operator, 4, salience=0.01)
    assert "4 live memories" in run(operator, event="cron", dry_run=False)["gate"]


def test_past_the_token_budget_an_ingest_is_memory_pressure(agent: Caller, operator: Caller):
    memstate(operator, topic_count_soft_limit=500, token_budgets=True, token_budget_active=30)
    faded = topics_make(operator, 1, salience=0.01)
    worker_turn()
    assert runs() == []
    agent.remember("Long", summary=" ".join(f"word{number}" for number in range(60)))
    worker_turn()
    assert runs() == [("/", "memory_pressure", "done")]
    assert rungs(operator, *faded) == ["archived"]


def test_pinned_topics_are_not_in_the_active_budget(agent: Caller, operator: Caller):
    memstate(operator, topic_count_soft_limit=500, token_budgets=True, token_budget_active=30)
    topics_make(operator, 1, salience=0.01)
    agent.remember("Long", summary=" ".join(f"word{number}" for number in range(60)), pinned=True)
    worker_turn()
    assert runs() == []


def test_a_plan_that_waits_for_approval_is_not_written_again_by_each_event(agent: Caller, operator: Caller):
    memstate(operator, mode="review")
    agent.remember("Tea", salience=0.01)
    worker_turn()
    assert runs() == [("/", "ingest_complete", "held")]
    agent.remember("Coffee", salience=0.01)
    worker_turn()
    assert runs() == [("/", "ingest_complete", "held")]
    # The schedule looks again.
    tasks.forget_scheduled("/")
    assert sorted(status for _scope, _event, status in runs()) == ["failed", "held"]
    assert ForgetRun.objects.get(status="held").planned == 2


def test_where_the_mode_is_off_nothing_answers(agent: Caller, operator: Caller):
    memstate(operator, mode="off")
    agent.remember("Tea", salience=0.01)
    operator.post("/v1/events", {"event": "memory_pressure"})
    worker_turn()
    assert tasks.forget_scheduled("/") is None
    assert runs() == []
    assert not WakeUp.objects.exists()


def test_the_scheduled_run_leaves_a_record_even_if_nothing_is_due(operator: Caller):
    memstate(operator)
    run_id = tasks.forget_scheduled("/")
    assert [(str(made.id), made.event, made.status, made.planned) for made in ForgetRun.objects.all()] == [
        (run_id, "cron", "done", 0)
    ]


def test_the_scheduled_run_forgets_and_a_second_one_changes_nothing(operator: Caller):
    memstate(operator)
    faded = topics_make(operator, 3, salience=0.01)
    first = tasks.forget_scheduled("/")
    assert operator.get(f"/v1/runs/{first}").ok()["applied"] == 3
    before = dump(*JOURNALS)
    second = tasks.forget_scheduled("/")
    assert operator.get(f"/v1/runs/{second}").ok()["planned"] == 0
    assert dump(*JOURNALS) == before
    assert set(rungs(operator, *faded)) == {"archived"}


def test_a_schedule_that_meets_a_run_at_work_leaves_it_alone(operator: Caller):
    memstate(operator)
    topics_make(operator, 1, salience=0.01)
    plan = run(operator)
    ForgetRun.objects.filter(pk=plan["run_id"]).update(status="applying")
    assert tasks.forget_scheduled("/") is None
    assert ForgetRun.objects.count() == 1


def test_continuing_a_run_twice_does_its_work_once(operator: Caller):
    memstate(operator)
    topics_make(operator, 3, salience=0.04)
    plan = run(operator)
    ForgetRun.objects.filter(pk=plan["run_id"]).update(status="applying")
    assert tasks.run_continue(plan["run_id"]) == "done"
    before = dump()
    assert tasks.run_continue(plan["run_id"]) == "done"
    assert dump() == before
    assert operator.get(f"/v1/runs/{plan['run_id']}").ok()["applied"] == 3


def test_upkeep_says_that_the_worker_lives(db: None):
    worker_turn()
    assert WorkerHeartbeat.objects.get().seen_at == NOON


def statements(work: Any) -> int:
    with CaptureQueriesContext(connection) as queries:
        work()
    return len(queries)


def test_plans_steps_and_previews_cost_the_same_for_10_and_for_200_topics(operator: Caller):
    memstate(operator)
    memstate(operator, "/10")
    memstate(operator, "/200")
    costs: dict[str, list[int]] = {"plan": [], "step": [], "preview": []}
    for number in (10, 200):
        scope = f"/{number}"
        topics_make(operator, number, salience=0.04, scope=scope)
        asked: dict[str, Any] = {
            "event": "manual",
            "actor": "test",
            "policies": policies_current(),
            "judged_at": NOON,
            "now": NOON,
        }
        preview = partial(operator.post, "/v1/policies/preview", {"scope": scope})
        assert preview().ok()["rungs"]["archive"]["draft"] == number
        costs["preview"].append(statements(preview))
        costs["plan"].append(statements(partial(run_plan, scope, dry_run=False, **asked)))
        made = ForgetRun.objects.get(scope=scope)
        if made.status == "held":
            ForgetRun.objects.filter(pk=made.pk).update(status="applying")
        costs["step"].append(statements(partial(run_step, made.pk, now=NOON)))
        assert not run_step(made.pk, now=NOON)
        assert ForgetRun.objects.get(pk=made.pk).applied == number
    # The larger plan is held: one statement counts what is live, one finds the targets to notify.
    assert {name: max(counts) - min(counts) for name, counts in costs.items()} == {"plan": 2, "step": 0, "preview": 0}
    assert max(costs["step"]) <= 25
    assert max(costs["plan"]) <= 12
