"""The embedder of an endpoint: it asks where people are shown that it does, with the key that was meant for it."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from memory.embedding import EmbeddingFailed, remote
from memory.embedding.remote import RemoteEmbedder
from memory.embedding.status import embedder_summary
from tests.llm import server
from tests.llm.server import Asked, Model


def vectors(asked: Asked) -> server.Step:
    """A vector of three numbers for each text."""
    texts = asked.body["input"]
    rows = [{"object": "embedding", "index": place, "embedding": [3.0, 4.0, 0.0]} for place in range(len(texts))]
    return server.Step({"object": "list", "data": rows, "model": "an-embedder", "usage": {}})


_made: list[RemoteEmbedder] = []


def made() -> RemoteEmbedder:
    _made.append(RemoteEmbedder())
    return _made[-1]


@pytest.fixture
def configured(served_model: Model, settings: Any) -> Iterator[Model]:
    settings.MEMSTATE_EMBEDDER = "openai"
    settings.MEMSTATE_EMBEDDING_MODEL = "an-embedder"
    settings.MEMSTATE_EMBEDDING_DIMENSION = 3
    settings.MEMSTATE_OPENAI_BASE_URL = served_model.url
    settings.MEMSTATE_OPENAI_API_KEY = "the-embedders-key"
    served_model.answers(vectors)
    yield served_model
    while _made:
        _made.pop()._client.close()


def test_texts_become_vectors_of_length_one(configured: Model) -> None:
    found = made().embed_passages(["tea", ""])
    assert np.allclose(found, [[0.6, 0.8, 0.0]] * 2)
    (asked,) = configured.asked
    assert asked.path == "/v1/embeddings"
    assert asked.headers["authorization"] == "Bearer the-embedders-key"


def test_what_was_set_for_other_programs_is_not_used(configured: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/of-something-else")
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "of-something-else")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer of-something-else")
    made().embed_query("tea")
    assert "of-something-else" not in json.dumps(configured.asked[0].headers)
    assert configured.asked[0].headers["authorization"] == "Bearer the-embedders-key"


def test_without_an_address_it_is_the_one_that_people_are_reported(
    configured: Model, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MEMSTATE_OPENAI_BASE_URL = ""
    monkeypatch.setenv("OPENAI_BASE_URL", configured.url)
    assert embedder_summary().address == "api.openai.com"
    assert made()._client.base_url.host == "api.openai.com"


def test_a_redirect_takes_nothing_elsewhere(configured: Model) -> None:
    configured.answers(server.redirecting("/v1/elsewhere"))
    with pytest.raises(EmbeddingFailed):
        made().embed_query("tea")
    assert {asked.path for asked in configured.asked} == {"/v1/embeddings"}


@pytest.mark.parametrize(
    "step", [server.failing(500), server.limited(), server.limited(after=0.01), server.closing("before")]
)
def test_an_error_that_may_pass_is_tried_again(
    configured: Model, step: server.Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "BACKOFF_SECONDS", 0.001)
    configured.answers(step, step, vectors)
    assert np.allclose(made().embed_query("tea"), [0.6, 0.8, 0.0])
    configured.answers(step)
    before = len(configured.asked)
    with pytest.raises(EmbeddingFailed) as failed:
        made().embed_query("tea")
    assert failed.value.code == "embedder-unavailable"
    assert len(configured.asked) - before == remote.RETRIES + 1


@pytest.mark.parametrize(
    "step",
    [
        server.failing(401),
        server.rejecting("no such model"),
        server.Step(b"<html>a proxy says hello</html>"),
        server.Step({"data": [{"index": 0}]}),
        server.Step({"data": None}),
        server.Step(["nothing", "of", "the", "kind"]),
        server.Step(b"[" * 100_000),
    ],
)
def test_an_answer_that_will_not_do_is_a_failure_at_once(configured: Model, step: server.Step) -> None:
    configured.answers(step)
    with pytest.raises(EmbeddingFailed) as failed:
        made().embed_query("tea")
    assert failed.value.code == "embedder-unavailable"
    assert len(configured.asked) == 1


def test_an_endpoint_that_is_not_there_is_a_failure(
    configured: Model, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "BACKOFF_SECONDS", 0.001)
    settings.MEMSTATE_OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    with pytest.raises(EmbeddingFailed) as failed:
        made().embed_query("tea")
    assert failed.value.code == "embedder-unavailable"
