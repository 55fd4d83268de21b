"""The embedder that the rest of the store uses: it embeds waiting questions together in batches.

It also counts the processor time of the running request, shares the embedder evenly among the keys, and caches the
vectors of questions."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from memory.embedding.allowance import allowance_current
from memory.embedding.base import Embedder, Vectors, text_hash
from memory.embedding.turns import Turns, least_used_first
from memory.stores.current import store_or_none

# The number of questions whose vectors are cached: 3 MB at 384 dimensions. The keys are the store and the hash of the
# text: if stores shared vectors, the time of a reply would show whether another store had the same question.
QUESTIONS_KEPT = 2_000
# The maximum number of threads that embed questions of an endpoint or of a custom class.
THREADS = 16
# The maximum number of questions in a batch. A larger batch saves more processor time, but its first question waits
# longer for its vector.
MAX_IN_BATCH = 4

# The time of a passage until one was measured, and the weight of each further measurement.
SECONDS_PER_PASSAGE, WEIGHT_OF_LATEST = 0.05, 0.2

# A vector, and the processor time that it took in seconds.
Embedded = tuple[Vectors, float]


@dataclass(frozen=True, slots=True)
class _Question:
    """A question that waits for its vector, and the key that asks it."""

    text: str
    identity: str | None
    vector: Future[Embedded]


class MeteredEmbedder:
    """Counts the processor time of an embedder, and embeds equal questions once. An embedder may have further members:

    * ``texts_per_turn``: the number of texts after which limits are checked; by default all texts of a call.
    * ``seconds_spent()``: the processor time spent for the calling thread; by default the time of this thread.
    * ``embed_queries(texts)``: the vectors of several questions. It must fail for all of them or for none. Without this
      member, questions are embedded one by one.
    * ``question_threads``: the number of threads that embed questions; by default ``THREADS``.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.inner = embedder
        self.dimension = embedder.dimension
        self.model_name = embedder.model_name
        self.unrelated = embedder.unrelated
        self._spent: Callable[[], float] = getattr(embedder, "seconds_spent", time.thread_time)
        self._questions: OrderedDict[tuple[str | None, str], Future[Embedded]] = OrderedDict()
        self._waiting: list[_Question] = []
        self._lock = threading.Lock()
        threads: int = getattr(embedder, "question_threads", THREADS)
        self._background = ThreadPoolExecutor(threads, thread_name_prefix="questions")
        # Questions have their own threads, so they never wait for a write.
        self._turns = Turns(threads)
        self._seconds_per_passage: float | None = None

    @property
    def seconds_per_passage(self) -> float:
        """About the time in seconds that this process needs to embed a passage."""
        return self._seconds_per_passage or SECONDS_PER_PASSAGE

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of all texts. Raises ``EmbeddingFailed``, ``EmbeddingTimeUsed``."""
        allowance = allowance_current()
        if allowance is None:
            return self._passages(texts)
        allowance.require()
        return self._embed(texts, lambda: True)

    def embed_affordable(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of the first texts, as many as the allowance permits. Raises ``EmbeddingFailed``."""
        allowance = allowance_current()
        return self._passages(texts) if allowance is None else self._embed(texts, allowance.left)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a query, read-only. Raises the errors of ``embed_passages``."""
        return self.query_begin(text)()

    def query_begin(self, text: str) -> Callable[[], Vectors]:
        """Begin to embed a question in the background, and return a function that waits for the vector. A question
        whose vector is cached is not embedded again. The time of a question is counted only for its first caller.
        Raises ``EmbeddingTimeUsed``; the returned function raises ``EmbeddingFailed``."""
        allowance = allowance_current()
        if allowance is not None:
            allowance.require()
        key = (store_or_none(), text_hash(text))
        with self._lock:
            found = self._questions.get(key)
            # Failures are not cached, so that the next equal question tries again.
            known = found is not None and not (found.done() and found.exception())
            if not known:
                found = self._questions[key] = Future()
                identity = allowance.identity if allowance is not None else None
                self._waiting.append(_Question(text, identity, found))
                self._background.submit(self._waiting_embed)
            assert found is not None
            self._questions.move_to_end(key)
            while len(self._questions) > QUESTIONS_KEPT:
                self._questions.popitem(last=False)
        asked = found

        def vector() -> Vectors:
            embedded, seconds = asked.result()
            if allowance is not None and not known:
                allowance.spend(seconds)
            return embedded

        return vector

    def _waiting_embed(self) -> None:
        """Embed waiting questions in one batch: those of the keys that have used least, and of one key those that have
        waited longest. This function is called once for each question, so many calls find no question left."""
        together = getattr(self.inner, "embed_queries", None)
        with self._lock:
            waiting = least_used_first(self._waiting)
            size = MAX_IN_BATCH if together else 1
            batch, self._waiting = waiting[:size], waiting[size:]
        if not batch:
            return
        texts = [question.text for question in batch]
        before = self._spent()
        try:
            vectors = together(texts) if together else self.inner.embed_query(texts[0])[None]
            vectors.flags.writeable = False
            seconds = (self._spent() - before) / len(batch)
        except BaseException as problem:
            for question in batch:
                question.vector.set_exception(problem)
            return
        for question, vector in zip(batch, vectors, strict=True):
            question.vector.set_result((vector, seconds))

    def _passages(self, texts: Sequence[str]) -> Vectors:
        began = time.monotonic()
        vectors = self.inner.embed_passages(texts)
        if texts:
            latest = (time.monotonic() - began) / len(texts)
            known = self._seconds_per_passage
            self._seconds_per_passage = latest if known is None else known + (latest - known) * WEIGHT_OF_LATEST
        return vectors

    def _embed(self, texts: Sequence[str], go_on: Callable[[], bool]) -> Vectors:
        """Embed the texts until ``go_on`` returns False, and count the processor time."""
        allowance = allowance_current()
        assert allowance is not None
        parts = [np.empty((0, self.dimension), dtype=np.float32)]
        size = getattr(self.inner, "texts_per_turn", len(texts)) or 1
        for at in range(0, len(texts), size):
            with self._turns.turn(allowance.identity, within=allowance.seconds_left()):
                if not go_on():
                    break
                before = self._spent()
                try:
                    parts.append(self._passages(texts[at : at + size]))
                finally:
                    allowance.spend(self._spent() - before)
        return np.concatenate(parts)
