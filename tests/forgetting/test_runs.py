"""Runs from plan to done: what is held, what is refused, and that nothing happens but what was planned."""

import uuid
from typing import Any

import pytest

from memory.access.keys import key_create
from memory.models import AuditEvent, ForgetAction, ForgetRun
from tests.cast import Caller, Cast, Clock, store_rows, worker_turn
from tests.forgetting.shop import JOURNALS, NOON, actions, dump, policy_put, run, rungs, topics_make


@pytest.fixture(autouse=True)
def _noon(clock: Clock) -> None:
    clock.set(NOON)


@pytest.fixture
def faded(operator: Caller) -> list[str]:
    """Three topics that a run archives, under a policy without decay."""
    policy_put(operator, preset="memstate", topic_count_soft_limit=0)
    return topics_make(operator, 3, salience=0.04)


def verb(caller: Caller, run_id: str, name: str) -> Any:
    return caller.post(f"/v1/runs/{run_id}/{name}", {"reason": "because"})


def refused(answer: Any, status: int, code: str, *words: str) -> None:
    assert (answer.status, answer.code) == (status, code), answer.body
    for word in words:
        assert word in answer.detail, answer.detail


def topics_of(got: Any) -> list[str]:
    return [result.split(":")[1] for result in got["results"]]


def applied(caller: Caller, got: Any) -> list[str]:
    return [item["topic_id"] for item in actions(caller, got["run_id"], state="applied")]


# --- Plan and apply ---


def test_a_run_is_a_dry_run_unless_reported_otherwise(operator: Caller, faded: list[str]):
    before = dump(*JOURNALS)
    got = operator.post("/v1/runs", {}).ok()
    assert (got["status"], got["dry_run"], got["event"], got["scope"]) == ("planned", True, "cron", "/")
    assert sorted(got["results"]) == sorted(f"archived:{topic_id}" for topic_id in faded)
    assert got["counts"] == {"summarized": 0, "detached": 0, "archived": 3, "restored": 0}
    assert (got["planned"], got["applied"], got["progress"]) == (3, 0, 0.0)
    assert dump(*JOURNALS) == before


def test_a_plan_is_applied_as_it_stands_and_only_once(operator: Caller, faded: list[str]):
    plan = run(operator)
    topics_make(operator, 2, salience=0.01)
    got = verb(operator, plan["run_id"], "apply").ok()
    assert (got["status"], got["results"], got["approved_by"]) == ("done", plan["results"], "key:operator")
    assert (got["applied"], got["skipped"], got["progress"]) == (3, 0, 1.0)
    refused(verb(operator, plan["run_id"], "apply"), 409, "conflict")
    event = AuditEvent.objects.get(action="run_applied")
    assert (event.actor, event.reason, event.after["run"]) == ("key:operator", "because", plan["run_id"])


def test_a_second_run_in_a_row_changes_nothing(operator: Caller, faded: list[str]):
    run(operator, dry_run=False)
    before = dump(*JOURNALS)
    got = run(operator, dry_run=False)
    assert (got["status"], got["planned"], got["results"], got["progress"]) == ("done", 0, [], 1.0)
    assert dump(*JOURNALS) == before


def test_a_plan_with_nothing_due_can_be_applied_and_does_nothing(operator: Caller):
    plan = run(operator)
    assert (plan["status"], plan["planned"]) == ("planned", 0)
    assert verb(operator, plan["run_id"], "apply").ok()["status"] == "done"
    refused(verb(operator, plan["run_id"], "undo"), 409, "conflict")


def test_a_plan_is_refused_once_the_policy_has_another_version(operator: Caller, faded: list[str]):
    plan = run(operator)
    policy_put(operator, "/user", half_life_days=9)
    before = dump(*JOURNALS)
    refused(verb(operator, plan["run_id"], "apply"), 409, "changed-meanwhile")
    assert dump(*JOURNALS) == before
    assert operator.get(f"/v1/runs/{plan['run_id']}").ok()["status"] == "planned"


