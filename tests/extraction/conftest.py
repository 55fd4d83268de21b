"""A scripted language model for those who ask for it."""

from collections.abc import Iterator

import pytest

from memory.extraction.segments import answers
from tests.llm.fixtures import model

__all__ = ["model"]


@pytest.fixture(autouse=True)
def _empty_model_cache() -> Iterator[None]:
    yield
    answers.clear()
