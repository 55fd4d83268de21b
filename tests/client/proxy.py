"""A proxy between a client and the server, which spoils replies as a script says, and keeps what was asked.

def test_something(proxy: Proxy) -> None:
    proxy.does(CUT, answer(429, {"Retry-After": "3"}), PASS)     # one after the other; afterwards all pass
"""

import http.client
import http.server
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Step:
    """What becomes of one request."""

    # Hand it on to the server, whose reply is read to its end.
    asks: bool = True
    # Give nothing back, or only so many bytes of the body, and close; or say nothing until the client goes.
    closes: bool = False
    bytes_reported: int | None = None
    silent: bool = False
    # Give this back instead.
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


PASS = Step()
# The server has done it, and the client does not hear of it.
CUT = Step(closes=True)
CUT_IN_THE_MIDST = Step(closes=True, bytes_reported=10)
# The request never comes to the server.
LOST = Step(asks=False, closes=True)
SILENT = Step(silent=True)


def answer(status: int, headers: Mapping[str, str] | None = None, body: Any = None) -> Step:
    """A reply that is not the server's: a problem document if ``body`` is a sentence, else JSON, or bytes as they
    are."""
    got = {"Content-Type": "application/problem+json"} if isinstance(body, str) else {}
    if isinstance(body, str):
        body = {"type": "about:blank", "title": "", "status": status, "detail": body}
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Step(asks=False, status=status, headers={**got, **(headers or {})}, body=raw)


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Proxy:
    """One proxy on this machine, before a server or before nothing."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.url = ""
        self.asked: list[Asked] = []
        self._steps: list[Step] = []
        self.ended = threading.Event()

    def does(self, *steps: Step) -> None:
        """Do this to the next requests."""
        self._steps = list(steps)

    @property
    def keys(self) -> list[str | None]:
        """The Idempotency-Key of each request."""
        return [each.headers.get("idempotency-key") for each in self.asked]

    def step_for(self, asked: Asked) -> Step:
        self.asked.append(asked)
        return self._steps.pop(0) if self._steps else PASS


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: Proxy

    def _all(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = Asked(self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        step = self.proxy.step_for(asked)
        if step.silent:
            self.proxy.ended.wait(30)
        status, headers, content = step.status, dict(step.headers), step.body
        if step.asks and not step.silent:
            status, headers, content = self._server_asked(asked)
        self.close_connection = step.closes or step.silent
        if step.silent or (step.closes and step.bytes_reported is None):
            return
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: step.bytes_reported])

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _all  # noqa: N815

    def _server_asked(self, asked: Asked) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.proxy.server, timeout=30)
        headers = {name: value for name, value in asked.headers.items() if name not in ("host", "connection")}
        connection.request(asked.method, asked.path, asked.body or None, headers)
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        got = {name: value for name, value in reply.getheaders() if name.lower() in ("content-type", "retry-after")}
        return reply.status, got, content

    def log_message(self, *_args: Any) -> None:
        """Tests look at what was asked instead."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_args: Any) -> None:
        """A client that has gone is what these tests are about."""


@contextmanager
def proxy_running(server: str) -> Iterator[Proxy]:
    """Run a proxy before ``server``, which is a host and a port."""
    proxy = Proxy(server)
    handler = type("Handler", (_Handler,), {"proxy": proxy})
    listening = _Server(("127.0.0.1", 0), handler)
    proxy.url = f"http://127.0.0.1:{listening.server_address[1]}"
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.ended.set()
        listening.shutdown()
        listening.server_close()
        thread.join(60)


@contextmanager
def port_unused() -> Iterator[int]:
    """A port that refuses connections, and that no other program can take during the block."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        yield int(found.getsockname()[1])