def test_a_plan_for_one_scope_does_not_care_about_the_policy_of_another(operator: Caller):
    policy_put(operator, "/project", preset="memstate", topic_count_soft_limit=0)
    topics_make(operator, 2, salience=0.04, scope="/project")
    plan = run(operator, scope="/project")
    policy_put(operator, "/user", half_life_days=9)
    assert verb(operator, plan["run_id"], "apply").ok()["applied"] == 2


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ("retrieve", "recalled since"),
        ("pin", "pinned since"),
        ("weigh", "salience was changed since"),
        ("edit", "edited since"),
        ("archive", "it is archived now"),
    ],
)
def test_drift_names_the_topic_and_what_happened_to_it(operator: Caller, faded: list[str], change: str, word: str):
    plan = run(operator)
    topic_id = faded[1]
    changed(operator, topic_id, change)
    before = dump(*JOURNALS)
    refused(verb(operator, plan["run_id"], "apply"), 409, "changed-meanwhile", topic_id, word)
    assert dump(*JOURNALS) == before
    assert rungs(operator, faded[0], faded[2]) == ["active", "active"]


def changed(operator: Caller, topic_id: str, change: str) -> None:
    from memory.recall.access_fold import accesses_fold

    match change:
        case "retrieve":
            operator.query("?", stages=["structural"], topic_ids=[topic_id])
            assert accesses_fold(now=NOON)
        case "pin":
            operator.post(f"/v1/topics/{topic_id}/pin").ok()
        case "weigh":
            operator.patch(f"/v1/topics/{topic_id}", {"salience": 0.03}).ok()
        case "edit":
            operator.patch(f"/v1/topics/{topic_id}", {"topic_kind": "finding"}).ok()
        case "archive":
            operator.post(f"/v1/topics/{topic_id}/archive").ok()


def test_a_plan_judged_for_another_moment_is_only_to_look_at(operator: Caller, faded: list[str]):
    for now in ("2027-01-01T00:00:00Z", "2026-02-28T00:00:00Z"):
        plan = run(operator, now=now)
        assert plan["status"] == "planned"
        assert plan["judged_at"].startswith(now[:10])
        refused(verb(operator, plan["run_id"], "apply"), 409, "conflict")
    assert rungs(operator, *faded) == ["active"] * 3


def test_a_run_makes_only_what_lies_in_its_scope(operator: Caller):
    policy_put(operator, preset="memstate", topic_count_soft_limit=0)
    inside, beside = (topics_make(operator, 2, salience=0.04, scope=scope) for scope in ("/a/deep", "/ab"))
    got = run(operator, scope="/a", dry_run=False)
    assert sorted(applied(operator, got)) == sorted(inside)
    assert rungs(operator, *beside) == ["active", "active"]


# --- Holds ---


def test_more_than_the_share_waits_for_approval_and_no_more_does_not(operator: Caller):
    policy_put(operator, preset="memstate", topic_count_soft_limit=0)
    topics_make(operator, 240)
    faded = topics_make(operator, 60, salience=0.04)
    got = run(operator, dry_run=False)
    assert (got["status"], got["held_because"], got["applied"]) == ("done", None, 60)
    verb(operator, got["run_id"], "undo").ok()
    topics_make(operator, 1, salience=0.04)
    got = run(operator, dry_run=False)
    assert got["status"] == "held"
    assert got["held_because"] == (
        "It would archive 61 of 301 live memories (20%), more than the 20% that max_archive_share allows."
    )
    assert rungs(operator, faded[0]) == ["active"]


def test_fifty_topics_are_never_held(operator: Caller):
    policy_put(operator, preset="memstate", topic_count_soft_limit=0)
    topics_make(operator, 50, salience=0.04)
    assert run(operator, dry_run=False)["applied"] == 50
    topics_make(operator, 51, salience=0.04)
    assert run(operator, dry_run=False)["status"] == "held"


def test_a_dry_run_is_never_held(operator: Caller):
    policy_put(operator, preset="memstate", topic_count_soft_limit=0)
    topics_make(operator, 60, salience=0.04)
    plan = run(operator)
    assert (plan["status"], plan["held_because"]) == ("planned", None)
    # Someone has looked at it: applying a plan is the approval.
    assert verb(operator, plan["run_id"], "apply").ok()["applied"] == 60


