"""The brake: while forgetting is paused, nothing is forgotten there, whatever asks for it."""

import datetime as dt
import uuid
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memory.access.keys import key_create
from memory.forgetting.apply import run_step
from memory.forgetting.pause import pauses_active
from memory.jobs import tasks
from memory.models import AuditEvent, ForgetPause, ForgetRun, Scope
from tests.cast import Caller, Clock, code_of, raises_code, store_rows, worker_turn
from tests.forgetting.shop import policy_put, run, rungs, topics_make

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def due(operator: Caller) -> None:
    policy_put(operator, preset="memstate", topic_count_soft_limit=0, max_archive_share=1)
    Scope.objects.bulk_create(Scope(path=path) for path in ("/shop", "/x", "/user/alice", "/elsewhere"))


def pause(operator: Caller, scope: str = "/", **members: Any) -> Any:
    return operator.post("/v1/pause", {"scope": scope, "reason": "a wrong half-life", **members})


def lift(operator: Caller, scope: str = "/") -> Any:
    return operator.post("/v1/pause/lift", {"scope": scope, "reason": "mended"})


@pytest.mark.parametrize("event", ["manual", "cron", "memory_pressure", "ingest_complete", "query_complete"])
def test_no_run_forgets_where_it_is_paused_until_it_is_lifted(operator: Caller, event: str):
    inside = topics_make(operator, 3, salience=0.01, scope="/shop/till")
    outside = topics_make(operator, 2, salience=0.01, scope="/home")
    pause(operator, "/shop").ok()
    made = run(operator, event=event, dry_run=False)
    assert (made["status"], made["applied"]) == ("done", 2)
    assert "/shop" in made["gate"]
    assert rungs(operator, *inside, *outside) == ["active"] * 3 + ["archived"] * 2
    assert run(operator, scope="/shop/till", event=event, dry_run=False)["planned"] == 0
    lift(operator, "/shop").ok()
    assert run(operator, event=event, dry_run=False)["applied"] == 3


def test_worker_and_schedule_rest_too(operator: Caller, agent: Caller):
    faded = topics_make(operator, 3, salience=0.01)
    pause(operator).ok()
    agent.remember("Something new")
    operator.post("/v1/events", {"event": "memory_pressure", "scope": "/"})
    worker_turn()
    tasks.forget_scheduled("/")
    assert set(rungs(operator, *faded)) == {"active"}


def test_a_plan_can_be_made_and_neither_applied_nor_approved(operator: Caller):
    faded = topics_make(operator, 3, salience=0.01)
    plan = run(operator)
    assert plan["planned"] == 3
    policy_put(operator, preset="memstate", topic_count_soft_limit=0, mode="review")
    held = run(operator, event="cron", dry_run=False)
    assert held["status"] == "held"
    pause(operator, "/").ok()
    assert run(operator)["planned"] == 3
    before = store_rows()
    for verb, made in (("apply", run(operator)), ("approve", held)):
        answer = operator.post(f"/v1/runs/{made['run_id']}/{verb}")
        assert (answer.status, answer.code) == (409, "forgetting-paused")
    assert store_rows()["memory_vitality"] == before["memory_vitality"]
    assert set(rungs(operator, *faded)) == {"active"}


def test_a_run_at_work_stops_after_its_batch_and_can_be_undone(operator: Caller, monkeypatch: pytest.MonkeyPatch):
    faded = topics_make(operator, 6, salience=0.01)
    monkeypatch.setattr("memory.forgetting.runs.run_work", lambda run_id, **_more: ForgetRun.objects.get(pk=run_id))
    made = run(operator, dry_run=False)
    run_id = uuid.UUID(made["run_id"])
    assert run_step(run_id, now=timezone.now(), size=2)
    pause(operator, "/").ok()
    assert not run_step(run_id, now=timezone.now(), size=2)
    got = operator.get(f"/v1/runs/{run_id}").ok()
    assert (got["status"], got["applied"]) == ("failed", 2)
    assert sorted(rungs(operator, *faded)) == ["active"] * 4 + ["archived"] * 2
    operator.post(f"/v1/runs/{run_id}/undo").ok()
    assert set(rungs(operator, *faded)) == {"active"}


