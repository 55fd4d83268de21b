"""Equal questions are embedded once, in the background, and a failure is not kept."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from memory.embedding import EmbeddingFailed, EmbeddingTimeUsed, metered
from memory.embedding.allowance import allowance_begin, allowance_current, allowance_end, allowance_identify
from memory.embedding.base import Vectors
from memory.embedding.metered import MeteredEmbedder
from memory.embedding.turns import Turns, time_used
from memory.stores.current import store_use
from tests.waits import eventually


class Counting:
    """Counts the questions it embeds; each takes a second of the processor. It waits until it may answer."""

    dimension, model_name, unrelated = 3, "counting", 0.0

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.fails = False

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return np.ones((len(texts), 3), dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        self.asked.append(text)
        self.may_answer.wait(30)
        if self.fails:
            raise EmbeddingFailed("It does not answer.")
        return np.ones(3, dtype=np.float32)

    def seconds_spent(self) -> float:
        return float(len(self.asked))


class Together(Counting):
    """Embeds questions in batches, with one thread."""

    question_threads = 1

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[str]] = []
        self.began = threading.Event()

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(list(texts))
        self.began.set()
        self.embed_query(texts[0])
        return np.array([[len(text), 0, 0] for text in texts], dtype=np.float32)


def begun(inner: Together) -> tuple[MeteredEmbedder, list[Callable[[], Vectors]]]:
    """Return an embedder that is embedding one question while six others wait."""
    inner.may_answer.clear()
    embedder = MeteredEmbedder(inner)
    waits = [embedder.query_begin("a")]
    assert inner.began.wait(30)
    waits += [embedder.query_begin("a" * length) for length in range(2, 8)]
    inner.may_answer.set()
    return embedder, waits


def test_questions_that_wait_are_embedded_together_in_their_order() -> None:
    inner = Together()
    _embedder, waits = begun(inner)
    assert [int(wait()[0]) for wait in waits] == [1, 2, 3, 4, 5, 6, 7]
    assert [[len(text) for text in batch] for batch in inner.batches] == [[1], [2, 3, 4, 5], [6, 7]]


def test_of_the_questions_that_wait_those_of_the_key_that_has_used_least_are_embedded_first() -> None:
    inner = Together()
    inner.may_answer.clear()
    embedder = MeteredEmbedder(inner)
    waits = [embedder.query_begin("a")]
    assert inner.began.wait(30)
    time_used.add("key:busy", 100)
    for identity, lengths in (("key:busy", range(2, 7)), ("key:calm", range(7, 9))):
        allowance_begin(lambda: False)
        allowance_identify(identity)
        waits += [embedder.query_begin("a" * length) for length in lengths]
        allowance_end()
    inner.may_answer.set()
    assert [int(wait()[0]) for wait in waits] == list(range(1, 9))
    assert [[len(text) for text in batch] for batch in inner.batches] == [[1], [7, 8, 2, 3], [4, 5, 6]]


def test_of_the_writes_that_wait_that_of_the_key_that_has_used_least_is_next() -> None:
    turns, order = Turns(1), []
    time_used.add("key:eager", 100)

    def write(identity: str) -> None:
        with turns.turn(identity, within=60):
            order.append(identity)

    with ThreadPoolExecutor(2) as threads, turns.turn("key:eager", within=60):
        for number, identity in enumerate(("key:eager", "key:modest"), 1):
            threads.submit(write, identity)
            eventually(lambda number=number: len(turns._waiting) == number)
        # Who has waited long enough goes on without a turn.
        with turns.turn(None, within=0):
            assert order == []
    assert order == ["key:modest", "key:eager"]


def test_a_batch_that_fails_fails_for_each_of_its_questions_and_is_tried_again() -> None:
    inner = Together()
    inner.fails = True
    embedder, waits = begun(inner)
    for wait in waits:
        with pytest.raises(EmbeddingFailed):
            wait()
    inner.fails = False
    assert int(embedder.embed_query("aa")[0]) == 2


def test_stores_do_not_share_the_vectors_of_questions() -> None:
    inner = Counting()
    embedder = MeteredEmbedder(inner)
    for store in ("one", "two", "one"):
        with store_use(store):
            embedder.embed_query("tea?")
    assert inner.asked == ["tea?", "tea?"]


def test_equal_questions_at_once_and_later_are_embedded_once() -> None:
    inner = Counting()
    inner.may_answer.clear()
    embedder = MeteredEmbedder(inner)
    waits = [embedder.query_begin("tea?") for _ in range(5)]
    inner.may_answer.set()
    vectors = [wait() for wait in waits]
    assert inner.asked == ["tea?"]
    assert all(np.array_equal(vector, embedder.embed_query("tea?")) for vector in vectors)
    assert len(inner.asked) == 1


def test_a_vector_that_others_use_too_cannot_be_changed() -> None:
    vector = MeteredEmbedder(Counting()).embed_query("tea?")
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 2


def test_a_failure_is_not_kept() -> None:
    inner = Counting()
    inner.fails = True
    embedder = MeteredEmbedder(inner)
    with pytest.raises(EmbeddingFailed):
        embedder.embed_query("tea?")
    inner.fails = False
    assert embedder.embed_query("tea?").shape == (3,)


def test_the_oldest_questions_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metered, "QUESTIONS_KEPT", 2)
    inner = Counting()
    embedder = MeteredEmbedder(inner)
    for question in ("a", "b", "a", "c", "a", "b"):
        embedder.embed_query(question)
    assert inner.asked == ["a", "b", "c", "b"]


def test_a_question_is_charged_to_the_first_who_asks(settings) -> None:
    settings.MEMSTATE_EMBEDDING_SECONDS_PER_KEY = 2
    embedder = MeteredEmbedder(Counting())
    try:
        for identity, spent in (("key:questions-1", 1.0), ("key:questions-2", 0.0)):
            allowance_begin(lambda: False)
            allowance_identify(identity)
            embedder.embed_query("tea?")
            assert allowance_current().spent == spent
        embedder.embed_query("milk?")
        embedder.embed_query("sugar?")
        embedder.embed_query("lemon?")
        with pytest.raises(EmbeddingTimeUsed):
            embedder.query_begin("honey?")
    finally:
        allowance_end()