def test_what_the_next_runs_would_take_counts_for_the_share(operator: Caller):
    # Else a run would take the most that one may, below the share, and so would the next, until nothing is left.
    policy_put(operator, preset="memstate", topic_count_soft_limit=0, max_topics_for_forget_scan=60)
    topics_make(operator, 400)
    topics_make(operator, 200, salience=0.04)
    got = run(operator, dry_run=False)
    assert (got["status"], got["planned"], got["left_over"]) == ("held", 60, 140)
    assert got["held_because"] == (
        "It would archive 200 of 600 live memories (33%), more than the 20% that max_archive_share allows."
    )


def test_a_mistake_in_the_policy_of_a_small_scope_is_held_in_the_run_over_a_large_one(operator: Caller):
    policy_put(operator, preset="memstate", topic_count_soft_limit=0)
    policy_put(operator, "/user/alice", theta_summary=3, theta_detach=2.5, forget_salience_threshold=2)
    topics_make(operator, 500)
    topics_make(operator, 60, scope="/user/alice")
    got = run(operator, dry_run=False)
    assert got["held_because"] == (
        "It would archive 60 of 60 live memories under the policy of /user/alice (100%), more than the 20% that "
        "max_archive_share allows."
    )
    policy_put(
        operator, "/user/alice", theta_summary=3, theta_detach=2.5, forget_salience_threshold=2, max_archive_share=1
    )
    assert run(operator, dry_run=False)["applied"] == 60


@pytest.fixture
def held(operator: Caller) -> Any:
    policy_put(operator, preset="memstate", topic_count_soft_limit=0, mode="review")
    topics_make(operator, 3, salience=0.04)
    got = run(operator, dry_run=False)
    assert (got["status"], got["held_because"]) == ("held", "The policy of / requires a review of every run.")
    assert set(rungs(operator, *(result.split(":")[1] for result in got["results"]))) == {"active"}
    return got


def test_a_held_run_goes_ahead_when_an_operator_approves(operator: Caller, held: Any):
    got = verb(operator, held["run_id"], "approve").ok()
    assert (got["status"], got["applied"], got["approved_by"]) == ("done", 3, "key:operator")
    event = AuditEvent.objects.get(action="run_approved")
    assert (event.actor, event.reason) == ("key:operator", "because")
    refused(verb(operator, held["run_id"], "approve"), 409, "conflict")


def test_approval_leaves_alone_what_has_changed_and_lists_it(operator: Caller, held: Any):
    topics = [result.split(":")[1] for result in held["results"]]
    changed(operator, topics[0], "pin")
    got = verb(operator, held["run_id"], "approve").ok()
    assert (got["status"], got["applied"], got["skipped"], got["progress"]) == ("done", 2, 1, 1.0)
    assert got["results"] == held["results"][1:]
    assert got["counts"] == {**held["counts"], "archived": 2}
    (skipped,) = actions(operator, held["run_id"], state="skipped")
    assert (skipped["topic_id"], skipped["note"]) == (topics[0], "It was pinned since.")
    assert rungs(operator, *topics) == ["active", "archived", "archived"]


def test_plans_are_applied_and_held_runs_are_approved_and_not_the_other_way_round(operator: Caller, held: Any):
    plan = run(operator)
    refused(verb(operator, plan["run_id"], "approve"), 409, "conflict")
    refused(verb(operator, held["run_id"], "apply"), 409, "conflict")
    refused(verb(operator, held["run_id"], "undo"), 409, "conflict")


def test_a_held_run_is_refused_once_the_policy_has_changed(operator: Caller, held: Any):
    policy_put(operator, preset="memstate", topic_count_soft_limit=0, mode="review", forget_salience_threshold=0.01)
    refused(verb(operator, held["run_id"], "approve"), 409, "changed-meanwhile")


