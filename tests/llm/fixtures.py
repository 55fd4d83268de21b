"""The fixture ``model``: a scripted model, configured for the test. See ``server.py``.

``model`` answers in this process: no socket, no thread, and no real time. ``served_model`` answers over a socket, for
tests of the transport itself and of other processes.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from memory.agents.chat import chat
from memory.agents.study import work
from memory.agents.tools import loop
from memory.extraction import segments
from memory.forgetting import field_summaries, runs
from memory.ingest import compaction
from memory.llm import chat_request, circuit_breaker, client, dialogue, wire
from tests.llm.server import KEY, MODEL, Model, model_served

# The modules that measure or limit the time for a model.
_TIMED = (chat, work, loop, segments, field_summaries, runs, compaction, chat_request, circuit_breaker, dialogue, wire)


class ModelTime:
    """A clock that stands still. It goes on by what a model takes and by what someone waits for it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


@pytest.fixture
def model_time(monkeypatch: pytest.MonkeyPatch) -> ModelTime:
    """The clock of the code that talks to a model."""
    clock = ModelTime()
    for module in _TIMED:
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def model(settings: Any, monkeypatch: pytest.MonkeyPatch, model_time: ModelTime) -> Iterator[Model]:
    """A model to script. A request that is not answered in time fails at once, and the clock goes on by its time."""
    scripted = Model(model_time)
    scripted.url = "http://127.0.0.1:1/v1"
    make, transport = wire._client_make, httpx2.MockTransport(scripted.handle)

    def client_make(address: str, api_key: str | None) -> httpx2.Client:
        return make(address, api_key, transport=transport if address == scripted.url else None)

    monkeypatch.setattr(wire, "_client_make", client_make)
    monkeypatch.setattr(wire, "_within", _at_once)
    yield from _configured(scripted, settings)


@pytest.fixture
def served_model(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    """A model to script, over a socket of this machine. Waits between tries are short."""
    monkeypatch.setattr(chat_request, "BACKOFF_SECONDS", 0.02)
    monkeypatch.setattr(chat_request, "RETRY_SECONDS", 0.02)
    with model_served() as served:
        yield from _configured(served, settings)


def _at_once(_seconds: float, exchange: Callable[[], Any]) -> Any:
    try:
        return exchange()
    except Exception as problem:
        return problem


def _configured(scripted: Model, settings: Any) -> Iterator[Model]:
    client.model_forget()
    settings.MEMSTATE_LLM_MODEL = MODEL
    settings.MEMSTATE_LLM_BASE_URL = scripted.url
    settings.MEMSTATE_LLM_API_KEY = KEY
    settings.MEMSTATE_LLM_TIMEOUT_SECONDS = 60.0
    yield scripted
    client.model_forget()
