"""How much of the store search cannot find yet, because the worker still has to prepare it. Read-only."""

import datetime as dt
from dataclasses import dataclass

from memory.ingest.waiting import waiting_told
from memory.models.statements import rows_read

_WAITING_SQL = """
SELECT (SELECT count(*) FROM memory_topicdocument WHERE outdated),
       (SELECT count(*) FROM memory_topicvector WHERE embedding IS NULL)
"""


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """The number of topics, and how many of them wait: ``by_word`` for a document, ``by_meaning`` for a vector.
    ``until`` is about when the last one will have its vector."""

    topics: int
    by_word: int
    by_meaning: int
    until: dt.datetime | None

    @property
    def parts(self) -> list[tuple[str, int]]:
        """For each kind of search with waiting topics: its name, and the number of topics that are ready."""
        found = (("words", self.by_word), ("meaning", self.by_meaning))
        return [(name, max(0, self.topics - waiting)) for name, waiting in found if waiting]


def search_progress(topics: int, *, now: dt.datetime) -> SearchProgress:
    """Return what waits in a store with this number of topics. One query on the indexes of waiting rows, and another
    one if topics wait for vectors."""
    by_word, by_meaning = rows_read(_WAITING_SQL)[0]
    waiting = waiting_told(by_meaning, now=now)
    return SearchProgress(topics, by_word, by_meaning, waiting["until"] if waiting is not None else None)
