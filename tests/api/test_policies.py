"""/v1/policies: what is set where, what is in force, and how it came to be."""

import re
from typing import Any

import pytest
from django.utils import timezone

from memory.access.keys import key_create
from memory.models import PolicyVersion
from memory.policy import rekey
from tests.cast import Caller, Cast, store_rows, worker_turn
from tests.commands.test_policy_command import policy as command

BECAUSE = {"reason": "too much noise"}


@pytest.fixture
def team(cast: Cast) -> Caller:
    """An operator bound to /user."""
    key_create(name="team", role="operator", secret="ms_the-secret-of-the-team-in-the-tests", scope="/user")
    return Caller(cast.operator.send, "ms_the-secret-of-the-team-in-the-tests")


def put(caller: Caller, path: str, /, **members: Any) -> Any:
    return caller.put(f"/v1/policies/{path}", {**BECAUSE, **members}).ok()


def test_before_anybody_sets_anything_every_value_is_a_default(reader: Caller, settings: Any):
    settings.MEMSTATE_KNOBS = {}
    policy = reader.get("/v1/policies/").ok()
    assert (policy["scope"], policy["version"], policy["preset"], policy["values"], policy["rules"]) == (
        "/",
        0,
        None,
        {},
        [],
    )
    assert policy["effective"]["half_life_days"] == {"value": 30, "from": "default"}
    assert policy["effective"]["embedding_dimension"] == {"value": 384, "from": "default"}
    assert {value["from"] for value in policy["effective"].values()} == {"default"}


def test_every_value_tells_where_it_comes_from(operator: Caller, reader: Caller, settings: Any):
    settings.MEMSTATE_KNOBS = {"mode": "review"}
    put(operator, "", values={"half_life_days": 20})
    reply = put(operator, "user/alice", preset="memstate", values={"theta_summary": 0.4})
    assert reply == reader.get("/v1/policies/user/alice").ok()
    assert (reply["scope"], reply["version"], reply["preset"]) == ("/user/alice", 1, "memstate")
    assert reply["values"] == {"theta_summary": 0.4}
    effective = reply["effective"]
    assert effective["theta_summary"] == {"value": 0.4, "from": "/user/alice"}
    assert effective["strategy"] == {"value": "static", "from": "/user/alice", "preset": "memstate"}
    assert effective["mode"] == {"value": "review", "from": "environment"}
    assert effective["cron"] == {"value": "0 3 * * *", "from": "default"}
    below = reader.get("/v1/policies/user/alice/notes").ok()
    assert (below["version"], below["values"]) == (0, {})
    assert below["effective"] == effective
    assert reader.get("/v1/policies/user/bob").ok()["effective"]["half_life_days"] == {"value": 20, "from": "/"}


def test_a_save_takes_effect_with_the_next_request(agent: Caller, operator: Caller):
    before = agent.remember("Before", scope="/user/alice")
    put(operator, "user", values={"query_salience_bump": 0.7, "half_life_days": 2})
    after = agent.remember("After", scope="/user/alice")
    from memory.models import AccessLog, Vitality

    assert Vitality.objects.get(pk=before).half_life == 30 * 86_400
    assert Vitality.objects.get(pk=after).half_life == 2 * 86_400
    agent.query("After", scope="/user/alice")
    assert AccessLog.objects.latest("id").bump == 0.7


def test_how_far_a_change_of_half_life_has_come_is_reported(
    agent: Caller, operator: Caller, alice: Caller, auditor: Caller, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rekey, "TOPICS_PER_BATCH", 2)
    for n in range(3):
        agent.remember(f"Topic {n}", scope="/user/alice")
    assert put(operator, "user", values={"mode": "review"})["rekeying"] == []
    (begun,) = put(operator, "user", values={"half_life_days": 2})["rekeying"]
    assert (begun["scope"], begun["reason"], begun["done"], begun["total"]) == ("/user", "/user version 2", 0, None)
    rekey.half_lives_rekey(now=timezone.now(), budget_seconds=0)
    (halfway,) = operator.get("/v1/policies/user/alice").ok()["rekeying"]
    assert (halfway["done"], halfway["total"]) == (2, 3)
    assert auditor.get("/v1/policies/user").ok()["rekeying"] == [halfway]
    # A key does not see how many topics there are above its scope.
    (seen,) = alice.get("/v1/policies/user/alice").ok()["rekeying"]
    assert (seen["reason"], seen["done"], seen["total"]) == ("", None, None)
    assert "  new half-life below /user: 2 of 3 topics\n" in command("show", "/")
    assert operator.get("/v1/policies/project").ok()["rekeying"] == []
    worker_turn()
    assert operator.get("/v1/policies/").ok()["rekeying"] == []


