"""The embedder that the rest of the store uses. It counts the processor time of the running request."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from memory.embedding.allowance import allowance_current
from memory.embedding.base import Embedder, Vectors, text_hash

# The number of questions whose vectors are cached: 3 MB at 384 dimensions. The keys are hashes, so that no text stays
# in memory.
QUESTIONS_KEPT = 2_000
# The most questions that are embedded in the background at a time. A local model limits itself to the cores.
AT_ONCE = 16

# A vector, and the processor time that it took in seconds.
Embedded = tuple[Vectors, float]


class MeteredEmbedder:
    """Counts the processor time of an embedder, and embeds equal questions once.

    An embedder may have two more members. ``texts_per_turn`` is the number of texts after which the limits are checked
    again; by default they are checked once per call. ``seconds_spent()`` returns the processor time spent for the
    calling thread; by default the time of the thread itself counts.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.inner = embedder
        self.dimension = embedder.dimension
        self.model_name = embedder.model_name
        self.unrelated = embedder.unrelated
        self._spent: Callable[[], float] = getattr(embedder, "seconds_spent", time.thread_time)
        self._questions: OrderedDict[str, Future[Embedded]] = OrderedDict()
        self._lock = threading.Lock()
        self._background = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="questions")

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of all texts.

        Raises ``EmbeddingFailed``, and ``EmbeddingTimeUsed`` if the key has already used its time of a minute.
        """
        allowance = allowance_current()
        if allowance is None:
            return self.inner.embed_passages(texts)
        allowance.require()
        return self._embed(texts, lambda: True)

    def embed_affordable(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of as many of the first texts as the allowance permits. Raises ``EmbeddingFailed``."""
        allowance = allowance_current()
        return self.inner.embed_passages(texts) if allowance is None else self._embed(texts, allowance.left)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a query, read-only. Raises as ``embed_passages`` does."""
        return self.query_begin(text)()

    def query_begin(self, text: str) -> Callable[[], Vectors]:
        """Begin to embed a question in the background, and return a function that waits for the vector.

        A question that is being embedded or was embedded lately is not embedded again. Its time is counted only for the
        first caller. Raises ``EmbeddingTimeUsed``; the returned function raises ``EmbeddingFailed``.
        """
        allowance = allowance_current()
        if allowance is not None:
            allowance.require()
        key = text_hash(text)
        with self._lock:
            found = self._questions.get(key)
            # Failures are not cached, so that the next equal question tries again.
            known = found is not None and not (found.done() and found.exception())
            if not known:
                found = self._questions[key] = self._background.submit(self._question, text)
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

    def _question(self, text: str) -> Embedded:
        before = self._spent()
        vector = self.inner.embed_query(text)
        vector.flags.writeable = False
        return vector, self._spent() - before

    def _embed(self, texts: Sequence[str], go_on: Callable[[], bool]) -> Vectors:
        """Embed the texts until ``go_on`` returns False, and count the processor time."""
        allowance = allowance_current()
        assert allowance is not None
        parts = [np.empty((0, self.dimension), dtype=np.float32)]
        size = getattr(self.inner, "texts_per_turn", len(texts)) or 1
        for at in range(0, len(texts), size):
            if not go_on():
                break
            before = self._spent()
            try:
                parts.append(self.inner.embed_passages(texts[at : at + size]))
            finally:
                allowance.spend(self._spent() - before)
        return np.concatenate(parts)
