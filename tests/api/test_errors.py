"""Every refusal is a problem document after RFC 9457, whoever makes it."""

import shutil
from typing import Any

import pytest
from django.db import OperationalError, connection
from psycopg.errors import DiskFull, LockNotAvailable, QueryCanceled

from memory.embedding import EmbeddingFailed
from tests.cast import Answer, Caller, Cast, store_rows


def problem(answer: Answer, status: int) -> str:
    assert answer.status == status
    assert answer.content_type == "application/problem+json"
    document = answer.json
    assert set(document) - {"member"} == {"type", "title", "status", "detail"}
    assert document["status"] == status
    assert document["title"][0].isupper()
    assert answer.detail.endswith(".")
    return answer.code


@pytest.mark.parametrize(
    "path",
    ["/v1/", "/v1/nowhere", "/v1/topics/x", "/v1/topics/", "/v1/query/", "/v1/a/b/c", "/v1/%00", "/v1/%ff", "/v1//"],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_unknown_address_below_v1_is_a_problem(agent: Caller, path: str, method: str):
    assert problem(agent.request(method, path), 404) == "address-not-found"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/ingest", "POST"),
        ("PUT", "/v1/ingest", "POST"),
        ("GET", "/v1/ingest/batch", "POST"),
        ("GET", "/v1/query", "POST"),
        ("HEAD", "/v1/query", "POST"),
        ("OPTIONS", "/v1/query", "POST"),
        ("POST", "/v1/topics", "GET"),
        ("TRACE", "/v1/topics", "GET"),
        ("POST", "/v1/topics/00000000-0000-4000-8000-000000000000", "DELETE, GET, PATCH"),
        ("GET", "/v1/topics/00000000-0000-4000-8000-000000000000/pin", "POST"),
        ("POST", "/v1/stats", "GET"),
    ],
)
def test_a_method_that_is_not_possible_is_a_problem(agent: Caller, method: str, path: str, allowed: str):
    answer = agent.request(method, path)
    assert answer.headers["allow"] == allowed
    if method == "HEAD":
        assert (answer.status, answer.content_type) == (405, "application/problem+json")
    else:
        assert problem(answer, 405) == "method-not-possible"


def test_problems_are_the_same_over_http(http_cast: Cast):
    problem(http_cast.agent.get("/v1/nowhere"), 404)
    problem(http_cast.agent.get("/v1/query"), 405)
    problem(http_cast.anonymous.get("/v1/stats"), 401)
    problem(http_cast.agent.post("/v1/query", body=b"{"), 400)
    problem(http_cast.agent.post("/v1/query", {}), 422)
    problem(http_cast.agent.post("/v1/query", {"q": "x" * 3_000_000}), 413)


NEW = {"placement": "new_topic", "title": "Tea"}


def failing(monkeypatch: pytest.MonkeyPatch, problem: Exception, cause: Exception | None = None) -> None:
    problem.__cause__ = cause

    def fail(*_args: Any, **_more: Any) -> None:
        raise problem

    monkeypatch.setattr("memory.ingest.apply.plan_write", fail)


@pytest.mark.parametrize(
    ("raised", "cause", "status", "code"),
    [
        (EmbeddingFailed("The endpoint does not answer."), None, 503, "embedder-unavailable"),
        (OperationalError("no"), None, 503, "database-unavailable"),
        (OperationalError("no"), LockNotAvailable(), 503, "busy"),
        (OperationalError("no"), QueryCanceled(), 503, "database-slow"),
        (OperationalError("no"), DiskFull(), 503, "disk-full"),
        (RuntimeError("secret details"), None, 500, "internal-error"),
    ],
)
def test_what_fails_inside_is_a_problem_and_leaves_nothing(
    agent: Caller, monkeypatch: pytest.MonkeyPatch, raised: Exception, cause: Exception | None, status: int, code: str
):
    before = store_rows()
    failing(monkeypatch, raised, cause)
    answer = agent.post("/v1/ingest", NEW)
    assert problem(answer, status) == code
    assert "secret" not in answer.text
    assert store_rows() == before


