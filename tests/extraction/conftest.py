"""A scripted language model for those who ask for it."""

from tests.llm.fixtures import model

__all__ = ["model"]
