"""Vectors in microseconds that are near where texts share letters: for measuring what is done with near texts."""

from collections.abc import Sequence
from zlib import crc32

import numpy as np
from django.conf import settings

from memory.embedding.base import Vectors, rows_normalized


class TrigramEmbedder:
    """A text is the sum of its runs of three letters, each at a place and with a sign of its own."""

    model_name = "trigrams"
    unrelated = 0.0

    def __init__(self) -> None:
        self.dimension: int = settings.MEMSTATE_EMBEDDING_DIMENSION

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text."""
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for at, text in enumerate(texts):
            folded = f"  {text.casefold()} "
            for place in range(len(folded) - 2):
                sign = crc32(folded[place : place + 3].encode())
                rows[at, sign % self.dimension] += 1 if sign & (1 << 20) else -1
        return rows_normalized(rows)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector that the same text has as a passage."""
        vector: Vectors = self.embed_passages([text])[0]
        return vector
