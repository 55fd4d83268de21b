"""Replies of the API and of MCP stay out of caches, and bodies that are too long are refused unread."""

import socket
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings

from memory.api.app import api
from tests.cast import Caller, Cast

OPERATIONS = [
    (method.upper(), path)
    for path, operations in api.get_openapi_schema(path_prefix="/v1/")["paths"].items()
    for method in operations
    if path != "/v1/client.py"
]


@pytest.mark.parametrize("who", ["operator", "alice", "anonymous"])
def test_no_reply_may_be_kept_by_a_cache(cast: Cast, who: str) -> None:
    caller: Caller = getattr(cast, who)
    topic = cast.alice.remember("Tea")
    assert len(OPERATIONS) > 40
    for method, path in OPERATIONS:
        answer = caller.request(method, path.replace("{topic_id}", topic))
        assert answer.headers["cache-control"] == "no-store", (method, path, answer.status)
    for method, path in [("GET", "/v1/nowhere"), ("POST", "/v1/topics"), ("POST", "/mcp"), ("GET", "/mcp")]:
        answer = caller.request(method, path)
        assert answer.headers["cache-control"] == "no-store", (method, path, answer.status)


def test_what_is_found_is_not_kept_either(cast: Cast) -> None:
    topic = cast.alice.remember("Tea")
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accepts = {"Accept": "application/json, text/event-stream"}
    for answer in (
        cast.alice.get(f"/v1/topics/{topic}"),
        cast.alice.get("/v1/topics"),
        cast.alice.post("/v1/query", {"q": "tea"}),
        cast.alice.post("/mcp", call, headers=accepts),
    ):
        assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")


def test_the_client_file_may_be_kept(anonymous: Caller) -> None:
    assert anonymous.get("/v1/client.py").headers["cache-control"] == "public, no-cache"


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ("/v1/query", "MEMSTATE_MAX_BODY_BYTES"),
        ("/v1/ingest", "MEMSTATE_MAX_BODY_BYTES"),
        ("/v1/ingest/batch", "MEMSTATE_MAX_BATCH_BYTES"),
        ("/mcp", "MEMSTATE_MAX_BODY_BYTES"),
    ],
)
def test_a_body_that_is_too_long_is_refused_before_it_is_sent(
    http_cast: Cast, live_server: Any, path: str, limit: str
) -> None:
    where = urlsplit(live_server.url)
    assert where.hostname
    with socket.create_connection((where.hostname, where.port or 80), timeout=20) as connection:
        length = getattr(settings, limit) + 1
        head = f"POST {path} HTTP/1.0\r\nHost: {where.netloc}\r\nContent-Length: {length}\r\n"
        head += f"X-API-Key: {http_cast.agent.secret}\r\nContent-Type: application/json\r\n\r\n"
        connection.sendall(head.encode())
        assert b" 413 " in connection.recv(1000).partition(b"\r\n")[0]
