"""A key of one store neither reads nor changes another, by any route, tool or job, although all ids are the same."""

import json
from typing import Any

import pytest
from django_q.models import OrmQ

from memory.api.app import api
from memory.jobs import tasks
from memory.models import Topic
from memory.stores.current import MAIN, store_use
from tests.cast import Caller, Cast
from tests.stores.two import OTHER, OURS, THEIRS, cast_there, id_of, other_make, rows_of, said

# For each route: what is sent, at most. Names in braces are ids, which both stores have.
BODIES: dict[str, Any] = {
    "POST /v1/ingest": {
        "placement": "new_topic",
        "title": "A third animal",
        "edges": [{"to_topic_id": "{topic_id}", "kind": "like"}],
    },
    "POST /v1/ingest/batch": [
        {"placement": "extend_topic", "topic_id": "{topic_id}", "fields": [{"name": "age", "value": "4"}]}
    ],
    "POST /v1/extract": {"content": "The animal lives in Africa. It eats grass.", "store": True},
    "POST /v1/query": {"q": "striped animal", "depth": 2, "include_archived": True, "explain": True},
    "PATCH /v1/topics/{topic_id}": {"title": "Renamed"},
    "DELETE /v1/topics/{topic_id}": {},
    "POST /v1/chat": {"messages": [{"role": "user", "content": "Which animal?"}]},
    "POST /v1/forget": {"filter": "animal", "reason": "x"},
    "POST /v1/supersede": {"topic_id": "{topic_id}", "by": "{second_id}", "reason": "x"},
    "POST /v1/runs": {"scope": "/"},
    "POST /v1/events": {"event": "x", "scope": "/"},
    "POST /v1/policies/preview": {"scope": "/", "values": {"prune_after_days": 1}},
    "POST /v1/pause": {"scope": "/", "reason": "x"},
    "POST /v1/pause/lift": {"scope": "/", "reason": "x"},
    "POST /v1/policies/backtest": {
        "scope": "/",
        "values": {"prune_after_days": 1},
        "start": "2020-01-01T00:00:00Z",
        "end": "2020-02-01T00:00:00Z",
    },
    "PUT /v1/policies/": {"values": {"half_life_days": 3}, "reason": "x"},
    "PUT /v1/policies/{scope}": {"values": {"half_life_days": 3}, "reason": "x"},
    "POST /v1/policies/rollback": {"to": 0, "reason": "x"},
    "POST /v1/policies/{scope}/rollback": {"to": 0, "reason": "x"},
}
_ROUTES = [
    (method.upper(), path)
    for path, methods in api.get_openapi_schema(path_prefix="/v1/")["paths"].items()
    for method in methods
]


@pytest.fixture
def ids(cast: Cast) -> dict[str, str]:
    """Two stores with the same ids, full of what the routes are about. Returns the ids."""
    agent, operator = cast.agent, cast.operator
    first = agent.remember(f"A {OURS}, the striped animal", values={"kind": OURS}, scope=f"/{OURS}")
    second = agent.remember(
        f"Another {OURS} animal", values={"home": OURS}, edges=[{"to_topic_id": first, "kind": OURS}]
    )
    agent.query(f"Where is the {OURS}?")
    values = {"strategy": "static", "prune_after_days": 0, "mode": "review", "topic_count_soft_limit": 0}
    operator.put(f"/v1/policies/{OURS}", {"values": values, "reason": OURS}).ok()
    agent.remember(f"A {OURS} to forget", scope=f"/{OURS}")
    gone = operator.remember(f"A {OURS} that is gone")
    receipt = operator.request("DELETE", f"/v1/topics/{gone}", {"reason": OURS}).ok()["receipt_id"]
    operator.post("/v1/runs", {"scope": f"/{OURS}"})
    operator.post("/v1/extract?background=1", {"content": f"The {OURS} is tall. It runs.", "store": True})
    tasks.upkeep()
    other_make()
    return {
        "topic_id": first,
        "second_id": second,
        "receipt_id": receipt,
        "run_id": id_of("ForgetRun"),
        "job_id": id_of("ExtractionJob"),
        "pair_id": id_of("DuplicatePair"),
        "study_id": id_of("StudyJob"),
        "conversation_id": id_of("Conversation"),
        "scope": OURS,
        "name": "kind",
    }