def test_a_pause_ends_by_itself(operator: Caller, clock: Clock):
    now = clock.stop()
    topics_make(operator, 3, salience=0.01)
    pause(operator, until=(now + dt.timedelta(hours=2)).isoformat()).ok()
    assert run(operator, dry_run=False)["planned"] == 0
    clock.forward(hours=3)
    assert pauses_active(timezone.now()) == []
    assert run(operator, dry_run=False)["applied"] == 3
    assert lift(operator).code == "conflict"
    # Its row does not stand in the way of another pause.
    pause(operator).ok()
    assert ForgetPause.objects.count() == 2


def test_a_scope_that_does_not_exist_is_refused_with_the_nearest(operator: Caller):
    secret = "ms_the-secret-of-the-team-in-the-tests"
    key_create(name="team", role="operator", secret=secret, scope="/team")
    team = Caller(operator.send, secret)
    operator.remember("Tea", scope="/user/ada")
    policy_put(operator, "/ruled/here", topic_count_soft_limit=0)
    before = store_rows()
    for path, nearest in (("/usr", "/user"), ("/user/adah", "/user/ada"), ("/use", "/user"), ("/rulde", "/ruled")):
        answer = pause(operator, path)
        assert (answer.status, answer.code) == (404, "not-found")
        assert answer.detail.endswith(f" {nearest}.")
    with raises_code(CommandError, "not-found"):
        call_command("forget", "/usr", "--pause", "--reason", "a drill")
    # A bound key may pause its own scope, and learns of no other.
    answer = pause(team, "/team/usr")
    assert (answer.status, answer.code, "/user" in answer.detail) == (404, "not-found", False)
    assert store_rows() == before
    for path in ("/user", "/user/ada", "/ruled", "/ruled/here"):
        pause(operator, path).ok()
    team.post("/v1/pause", {"reason": "a drill"}).ok()


def test_each_pause_and_its_end_are_in_the_journal(operator: Caller):
    pause(operator, "/shop").ok()
    lift(operator, "/shop").ok()
    rows = AuditEvent.objects.filter(action__startswith="forgetting_").order_by("id")
    assert [(row.action, row.scope, row.reason) for row in rows] == [
        ("forgetting_paused", "/shop", "a wrong half-life"),
        ("forgetting_resumed", "/shop", "mended"),
    ]


def test_what_makes_no_sense_changes_nothing(operator: Caller, agent: Caller):
    pause(operator, "/shop").ok()
    before = store_rows()
    for answer, status, code in (
        (pause(operator, "/shop"), 409, "conflict"),
        (pause(operator, "/x", reason=" "), 422, "missing-member"),
        (pause(operator, "/x", until="2020-01-01T00:00:00Z"), 422, "invalid-period"),
        (lift(operator, "/x"), 404, "conflict"),
        (agent.post("/v1/pause", {"reason": "x"}), 403, "role-too-low"),
        (agent.post("/v1/pause/lift", {}), 403, "role-too-low"),
    ):
        assert (answer.status, code_of(answer.json)) == (status, code)
    assert store_rows() == before


def test_a_bound_key_sees_that_it_is_paused_above_and_not_why(operator: Caller, alice: Caller):
    pause(operator, "/").ok()
    pause(operator, "/user/alice").ok()
    pause(operator, "/elsewhere").ok()
    items = alice.get("/v1/pause").ok()["items"]
    assert [(item["scope"], item["reason"]) for item in items] == [("/", None), ("/user/alice", "a wrong half-life")]


def test_the_command_pauses_lists_and_resumes(operator: Caller, capsys: pytest.CaptureFixture[str]):
    call_command("forget", "/shop", "--pause", "--for", "12h", "--reason", "a drill")
    (row,) = ForgetPause.objects.all()
    assert (row.scope, row.actor, row.until and row.until > timezone.now()) == ("/shop", "terminal", True)
    call_command("forget", "--pauses")
    assert "a drill" in capsys.readouterr().out
    call_command("forget", "/shop", "--resume")
    assert pauses_active(timezone.now()) == []


@pytest.mark.parametrize("until", ["9999-12-31T23:59:59-12:00", "2199-01-01T00:00:00Z"])
def test_a_pause_without_end_in_sight_is_refused(operator: Caller, until: str):
    answer = pause(operator, until=until)
    assert (answer.status, answer.code) == (422, "invalid-period")
    assert operator.get("/v1/pause").ok() == {"items": []}
