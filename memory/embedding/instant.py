"""An embedder that makes vectors without meaning in microseconds, for tests that do not need meaning."""

import hashlib
from collections.abc import Sequence

import numpy as np
from django.conf import settings

from memory.embedding.base import Vectors, rows_normalized


class InstantEmbedder:
    """Returns equal vectors for equal texts and unrelated vectors for different texts."""

    model_name = "instant"
    unrelated = 0.0

    def __init__(self) -> None:
        self.dimension: int = settings.MEMSTATE_EMBEDDING_DIMENSION

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return one pseudo-random unit vector per text."""
        rows = np.empty((len(texts), self.dimension), dtype=np.float32)
        for at, text in enumerate(texts):
            seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
            rows[at] = np.random.Generator(np.random.SFC64(seed)).standard_normal(self.dimension, dtype=np.float32)
        return rows_normalized(rows)

    def embed_query(self, text: str) -> Vectors:
        """Return the same vector as for a passage."""
        vector: Vectors = self.embed_passages([text])[0]
        return vector
