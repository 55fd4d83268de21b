"""Updates two counts for BM25: the live topics with each word (Lexeme), and all live topics (CorpusTotals). BM25
tolerates counts that are a little old."""

import uuid
from collections.abc import Sequence

from django.db import connection, transaction

from memory.models.locks import Lock, lock_try, lock_wait

DOCUMENTS_PER_ROUND = 500

# Adds the words of each document, and subtracts those of its last counted version. Locked documents are counted in the
# next round, because waiting for two writers could deadlock.
_COUNT_SQL = """
WITH taken AS (
    SELECT topic_id, CASE WHEN live THEN document END AS document, counted
    FROM memory_topicdocument WHERE uncounted ORDER BY topic_id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
), change AS (
    SELECT word, sum(sign) AS documents FROM (
        SELECT unnest(tsvector_to_array(document)) AS word, 1 AS sign FROM taken
        UNION ALL
        SELECT unnest(tsvector_to_array(counted)), -1 FROM taken
    ) x GROUP BY word HAVING sum(sign) <> 0
), words AS (
    INSERT INTO memory_lexeme (word, documents) SELECT word, documents FROM change ORDER BY word
    ON CONFLICT (word) DO UPDATE SET documents = memory_lexeme.documents + excluded.documents
), totals AS (
    INSERT INTO memory_corpustotals (id, documents)
    SELECT 1, sum((document IS NOT NULL)::int - (counted IS NOT NULL)::int) FROM taken HAVING count(*) > 0
    ON CONFLICT (id) DO UPDATE SET documents = memory_corpustotals.documents + excluded.documents
)
UPDATE memory_topicdocument d
SET uncounted = false, counted = t.document
FROM taken t WHERE d.topic_id = t.topic_id
"""

_UNCOUNT_SQL = """
WITH gone AS (
    DELETE FROM memory_topicdocument WHERE topic_id = ANY(%(ids)s) RETURNING counted
), change AS (
    SELECT word, count(*) AS documents FROM gone CROSS JOIN LATERAL unnest(tsvector_to_array(counted)) AS word
    GROUP BY word
), words AS (
    UPDATE memory_lexeme l SET documents = l.documents - c.documents FROM change c WHERE l.word = c.word
), totals AS (
    UPDATE memory_corpustotals
    SET documents = documents - (SELECT count(*) FROM gone WHERE counted IS NOT NULL)
)
SELECT count(*) FROM gone
"""
_DELETE_UNUSED_WORDS_SQL = "DELETE FROM memory_lexeme WHERE documents <= 0"


def documents_count() -> int:
    """Count up to ``DOCUMENTS_PER_ROUND`` new or changed documents, and return their number; 0 if another process is
    counting. Two queries in one transaction, so that a killed worker counts no document twice."""
    with transaction.atomic(), connection.cursor() as cursor:
        if not lock_try(Lock.COUNT_WORDS):
            return 0
        cursor.execute(_COUNT_SQL, {"limit": DOCUMENTS_PER_ROUND})
        return int(cursor.rowcount)


def documents_erase(ids: Sequence[uuid.UUID]) -> tuple[int, int]:
    """Delete the documents of topics, and every word that no live topic has any more; return both numbers. Three
    statements. Until the transaction ends, no other process can count words."""
    with connection.cursor() as cursor:
        lock_wait(Lock.COUNT_WORDS)
        cursor.execute(_UNCOUNT_SQL, {"ids": list(ids)})
        documents = int(cursor.fetchone()[0])
        cursor.execute(_DELETE_UNUSED_WORDS_SQL)
        return documents, int(cursor.rowcount)
