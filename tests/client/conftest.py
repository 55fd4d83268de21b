"""Both clients under one name: ``make_client(...)`` is used in the same words, whether what it calls is awaited."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memstate import AsyncMemState, MemState
from memstate import client as module
from tests.cast import Cast, secret_of
from tests.client.proxy import Proxy, proxy_running

Maker = Callable[..., Any]


class Awaited:
    """An ``AsyncMemState`` whose methods are waited for; what it yields, it yields as a list."""

    def __init__(self, loop: asyncio.AbstractEventLoop, client: AsyncMemState) -> None:
        self.loop = loop
        self.client = client

    def __getattr__(self, name: str) -> Any:
        if name == "with_timeout":
            return lambda seconds: Awaited(self.loop, self.client.with_timeout(seconds))
        # The iterators are handed methods of the client itself.
        if name == "pages":
            return lambda method, *args, **more: self._run(self.client.pages(method.original, *args, **more))
        original = getattr(self.client, name)

        def call(*args: Any, **more: Any) -> Any:
            return self._run(original(*args, **more))

        call.original = original  # type: ignore[attr-defined]
        return call

    def _run(self, answer: Any) -> Any:
        async def listed() -> list[Any]:
            return [each async for each in answer]

        return self.loop.run_until_complete(answer if inspect.isawaitable(answer) else listed())


@pytest.fixture(params=["sync", "async"])
def make_client(request: pytest.FixtureRequest) -> Iterator[Maker]:
    """Make a client of the kind that is the turn of this test. They are closed at its end."""
    made: list[Any] = []
    loop = asyncio.new_event_loop()

    def make(*args: Any, **more: Any) -> Any:
        if request.param == "sync":
            made.append(MemState(*args, **more))
        else:
            made.append(Awaited(loop, AsyncMemState(*args, **more)))
        return made[-1]

    yield make
    for client in made:
        client.close()
    loop.close()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that clients would have waited; no one waits. Chance is out of it."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(module.time, "sleep", waited.append)
    monkeypatch.setattr(module.asyncio, "sleep", sleep)
    monkeypatch.setattr(module.random, "uniform", lambda _least, most: most)
    return waited


@pytest.fixture
def proxy(http_cast: Cast, live_server: Any) -> Iterator[Proxy]:
    """A proxy before the whole application, for which the cast has keys."""
    with proxy_running(f"{live_server.thread.host}:{live_server.thread.port}") as running:
        yield running


@pytest.fixture
def alone() -> Iterator[Proxy]:
    """A proxy with nothing behind it, for what does not need a server."""
    with proxy_running("127.0.0.1:9") as running:
        yield running


@pytest.fixture
def operator(proxy: Proxy, make_client: Maker, waits: list[float]) -> Any:
    return make_client(proxy.url, secret_of("operator"))


@pytest.fixture
def agent(proxy: Proxy, make_client: Maker, waits: list[float]) -> Any:
    return make_client(proxy.url, secret_of("agent"))
