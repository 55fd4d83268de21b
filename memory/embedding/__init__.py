"""Texts to vectors: the packaged local model, any OpenAI-compatible endpoint, or a class of one's own."""

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
