"""The embedder that the rest of the store uses: the chosen one, within the allowance of the running request."""

import time
from collections.abc import Callable, Sequence

import numpy as np

from memory.embedding.allowance import allowance_current
from memory.embedding.base import Embedder, Vectors


class MeteredEmbedder:
    """Counts the processor time of an embedder.

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
        """Return the vector of a text to search with. Raises as ``embed_passages`` does."""
        allowance = allowance_current()
        if allowance is None:
            return self.inner.embed_query(text)
        allowance.require()
        before = self._spent()
        try:
            return self.inner.embed_query(text)
        finally:
            allowance.spend(self._spent() - before)

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
