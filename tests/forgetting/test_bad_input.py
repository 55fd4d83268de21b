"""What makes no sense is refused, and nothing is written."""

import base64
import json
from typing import Any

import pytest

from tests.cast import Caller
from tests.forgetting.shop import dump, policy_put, run, topics_make

RUNS = [
    ({"event": "no such"}, "event"),
    ({"dry_run": False, "now": "2027-01-01T00:00:00Z"}, "contradictory-request"),
    ({"now": "2027-01-01T00:00:00"}, "now"),
    ({"now": "0001-01-01T00:00:00Z"}, "now"),
    ({"now": "9999-12-31T23:59:59Z"}, "now"),
    ({"now": "tomorrow"}, "now"),
    ({"scope": "no path"}, "invalid-scope"),
    ({"scope": "/" + "x" * 600}, "scope"),
    ({"scope": 7}, "scope"),
    ({"dry_run": "perhaps"}, "dry_run"),
]
PREVIEWS = [
    ({"values": {"half_life_days": -1}}, "invalid-policy"),
    ({"values": {"half_life_days": 0}}, "invalid-policy"),
    ({"values": {"half_life_days": "long"}}, "invalid-policy"),
    ({"values": {"no_such": 1}}, "invalid-policy"),
    ({"values": {"theta_detach": 0.5, "theta_summary": 0.4}}, "invalid-policy"),
    ({"values": {"theta_archive": 0.2, "theta_detach": 0.1}}, "invalid-policy"),
    ({"values": {"strategy": "oblivion"}}, "invalid-policy"),
    ({"values": {"mode": "maybe"}}, "invalid-policy"),
    ({"values": {"cron": "0 3 31 2 *"}}, "invalid-policy"),
    ({"values": {"cron": "every day"}}, "invalid-policy"),
    ({"values": {"max_archive_share": 2}}, "invalid-policy"),
    ({"values": {"keep_recent_revisions": 1.5}}, "invalid-policy"),
    ({"values": {"exempt_scopes": ["no path"]}}, "invalid-scope"),
    ({"preset": "no such"}, "invalid-policy"),
    ({"rules": ["no such"]}, "invalid-rule"),
    ({"rules": [7]}, "invalid-rule"),
    ({"rules": [{"name": "a", "action": "archive"}]}, "invalid-rule"),
    ({"rules": [{"name": "a", "action": "burn", "condition": {}}]}, "invalid-rule"),
    (
        {"rules": [{"name": "a", "action": "archive", "condition": {"field": "colour", "op": "is", "value": "red"}}]},
        "invalid-rule",
    ),
    (
        {"rules": [{"name": "a", "action": "archive", "condition": {"field": "age", "op": "like", "value": "1d"}}]},
        "invalid-rule",
    ),
    (
        {"rules": [{"name": "a", "action": "archive", "condition": {"field": "rung", "op": "is", "value": "active"}}]},
        "invalid-rule",
    ),
    (
        {"rules": [{"name": "a", "action": "pin", "condition": {"field": "text", "op": "matches", "value": "(a?)+$"}}]},
        "invalid-pattern",
    ),
    ({"values": {}, "rules": [{"name": "a"}] * 51}, "too-large"),
    ({"at": ["2027-01-01T00:00:00"]}, "at.0"),
    ({"at": ["2027-01-01T00:00:00Z"] * 13}, "at"),
    ({"scale": "round"}, "scale"),
    ({"limit": 0}, "limit"),
    ({"limit": 1_000_000}, "too-large"),
    ({"cursor": "made up"}, "invalid-cursor"),
    ({"cursor": "Zm9v"}, "invalid-cursor"),
    ({"event": "no such"}, "event"),
    ({"scope": "no path"}, "invalid-scope"),
]


def refused(caller: Caller, path: str, body: Any, what: str, *, method: str = "POST") -> None:
    before = dump()
    answer = caller.request(method, path, **({} if body is None else {"json": body}))
    assert answer.status == 422, answer.body
    assert what in answer.about, answer.detail
    assert {table: rows for table, rows in dump().items() if table != "memory_apikey"} == {
        table: rows for table, rows in before.items() if table != "memory_apikey"
    }


@pytest.mark.parametrize(("body", "what"), RUNS, ids=[what for _body, what in RUNS])
def test_a_run_that_makes_no_sense_is_refused(operator: Caller, body: Any, what: str):
    refused(operator, "/v1/runs", body, what)


@pytest.mark.parametrize(("body", "what"), PREVIEWS, ids=[what for _body, what in PREVIEWS])
def test_a_draft_is_refused_as_a_save_would_be(operator: Caller, body: Any, what: str):
    refused(operator, "/v1/policies/preview", body, what)
    if {"preset", "values", "rules"} & body.keys():
        draft = {"values": {}, **body, "reason": "because"}
        refused(operator, "/v1/policies/", draft, what, method="PUT")


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("?status=lost", "status"),
        ("?cursor=7", "invalid-cursor"),
        ("?cursor=%00", "cursor"),
        ("?limit=0", "limit"),
        ("?limit=100000", "too-large"),
        ("?scope=no%20path", "invalid-scope"),
        (f"?event={'x' * 60}", "event"),
        ("?event=no_such", "event"),
    ],
)
def test_a_list_of_runs_that_makes_no_sense_is_refused(reader: Caller, query: str, what: str):
    refused(reader, f"/v1/runs{query}", None, what, method="GET")


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "99999999999", "NaN"])
def test_a_foreign_cursor_of_actions_is_refused(operator: Caller, cursor: str):
    plan = run(operator)
    refused(operator, f"/v1/runs/{plan['run_id']}/actions?cursor={cursor}", None, "invalid-cursor", method="GET")


@pytest.mark.parametrize("score", ["nan", "inf", "-inf", "1e400"])
def test_a_cursor_of_a_preview_with_an_odd_number_does_no_harm(operator: Caller, score: str):
    policy_put(operator, preset="memstate")
    topics_make(operator, 2, salience=0.01)
    cursor = base64.urlsafe_b64encode(json.dumps([score, "00000000-0000-0000-0000-000000000001"]).encode()).decode()
    answer = operator.post("/v1/policies/preview", {"cursor": cursor})
    assert answer.status in (200, 422), answer.body


def test_an_unknown_state_of_actions_is_refused(operator: Caller):
    plan = run(operator)
    refused(operator, f"/v1/runs/{plan['run_id']}/actions?state=lost", None, "state", method="GET")


@pytest.mark.parametrize("verb", ["apply", "approve", "undo"])
def test_verbs_on_what_is_no_run_say_so(operator: Caller, verb: str):
    unknown = operator.post(f"/v1/runs/00000000-0000-7000-8000-000000000001/{verb}", {})
    assert (unknown.status, unknown.code) == (404, "not-found")
    assert operator.post(f"/v1/runs/not-an-id/{verb}", {}).status in (404, 422)
    plan = run(operator)
    too_long = operator.post(f"/v1/runs/{plan['run_id']}/{verb}", {"reason": "x" * 100_000})
    assert too_long.status == 422
