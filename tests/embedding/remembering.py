"""The packaged model with a memory: tests store, ask for and compare the same few texts again and again.

A vector depends on its text alone, which ``test_local.py`` holds the model to;
so the second one of a text is the first.
"""

from collections.abc import Sequence

import numpy as np

from memory.embedding.base import Vectors
from memory.embedding.local import LocalEmbedder

_passages: dict[str, Vectors] = {}
_queries: dict[str, Vectors] = {}


class RememberingEmbedder(LocalEmbedder):
    """Embeds each text once in a process as a passage, and once as a query."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts to be found; only new ones cost anything."""
        new = list(dict.fromkeys(text for text in texts if text not in _passages))
        made = super().embed_passages(new)
        _passages.update(zip(new, made, strict=True))
        return np.stack([_passages[text] for text in texts]) if texts else made

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts to search with; only new ones cost anything."""
        if new := list(dict.fromkeys(text for text in texts if text not in _queries)):
            _queries.update(zip(new, super().embed_queries(new), strict=True))
        return np.stack([_queries[text] for text in texts])
