"""The embedder that the rest of the store uses: the chosen one, within the allowance of the running request."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from memory.embedding.allowance import allowance_current
from memory.embedding.base import Embedder, Vectors, text_hash

# Questions whose vectors are kept: 3 MB at 384 dimensions. Keyed by hash, so that no text stays in memory.
QUESTIONS_KEPT = 2_000
# Questions that are embedded in the background at a time; a local model limits itself to the cores.
AT_ONCE = 16

# A vector, and the processor time that it took in seconds.
Embedded = tuple[Vectors, float]


class MeteredEmbedder:
    """Counts the processor time of an embedder, and embeds equal questions once.

    An embedder may have ``texts_per_turn``, how many texts it embeds before the allowance is looked at again, and
    ``seconds_spent()``, the processor time spent for the calling thread; by default a call is one turn, and the time of
    the thread itself counts.
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

        Raises ``EmbeddingFailed``, and ``EmbeddingTimeUsed`` if the key has used its minute before.
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
        """Return the vector of a text to search with, read-only. Raises as ``embed_passages`` does."""
        return self.query_begin(text)()

    def query_begin(self, text: str) -> Callable[[], Vectors]:
        """Begin to embed a question in the background and return the function that waits for its vector.

        An equal question that is being embedded or was lately is not embedded again; only the first one is charged.
        Raises ``EmbeddingTimeUsed``; the function raises ``EmbeddingFailed``.
        """
        allowance = allowance_current()
        if allowance is not None:
            allowance.require()
        key = text_hash(text)
        with self._lock:
            found = self._questions.get(key)
            # A failure is not kept: the next question tries again.
            known = found is not None and not (found.done() and found.exception())
            if not known:
                found = self._questions[key] = self._background.submit(self._question, text)
            assert found is not None
            self._questions.move_to_end(key)
            while len(self._questions) > QUESTIONS_KEPT:
                self._questions.popitem(last=False)
        asked = found

        def vector() -> Vectors:
            made, seconds = asked.result()
            if allowance is not None and not known:
                allowance.spend(seconds)
            return made

        return vector

    def _question(self, text: str) -> Embedded:
        before = self._spent()
        vector = self.inner.embed_query(text)
        vector.flags.writeable = False
        return vector, self._spent() - before

    def _embed(self, texts: Sequence[str], go_on: Callable[[], bool]) -> Vectors:
        allowance = allowance_current()
        assert allowance is not None
        parts = [np.empty((0, self.dimension), dtype=np.float32)]
        turn = getattr(self.inner, "texts_per_turn", len(texts)) or 1
        for at in range(0, len(texts), turn):
            if not go_on():
                break
            before = self._spent()
            try:
                parts.append(self.inner.embed_passages(texts[at : at + turn]))
            finally:
                allowance.spend(self._spent() - before)
        return np.concatenate(parts)
