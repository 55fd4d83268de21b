"""Agents that speak MCP with the SDK's own client: over stdio with a process each, over HTTP with a real web server.

``connect(secret)`` gives a session by the transport and the protocol that the test is about; what it returns is called
like the SDK's client, without awaiting. With ``fresh=True`` no one else has used it.
"""

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import httpx2
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from memory.core.problem_codes import ProblemCode
from memstate_site.folder import CHECKOUT
from tests.cast import Cast, cast_make
from tests.session import processes_that_last
from tests.web_server import PATIENCE, WebServer, environment


@pytest.fixture(scope="session")
def web(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    log = tmp_path_factory.mktemp("web") / "log"
    with WebServer(log, processes=2, MEMSTATE_TRUSTED_ORIGINS="https://friend.example") as server:
        yield server


@pytest.fixture(scope="session")
def portal() -> Iterator[BlockingPortal]:
    """The event loop of the clients."""
    with start_blocking_portal() as running:
        yield running


@dataclasses.dataclass(frozen=True)
class Link:
    """A session of one client, for callers who do not await."""

    client: Client
    _portal: BlockingPortal

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.client, name)
        return lambda *given, **named: self._portal.start_task_soon(lambda: method(*given, **named)).result(PATIENCE)

    def later(self, name: str, *given: Any) -> Future[Any]:
        """Begin a call; cancelling the future cancels it as the client would."""
        return self._portal.start_task_soon(getattr(self.client, name), *given)

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool, which must succeed, and return its structured result."""
        result = self.call_tool(tool, arguments)
        assert not result.is_error, result.content
        return result.structured_content

    def refused(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool, which must refuse with a sentence, and return the code."""
        result = self.call_tool(tool, arguments)
        assert result.is_error, result.structured_content
        assert result.structured_content is None
        (content,) = result.content
        assert isinstance(content.text, str)
        assert content.text
        code = result.meta["code"]
        assert code in set(ProblemCode)
        return str(code)


Connect = Callable[..., contextlib.AbstractContextManager[Link]]


# Each transport and each protocol; a process for each session of stdio takes its time.
FEW = [("http", "auto"), ("stdio", "legacy")]
ALL = [*FEW, ("http", "legacy"), ("stdio", "auto")]


@pytest.fixture(params=ALL, ids="-".join)
def way(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Transport and protocol."""
    chosen: tuple[str, str] = request.param
    return chosen


@dataclasses.dataclass
class Processes:
    """Agents' own processes, kept from test to test: starting one takes seconds, and nothing is remembered in it."""

    portal: BlockingPortal
    kept: contextlib.ExitStack
    links: dict[tuple[str, str], Link] = dataclasses.field(default_factory=dict)

    def kept_link(self, secret: str, mode: str) -> Link:
        if (secret, mode) not in self.links:
            with processes_that_last():
                self.links[secret, mode] = self.kept.enter_context(self.link(secret, mode))
        return self.links[secret, mode]

    @contextlib.contextmanager
    def link(self, secret: str, mode: Any, **more: str) -> Iterator[Link]:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=[str(CHECKOUT / "manage.py"), "mcp"],
            env=environment(MEMSTATE_API_KEY=secret, **more),
        )
        with self.portal.wrap_async_context_manager(Client(parameters, mode=mode)) as client:
            yield Link(client, self.portal)


@pytest.fixture(scope="session")
def processes(portal: BlockingPortal) -> Iterator[Processes]:
    with contextlib.ExitStack() as kept:
        yield Processes(portal, kept)


@pytest.fixture
def connect(way: tuple[str, str], web: WebServer, portal: BlockingPortal, processes: Processes) -> Connect:
    transport, mode = way

    @contextlib.contextmanager
    def opened(secret: str, *, fresh: bool = False, **more: str) -> Iterator[Link]:
        if transport == "stdio":
            if not fresh:
                yield processes.kept_link(secret, mode)
                return
            with processes.link(secret, mode, **more) as link:
                yield link
            return
        with contextlib.ExitStack() as stack:
            http = httpx2.AsyncClient(headers={"X-API-Key": secret}, timeout=PATIENCE)
            stack.enter_context(portal.wrap_async_context_manager(http))
            client = Client(streamable_http_client(f"{web.url}/mcp", http_client=http), mode=mode)  # type: ignore[arg-type]
            yield Link(stack.enter_context(portal.wrap_async_context_manager(client)), portal)

    return opened


@pytest.fixture
def people(transactional_db: None, web: WebServer) -> Cast:
    """The cast, over sockets, on the store that the agents work on."""
    return cast_make(web.send)
