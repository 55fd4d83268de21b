"""A model that speaks the chat protocol as a script says, and keeps what it was asked, in this process or as a server.

    def test_something(model: Model) -> None:          # the fixture `model` of tests/llm/fixtures.py
        model.answers({"facts": ["Anna lives in Oslo."]})      # JSON, or text
        model.answers(refusing(), limited(after=1), "good")    # one after the other; the last one stays
        ...
        assert model.data() == {...}                           # what stood between the marks

A step is a text, something JSON can say, a ``Step``, or a function of the request that returns one of these.
"""

import http.server
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2

MODEL = "small"
KEY = "a-key"

_FRAME = re.compile(r"^<data-([0-9a-f]+)>\n(.*)\n</data-\1>$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """One reply: a status with headers and a body, what happens before it, and how it is sent."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    # Wait for so many seconds before, or until the test ends.
    delay: float = 0.0
    # Send one byte after the other, so many seconds apart.
    trickle: float = 0.0
    # Close the connection instead: before anything is said, or in the midst of the reply.
    close: str = ""


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])

    @property
    def system(self) -> str:
        """The instructions."""
        return str(self.messages[0]["content"])

    @property
    def results(self) -> list[Any]:
        """What the tools gave back in the last round, between the marks, in order."""
        got = [each["content"] for each in self.messages if each["role"] == "tool"]
        asked = next((each["tool_calls"] for each in reversed(self.messages) if each.get("tool_calls")), [])
        return [json.loads(found.group(2)) for each in got[-len(asked) :] if (found := _FRAME.search(each))]

    @property
    def tools(self) -> list[str]:
        """The names of the tools that were offered."""
        return [each["function"]["name"] for each in self.body.get("tools", ())]

    @property
    def data(self) -> Any:
        """What stood between the marks of the first message with data."""
        found = _FRAME.search(self.messages[1]["content"])
        assert found, "the data is not framed"
        return json.loads(found.group(2))


Script = Any  # str, dict, list, Step, or a function of Asked that returns one of these


def completion(content: str | None, *, finish: str | None = "stop", **message: Any) -> dict[str, Any]:
    """A reply of the chat protocol."""
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
        ],
    }


def said(content: Any) -> Step:
    """A good reply: text as it is, everything else as JSON."""
    return Step(completion(content if isinstance(content, str) else json.dumps(content)))


def calling(*calls: tuple[str, Any], say: str = "") -> Step:
    """The model wants to use tools: pairs of a name and arguments, as an object or as text for what is no object."""
    return Step(
        completion(
            say or None,
            finish="tool_calls",
            tool_calls=[
                {
                    "id": f"call_{number}",
                    "type": "function",
                    "function": {"name": name, "arguments": got if isinstance(got, str) else json.dumps(got)},
                }
                for number, (name, got) in enumerate(calls, start=1)
            ],
        )
    )


def malformed() -> Step:
    """A reply that is nearly JSON."""
    return said('{"facts": ["Anna lives in Oslo.", ')


def empty() -> Step:
    """A reply without a word."""
    return said("")


def refusing() -> Step:
    """The model will not."""
    return Step(completion(None, refusal="I cannot help with that."))


def cut_off(content: str = '{"facts": ["Anna li') -> Step:
    """A reply that ended because it was long enough."""
    return Step(completion(content, finish="length"))


def slow(seconds: float = 60.0, content: Any = "too late") -> Step:
    """A reply that comes after so many seconds, or when the test ends."""
    return Step(said(content).body, delay=seconds)


def trickling(seconds: float = 0.05, content: Any = "drip " * 200) -> Step:
    """A reply that comes byte by byte: no single read is slow, the whole never ends."""
    return Step(said(content).body, trickle=seconds)


