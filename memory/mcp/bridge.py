"""From a request in a thread of the web server to the SDK in its event loop, and back for the work.

One loop per process, in a thread of its own, begun by the first request. A request waits in its thread until the SDK
has an answer, and does there what the SDK wants of the store: no thread and no connection is needed besides those that
the request has anyway.
"""

import asyncio
import contextlib
import datetime as dt
import os
import queue
import socket
import threading
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import structlog
from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from memory.access.principal import Principal
from memory.mcp.calls import Call, call_awaited

logger = structlog.get_logger(__name__)

T = TypeVar("T")
App = Callable[..., Any]
# Nobody is there any more to read it.
GONE = 499
# What opens doors is not shown to whoever does not need it.
_KEPT_BACK = frozenset({"authorization", "x-api-key", "cookie"})


@dataclass(slots=True)
class Reply:
    """What the SDK answers."""

    status: int = GONE
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""


class Exchange:
    """One request and its answer. ``name`` is by which its work can be cancelled from elsewhere (``call_name``)."""

    def __init__(self, request: HttpRequest, body: bytes, *, principal: Principal, name: str | None) -> None:
        self._request = request
        self._body: bytes | None = body
        self._principal = principal
        self._name = name
        self._todo: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._reply = Reply()
        self._failure: Exception | None = None

    def answer(self) -> Reply:
        """Have the request answered, doing in this thread what that takes. Raises what the SDK should not have."""
        bridge = _bridge_get()
        bridge.begin(self)
        while (work := self._next(bridge)) is not None:
            work()
        if self._failure is not None:
            raise self._failure
        return self._reply

    def _next(self, bridge: "_Bridge") -> Callable[[], None] | None:
        while True:
            try:
                return self._todo.get(timeout=10)
            except queue.Empty:
                if not bridge.is_alive():
                    raise RuntimeError("The event loop of MCP has ended.") from None

    # What follows runs in the event loop.

    async def work(self, function: Callable[[Principal], T], /) -> T:
        """Have ``function`` run in the thread of the request. If this is cancelled, so is what it does."""
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()
        call = Call(lambda: function(self._principal), name=self._name)

        def settle(set_it: Callable[[Any], None], value: Any) -> None:
            if not outcome.done():
                set_it(value)

        def run() -> None:
            try:
                value = call.run()
            except Exception as problem:
                loop.call_soon_threadsafe(settle, outcome.set_exception, problem)
            else:
                loop.call_soon_threadsafe(settle, outcome.set_result, value)

        self._todo.put(run)
        return await call_awaited(call, outcome)

    async def serve(self, app: App, *, handshake_versions: tuple[str, ...]) -> None:
        """Hand the request to the SDK, and say in its thread that there is nothing more to do."""
        version = self._request.headers.get("MCP-Protocol-Version", handshake_versions[0])
        try:
            # Before 2026, a connection that is lost says nothing; clients who give up send a notification.
            with contextlib.nullcontext() if version in handshake_versions else self._watched():
                await app(self._scope(), self._receive, self._send)
        except asyncio.CancelledError:
            self._reply = Reply()
        except Exception as problem:
            self._failure = problem
        finally:
            self._todo.put(None)

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        connected = self._request.META.get("gunicorn.socket")
        task = asyncio.current_task()
        if connected is None or task is None:
            yield
            return
        loop = asyncio.get_running_loop()
        # A descriptor of our own: whatever becomes of the server's, ours is the one that is watched until it is closed.
        watched = socket.socket(fileno=os.dup(connected.fileno()))

        def readable() -> None:
            try:
                gone = not watched.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                gone = True
            # The client is gone, or has sent its next request already: either way there is nothing more to see.
            loop.remove_reader(watched)
            if gone:
                task.cancel()

        loop.add_reader(watched, readable)
        try:
            yield
        finally:
            loop.remove_reader(watched)
            watched.close()

    def _scope(self) -> dict[str, Any]:
        request = self._request
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": request.scheme,
            "path": request.path,
            "raw_path": request.path.encode(),
            "query_string": b"",
            "root_path": "",
            "server": None,
            "client": None,
            "headers": [
                (name.lower().encode("latin-1", "replace"), value.encode("latin-1", "replace"))
                for name, value in request.headers.items()
                if name.lower() not in _KEPT_BACK
            ],
            "memstate.work": self.work,
        }

    async def _receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        # A client who leaves is seen by its connection, and then the whole of this is cancelled.
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._reply.status = message["status"]
            self._reply.headers = [
                (name.decode("latin-1"), value.decode("latin-1")) for name, value in message.get("headers", ())
            ]
        elif message["type"] == "http.response.body":
            self._reply.body += message.get("body", b"")


class _Bridge:
    """The event loop of this process."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._app: App | None = None
        self._handshake_versions: tuple[str, ...] = ()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="mcp", daemon=True)
        self._thread.start()

    def begin(self, exchange: Exchange) -> None:
        self._ready.wait()
        if self._loop is None:
            raise RuntimeError("MCP could not be started; the log says why.")
        self._loop.call_soon_threadsafe(self._serve, exchange)

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _serve(self, exchange: Exchange) -> None:
        assert self._app is not None
        task = asyncio.ensure_future(exchange.serve(self._app, handshake_versions=self._handshake_versions))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except Exception:
            logger.exception("mcp_loop_failed")
        finally:
            self._loop = None
            self._ready.set()

    async def _main(self) -> None:
        # The SDK takes a second and 25 MB to load; a process that nobody speaks MCP with has no use for it.
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

        from memory.mcp.server import server_make

        # Nothing is kept between requests, so any process can answer the next one. What is answered at once needs no
        # stream, and a stream would hold a thread.
        manager = StreamableHTTPSessionManager(
            server_make(_work_of, clock=_clock),
            json_response=True,
            stateless=True,
            max_request_body_size=settings.MEMSTATE_MAX_BODY_BYTES,
        )
        async with manager.run():
            self._app = manager.handle_request
            self._handshake_versions = tuple(HANDSHAKE_PROTOCOL_VERSIONS)
            self._loop = asyncio.get_running_loop()
            self._ready.set()
            await asyncio.Event().wait()


def _work_of(ctx: Any) -> Any:
    return ctx.request.scope["memstate.work"]


def _clock() -> dt.datetime:
    return timezone.now()


_bridge: _Bridge | None = None
_bridge_lock = threading.Lock()


def _bridge_get() -> _Bridge:
    global _bridge
    with _bridge_lock:
        # A loop does not survive a fork.
        if _bridge is None or _bridge.process != os.getpid() or not _bridge.is_alive():
            _bridge = _Bridge()
        return _bridge
