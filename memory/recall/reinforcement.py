"""Writes access rows, one per retrieval. The worker folds them into salience soon after."""

import datetime as dt
import json
import uuid
from collections.abc import Sequence
from typing import Any

from memory.access.principal import Principal
from memory.core.policy_values import Knobs
from memory.models.prepared import rows_prepared
from memory.policy.activity import activity_note
from memory.policy.effective import policies_current
from memory.recall.ranking import Ranked
from memory.recall.replies import Candidate
from memory.recall.request import QueryRequest, members_digest, members_kept

_APPEND_SQL = """
INSERT INTO memory_accesslog
    (at, kind, actor, scope, query, query_hash, request, topic_ids, scores, relevances, cut_ids, field_ids, bump,
     field_bump, min_relevance, tokens, milliseconds, folded_at, counted)
VALUES (%(at)s, 'query', %(actor)s, %(scope)s, %(query)s, %(query_hash)s, %(request)s::jsonb, %(topic_ids)s::uuid[],
        %(scores)s::float8[], %(relevances)s::float8[], %(cut_ids)s::uuid[], %(field_ids)s::uuid[], %(bump)s,
        %(field_bump)s, %(min_relevance)s, %(tokens)s, %(milliseconds)s, NULL, %(counted)s)
"""

# SKIP LOCKED, so that no row is written for a topic that is being purged.
_APPEND_LOOKUP_SQL = """
WITH t AS MATERIALIZED (SELECT id FROM memory_topic WHERE id = %s FOR KEY SHARE SKIP LOCKED)
INSERT INTO memory_accesslog
    (at, kind, actor, scope, query, query_hash, topic_ids, scores, relevances, cut_ids, field_ids, bump, field_bump,
     min_relevance, folded_at, counted)
SELECT %s, 'lookup', %s, %s, '', '', ARRAY[t.id], '{}', '{}', '{}', '{}', 0, 0, 0, %s, false
FROM t
"""


def retrieval_record(
    bundles: Sequence[Candidate],
    request: QueryRequest,
    *,
    also: Sequence[Ranked] = (),
    cut: Sequence[Ranked],
    scope: str,
    tokens: int,
    milliseconds: float,
    principal: Principal,
    knobs: Knobs,
    now: dt.datetime,
) -> None:
    """Record the answer of a query, even if it is empty, and the topics that the limits of the query left out
    (``cut``). Topics that only repeat a returned one (``also``) count as returned. One INSERT."""
    members = request.members()
    kept = members_kept(members)
    row: dict[str, Any] = {
        "at": now,
        "actor": principal.identity,
        "scope": scope,
        "query": request.q,
        "query_hash": members_digest(scope, members),
        "request": json.dumps(kept) if kept else None,
        "topic_ids": [*(bundle["topic_id"] for bundle in bundles), *(str(each.topic_id) for each in also)],
        "scores": [*(bundle.get("score") for bundle in bundles), *(each.score for each in (*also, *cut))],
        "relevances": [*(bundle.get("relevance") for bundle in bundles), *(each.relevance for each in (*also, *cut))],
        "cut_ids": [each.topic_id for each in cut],
        "field_ids": [entry["id"] for bundle in bundles for entry in bundle["fields"]],
        "bump": knobs.query_salience_bump,
        "field_bump": knobs.query_field_salience_bump,
        "min_relevance": knobs.reinforce_min_relevance,
        "tokens": tokens,
        "milliseconds": milliseconds,
        # A query about the past does not count as use.
        "counted": None if request.as_of is None else False,
    }
    rows_prepared(_APPEND_SQL, row)


def lookup_record(topic_id: uuid.UUID, *, scope: str, principal: Principal, now: dt.datetime) -> None:
    """Record the lookup of a topic by its id, for the report of regretted archivings. A lookup does not raise salience,
    so its row counts as folded. Two statements."""
    rows_prepared(_APPEND_LOOKUP_SQL, [topic_id, now, principal.identity, scope, now])
    activity_note(policies_current(), [scope], now=now)


def accesses_without_sql(*, rows: str, topic: str, field: str) -> str:
    """Return an UPDATE of the rows ``l`` of the access log that meet the condition ``rows``. ``topic`` and ``field``
    are conditions on ``u.topic`` and ``u.field``. Topics and fields that do not meet them are removed, and so is the
    hash of the query. A removed topic leaves NULL in its place, so that the others keep their ranks. If no returned
    topic is left, the text of the query and its request are removed too. Rows that lose no topic are not changed."""
    # All values are computed before the UPDATE: a slice of an array in SET ends the server process of Citus.
    return f"""
WITH x AS MATERIALIZED (
    SELECT l.id, kept.*, kept.topics[:cardinality(l.topic_ids)] AS returned,
           kept.topics[cardinality(l.topic_ids) + 1:] AS cut,
           array_remove(kept.topics[:cardinality(l.topic_ids)], NULL) = '{{}}' AS emptied,
           ARRAY(SELECT field FROM unnest(l.field_ids) WITH ORDINALITY u (field, n) WHERE {field} ORDER BY n) AS fields,
           CASE WHEN l.request ? 'topic_ids' THEN jsonb_set(l.request, '{{topic_ids}}', (
               SELECT coalesce(jsonb_agg(topic ORDER BY n), '[]') FROM (
                   SELECT id::uuid AS topic, n FROM jsonb_array_elements_text(l.request->'topic_ids')
                       WITH ORDINALITY named (id, n)
               ) u WHERE {topic}
           )) ELSE l.request END AS request
    FROM memory_accesslog l CROSS JOIN LATERAL (
        SELECT coalesce(array_agg(CASE WHEN {topic} THEN topic END ORDER BY n), '{{}}') AS topics,
               coalesce(array_agg(CASE WHEN {topic} THEN score END ORDER BY n), '{{}}') AS scores,
               coalesce(array_agg(CASE WHEN {topic} THEN relevance END ORDER BY n), '{{}}') AS relevances,
               coalesce(bool_or(topic IS NOT NULL AND NOT ({topic})), false) AS lost
        FROM unnest(l.topic_ids || l.cut_ids, l.scores, l.relevances)
            WITH ORDINALITY u (topic, score, relevance, n)
    ) kept WHERE {rows}
)
UPDATE memory_accesslog a
SET topic_ids = x.returned, cut_ids = x.cut, field_ids = x.fields, scores = x.scores, relevances = x.relevances,
    query_hash = '',
    query = CASE WHEN x.emptied THEN '' ELSE a.query END,
    request = CASE WHEN x.emptied THEN NULL ELSE x.request END
FROM x WHERE a.id = x.id AND (x.lost OR x.request IS DISTINCT FROM a.request)
"""
