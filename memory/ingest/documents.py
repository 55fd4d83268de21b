"""Writes the documents that the search by words reads, and makes outdated ones again."""

import uuid
from collections.abc import Sequence

from django.conf import settings
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from memory.ingest.load import known_load

DOCUMENTS_PER_ROUND = 200

# The words of a document are counted later. An existing document keeps its scope and state.
_WRITE_SQL = """
WITH documents AS (
    SELECT topic_id, scope_id, live, to_tsvector(%(config)s::regconfig, text) AS document
    FROM unnest(%(ids)s::uuid[], %(scopes)s::bigint[], %(live)s::bool[], %(texts)s::text[])
         AS d (topic_id, scope_id, live, text)
)
INSERT INTO memory_topicdocument (topic_id, scope_id, live, document, length, uncounted, outdated)
SELECT topic_id, scope_id, live, document,
       (SELECT coalesce(sum(cardinality(positions)), 0) FROM unnest(document)), true, false
FROM documents
ON CONFLICT (topic_id) DO UPDATE
SET document = excluded.document, length = excluded.length, uncounted = true, outdated = false
"""

# The documents stay locked until the commit. A concurrent writer of a topic waits, and then replaces the document. A
# document that a writer has locked is left for the next round, because waiting for two writers could deadlock.
_OUTDATED_SQL = """
SELECT topic_id, scope_id, live FROM memory_topicdocument WHERE outdated
ORDER BY topic_id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
"""


def documents_write(
    cursor: CursorWrapper, ids: Sequence[uuid.UUID], scopes: Sequence[int], live: Sequence[bool], texts: Sequence[str]
) -> None:
    """Write the document of each topic. ``texts`` are the results of ``TopicText.document``. One statement."""
    cursor.execute(
        _WRITE_SQL,
        {
            "config": settings.MEMSTATE_TEXT_SEARCH_CONFIG,
            "ids": list(ids),
            "scopes": list(scopes),
            "live": list(live),
            "texts": list(texts),
        },
    )


def documents_remake() -> int:
    """Make up to ``DOCUMENTS_PER_ROUND`` outdated documents again, and return their number. At most five queries in one
    transaction. May be stopped, repeated, and run by several processes at once."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_OUTDATED_SQL, {"limit": DOCUMENTS_PER_ROUND})
        rows = cursor.fetchall()
        if rows:
            ids, scopes, live = zip(*rows, strict=True)
            topics = known_load(changed=ids, read=[], lock=False).topics
            documents_write(cursor, ids, scopes, live, [topics[each].text().document() for each in ids])
        return len(rows)
