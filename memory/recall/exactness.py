"""Compares the vector index with an exact search, to show how many of the nearest topics the index finds."""

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from memory.embedding import embedder_get
from memory.ingest.bulk import vector_text
from memory.models import Rung
from memory.models.labels import label_sql
from memory.policy.effective import knobs_effective
from memory.predicates.search_parts import LIVE
from memory.recall.filters import CandidateFilter
from memory.recall.probe import index_settings, question_probe
from memory.recall.ranking import question_sql
from memory.recall.search import TopicSearch, question_filter
from memory.stores.citus import settings_set

NEAREST = 10


@dataclass(frozen=True, slots=True)
class NearTopic:
    """One of the nearest topics. ``nearness`` is the inner product with the question, after a share of the mean vector
    was subtracted from the question (see ``question_sql``). ``other`` is the rank in the other list, if the topic is in
    it."""

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


# With "+ 0", the planner cannot use the index. If sorts and other scans are disabled, it uses the index even in a small
# store.
_EXACT = "(v.embedding <#> (SELECT vector FROM question)) + 0"
_INDEX = "v.embedding <#> (SELECT vector FROM question)"
_OTHER_PLANS = ("enable_seqscan", "enable_bitmapscan", "enable_sort")


def exactness_check(search: TopicSearch, *, now: dt.datetime) -> Exactness:
    """Search for the question of a lookup twice: by an exact scan, and by the index. Six queries. Nothing is written.
    The exact search reads every live vector in the scope. Raises ``EmbeddingFailed``."""
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
        settings_set(index_settings(knobs.recall_candidates) | dict.fromkeys(_OTHER_PLANS, "off"))
        cursor.execute(nearest_sql(filters, _INDEX), parameters)
        index: list[tuple[Any, ...]] = cursor.fetchall()
        settings_set(dict.fromkeys(_OTHER_PLANS, "on"))
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
        SELECT n.topic_id, {label_sql("found")}, found.rung, n.embedding <#> question.vector AS far
        FROM nearest n JOIN memory_topic found ON found.id = n.topic_id CROSS JOIN question ORDER BY far, n.topic_id
    """


def _nearest(rows: list[tuple[Any, ...]], others: list[tuple[Any, ...]]) -> list[NearTopic]:
    ranks: dict[uuid.UUID, int] = {row[0]: rank for rank, row in enumerate(others, start=1)}
    return [
        NearTopic(str(topic_id), title, Rung(rung).label, -far, rank, ranks.get(topic_id))
        for rank, (topic_id, title, rung, far) in enumerate(rows, start=1)
    ]
