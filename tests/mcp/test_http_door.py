"""/mcp as HTTP: who is let in, what is refused before the protocol, and what the protocol itself refuses."""

import datetime as dt
import re
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import OperationalError, connection

from memory.access.keys import key_create, key_revoke
from tests.cast import Answer, Caller, Cast, Clock, store_rows

ACCEPT = {"Accept": "application/json, text/event-stream"}
MODERN = "2026-07-28"
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def send(caller: Caller, method: str, params: Any = None, /, *, number: Any = 1, **headers: str) -> Answer:
    """Send a request of the handshake protocol, which may be any request where nothing is remembered."""
    message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
    if number is not None:
        message["id"] = number
    return caller.post(
        "/mcp", message, headers={**ACCEPT, **{name.replace("_", "-"): headers[name] for name in headers}}
    )


def modern(caller: Caller, method: str, params: Any, **headers: str) -> Answer:
    """Send a request of the protocol of 2026."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    named = {"Mcp-Name": params["name"]} if "name" in params else {}
    return caller.post(
        "/mcp", message, headers={**ACCEPT, "MCP-Protocol-Version": MODERN, "Mcp-Method": method, **named, **headers}
    )


def test_a_tool_is_called_in_both_protocols(agent: Caller):
    topic_id = agent.remember("Where Mara lives", values={"city": "Lisbon"})
    old = send(agent, "tools/call", {"name": "topic", "arguments": {"topic_id": topic_id}}).ok()
    assert old["result"]["structuredContent"]["fields"] == {"city": "Lisbon"}
    new = modern(agent, "tools/call", {"name": "topic", "arguments": {"topic_id": topic_id}}).ok()
    assert new["result"]["structuredContent"] == old["result"]["structuredContent"]


def test_who_has_no_key_is_reported_so_before_the_protocol(cast: Cast, clock: Clock):
    before = store_rows()
    for method in ("POST", "GET", "DELETE"):
        answer = cast.anonymous.request(method, "/mcp", headers=ACCEPT)
        assert (answer.status, answer.headers["www-authenticate"]) == (401, 'Bearer realm="memstate"')
        assert answer.code == "key-missing"
    assert Caller(cast.anonymous.send, "ms_wrong").post("/mcp", {}).code == "key-unknown"
    bearer = {"Authorization": f"Bearer {cast.reader.secret}"}
    assert send(cast.anonymous, "tools/list", **bearer).ok()["result"]["tools"]
    assert store_rows() == before

    limited = Caller(cast.anonymous.send, "ms_a-key-that-will-not-last-for-long")
    key = key_create(
        name="short", role="agent", secret=limited.secret or "", expires_at=clock.stop() + dt.timedelta(days=1)
    )
    assert send(limited, "initialize", INITIALIZE).status == 200
    assert send(limited, "tools/list").status == 200
    clock.forward(days=2)
    assert send(limited, "tools/list").code == "key-expired"
    key_revoke(key.prefix, actor="test", reason="", now=clock.now)
    assert send(limited, "tools/list").code == "key-revoked"


def test_a_session_is_no_key(cast: Cast):
    """No session is handed out. A caller that names one acts with its own key, and ends no work of others."""
    opened = send(cast.operator, "initialize", INITIALIZE)
    assert opened.ok()["result"]["serverInfo"]["name"] == "memstate"
    assert "mcp-session-id" not in opened.headers
    session = {"Mcp_Session_Id": "some-session"}
    assert send(cast.reader, "notifications/initialized", number=None, **session).status == 202
    names = {tool["name"] for tool in send(cast.reader, "tools/list", **session).ok()["result"]["tools"]}
    assert "new_topic" not in names
    inside, outside = cast.stranger.remember("His"), cast.agent.remember("Another's")
    read = {"name": "topic", "arguments": {"topic_id": outside}}
    assert send(cast.stranger, "tools/call", read, **session).ok()["result"]["isError"]
    read["arguments"] = {"topic_id": inside}
    assert not send(cast.stranger, "tools/call", read, **session).ok()["result"].get("isError")
    assert send(cast.reader, "notifications/cancelled", {"requestId": 1}, number=None, **session).status == 202
    assert cast.reader.delete("/mcp", headers={"Mcp-Session-Id": session["Mcp_Session_Id"]}).status == 405


def test_pages_of_other_sites_are_refused(cast: Cast, settings: Any):
    for origin in ("https://evil.example", "http://localhost:6274", "null"):
        assert send(cast.agent, "tools/list", Origin=origin).status == 403
    assert send(cast.anonymous, "tools/list", Origin="https://evil.example").status == 403
    assert send(cast.agent, "tools/list", Origin="http://testserver").status == 200
    settings.CSRF_TRUSTED_ORIGINS = ["https://friend.example"]
    assert send(cast.agent, "tools/list", Origin="https://friend.example").status == 200
    assert send(cast.agent, "tools/list", Host="evil.example").status == 400


def test_what_is_no_message_is_answered_with_the_codes_of_the_protocol(cast: Cast, settings: Any):
    def refused(body: bytes, **headers: str) -> tuple[int, Any]:
        answer = cast.agent.post("/mcp", body=body, headers={**ACCEPT, **headers})
        return answer.status, answer.json["error"]["code"]

    before = store_rows()
    for body, code in (
        (b" ", -32700),
        (b"{", -32700),
        (b"[" * 3000, -32700),
        (b"[]", -32602),
        (b"null", -32602),
        (b"{}", -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', -32602),
    ):
        assert refused(body) == (400, code), body
    assert refused(b"{", **{"MCP-Protocol-Version": MODERN}) == (400, -32700)
    assert refused(b"[]", **{"MCP-Protocol-Version": MODERN}) == (400, -32600)
    message = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    assert refused(message, **{"MCP-Protocol-Version": "2042-01-01"}) == (400, -32602)
    # No stream is opened, which would hold a thread.
    for listen in ({"notifications": {}}, {"notifications": {"toolsListChanged": True}}):
        assert modern(cast.agent, "subscriptions/listen", listen).json["error"]["code"] == -32601
    assert send(cast.agent, "resources/subscribe", {"uri": "memstate://topics/x"}).json["error"]["code"] == -32601
    assert send(cast.agent, "no/method").ok()["error"]["code"] == -32601
    assert send(cast.agent, "tools/call", {"name": 5}).ok()["error"]["code"] == -32602
    unknown = send(cast.agent, "tools/call", {"name": "purge", "arguments": {}}).ok()["error"]
    assert (unknown["code"], unknown["data"]) == (-32602, {"code": "not-found"})
    assert modern(cast.agent, "tools/call", {"name": "purge", "arguments": {}}).status == 400
    half = {"name": "new_topic", "arguments": {"title": "Half \ud83d"}}
    assert send(cast.agent, "tools/call", half).json["error"]["code"] == -32700
    wrong = modern(cast.agent, "tools/call", half).ok()["result"]
    assert (wrong["isError"], wrong["_meta"]["code"]) == (True, "invalid-member")
    assert cast.agent.post("/mcp", body=message, headers={"Accept": "text/html"}).status == 406
    assert cast.agent.post("/mcp", body=message, headers={**ACCEPT, "Content-Type": "text/plain"}).status == 400
    assert store_rows() == before

    settings.MEMSTATE_MAX_BODY_BYTES = 2000
    assert cast.agent.post("/mcp", body=message + b" " * 2000, headers=ACCEPT).code == "body-too-large"
    for method in ("GET", "HEAD", "PUT", "PATCH", "OPTIONS", "DELETE"):
        answer = cast.agent.request(method, "/mcp", headers=ACCEPT)
        assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert (
        send(cast.agent, "ping").ok()["result"]
        == cast.agent.post("/mcp/", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=ACCEPT).ok()["result"]
    )


def test_the_minute_of_a_key_holds_for_this_door_too(cast: Cast, settings: Any, clock: Clock):
    settings.MEMSTATE_REQUESTS_PER_MINUTE = 3
    clock.stop()
    cast.agent.query("tea")
    for _time in range(2):
        assert send(cast.agent, "tools/list").status == 200
    answer = send(cast.agent, "tools/list")
    assert (answer.status, 1 <= int(answer.headers["retry-after"]) <= 60) == (429, True)
    assert answer.code == "too-many-requests"
    assert send(cast.reader, "tools/list").status == 200


@pytest.mark.parametrize("door", [send, modern])
def test_what_fails_inside_is_reported_without_the_inside(cast: Cast, monkeypatch: pytest.MonkeyPatch, door: Any):
    for problem, code in (
        (RuntimeError("the password is sesame"), "internal-error"),
        (OperationalError("server at 10.1.2.3 is away"), "database-unavailable"),
    ):
        monkeypatch.setattr("memory.agents.tools.read_tools.query_answer", Mock(side_effect=problem))
        monkeypatch.setattr("memory.mcp.resources.topics_list", Mock(side_effect=problem))
        for method, params in (("tools/call", {"name": "query", "arguments": {"q": "tea"}}), ("resources/list", {})):
            error = door(cast.agent, method, params).json["error"]
            assert (error["code"], error["data"]) == (-32603, {"code": code})
            assert not {"sesame", "10.1.2.3"} & set(re.split(r"[\s:;]", error["message"]))


@pytest.mark.parametrize("door", [send, modern])
def test_a_call_that_takes_too_long_is_answered(cast: Cast, monkeypatch: pytest.MonkeyPatch, door: Any):
    def sleep(*_given: Any, **_named: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = '100ms'")
            cursor.execute("SELECT pg_sleep(60)")

    monkeypatch.setattr("memory.agents.tools.read_tools.query_answer", sleep)
    error = door(cast.agent, "tools/call", {"name": "query", "arguments": {"q": "tea"}}).json["error"]
    assert (error["code"], error["data"]) == (-32603, {"code": "database-slow"})
