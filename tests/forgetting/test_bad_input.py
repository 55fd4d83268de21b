"""What makes no sense is refused with a sentence, and nothing is written."""

import base64
import json
from typing import Any

import pytest

from tests.cast import Caller
from tests.forgetting.shop import dump, policy_put, run, topics_make

RUNS = [
    ({"event": "no such"}, "event"),
    ({"dry_run": False, "now": "2027-01-01T00:00:00Z"}, "now can only be given for a dry run"),
    ({"now": "2027-01-01T00:00:00"}, "now: "),
    ({"now": "0001-01-01T00:00:00Z"}, "now: "),
    ({"now": "9999-12-31T23:59:59Z"}, "now: "),
    ({"now": "tomorrow"}, "now: "),
    ({"scope": "no path"}, "scope"),
    ({"scope": "/" + "x" * 600}, "scope: "),
    ({"scope": 7}, "scope: "),
    ({"dry_run": "perhaps"}, "dry_run: "),
]
PREVIEWS = [
    ({"values": {"half_life_days": -1}}, "half_life_days must lie between"),
    ({"values": {"half_life_days": 0}}, "half_life_days must lie between"),
    ({"values": {"half_life_days": "long"}}, "half_life_days must be a number"),
    ({"values": {"no_such": 1}}, "There is no policy value named 'no_such'."),
    ({"values": {"theta_detach": 0.5}}, "theta_summary must be at least theta_detach"),
    ({"values": {"theta_archive": 0.2}}, "theta_detach must be at least forget_salience_threshold"),
    ({"values": {"strategy": "oblivion"}}, "strategy must be one of"),
    ({"values": {"mode": "maybe"}}, "mode must be one of"),
    ({"values": {"cron": "0 3 31 2 *"}}, "never"),
    ({"values": {"cron": "every day"}}, "cron"),
    ({"values": {"max_archive_share": 2}}, "max_archive_share must lie between"),
    ({"values": {"keep_recent_revisions": 1.5}}, "keep_recent_revisions must be a whole number"),
    ({"values": {"exempt_scopes": ["no path"]}}, "scope"),
    ({"preset": "no such"}, "There is no preset 'no such'"),
    ({"rules": ["no such"]}, "There is no set of rules named 'no such'"),
    ({"rules": [7]}, "A rule must be an object"),
    ({"rules": [{"name": "a", "action": "archive"}]}, "a condition is missing"),
    ({"rules": [{"name": "a", "action": "burn", "condition": {}}]}, "action must be one of"),
    (
        {"rules": [{"name": "a", "action": "archive", "condition": {"field": "colour", "op": "is", "value": "red"}}]},
        "there is no field 'colour'",
    ),
    (
        {"rules": [{"name": "a", "action": "archive", "condition": {"field": "age", "op": "like", "value": "1d"}}]},
        "age cannot be compared with 'like'",
    ),
    (
        {"rules": [{"name": "a", "action": "archive", "condition": {"field": "rung", "op": "is", "value": "active"}}]},
        "a rule must not ask for rung",
    ),
    (
        {"rules": [{"name": "a", "action": "pin", "condition": {"field": "text", "op": "matches", "value": "(a?)+$"}}]},
        "Rule 'a'",
    ),
    ({"values": {}, "rules": [{"name": "a"}] * 51}, "at most 50 rules"),
    ({"at": ["2027-01-01T00:00:00"]}, "at.0: "),
    ({"at": ["2027-01-01T00:00:00Z"] * 13}, "at: "),
    ({"scale": "round"}, "scale: "),
    ({"limit": 0}, "limit: "),
    ({"limit": 1_000_000}, "limit is at most"),
    ({"cursor": "made up"}, "cursor"),
    ({"cursor": "Zm9v"}, "cursor"),
    ({"event": "no such"}, "event: "),
    ({"scope": "no path"}, "scope"),
]


def refused(caller: Caller, path: str, body: Any, words: str, *, method: str = "POST") -> None:
    before = dump()
    answer = caller.request(method, path, **({} if body is None else {"json": body}))
    assert answer.status == 422, answer.body
    assert words in answer.detail, answer.detail
    assert {table: rows for table, rows in dump().items() if table != "memory_apikey"} == {
        table: rows for table, rows in before.items() if table != "memory_apikey"
    }


@pytest.mark.parametrize(("body", "words"), RUNS, ids=[words for _body, words in RUNS])
def test_a_run_that_makes_no_sense_is_refused(operator: Caller, body: Any, words: str):
    refused(operator, "/v1/runs", body, words)


@pytest.mark.parametrize(("body", "words"), PREVIEWS, ids=[words for _body, words in PREVIEWS])
def test_a_draft_is_refused_with_the_sentence_that_a_save_would_be_refused_with(
    operator: Caller, body: Any, words: str
):
    refused(operator, "/v1/policies/preview", body, words)
    if {"preset", "values", "rules"} & body.keys():
        draft = {"values": {}, **body, "reason": "because"}
        refused(operator, "/v1/policies/", draft, words, method="PUT")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?status=lost", "status: "),
        ("?cursor=7", "cursor"),
        ("?cursor=%00", "cursor: "),
        ("?limit=0", "limit: "),
        ("?limit=100000", "limit is at most"),
        ("?scope=no%20path", "scope"),
        (f"?event={'x' * 60}", "event: "),
        ("?event=no_such", "event"),
    ],
)
def test_a_list_of_runs_that_makes_no_sense_is_refused(reader: Caller, query: str, words: str):
    refused(reader, f"/v1/runs{query}", None, words, method="GET")


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "99999999999", "%00", "NaN"])
def test_a_foreign_cursor_of_actions_is_refused(operator: Caller, cursor: str):
    plan = run(operator)
    refused(operator, f"/v1/runs/{plan['run_id']}/actions?cursor={cursor}", None, "cursor", method="GET")


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
    assert (unknown.status, unknown.detail) == (404, "There is no run 00000000-0000-7000-8000-000000000001.")
    assert operator.post(f"/v1/runs/not-an-id/{verb}", {}).status in (404, 422)
    plan = run(operator)
    too_long = operator.post(f"/v1/runs/{plan['run_id']}/{verb}", {"reason": "x" * 100_000})
    assert too_long.status == 422
