"""Detection: which topics may be one, found by vector search and by title, never by comparing all pairs."""

import datetime as dt
import uuid
from collections.abc import Sequence

from memory.access.principal import Principal

# Pairs that one look stores at most: what is left waits for the next.
PAIRS_A_RUN = 50


def duplicates_find(scope: str | None, *, now: dt.datetime, limit: int = PAIRS_A_RUN) -> int:
    """Compare topics that were written since the last look, at ``scope`` and below or anywhere, and store at most
    about ``limit`` new pairs; return how many. Where the mode is ``off`` nothing is compared.

    A vector search per topic (logarithmic in the size of the store) and a look-up by title, in batches; as many
    statements per batch whatever it finds.
    """
    raise NotImplementedError


def near_duplicates(texts: Sequence[str], *, scope: str, kind: str, principal: Principal) -> list[uuid.UUID | None]:
    """Return for each text a live topic of this scope and kind that says the same, nothing that matters differing, or
    None. Two queries and one call of the embedder. Nothing is stored. Raises ``EmbeddingFailed``, ``NotVisible``."""
    raise NotImplementedError
