"""Compares the vector index with an exact search, to show how many of the nearest topics the index finds."""

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from memory.embedding import embedder_get
from memory.ingest.bulk import vector_text
from memory.models import Rung
from memory.policy.effective import knobs_effective
from memory.predicates.search_parts import LIVE
from memory.recall.candidates import question_sql
from memory.recall.filters import CandidateFilter
from memory.recall.probe import question_probe
from memory.recall.search import TopicSearch, question_filter

NEAREST = 10


@dataclass(frozen=True, slots=True)
class NearTopic:
    """One of the nearest topics. ``other`` is its rank in the other list, or None.

    ``nearness`` is the inner product with the question without the common part (``candidates.question_sql``).
    """

    topic_id: str
    title: str
    rung: str
    nearness: float
    rank: int
    other: int | None


@dataclass(frozen=True, slots=True)
class Exactness:
    """The nearest live topics by an exact scan and by the index, best first."""

    exact: list[NearTopic]
    index: list[NearTopic]

    @property
    def same(self) -> int:
        """The number of topics in both lists."""
        return sum(near.other is not None for near in self.exact)


# A scan of every vector, and a search in the index. With "+ 0", the index cannot be used. With sorts and other scans
# disabled, the index is used even in a small store.
_EXACT = "(v.embedding <#> (SELECT vector FROM question)) + 0"
_INDEX = "v.embedding <#> (SELECT vector FROM question)"
_INDEX_ONLY_SQL = "SELECT " + ", ".join(
    f"set_config('{name}', 'off', true)" for name in ("enable_seqscan", "enable_bitmapscan", "enable_sort")
)
_ALL_PLANS_SQL = _INDEX_ONLY_SQL.replace("'off'", "'on'")


def exactness_check(search: TopicSearch, *, now: dt.datetime) -> Exactness:
    """Run both searches for the question of a lookup, among the topics that meet its conditions. Six queries.

    The exact search reads every live vector in the scope. Only meaning is compared; a query also ranks by words and
    neighbours. Nothing is written. Without a question, both lists are empty. Raises ``EmbeddingFailed``.
    """
    if not search.question:
        return Exactness([], [])
    vector = embedder_get().embed_query(search.question)
    filters = question_filter(search, LIVE, now=now)
    with transaction.atomic(), connection.cursor() as cursor:
        knobs = knobs_effective(filters.scope)
        probe = question_probe(
            search.question, filters, exact_below=knobs.recall_exact_below, candidates=knobs.recall_candidates
        )
        parameters = {
            **filters.parameters(),
            "q": vector_text(vector),
            "model": embedder_get().model_name if probe.width == len(vector) else "",
            "center": knobs.recall_center,
        }
        cursor.execute(nearest_sql(filters, _EXACT), parameters)
        exact: list[tuple[Any, ...]] = cursor.fetchall()
        cursor.execute(_INDEX_ONLY_SQL)
        cursor.execute(nearest_sql(filters, _INDEX), parameters)
        index: list[tuple[Any, ...]] = cursor.fetchall()
        cursor.execute(_ALL_PLANS_SQL)
    return Exactness(_nearest(exact, index), _nearest(index, exact))


def nearest_sql(filters: CandidateFilter, order: str) -> str:
    """Return the statement for the nearest topics, ordered by the expression ``order``."""
    within = filters.within_sql("v")
    join, topics = filters.joined_sql("v")
    return f"""
        WITH {question_sql(within)}, nearest AS MATERIALIZED (
            SELECT v.topic_id, v.embedding FROM memory_topicvector v {join}
            WHERE {within} AND v.model = %(model)s::text AND v.embedding IS NOT NULL {topics}
            ORDER BY {order} LIMIT {NEAREST}
        )
        SELECT n.topic_id, found.title, found.rung, n.embedding <#> question.vector AS far
        FROM nearest n JOIN memory_topic found ON found.id = n.topic_id CROSS JOIN question ORDER BY far, n.topic_id
    """


def _nearest(rows: list[tuple[Any, ...]], others: list[tuple[Any, ...]]) -> list[NearTopic]:
    ranks: dict[uuid.UUID, int] = {row[0]: rank for rank, row in enumerate(others, start=1)}
    return [
        NearTopic(str(topic_id), title, Rung(rung).label, -far, rank, ranks.get(topic_id))
        for rank, (topic_id, title, rung, far) in enumerate(rows, start=1)
    ]
