"""/mcp as HTTP: who is let in, what is refused before the protocol, and what the protocol itself refuses."""

import datetime as dt
from typing import Any

import pytest
from django.conf import settings as site_settings

from memory.access.keys import key_revoke
from tests.cast import Answer, Caller, Cast, Clock, store_rows

ACCEPT = {"Accept": "application/json, text/event-stream"}
MODERN = "2026-07-28"


def send(caller: Caller, method: str, params: Any = None, /, *, number: Any = 1, **headers: str) -> Answer:
    """Send a request of the handshake protocol, which may be any request where nothing is remembered."""
    message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
    if number is not None:
        message["id"] = number
    return caller.post("/mcp", message, headers={**ACCEPT, **{name.replace("_", "-"): headers[name] for name in headers}})


def called(caller: Caller, tool: str, /, **arguments: Any) -> Any:
    """Call a tool and return its result, whatever it says."""
    answer = send(caller, "tools/call", {"name": tool, "arguments": arguments})
    return answer.ok()["result"]


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