def test_a_database_that_ended_because_the_disk_is_full_is_not_called_away(
    agent: Caller, monkeypatch: pytest.MonkeyPatch
):
    failing(monkeypatch, OperationalError("no"))
    monkeypatch.setitem(connection.settings_dict, "HOST", "/a/folder")
    used = shutil.disk_usage("/")
    monkeypatch.setattr("memory.api.problems.shutil.disk_usage", lambda _path: used._replace(free=1024))
    assert problem(agent.post("/v1/ingest", NEW), 503) == "disk-full"
    monkeypatch.setattr("memory.api.problems.shutil.disk_usage", lambda _path: used._replace(free=2**30))
    assert problem(agent.post("/v1/ingest", NEW), 503) == "database-unavailable"


def test_an_embedder_that_fails_leaves_nothing(agent: Caller, monkeypatch: pytest.MonkeyPatch):
    from memory.embedding.instant import InstantEmbedder

    def fail(*_args: Any) -> None:
        raise EmbeddingFailed("The embedder is away.")

    agent.remember("Something")
    before = store_rows()
    monkeypatch.setattr(InstantEmbedder, "embed_passages", fail)
    assert problem(agent.post("/v1/ingest", NEW), 503) == "embedder-unavailable"
    assert problem(agent.post("/v1/ingest/batch", [NEW]), 503) == "embedder-unavailable"
    assert problem(agent.post("/v1/query", {"q": "x"}), 503) == "embedder-unavailable"
    assert store_rows() == before


def test_an_unknown_member_of_many_is_reported_with_its_place(agent: Caller):
    body = {"placement": "new_topic", "fields": [{"name": "a"}, {"name": 7}]}
    answer = agent.post("/v1/ingest", body)
    assert problem(answer, 422) == "invalid-member"
    assert answer.about == {"invalid-member", "fields.1.name"}


def test_many_mistakes_are_reported_together_but_not_all(agent: Caller):
    body = {"placement": "new_topic", "fields": [{"name": ""} for _ in range(9)]}
    answer = agent.post("/v1/ingest", body)
    assert problem(answer, 422) == "invalid-member"
    assert answer.about == {"invalid-member", "fields.0.name"}
    assert "fields.4.name" in answer.detail
    assert "fields.5.name" not in answer.detail
    assert "4 more" in answer.detail


RULE = {"name": "a", "action": "archive", "condition": {"field": "kind", "op": "is", "value": "tool"}}


@pytest.mark.parametrize(
    ("body", "code", "member"),
    [
        ({"values": {"forget_salience_threshold": "high"}}, "invalid-policy", "forget_salience_threshold"),
        ({"values": {"theta_sumary": 1}}, "invalid-policy", "theta_sumary"),
        ({"values": {"cron": "61 * * * *"}}, "invalid-policy", "cron"),
        ({"values": {}, "preset": "nothing"}, "invalid-policy", "preset"),
        ({"values": {}, "rules": [RULE, {**RULE, "action": "burn"}]}, "invalid-rule", "rules[1].action"),
        ({"values": {}, "rules": [RULE, RULE]}, "invalid-rule", "rules[1].name"),
        (
            {"values": {}, "rules": [{**RULE, "condition": {"any": [RULE["condition"], {"field": "kin"}]}}]},
            "invalid-rule",
            "rules[0].condition.any[1].field",
        ),
        ({"values": {}, "reason": 7}, "invalid-member", "reason"),
    ],
)
def test_a_refused_policy_names_the_member(operator: Caller, body: dict[str, Any], code: str, member: str):
    before = store_rows()
    answer = operator.request("PUT", "/v1/policies/", {"reason": "a test", **body})
    assert problem(answer, 422) == code
    assert answer.json["member"] == member
    assert store_rows() == before


def test_a_refused_item_of_a_batch_names_the_member(agent: Caller):
    reply = agent.post("/v1/ingest/batch", [NEW, {**NEW, "pinned": "perhaps"}]).ok()
    assert [item.get("member") for item in reply["results"]] == [None, "pinned"]
