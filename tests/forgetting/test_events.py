"""POST /v1/events: an operator may say that memory is short, and nothing else."""

import pytest

from memory.models import ForgetRun, Scope, WakeUp
from tests.cast import Caller, store_rows, worker_turn
from tests.forgetting.shop import policy_put, rungs, topics_make


def test_pressure_is_noted_and_answered_by_the_worker(operator: Caller):
    policy_put(operator, "/a", preset="memstate")
    inside, beside = (topics_make(operator, 1, salience=0.01, scope=scope) for scope in ("/a/b", "/c"))
    WakeUp.objects.all().delete()
    answer = operator.post("/v1/events", {"event": "memory_pressure", "scope": "/a/b"})
    assert answer.status == 202
    assert answer.json == {"event": "memory_pressure", "scope": "/a/b", "accepted": True}
    assert not ForgetRun.objects.exists()
    worker_turn()
    assert [(made.scope, made.event) for made in ForgetRun.objects.all()] == [("/a/b", "memory_pressure")]
    assert rungs(operator, *inside, *beside) == ["archived", "active"]


def test_said_twice_it_is_answered_once(operator: Caller):
    for _time in range(2):
        assert operator.post("/v1/events", {}).status == 202
    wake_up = WakeUp.objects.get()
    assert (wake_up.event, wake_up.times) == ("memory_pressure", 2)


@pytest.mark.parametrize(
    "event", ["cron", "ingest_complete", "query_complete", "manual", "", "no such", "memory_pressure "]
)
def test_no_other_event_can_be_raised(operator: Caller, event: str):
    before = store_rows()
    answer = operator.post("/v1/events", {"event": event})
    assert answer.status == 422
    assert answer.code == "invalid-member"
    assert store_rows() == before


def test_agents_and_readers_cannot_make_anything_be_forgotten(agent: Caller, reader: Caller):
    before = store_rows()
    for caller in (agent, reader):
        for path, body in (
            ("/v1/events", {"event": "memory_pressure"}),
            ("/v1/runs", {"dry_run": False}),
            ("/v1/runs", {}),
            ("/v1/policies/preview", {}),
        ):
            answer = caller.post(path, body)
            assert (answer.status, answer.code) == (403, "role-too-low")
    assert store_rows() == before


def test_a_scope_that_does_not_exist_yet_may_be_named(operator: Caller):
    assert operator.post("/v1/events", {"scope": "/new/"}).json["scope"] == "/new"
    assert Scope.objects.filter(path="/new").exists()
    worker_turn()
    assert not WakeUp.objects.exists()
