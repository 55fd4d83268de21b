"""How much of the store search cannot find yet, because the worker still has to prepare it. Read-only."""

from dataclasses import dataclass

from memory.models.statements import rows_read

_WAITING_SQL = """
SELECT (SELECT count(*) FROM memory_topicdocument WHERE outdated),
       (SELECT count(*) FROM memory_topicvector WHERE embedding IS NULL)
"""


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """The number of topics, and how many of them wait: ``by_word`` for a document, ``by_meaning`` for a vector."""

    topics: int
    by_word: int
    by_meaning: int

    @property
    def parts(self) -> list[tuple[str, int]]:
        """For each kind of search with waiting topics: its name, and the number of topics that are ready."""
        found = (("words", self.by_word), ("meaning", self.by_meaning))
        return [(name, max(0, self.topics - waiting)) for name, waiting in found if waiting]


def search_progress(topics: int) -> SearchProgress:
    """Return what waits in a store with this number of topics. One query on the indexes of waiting rows."""
    return SearchProgress(topics, *rows_read(_WAITING_SQL)[0])
