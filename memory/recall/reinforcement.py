"""Writes access rows, one per retrieval. The worker folds them into salience soon after."""

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Any

from memory.access.principal import Principal
from memory.core.policy_values import Knobs
from memory.models.prepared import rows_prepared
from memory.policy.activity import activity_note
from memory.policy.effective import policies_current

_APPEND_SQL = """
INSERT INTO memory_accesslog
    (at, kind, actor, scope, query, query_hash, topic_ids, scores, relevances, cut_ids, field_ids, bump, field_bump,
     min_relevance, tokens, milliseconds, folded_at, counted)
VALUES (%s, %s, %s, %s, %s, %s, %s::uuid[], %s::float8[], %s::float8[], %s::uuid[], %s::uuid[], %s, %s, %s, %s, %s, %s,
        %s)
"""


# SKIP LOCKED, so that no row is written for a topic that is being purged.
_APPEND_LOOKUP_SQL = """
INSERT INTO memory_accesslog
    (at, kind, actor, scope, query, query_hash, topic_ids, scores, relevances, cut_ids, field_ids, bump, field_bump,
     min_relevance, folded_at, counted)
SELECT %s, 'lookup', %s, %s, '', '', ARRAY[t.id], '{}', '{}', '{}', '{}', 0, 0, 0, %s, false
FROM (SELECT id FROM memory_topic WHERE id = %s FOR KEY SHARE SKIP LOCKED) t
"""


def retrieval_record(
    topic_ids: Sequence[uuid.UUID],
    *,
    scores: Sequence[float | None],
    relevances: Sequence[float | None],
    cut_ids: Sequence[uuid.UUID],
    field_ids: Sequence[uuid.UUID],
    query: str,
    query_hash: str,
    scope: str,
    tokens: int,
    milliseconds: float,
    principal: Principal,
    knobs: Knobs,
    now: dt.datetime,
    counts: bool = True,
) -> None:
    """Record the topics that a query returned, best first, and those that its limits cut (``cut_ids``). One INSERT.

    Salience is raised only if ``counts`` is true. ``scores`` and ``relevances`` are those of ``topic_ids``, None if
    nothing was compared. ``tokens`` and ``milliseconds`` are the size of the answer and its duration. A question
    without an answer is recorded too, because the shadow search may find an archived answer.
    """
    row: list[Any] = [
        now,
        "query",
        principal.identity,
        scope,
        query,
        query_hash,
        list(topic_ids),
        list(scores),
        list(relevances),
        list(cut_ids),
        list(field_ids),
        knobs.query_salience_bump,
        knobs.query_field_salience_bump,
        knobs.reinforce_min_relevance,
        tokens,
        milliseconds,
        None,
        None if counts else False,
    ]
    rows_prepared(_APPEND_SQL, row)


def lookup_record(topic_id: uuid.UUID, *, scope: str, principal: Principal, now: dt.datetime) -> None:
    """Record the lookup of a topic by its id. Two statements.

    A lookup does not raise salience, so the row is marked as folded. Regret counts lookups of archived topics.
    """
    rows_prepared(_APPEND_LOOKUP_SQL, [now, principal.identity, scope, now, topic_id])
    activity_note(policies_current(), [scope], now=now)


def accesses_without_sql(*, rows: str, topic: str, field: str) -> str:
    """Return the UPDATE that removes topics and fields from the access log. Rows that lose no topic are not changed.

    ``rows`` is the condition on the rows ``l``. Topics that meet the condition ``topic`` on ``u.topic`` stay, and
    fields that meet ``field`` on ``u.field``. The hash of the query is emptied too, because it identifies the query.
    """
    return f"""
UPDATE memory_accesslog a
SET topic_ids = x.topics, scores = x.scores, relevances = x.relevances, cut_ids = x.cut, query_hash = '',
    query = CASE WHEN x.topics = '{{}}' THEN '' ELSE a.query END,
    field_ids = ARRAY(SELECT field FROM unnest(a.field_ids) WITH ORDINALITY u (field, n) WHERE {field} ORDER BY n)
FROM (
    SELECT l.id, kept.*,
           ARRAY(SELECT topic FROM unnest(l.cut_ids) WITH ORDINALITY u (topic, n) WHERE {topic} ORDER BY n) AS cut
    FROM memory_accesslog l CROSS JOIN LATERAL (
        SELECT coalesce(array_agg(topic ORDER BY n), '{{}}') AS topics,
               coalesce(array_agg(score ORDER BY n), '{{}}') AS scores,
               coalesce(array_agg(relevance ORDER BY n), '{{}}') AS relevances
        FROM unnest(l.topic_ids, l.scores, l.relevances) WITH ORDINALITY u (topic, score, relevance, n) WHERE {topic}
    ) kept WHERE {rows}
) x
WHERE a.id = x.id
  AND cardinality(x.topics) + cardinality(x.cut) < cardinality(a.topic_ids) + cardinality(a.cut_ids)
"""
