"""Embedders turn texts into vectors: the packaged local model, an OpenAI-compatible endpoint, or a custom class."""

from memory.embedding.allowance import ClientGone, EmbeddingTimeUsed
from memory.embedding.base import Embedder, EmbeddingFailed, WrongDimension, text_hash
from memory.embedding.choice import embedder_get, embedder_reset

__all__ = [
    "ClientGone",
    "Embedder",
    "EmbeddingFailed",
    "EmbeddingTimeUsed",
    "WrongDimension",
    "embedder_get",
    "embedder_reset",
    "text_hash",
]
