"""Shadow search: repeats a sample of past queries with archived topics included, to find what was missed.

The search writes a ShadowHit for each archived topic that would have been among the best answers. These hits are one of
the signals of ``regret``. The search changes no salience and writes nothing to the access log.
"""

import datetime as dt
import hashlib
import uuid
from typing import Any

from django.db import connection, transaction

from memory.embedding import embedder_get
from memory.models import Rung, Watermark
from memory.policy.effective import policies_current
from memory.policy.snapshot import Policies
from memory.recall.candidates import candidates_rank
from memory.recall.filters import CandidateFilter
from memory.recall.probe import question_probe

WATERMARK = "shadow"

_ANY_ARCHIVED_SQL = f"SELECT EXISTS (SELECT 1 FROM memory_vitality WHERE rung > 0 AND rung = {Rung.ARCHIVED:d})"

_SKIP_LOG_SQL = """
INSERT INTO memory_watermark (name, position, taken)
SELECT %(name)s, id, 0 FROM memory_accesslog ORDER BY id DESC LIMIT 1
ON CONFLICT (name) DO UPDATE SET position = greatest(memory_watermark.position, excluded.position)
"""

# A row may be skipped if a row with a larger id was committed earlier. This is acceptable for a sample.
_READ_LOG_SQL = """
SELECT id, kind, at, scope, query, topic_ids FROM memory_accesslog WHERE id > %(after)s ORDER BY id LIMIT %(limit)s
"""

# A query cannot have missed a topic that was archived only after the query.
_INSERT_HITS_SQL = f"""
INSERT INTO memory_shadowhit (access_id, topic_id, rank, similarity, at)
SELECT %(access)s, d.topic_id, d.rank, d.similarity, %(at)s
FROM unnest(%(topics)s::uuid[], %(ranks)s::int[], %(similarities)s::float8[]) AS d (topic_id, rank, similarity)
JOIN memory_topic t ON t.id = d.topic_id
WHERE t.rung = {Rung.ARCHIVED:d} AND t.released_at IS NULL AND t.merged_into_id IS NULL
  AND greatest(
      (SELECT max(a.at) FROM memory_forgetaction a
       WHERE a.topic_id = t.id AND a.action = 'archived' AND a.state = 'applied'),
      (SELECT max(e.at) FROM memory_auditevent e WHERE e.topic_id = t.id AND e.action = 'archived')
  ) <= %(at)s
ON CONFLICT DO NOTHING
"""


def shadow_search(*, now: dt.datetime, limit: int = 500) -> int:
    """Process the next ``limit`` rows of the access log, repeat the sampled queries, and return the number of rows.

    The sample is the share ``shadow_share`` of the queries of a scope, chosen by a hash of the row id. Queries are
    repeated in their scope without filters, because the log does not store filters. ``now`` is the time for the decay
    of ranks. One transaction with three statements, and four for each sampled query. If nothing is archived, the log is
    skipped with two statements. Return 0 while another process is working. Raises ``EmbeddingFailed``.
    """
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
        for access_id, kind, at, scope, query, returned in rows:
            if kind == "query" and query.strip() and access_sampled(access_id, policies.knobs(scope).shadow_share):
                mark.taken += 1
                found = _archived_among(query, scope, policies, now)
                hits = {topic: ranked for topic, ranked in found.items() if topic not in returned}
                if hits:
                    parameters: dict[str, Any] = {
                        "access": access_id,
                        "at": at,
                        "topics": list(hits),
                        "ranks": [rank for rank, _similarity in hits.values()],
                        "similarities": [similarity for _rank, similarity in hits.values()],
                    }
                    cursor.execute(_INSERT_HITS_SQL, parameters)
        mark.position = rows[-1][0]
        mark.save(update_fields=["position", "taken"])
    return len(rows)


def access_sampled(access_id: int, share: float) -> bool:
    """Return whether a row of the access log is in the sample. A larger share includes every smaller sample."""
    drawn = int.from_bytes(hashlib.blake2b(str(access_id).encode(), digest_size=8).digest(), "big")
    return drawn < share * 2.0**64


def _archived_among(query: str, scope: str, policies: Policies, now: dt.datetime) -> dict[uuid.UUID, tuple[int, float]]:
    """Return the best answers, including archived topics, with their ranks and similarities. Two queries."""
    knobs = policies.knobs(scope)
    embedder = embedder_get()
    filters = CandidateFilter(scope=scope, include_archived=True)
    probe = question_probe(query, filters, exact_below=knobs.recall_exact_below, candidates=knobs.recall_candidates)
    ranked = candidates_rank(
        embedder.embed_query(query), probe, filters, limit=knobs.shadow_top_k, knobs=knobs, embedder=embedder, now=now
    )
    return {match.topic_id: (rank, match.similarity or 0.0) for rank, match in enumerate(ranked, start=1)}