def limited(after: float | str | None = None) -> Step:
    """429, with or without Retry-After: seconds, or a date as HTTP writes it."""
    headers = {} if after is None else {"Retry-After": str(after)}
    return Step({"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}, 429, headers)


def failing(status: int = 500) -> Step:
    """An error of the server."""
    return Step({"error": {"message": "something broke: a-secret-of-the-server"}}, status)


def closing(when: str = "before") -> Step:
    """The connection closes, ``before`` anything is said or ``within`` the reply."""
    return Step(said("never whole").body, close=when)


def redirecting(to: str = "/v1/elsewhere") -> Step:
    """The endpoint points elsewhere."""
    return Step({}, 307, {"Location": to})


def huge(size: int = 3_000_000) -> Step:
    """A reply of millions of characters."""
    return said("long " * (size // 5))


def rejecting(message: str, *, code: str | None = None, status: int = 400) -> Step:
    """The endpoint does not take the request, and says why."""
    return Step({"error": {"message": message, "code": code}}, status)


def echoing(asked: Asked) -> Step:
    """A model that does whatever stands in the data: it says what it was given."""
    return said(json.dumps(asked.data, ensure_ascii=False))


def without(feature: str, then: Script) -> Callable[[Asked], Any]:
    """An endpoint that rejects requests with a ``response_format`` of this type, or this member, and else answers."""

    def step(asked: Asked) -> Any:
        has = feature in asked.body or asked.body.get("response_format", {}).get("type") == feature
        return rejecting(f"unsupported: {feature}") if has else then

    return step


class Model:
    """What the server answers and was asked."""

    def __init__(self, clock: Any = time) -> None:
        self.clock = clock
        self.asked: list[Asked] = []
        self.url = ""
        self.released = threading.Event()
        self._steps: list[Script] = ["Nothing was scripted."]
        self._list = Step({"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0}]})
        self._lock = threading.Lock()

    def answers(self, *steps: Script) -> None:
        """Answer so from now on: one step a request, and the last one for all that follow."""
        with self._lock:
            self._steps = list(steps)

    def lists(self, step: Step) -> None:
        """Answer so when asked for the list of models."""
        self._list = step

    def data(self, which: int = -1) -> Any:
        """What stood between the marks of one request."""
        return self.chats[which].data

    @property
    def chats(self) -> list[Asked]:
        """What was asked of the model, without questions about the endpoint itself."""
        return [asked for asked in self.asked if asked.method == "POST"]

    def reply_to(self, asked: Asked) -> Step:
        """Keep the request and return what is to be answered."""
        if asked.method == "GET":
            self.asked.append(asked)
            return self._list if asked.path.endswith("/models") else Step({"error": "no such page"}, 404)
        with self._lock:
            self.asked.append(asked)
            step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        while callable(step):
            step = step(asked)
        return step if isinstance(step, Step) else said(step)

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request in this process. What would come too late fails at once."""
        headers, path = dict(request.headers), request.url.path
        body = json.loads(request.content or b"{}")
        step = self.reply_to(Asked(request.method, path, headers, body, self.clock.monotonic()))
        limit = request.extensions["timeout"]["read"]
        if step.trickle or step.delay >= limit:
            self.clock.sleep(limit)
            raise httpx2.ReadTimeout("scripted", request=request)
        self.clock.sleep(step.delay)
        if step.close:
            raise httpx2.RemoteProtocolError("scripted", request=request)
        content = step.body if isinstance(step.body, bytes) else json.dumps(step.body).encode()
        return httpx2.Response(step.status, headers=step.headers, stream=httpx2.ByteStream(content))


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Model

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body: dict[str, Any]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        step = self.model.reply_to(Asked(self.command, self.path, headers, body, time.monotonic()))
        if step.delay:
            self.model.released.wait(step.delay)
        content = step.body if isinstance(step.body, bytes) else json.dumps(step.body).encode()
        # Whoever asked may have stopped waiting.
        with suppress(OSError):
            if step.close == "before":
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            self.send_response(step.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            for name, value in step.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if step.close == "within":
                self.wfile.write(content[: len(content) // 2])
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
            elif step.trickle:
                for at in range(len(content)):
                    self.wfile.write(content[at : at + 1])
                    self.wfile.flush()
                    if self.model.released.wait(step.trickle):
                        return
            else:
                self.wfile.write(content)

    def log_message(self, *_arguments: object) -> None:
        pass


@contextmanager
def model_served() -> Iterator[Model]:
    """Serve on a free port of this machine while the block runs."""
    model = Model()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": model}))
    # A reply that is held back is no reason to wait at the end.
    server.daemon_threads = True
    server.block_on_close = False
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    model.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield model
    finally:
        model.released.set()
        server.shutdown()
        server.server_close()
