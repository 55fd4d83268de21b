"""Nothing is guessed at: a member that does not exist is refused with the nearest that does, and nothing happens.

A mistyped ``scope`` would else forget in the whole store, a mistyped ``title`` would make a topic without one.
"""

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.cast import Caller, code_of, store_rows

ID = str(uuid.UUID(int=7))
ASKED: list[tuple[str, str, dict[str, Any], str]] = [
    ("post", "/v1/runs", {"scop": "/user", "dry_run": False}, "scop"),
    ("post", "/v1/events", {"scop": "/user"}, "scop"),
    ("put", "/v1/policies/user", {"value": {"mode": "off"}, "reason": "x"}, "value"),
    ("post", "/v1/policies/user/rollback", {"to": 0, "reason": "x", "base": 1}, "base"),
    ("post", "/v1/policies/preview", {"value": {"mode": "off"}}, "value"),
    (
        "post",
        "/v1/policies/backtest",
        {"start": "2026-01-01T00:00:00Z", "end": "2026-02-01T00:00:00Z", "value": {}},
        "value",
    ),
    ("post", "/v1/ingest", {"placement": "new_topic", "titel": "Mara"}, "titel"),
    ("post", "/v1/ingest", {"placement": "new_topic", "fields": [{"name": "a", "val": 1}]}, "fields.0.val"),
    ("post", "/v1/ingest", {"placement": "new_topic", "edges": [{"to_topic_id": ID, "kid": ""}]}, "edges.0.kid"),
    ("post", "/v1/query", {"q": "tea", "topk": 3}, "topk"),
    ("patch", f"/v1/topics/{ID}", {"titel": "Mara"}, "titel"),
    ("post", f"/v1/topics/{ID}/archive", {"raison": "x"}, "raison"),
    ("post", f"/v1/topics/{ID}/pin", {"raison": "x"}, "raison"),
    ("delete", f"/v1/topics/{ID}", {"raison": "x"}, "raison"),
    ("post", "/v1/extract", {"content": "Ben is here.", "stor": True}, "stor"),
    ("post", "/v1/chat", {"messages": [{"role": "user", "content": "Hello"}], "sope": "/"}, "sope"),
    ("post", "/v1/chat", {"messages": [{"role": "user", "contents": "Hello"}]}, "messages.0.contents"),
    ("post", f"/v1/chat/{ID}/undo", {"dryrun": True}, "dryrun"),
    ("post", "/v1/forget", {"verb": "release", "filter": {"older_tan": "6m"}}, "filter.older_tan"),
    ("post", "/v1/supersede", {"old_query": "a", "new_text": "b", "scop": "/"}, "scop"),
    ("post", "/v1/pause", {"reason": "x", "scop": "/"}, "scop"),
    ("post", f"/v1/duplicates/{ID}/merge", {"raison": "x"}, "raison"),
]

NEAREST = {"scop": "scope", "sope": "scope", "titel": "title", "topk": "top_k", "raison": "reason", "dryrun": "dry_run"}

DOCUMENT = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text())
READS = [path for path, operations in DOCUMENT["paths"].items() if "get" in operations and path != "/v1/client.py"]


@pytest.mark.parametrize(
    ("verb", "path", "body", "member"), ASKED, ids=[f"{member} to {path}" for _verb, path, _body, member in ASKED]
)
def test_an_unknown_member_is_refused_and_nothing_happens(
    operator: Caller, verb: str, path: str, body: dict[str, Any], member: str
):
    operator.put("/v1/policies/user", {"values": {"half_life_days": 3}, "reason": "x"}).ok()
    before = store_rows()
    answer = operator.request(verb.upper(), path, body)
    assert (answer.status, answer.about) == (422, {"unknown-member", member})
    assert NEAREST.get(member, "") in answer.detail
    assert store_rows() == before
    assert operator.get("/v1/policies/user").ok()["values"] == {"half_life_days": 3}


@pytest.mark.parametrize(
    ("verb", "path", "body", "hints"),
    [
        ("post", "/v1/ingest", {"items": []}, ["placement", "title", "fields"]),
        ("patch", f"/v1/topics/{ID}", {"starred": True}, ["title", "topic_kind", "salience"]),
        ("patch", f"/v1/topics/{ID}", {"pinned": True}, ["/pin", "/unpin"]),
    ],
)
def test_where_no_member_is_near_all_are_listed_or_the_right_route(
    agent: Caller, verb: str, path: str, body: dict[str, Any], hints: list[str]
):
    refused = agent.request(verb.upper(), path, body)
    assert (refused.status, refused.about) == (422, {"unknown-member", *body})
    assert all(hint in refused.detail for hint in hints)
    assert "nearest" not in refused.detail


def test_an_unknown_policy_value_is_like_none_of_them(operator: Caller):
    refused = operator.put("/v1/policies/", {"values": {"zzz": 1}, "reason": "x"})
    assert (refused.status, refused.code) == (422, "invalid-policy")
    assert "nearest" not in refused.detail


def test_an_item_of_a_batch_is_refused_by_itself(agent: Caller):
    items = [{"placement": "new_topic", "titel": "Mara"}, {"placement": "new_topic", "title": "Ben"}]
    first, second = agent.post("/v1/ingest/batch", items).ok()["results"]
    assert (first["status"], code_of(first), second["status"]) == (422, "unknown-member", 200)
    assert [each["title"] for each in agent.get("/v1/topics").ok()["items"]] == ["Ben"]


@pytest.mark.parametrize("path", READS)
def test_an_unknown_parameter_of_the_address_is_refused(operator: Caller, path: str):
    known = [each["name"] for each in DOCUMENT["paths"][path]["get"].get("parameters", []) if each["in"] == "query"]
    refused = operator.get(re.sub(r"\{[^}]*\}", ID, path) + f"?{(known or ['x'])[0]}z=1")
    assert (refused.status, refused.code) == (422, "unknown-member")
    assert all(name in refused.detail for name in known[:1])


def test_a_caller_without_a_key_learns_nothing_of_parameters(anonymous: Caller):
    assert anonymous.get("/v1/topics?colour=red").status == 401


def test_a_change_with_an_unknown_parameter_changes_nothing(agent: Caller):
    before = store_rows()
    refused = agent.post("/v1/ingest?defr=1", {"placement": "new_topic", "title": "Mara"})
    assert (refused.status, refused.about) == (422, {"unknown-member", "defr"})
    assert "defer" in refused.detail
    assert store_rows() == before
