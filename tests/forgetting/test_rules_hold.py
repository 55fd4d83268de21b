"""What a rule has summarized or detached stays so when something happens that the rule does not answer."""

import datetime as dt

import pytest

from tests.cast import Caller, Clock, worker_turn
from tests.forgetting.shop import NOON, policy_put, run, rungs

RULE = {
    "name": "old findings",
    "events": ["cron"],
    "condition": {
        "all": [{"field": "kind", "op": "is", "value": "finding"}, {"field": "age", "op": ">=", "value": "30d"}]
    },
    "action": "summarize",
}


@pytest.fixture
def finding(operator: Caller, clock: Clock) -> str:
    clock.set(NOON - dt.timedelta(days=40))
    topic_id = operator.remember("a finding", topic_kind="finding", salience=5, values={"state": "0"})
    for number in range(1, 8):
        fields = [{"name": "state", "value": str(number)}]
        operator.ingest("version_field", topic_id=topic_id, fields=fields)
    clock.set(NOON)
    policy_put(operator, rules=[RULE], topic_count_soft_limit=0)
    return topic_id


@pytest.mark.parametrize("event", ["query_complete", "ingest_complete", "memory_pressure", "manual"])
def test_an_event_that_the_rule_does_not_answer_does_not_bring_the_topic_back(
    operator: Caller, finding: str, event: str
):
    assert run(operator, event="cron", dry_run=False)["results"] == [f"summarized:{finding}"]
    preview = operator.post("/v1/policies/preview", {"event": event}).ok()
    assert preview["affected"] == []
    assert run(operator, event=event, dry_run=False)["results"] == []
    assert rungs(operator, finding) == ["summarized"]
    assert run(operator, event="cron", dry_run=False)["results"] == []


def test_without_the_rule_it_climbs_back(operator: Caller, finding: str):
    run(operator, event="cron", dry_run=False)
    policy_put(operator, rules=[{**RULE, "enabled": False}], topic_count_soft_limit=0)
    assert run(operator, event="cron", dry_run=False)["results"] == [f"restored:{finding}"]


def test_a_plan_is_refused_once_its_topic_says_something_else(operator: Caller, finding: str):
    planned = run(operator, event="cron")
    operator.patch(f"/v1/topics/{finding}", {"title": "another finding"}).ok()
    answer = operator.post(f"/v1/runs/{planned['run_id']}/apply")
    assert (answer.status, answer.code) == (409, "changed-meanwhile")
    assert rungs(operator, finding) == ["active"]


def test_a_topic_that_is_written_to_is_not_archived_by_the_event_of_that_write(operator: Caller, clock: Clock):
    clock.set(NOON - dt.timedelta(days=60))
    topic_id = operator.remember("lessons", salience=0.15)
    clock.set(NOON)
    policy_put(operator, topic_count_soft_limit=0)
    salience = operator.topic(topic_id)["salience"]
    fields = [{"name": "instrument", "value": "sousaphone"}]
    operator.ingest("extend_topic", topic_id=topic_id, fields=fields)
    assert operator.topic(topic_id)["salience"] == pytest.approx(salience)
    worker_turn()
    assert rungs(operator, topic_id) == ["detached"]
    assert topic_id in operator.found("sousaphone")


def test_a_place_below_that_asks_for_a_review_holds_up_only_itself(operator: Caller, clock: Clock):
    clock.set(NOON - dt.timedelta(days=200))
    here, below = (operator.remember("old", scope=scope) for scope in ("/r", "/r/sub"))
    clock.set(NOON)
    policy_put(operator, "/r", topic_count_soft_limit=0)
    policy_put(operator, "/r/sub", mode="review")
    done = run(operator, scope="/r", dry_run=False)
    assert (done["status"], done["results"]) == ("done", [f"archived:{here}"])
    held = run(operator, scope="/r/sub", dry_run=False)
    assert (held["status"], held["results"]) == ("held", [f"archived:{below}"])
    assert rungs(operator, here, below) == ["archived", "active"]


def test_where_nothing_is_ever_forgotten_a_run_says_so(operator: Caller):
    policy_put(operator, "/still", mode="off")
    assert "its mode is off" in run(operator, scope="/still", dry_run=False)["gate"]
    policy_put(operator, exempt_scopes=["/kept"])
    assert "exempt scope" in run(operator, scope="/kept/deep", dry_run=False)["gate"]


def test_a_policy_is_not_emptied_by_a_request_that_says_nothing(operator: Caller):
    policy_put(operator, half_life_days=12)
    answer = operator.put("/v1/policies/", {"reason": "a slip"})
    assert answer.status == 422
    assert operator.get("/v1/policies/").ok()["values"] == {"half_life_days": 12}