def test_a_held_run_is_refused_and_no_memory_changes(operator: Caller, held: Any):
    before = rungs(operator, *topics_of(held))
    got = verb(operator, held["run_id"], "refuse").ok()
    assert (got["status"], got["results"], got["applied"]) == ("refused", [], 0)
    event = AuditEvent.objects.get(action="run_refused")
    assert (event.actor, event.reason, event.after["run"]) == ("key:operator", "because", held["run_id"])
    assert rungs(operator, *topics_of(held)) == before
    for name in ("refuse", "approve", "apply"):
        refused(verb(operator, held["run_id"], name), 409, "conflict")
    refused(verb(operator, held["run_id"], "undo"), 409, "conflict")
    # The same plan waits again if the next run is not allowed to act either.
    assert run(operator, dry_run=False)["status"] == "held"


def test_a_refusal_rolls_back_the_policy_that_caused_the_run(operator: Caller):
    policy_put(operator, preset="memstate", topic_count_soft_limit=0)
    topics_make(operator, 1, salience=0.04)
    assert run(operator, dry_run=False)["applied"] == 1
    policy_put(operator, preset="memstate", topic_count_soft_limit=0, mode="review")
    topics_make(operator, 1, salience=0.04)
    waiting = run(operator, dry_run=False)
    body = {"reason": "a mistake", "roll_back": True}
    assert operator.post(f"/v1/runs/{waiting['run_id']}/refuse", body).ok()["status"] == "refused"
    policy = operator.get("/v1/policies/").ok()
    assert (policy["version"], "mode" in policy["values"]) == (3, False)
    assert operator.get("/v1/policies/versions").ok()["items"][0]["rolled_back_to"] == 1
    assert AuditEvent.objects.get(action="run_refused").after["rolled_back"] == {"/": 1}


def test_without_a_new_policy_a_refusal_with_roll_back_changes_nothing(operator: Caller, clock: Clock):
    policy_put(operator, preset="memstate", topic_count_soft_limit=0, mode="review")
    topics_make(operator, 1, salience=0.04)
    verb(operator, run(operator, dry_run=False)["run_id"], "approve").ok()
    clock.forward(seconds=1)
    topics_make(operator, 1, salience=0.04)
    waiting = run(operator, dry_run=False)
    before = store_rows()
    refused(operator.post(f"/v1/runs/{waiting['run_id']}/refuse", {"roll_back": True}), 409, "conflict")
    assert store_rows() == before
    assert operator.get(f"/v1/runs/{waiting['run_id']}").ok()["status"] == "held"


def test_a_key_below_the_policy_cannot_roll_it_back(operator: Caller):
    policy_put(operator, preset="memstate", topic_count_soft_limit=0, mode="review")
    policy_put(operator, "/a", mode="review")
    topics_make(operator, 1, salience=0.04, scope="/a")
    waiting = run(operator, scope="/a", dry_run=False)
    secret = "ms_the-secret-of-an-operator-below-in-the-tests"
    key_create(name="below", role="operator", scope="/a", secret=secret)
    below = Caller(operator.send, secret)
    answer = below.post(f"/v1/runs/{waiting['run_id']}/refuse", {"roll_back": True})
    assert answer.status in (403, 404), answer.body
    assert operator.get("/v1/policies/").ok()["version"] == 1
    assert operator.get("/v1/policies/a").ok()["version"] == 1
    assert verb(below, waiting["run_id"], "refuse").ok()["status"] == "refused"


def test_a_held_run_whose_policy_has_changed_is_refused_by_the_worker(operator: Caller, held: Any):
    policy_put(operator, preset="memstate", topic_count_soft_limit=0, mode="review", forget_salience_threshold=0.01)
    worker_turn()
    assert operator.get(f"/v1/runs/{held['run_id']}").ok()["status"] == "refused"
    assert AuditEvent.objects.get(action="run_refused").actor == "system"


def test_a_run_with_nothing_due_takes_the_place_of_a_held_one(operator: Caller, held: Any):
    for topic_id in topics_of(held):
        changed(operator, topic_id, "pin")
    assert run(operator, dry_run=False)["planned"] == 0
    assert operator.get(f"/v1/runs/{held['run_id']}").ok()["status"] == "failed"


def test_the_same_plan_is_not_written_twice(operator: Caller, held: Any):
    before = store_rows()
    assert run(operator, dry_run=False)["run_id"] == held["run_id"]
    assert store_rows() == before


