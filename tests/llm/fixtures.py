"""The fixture ``model``: a scripted model on this machine, configured for the test. See ``server.py``."""

from collections.abc import Iterator
from typing import Any

import pytest

from memory.llm import chat_request, client
from tests.llm.server import KEY, MODEL, Model, model_served


@pytest.fixture
def model(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    """A model to script. Waits between tries are short, and a question takes two seconds at most."""
    monkeypatch.setattr(chat_request, "BACKOFF_SECONDS", 0.02)
    monkeypatch.setattr(chat_request, "RETRY_SECONDS", 0.02)
    client.model_forget()
    with model_served() as served:
        settings.MEMSTATE_LLM_MODEL = MODEL
        settings.MEMSTATE_LLM_BASE_URL = served.url
        settings.MEMSTATE_LLM_API_KEY = KEY
        settings.MEMSTATE_LLM_TIMEOUT_SECONDS = 2.0
        yield served
    client.model_forget()
