"""Shadow search: repeats a sample of past queries with archived topics included, to find what was missed.

Writes a ShadowHit for each archived topic among the best answers. Changes neither salience nor the access log. The page
of a recall searches in the same way, and writes nothing.
"""

import datetime as dt
import hashlib
import json
from dataclasses import replace
from typing import Any

from django.db import connection, transaction

from memory.core.scopes import ROOT
from memory.embedding import embedder_get
from memory.models import Rung, Watermark
from memory.models.statements import rows_read
from memory.policy.effective import policies_current
from memory.policy.snapshot import Policies
from memory.recall.filters import filters_of
from memory.recall.probe import question_probe
from memory.recall.ranking import Ranked, candidates_rank
from memory.recall.request import QueryRequest, request_again

WATERMARK = "shadow"

_ANY_ARCHIVED_SQL = f"SELECT EXISTS (SELECT 1 FROM memory_vitality WHERE rung > 0 AND rung = {Rung.ARCHIVED:d})"

_SKIP_LOG_SQL = """
INSERT INTO memory_watermark (name, position, taken)
SELECT %(name)s, id, 0 FROM memory_accesslog ORDER BY id DESC LIMIT 1
ON CONFLICT (name) DO UPDATE SET position = greatest(memory_watermark.position, excluded.position)
"""

# A row may be skipped if a row with a larger id was committed earlier. This is acceptable for a sample.
_READ_LOG_SQL = """
SELECT id, kind, at, scope, query, request, topic_ids FROM memory_accesslog
WHERE id > %(after)s ORDER BY id LIMIT %(limit)s
"""

# A query cannot have missed a topic that was archived later.
_MISSED_SQL = f"""
t.rung = {Rung.ARCHIVED:d} AND t.released_at IS NULL AND t.merged_into_id IS NULL AND greatest(
    (SELECT max(a.at) FROM memory_forgetaction a
     WHERE a.topic_id = t.id AND a.action = 'archived' AND a.state = 'applied'),
    (SELECT max(e.at) FROM memory_auditevent e WHERE e.topic_id = t.id AND e.action = 'archived')
) <= %(then)s
"""
_INSERT_HITS_SQL = f"""
WITH hits (access_id, topic_id, rank, similarity, at) AS MATERIALIZED (
    SELECT %(access)s, d.topic_id, d.rank, d.similarity, %(at)s
    FROM unnest(%(topics)s::uuid[], %(ranks)s::int[], %(similarities)s::float8[]) AS d (topic_id, rank, similarity)
    JOIN memory_topic t ON t.id = d.topic_id WHERE {_MISSED_SQL}
)
INSERT INTO memory_shadowhit (access_id, topic_id, rank, similarity, at)
SELECT * FROM hits
ON CONFLICT DO NOTHING
"""


def shadow_search(*, now: dt.datetime, limit: int = 500) -> int:
    """Repeat the sampled queries among the next ``limit`` rows of the access log, and return the number of rows; 0 if
    another process is working. About six SQL statements, plus three for each sampled query. Raises
    ``EmbeddingFailed``."""
    with connection.cursor() as cursor:
        cursor.execute(_ANY_ARCHIVED_SQL)
        if not cursor.fetchone()[0]:
            # While nothing is archived, no query can have missed anything, so the log is skipped.
            cursor.execute(_SKIP_LOG_SQL, {"name": WATERMARK})
            return 0
    Watermark.objects.get_or_create(name=WATERMARK)
    with transaction.atomic(), connection.cursor() as cursor:
        mark = Watermark.objects.select_for_update(skip_locked=True, no_key=True).filter(name=WATERMARK).first()
        if mark is None:
            return 0
        cursor.execute(_READ_LOG_SQL, {"after": mark.position, "limit": limit})
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        if not rows:
            return 0
        policies = policies_current()
        for access_id, kind, at, scope, query, kept, returned in rows:
            knobs = policies.knobs(scope)
            if kind != "query" or not access_sampled(access_id, knobs.shadow_share):
                continue
            request = request_again(query, at=at, scope=scope, kept=kept and json.loads(kept))
            if request is None or not may_miss(request):
                continue
            mark.taken += 1
            found = _rank(request, at=at, limit=knobs.shadow_top_k, policies=policies, now=now)
            hits = {rank: each for rank, each in found if each.topic_id not in returned}
            if hits:
                parameters: dict[str, Any] = {
                    "access": access_id,
                    "at": at,
                    "then": request.as_of or at,
                    "topics": [each.topic_id for each in hits.values()],
                    "ranks": list(hits),
                    "similarities": [each.similarity or 0.0 for each in hits.values()],
                }
                cursor.execute(_INSERT_HITS_SQL, parameters)
        mark.position = rows[-1][0]
        mark.save(update_fields=["position", "taken"])
    return len(rows)


def access_sampled(access_id: int, share: float) -> bool:
    """Return whether a row of the access log is in the sample. A larger share only adds rows to the sample."""
    drawn = int.from_bytes(hashlib.blake2b(str(access_id).encode(), digest_size=8).digest(), "big")
    return drawn < share * 2.0**64


def may_miss(request: QueryRequest) -> bool:
    """Return whether a query searched by meaning and left out archived topics."""
    return "semantic" in request.stages and not request.include_archived


@transaction.atomic
def archive_search(request: QueryRequest, *, at: dt.datetime, now: dt.datetime) -> list[tuple[int, Ranked]]:
    """Repeat a query of the time ``at`` with archived topics included. Return (rank, topic) for each of the ``top_k``
    answers that was already archived at that time. Four SQL statements, which write nothing. Raises
    ``EmbeddingFailed``."""
    found = _rank(request, at=at, limit=request.top_k, policies=policies_current(), now=now)
    statement = f"SELECT t.id FROM memory_topic t WHERE t.id = ANY(%(topics)s) AND {_MISSED_SQL}"
    topics = [each.topic_id for _rank, each in found]
    missed = {row[0] for row in rows_read(statement, {"topics": topics, "then": request.as_of or at})}
    return [(rank, each) for rank, each in found if each.topic_id in missed]


def _rank(
    request: QueryRequest, *, at: dt.datetime, limit: int, policies: Policies, now: dt.datetime
) -> list[tuple[int, Ranked]]:
    """Return (rank, topic) for the best ``limit`` topics among those that existed at the time ``at``, including
    archived ones. Two SQL statements."""
    scope, embedder = request.scope or ROOT, embedder_get()
    knobs = policies.knobs(scope)
    filters = replace(filters_of(request, scope=scope), as_of=request.as_of or at, include_archived=True)
    probe = question_probe(
        request.q,
        filters,
        exact_below=knobs.recall_exact_below,
        candidates=knobs.recall_candidates,
        today=(request.asked_at or at).astimezone(dt.UTC).date(),
    )
    vector = embedder.embed_query(request.q)
    ranked = candidates_rank(vector, probe, filters, limit=limit, knobs=knobs, embedder=embedder, now=now)
    least = request.min_relevance or 0
    return [
        (rank, each) for rank, each in enumerate(ranked, start=1) if each.relevance is None or each.relevance >= least
    ]
