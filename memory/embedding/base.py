"""The protocol of embedders and their exceptions."""

import hashlib
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from memory.core.errors import MemoryProblem
from memory.core.problem_codes import ProblemCode

Vectors = npt.NDArray[np.float32]


class EmbeddingFailed(MemoryProblem):
    """The embedder could not be reached or gave an unusable answer (503). Nothing has been written."""

    code = ProblemCode.EMBEDDER_UNAVAILABLE


class WrongDimension(EmbeddingFailed):
    """The vectors of the embedder differ in length from those of the store."""

    code = ProblemCode.EMBEDDER_UNAVAILABLE


class Embedder(Protocol):
    """Turns texts into vectors of unit length. Safe to call from many threads."""

    @property
    def dimension(self) -> int:
        """The length of the vectors."""

    @property
    def model_name(self) -> str:
        """The name that is stored with every vector. Only vectors with the same name are compared."""

    @property
    def unrelated(self) -> float:
        """The usual cosine similarity of two texts about different things."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts to store: shape ``(len(texts), dimension)``, float32, rows of length 1. Raises
        ``EmbeddingFailed``."""

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a query: shape ``(dimension,)``. Raises ``EmbeddingFailed``."""


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text, which is stored with the vector of the text."""
    return hashlib.sha256(text.encode()).hexdigest()


def rows_normalized(vectors: Vectors) -> Vectors:
    """Return the rows scaled to length 1. A row of zeros stays unchanged."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Vectors = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return scaled