def _filled(value: Any, ids: dict[str, str]) -> Any:
    text = json.dumps(value)
    for name, each in ids.items():
        text = text.replace("{" + name + "}", each)
    return json.loads(text)


def _sent(caller: Caller, method: str, path: str, ids: dict[str, str]) -> Any:
    body = BODIES.get(f"{method} {path}", {} if method != "GET" else None)
    more = {} if body is None else {"json": _filled(body, ids)}
    return caller.request(method, _filled(path, ids), **more)


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["operator", "agent"])
def test_no_route_reads_or_changes_another_store(cast: Cast, ids: dict[str, str], role: str) -> None:
    there = cast_there(cast)
    before = rows_of(MAIN)
    assert OURS not in json.dumps(rows_of(OTHER))
    spoken, worked = 0, 0
    for method, path in _ROUTES:
        for caller in (getattr(there, role), there.stranger):
            answer = _sent(caller, method, path, ids | {"scope": THEIRS})
            assert answer.status < 500 or answer.status == 503, (method, path, answer.text)
            assert OURS not in said(answer), (method, path, answer.text)
            spoken += THEIRS in said(answer)
            worked += answer.status < 300
    # It is no proof if nothing was answered.
    assert spoken > 8
    assert worked > 20
    assert rows_of(MAIN) == before
    # What was asked in the other store is done there.
    with store_use(OTHER):
        assert not Topic.objects.filter(pk=ids["topic_id"], title__contains="striped").exists() or role == "agent"


@pytest.mark.django_db
def test_main_does_not_see_another_store_either(cast: Cast, ids: dict[str, str]) -> None:
    before = rows_of(OTHER)
    for method, path in _ROUTES:
        assert THEIRS not in said(_sent(cast.operator, method, path, ids)), (method, path)
    assert rows_of(OTHER) == before


@pytest.mark.django_db
def test_no_tool_reads_or_changes_another_store(cast: Cast, ids: dict[str, str]) -> None:
    before = rows_of(MAIN)
    there = cast_there(cast).operator
    listed = _rpc(there, "tools/list", {})["result"]["tools"]
    assert len(listed) > 5
    spoken = 0
    for tool in listed:
        for arguments in (_arguments(tool, ids), {}):
            said_there = json.dumps(_rpc(there, "tools/call", {"name": tool["name"], "arguments": arguments})).lower()
            assert OURS not in said_there, tool["name"]
            spoken += THEIRS in said_there
    assert spoken
    assert rows_of(MAIN) == before


@pytest.mark.django_db
def test_no_job_reads_or_changes_another_store(ids: dict[str, str]) -> None:
    before = rows_of(MAIN)
    OrmQ.objects.all().delete()
    given: dict[str, tuple[str, ...]] = {
        "forget_scheduled": (f"/{THEIRS}",),
        "run_continue": (ids["run_id"],),
        "duplicates_search": ("/",),
        "extraction_continue": (ids["job_id"],),
    }
    for name, kind in tasks.TASKS.items():
        short = name.rpartition(".")[2]
        if kind.needs == 0 or short in given:
            getattr(tasks, short)(*given.get(short, ()), store=OTHER)
    assert rows_of(MAIN) == before
    for job in OrmQ.objects.all():
        assert job.task["kwargs"]["store"] == OTHER
        assert job.key.endswith(":other")


def _rpc(caller: Caller, method: str, params: dict[str, Any]) -> Any:
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return caller.post("/mcp", message, headers=headers).ok()


def _arguments(tool: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    """Return arguments for the required members of a tool."""
    schema = tool["inputSchema"]
    found: dict[str, Any] = {}
    for name in schema.get("properties", {}):
        if name == "topic_ids":
            found[name] = [ids["topic_id"]]
        elif name.endswith("_id") and name in ids:
            found[name] = ids[name]
        elif name in ("q", "text", "query", "content", "title", "reason"):
            found[name] = "striped animal"
        elif name == "placement":
            found[name] = "extend_topic"
    return found