def test_values_are_the_whole_set_and_null_is_inherited(operator: Caller):
    put(operator, "", values={"half_life_days": 20, "mode": "review", "theta_archive": 0.01})
    reply = put(operator, "", values={"half_life_days": 10, "mode": None})
    assert reply["values"] == {"half_life_days": 10}
    assert reply["version"] == 2


def test_a_save_warns_of_the_thresholds_that_it_puts_out_of_order_below(operator: Caller):
    for scope in ("session", "session/deep", "tool/a", "tool/b", "tool/c"):
        values = {"mode": "off"} if scope == "session/deep" else {"forget_salience_threshold": 0.08}
        assert put(operator, scope, values=values)["warnings"] == []
    got = put(operator, "", preset="memstate")["warnings"]
    assert got == operator.get("/v1/policies/").ok()["warnings"]
    here = operator.get("/v1/policies/session").ok()["warnings"]
    assert len(got) == len(here) == 2
    for general, own in zip(got, here, strict=True):
        assert general.endswith(own)
        assert "/session," in general
        assert "1 more" in general
        assert "/session/deep" not in general
        assert {"0.05", "0.08"} == set(re.findall(r"\d\.\d+", own))
    assert operator.get("/v1/policies/session/deep").ok()["warnings"] == here
    # Where nothing is out of order, there is nothing to warn of.
    assert operator.get("/v1/policies/other").ok()["warnings"] == []


def test_the_history_tells_what_changed_by_whom_and_why(operator: Caller, reader: Caller):
    rule = {
        "name": "old notes",
        "events": ["cron"],
        "action": "archive",
        "condition": {"field": "age", "op": ">", "value": "30d"},
    }
    put(operator, "user/alice", values={"half_life_days": 20})
    put(operator, "user/alice", values={"half_life_days": 10}, rules=[rule], reason="still noisy")
    page = reader.get("/v1/policies/user/alice/versions").ok()
    newest, oldest = page["items"]
    assert page["next"] is None
    assert (newest["version"], newest["author"], newest["reason"]) == (2, "key:operator", "still noisy")
    assert newest["diff"][0] == {
        "name": "half_life_days",
        "before": 20,
        "after": 10,
        "in_words": "half_life_days from 20 to 10",
    }
    assert newest["diff"][1]["in_words"].startswith("rule old notes added: ")
    assert "30 days" in newest["rules_in_words"][0]
    assert (oldest["version"], oldest["values"], oldest["rolled_back_to"]) == (1, {"half_life_days": 20}, None)
    first = reader.get("/v1/policies/user/alice/versions?limit=1").ok()
    assert [item["version"] for item in first["items"]] == [2]
    assert reader.get(f"/v1/policies/user/alice/versions?limit=1&cursor={first['next']}").ok()["items"] == [oldest]
    assert reader.get("/v1/policies/versions").ok() == {"items": [], "next": None}
    limited = reader.get("/v1/policies/versions?limit=100000")
    assert (limited.status, limited.code) == (422, "too-large")


def test_going_back_is_one_more_version(operator: Caller):
    put(operator, "user", values={"half_life_days": 20})
    put(operator, "user", values={"mode": "off"})
    reply = operator.post("/v1/policies/user/rollback", {"to": 1, "reason": "was better"}).ok()
    assert (reply["version"], reply["values"]) == (3, {"half_life_days": 20})
    assert operator.get("/v1/policies/user/versions").ok()["items"][0]["rolled_back_to"] == 1
    refused = operator.post("/v1/policies/user/rollback", {"to": 7, "reason": "guess"})
    assert (refused.status, refused.code) == (422, "not-found")