def test_another_plan_takes_the_place_of_a_held_one(operator: Caller, held: Any):
    topics_make(operator, 1, salience=0.04)
    got = run(operator, dry_run=False)
    assert (got["status"], got["planned"]) == ("held", 4)
    old = operator.get(f"/v1/runs/{held['run_id']}").ok()
    assert old["status"] == "failed"
    assert "planned again" in old["failure"]
    assert old["results"] == []
    assert ForgetRun.objects.filter(status="held").count() == 1


def test_where_the_mode_is_off_nothing_is_forgotten(operator: Caller):
    policy_put(operator, preset="memstate", topic_count_soft_limit=0)
    policy_put(operator, "/quiet", mode="off")
    gone, kept = (topics_make(operator, 2, salience=0.04, scope=scope) for scope in ("/loud", "/quiet/deep"))
    got = run(operator, dry_run=False)
    assert sorted(applied(operator, got)) == sorted(gone)
    assert run(operator, scope="/quiet", dry_run=False)["planned"] == 0
    assert rungs(operator, *kept) == ["active", "active"]


def test_a_review_asked_for_below_does_not_hold_the_run_above(operator: Caller):
    policy_put(operator, preset="memstate", topic_count_soft_limit=0)
    policy_put(operator, "/a", mode="review")
    (above,), (below,) = (topics_make(operator, 1, salience=0.04, scope=scope) for scope in ("/b", "/a/c"))
    got = run(operator, dry_run=False)
    assert (got["status"], got["results"]) == ("done", [f"archived:{above}"])
    got = run(operator, scope="/a", dry_run=False)
    assert (got["status"], got["held_because"]) == ("held", "The policy of /a requires a review of every run.")
    assert got["results"] == [f"archived:{below}"]


# --- Overlap ---


@pytest.mark.parametrize("other", ["/", "/a", "/a/b"])
def test_two_runs_are_never_at_work_on_the_same_topics(operator: Caller, other: str):
    policy_put(operator, preset="memstate", topic_count_soft_limit=0)
    topics_make(operator, 1, salience=0.04, scope="/a/b")
    topics_make(operator, 1, salience=0.04, scope="/c")
    plan = run(operator, scope="/a")
    at_work = run(operator, scope=other)
    ForgetRun.objects.filter(pk=at_work["run_id"]).update(status="applying")
    before = dump(*JOURNALS)
    refused(operator.post("/v1/runs", {"scope": "/a", "dry_run": False}), 409, "busy", at_work["run_id"], other)
    refused(verb(operator, plan["run_id"], "apply"), 409, "busy", at_work["run_id"], other)
    assert dump(*JOURNALS) == before
    # Looking is always possible, and so is working elsewhere.
    assert run(operator, scope="/a")["status"] == "planned"
    if other != "/":
        assert run(operator, scope="/c", dry_run=False)["status"] == "done"


def test_the_worker_finishes_what_was_left_applying(operator: Caller, faded: list[str]):
    plan = run(operator)
    ForgetRun.objects.filter(pk=plan["run_id"]).update(status="applying")
    worker_turn()
    got = operator.get(f"/v1/runs/{plan['run_id']}").ok()
    assert (got["status"], got["applied"]) == ("done", 3)


# --- Most topics of a run ---


def test_one_run_takes_the_lowest_scores_first_and_tells_what_is_left(operator: Caller):
    policy_put(operator, preset="memstate", topic_count_soft_limit=0, max_topics_for_forget_scan=2)
    made = {salience: topics_make(operator, 1, salience=salience)[0] for salience in (0.03, 0.01, 0.04, 0.02)}
    plan = run(operator)
    assert (plan["planned"], plan["left_over"]) == (2, 2)
    got = run(operator, dry_run=False)
    assert got["results"] == [f"archived:{made[0.01]}", f"archived:{made[0.02]}"]
    assert (got["left_over"], got["counts"]["archived"]) == (2, 2)
    got = run(operator, dry_run=False)
    assert got["results"] == [f"archived:{made[0.03]}", f"archived:{made[0.04]}"]
    assert got["left_over"] == 0


# --- Who and where ---


