"""Embedding takes a bounded time of a request, and of a key if there is a limit. The worker gives every scope its
turn."""

import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from django.test import Client

from memory.embedding import EmbeddingFailed, embedder_reset
from memory.embedding.base import Vectors
from memory.embedding.instant import InstantEmbedder
from memory.ingest import embed_pending
from memory.ingest.embed_pending import vectors_fill
from memory.models import Topic, TopicVector
from tests.cast import Caller, worker_turn

PER_REQUEST, PER_KEY = 3, 5


class Costly(InstantEmbedder):
    """Each text costs a second of the processor, as far as anybody can see."""

    texts_per_turn = 1
    spent = 0.0

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        Costly.spent += len(texts)
        return super().embed_passages(texts)

    def seconds_spent(self) -> float:
        return Costly.spent


@pytest.fixture
def costly(settings: Any) -> Iterator[None]:
    settings.MEMSTATE_EMBEDDER = f"{__name__}.Costly"
    settings.MEMSTATE_EMBEDDING_SECONDS_PER_REQUEST = PER_REQUEST
    settings.MEMSTATE_EMBEDDING_SECONDS_PER_KEY = PER_KEY
    embedder_reset()
    yield
    settings.MEMSTATE_EMBEDDER = "instant"
    embedder_reset()


def items(number: int, word: str = "Topic") -> list[dict[str, str]]:
    return [{"placement": "new_topic", "title": f"{word} {at}"} for at in range(number)]


def waiting() -> int:
    return TopicVector.objects.filter(embedding=None).count()


def test_a_request_embeds_for_a_bounded_time_and_the_worker_does_the_rest(costly: None, agent: Caller) -> None:
    written = agent.post("/v1/ingest/batch", items(10)).ok()
    assert written["accepted"] == 10
    assert waiting() == written["waiting"]["topics"] == 10 - PER_REQUEST
    worker_turn()
    assert waiting() == 0


def test_without_a_limit_a_key_may_embed_as_much_as_it_wants(costly: None, agent: Caller, settings: Any) -> None:
    settings.MEMSTATE_EMBEDDING_SECONDS_PER_KEY = 0
    for word in ("one", "two", "three", "four"):
        agent.post("/v1/ingest/batch", items(PER_REQUEST, word)).ok()
    assert waiting() == 0
    assert agent.query("four 2")["candidates"]


def test_a_key_that_has_used_its_minute_is_reported_to_wait_and_others_are_not(
    costly: None, agent: Caller, operator: Caller
) -> None:
    for word in ("one", "two"):
        agent.post("/v1/ingest/batch", items(10, word)).ok()
    refused = agent.post("/v1/query", {"q": "one 7"})
    assert (refused.status, refused.code) == (429, "too-many-requests")
    assert 0 < int(refused.headers["retry-after"]) <= 60
    # Writing goes on; what is written waits for the worker.
    before = waiting()
    agent.ingest(title="three")
    assert waiting() == before + 1
    assert operator.query("three")["candidates"]


def test_time_that_was_used_comes_back(costly: None, agent: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    for word in ("one", "two"):
        agent.post("/v1/ingest/batch", items(10, word)).ok()
    wait = int(agent.post("/v1/query", {"q": "one 7"}).headers["retry-after"])
    real = time.monotonic
    monkeypatch.setattr("memory.embedding.turns.time.monotonic", lambda: real() + wait)
    assert agent.post("/v1/query", {"q": "one 7"}).status == 200


def connected() -> tuple[socket.socket, socket.socket]:
    """The two ends of a connection: of the server, and of the client."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        theirs = socket.create_connection(listening.getsockname(), timeout=60)
        ours, _address = listening.accept()
    return ours, theirs


def batch_from(ours: socket.socket, agent: Caller) -> int:
    with ours:
        return (
            Client(raise_request_exception=False)
            .generic(
                "POST",
                "/v1/ingest/batch",
                data=json.dumps(items(4)).encode(),
                content_type="application/json",
                headers={"X-API-Key": agent.secret},
                **{"gunicorn.socket": ours, "SERVER_PROTOCOL": "HTTP/1.1"},
            )
            .status_code
        )


@pytest.mark.parametrize("pair", [connected, socket.socketpair])
def test_nothing_more_is_embedded_for_a_client_that_is_gone(
    costly: None, agent: Caller, pair: Callable[[], tuple[socket.socket, socket.socket]]
) -> None:
    ours, theirs = pair()
    theirs.close()
    assert batch_from(ours, agent) == 503
    assert not Topic.objects.exists()


def test_a_client_that_only_sends_no_more_is_answered(costly: None, agent: Caller) -> None:
    ours, theirs = connected()
    theirs.shutdown(socket.SHUT_WR)
    assert batch_from(ours, agent) == 200
    assert Topic.objects.count() == 4
    with theirs:
        assert set(theirs.recv(1000).split(b"\r\n\r\n")) == {b"HTTP/1.1 100 Continue", b""}


# --- The worker ---


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let texts that begin with a word take a while, or be refused."""
    real = InstantEmbedder.embed_passages

    def _embed(self: InstantEmbedder, texts: Sequence[str]) -> Vectors:
        if any(text.startswith("refused") for text in texts):
            raise EmbeddingFailed("The text is not taken.")
        time.sleep(0.02 * sum(text.startswith("long") for text in texts))
        return real(self, texts)

    def _choose() -> None:
        monkeypatch.setattr(InstantEmbedder, "embed_passages", _embed)

    return _choose


def deferred(caller: Caller, number: int, word: str, scope: str) -> None:
    sent = [{**item, "scope": scope} for item in items(number, word)]
    assert caller.post("/v1/ingest/batch?defer=1", sent).ok()["accepted"] == number


def done(scope: str) -> int:
    return TopicVector.objects.filter(scope__path=scope).exclude(embedding=None).count()


def test_vectors_are_committed_by_time_and_every_scope_has_its_turn(
    agent: Caller, slow: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    deferred(agent, 100, "long", "/user/alice")
    deferred(agent, 1, "short", "/user/bob")
    slow()
    monkeypatch.setattr(embed_pending, "COMMIT_SECONDS", 0.1)
    steps = vectors_fill()
    assert next(steps) < embed_pending.TOPICS_PER_STEP
    assert done("/user/bob") == 1
    assert 0 < done("/user/alice") < 64
    assert sum(steps) + 1 > 64
    assert waiting() == 0


def test_texts_that_are_refused_do_not_hold_up_other_scopes(agent: Caller, slow: Callable[[], None]) -> None:
    deferred(agent, 150, "refused", "/user/alice")
    deferred(agent, 3, "good", "/user/bob")
    slow()
    assert sum(vectors_fill()) == 3
    assert done("/user/bob") == 3