def test_of_two_editors_the_second_is_reported(operator: Caller):
    put(operator, "", values={"half_life_days": 20}, base_version=0)
    before = store_rows()
    answer = operator.put("/v1/policies/", {**BECAUSE, "values": {"half_life_days": 10}, "base_version": 0})
    assert (answer.status, answer.code) == (409, "changed-meanwhile")
    # Who it was and what they changed is reported.
    assert "key:operator" in answer.detail
    assert "half_life_days" in answer.detail
    assert store_rows() == before


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ({"values": {"theta_summary": 0.01, "theta_detach": 0.02}}, "invalid-policy"),
        ({"values": {"half_life_days": -1}}, "invalid-policy"),
        ({"values": {"cron": "0 0 30 2 *"}}, "invalid-policy"),
        ({"values": {"inherit": "/user"}}, "invalid-policy"),
        ({"values": {"mode": "off"}, "reason": ""}, "missing-member"),
        ({"values": {"mode": "off"}, "reason": None}, "reason"),
        ({"preset": "fancy"}, "invalid-policy"),
        ({"rules": [{"name": "x"}]}, "invalid-rule"),
        ({"rules": [7]}, "invalid-rule"),
        ({"values": 7}, "values"),
    ],
)
def test_what_makes_no_sense_is_refused(operator: Caller, body: dict[str, Any], what: str):
    before = store_rows()
    answer = operator.put("/v1/policies/user", {**BECAUSE, **body})
    assert (answer.status, what in answer.about) == (422, True), answer.detail
    assert store_rows() == before


def test_a_key_reads_and_sets_nothing_outside_its_scope(team: Caller, cast: Cast):
    assert put(team, "user", values={"half_life_days": 20})["version"] == 1
    assert put(team, "user/alice", values={"half_life_days": 10})["version"] == 1
    before = store_rows()
    body = {**BECAUSE, "values": {"half_life_days": 5}}
    for path in ("", "project", "users"):
        for answer in (
            team.put(f"/v1/policies/{path}", body),
            team.get(f"/v1/policies/{path}"),
            team.get(f"/v1/policies/{path}/versions".replace("//", "/")),
            team.post(f"/v1/policies/{path}/rollback".replace("//", "/"), {"to": 0, "reason": "x"}),
        ):
            assert (answer.status, answer.code) == (404, "not-found")
    assert store_rows() == before
    assert cast.auditor.get("/v1/policies/user/alice").ok()["effective"]["half_life_days"]["value"] == 10
    assert cast.alice.get("/v1/policies/user/bob").status == 404


def test_an_address_that_ends_in_a_slash_is_a_scope_whatever_it_is_called(operator: Caller):
    for name in ("versions", "rollback", "preview", "backtest"):
        assert put(operator, f"{name}/", values={"half_life_days": 20})["scope"] == f"/{name}"
        assert put(operator, f"user/{name}/", values={"half_life_days": 20})["scope"] == f"/user/{name}"
        assert operator.get(f"/v1/policies/user/{name}/versions").ok()["items"][0]["scope"] == f"/user/{name}"
    assert put(operator, "user/preview", values={"half_life_days": 10})["version"] == 2
    assert operator.get("/v1/policies/user/versions").ok() == {"items": [], "next": None}
    assert operator.put("/v1/policies/user/versions", BECAUSE).status == 405
    assert put(operator, "user/alice/", values={"mode": "off"})["scope"] == "/user/alice"


def test_a_scope_that_is_none_is_refused(operator: Caller, reader: Caller):
    for path in ("a%20b", "user/../x", "x" * 501):
        assert operator.put(f"/v1/policies/{path}", BECAUSE).status == 422
        assert reader.get(f"/v1/policies/{path}").status == 422
    assert not PolicyVersion.objects.exists()