@pytest.fixture
def team(cast: Cast) -> Caller:
    """An operator bound to /user."""
    key_create(name="team", role="operator", secret="ms_the-secret-of-the-team-in-the-tests", scope="/user")
    return Caller(cast.operator.send, "ms_the-secret-of-the-team-in-the-tests")


def test_a_run_outside_of_the_keys_scope_is_not_there(operator: Caller, team: Caller, auditor: Caller, alice: Caller):
    policy_put(operator, preset="memstate", topic_count_soft_limit=0)
    topics_make(operator, 1, salience=0.04)
    plan = run(operator)
    before = dump()
    for answer in (
        team.get(f"/v1/runs/{plan['run_id']}"),
        auditor.get(f"/v1/runs/{plan['run_id']}/actions"),
        verb(team, plan["run_id"], "apply"),
        verb(team, plan["run_id"], "approve"),
        verb(team, plan["run_id"], "undo"),
    ):
        refused(answer, 404, "not-found")
    for path in ("/", "/project", "/users"):
        refused(team.post("/v1/runs", {"scope": path}), 404, "not-found")
        refused(team.post("/v1/policies/preview", {"scope": path}), 404, "not-found")
        refused(team.post("/v1/events", {"event": "memory_pressure", "scope": path}), 404, "not-found")
        refused(auditor.get(f"/v1/runs?scope={path}"), 404, "not-found")
    assert auditor.get("/v1/runs").ok()["items"] == []
    refused(alice.post("/v1/runs", {}), 403, "role-too-low")
    refused(operator.get(f"/v1/runs/{uuid.UUID(int=7)}"), 404, "not-found")
    assert {table: rows for table, rows in dump().items() if table != "memory_apikey"} == {
        table: rows for table, rows in before.items() if table != "memory_apikey"
    }


def test_a_team_runs_its_own_scope(operator: Caller, team: Caller, auditor: Caller):
    policy_put(operator, preset="memstate", topic_count_soft_limit=0)
    inside = topics_make(operator, 2, salience=0.04, scope="/user/alice")
    beside = topics_make(operator, 2, salience=0.04)
    got = team.post("/v1/runs", {"event": "manual", "dry_run": False}).ok()
    assert (got["scope"], sorted(applied(team, got))) == ("/user", sorted(inside))
    assert rungs(operator, *beside) == ["active", "active"]
    assert [item["run_id"] for item in auditor.get("/v1/runs").ok()["items"]] == [got["run_id"]]


def test_the_list_of_runs_is_newest_first_and_can_be_filtered(operator: Caller, clock: Clock, faded: list[str]):
    made = []
    for scope, event, dry_run in (("/", "manual", True), ("/a", "cron", False), ("/a/b", "manual", False)):
        clock.forward(seconds=1)
        made.append(run(operator, scope=scope, event=event, dry_run=dry_run)["run_id"])

    def listed(query: str = "") -> list[str]:
        page = operator.get(f"/v1/runs{query}").ok()
        assert all("results" not in item or item["results"] is None for item in page["items"])
        return [item["run_id"] for item in page["items"]]

    assert listed() == made[::-1]
    assert listed("?scope=/a") == made[:0:-1]
    assert listed("?event=cron") == [made[1]]
    assert listed("?status=planned") == [made[0]]
    first = operator.get("/v1/runs?limit=2").ok()
    assert [item["run_id"] for item in first["items"]] == [made[2], made[1]]
    assert listed(f"?limit=2&cursor={first['next']}") == [made[0]]


def test_every_action_is_journaled_once_with_what_stood_before_and_after(operator: Caller, faded: list[str]):
    got = run(operator, dry_run=False)
    rows = list(ForgetAction.objects.filter(run=got["run_id"]).order_by("place"))
    assert [(row.place, row.state) for row in rows] == [(1, "applied"), (2, "applied"), (3, "applied")]
    for row, item in zip(rows, actions(operator, got["run_id"]), strict=True):
        assert row.before["salience"] == item["salience_before"] == 0.04
        assert row.after is not None
        assert row.after["salience"] == item["salience_after"] == 0.02
        assert (item["from_rung"], item["to_rung"]) == ("active", "archived")
        assert (item["why"]["policy"], item["why"]["version"]) == ("/", 1)
