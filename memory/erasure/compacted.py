"""Rewrites compacted topics. The title and summary of a compacted topic are made from other topics, which are called
its sources. Both must change if a source is purged."""

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Any

from django.db.backends.utils import CursorWrapper

from memory.core.text import TopicText
from memory.embedding import embedder_get
from memory.ingest.compaction import PROVENANCE, topics_text
from memory.ingest.load import known_load
from memory.ingest.plan import WritePlan
from memory.ingest.write import plan_write
from memory.models.links import COMPACTED_FROM
from memory.recall.corpus import documents_erase

# The sources of compacted topics. They are read from the links and from the journal, because a merge moves links to the
# surviving topic. A link counts only if it leads from a topic with the provenance of a compaction, so that users cannot
# cause a rewrite by adding a link.
_MADE_OF = """
SELECT l.source_id AS made, l.target_id AS source FROM memory_link l
JOIN memory_topic t ON t.id = l.source_id AND t.provenance = %(provenance)s
WHERE l.kind = %(kind)s AND {link}
UNION
SELECT (a.changes->>'into')::uuid, a.topic_id FROM memory_forgetaction a
WHERE a.action = 'archived' AND a.changes->>'into' ~ '^[0-9a-f-]{{36}}$' AND {action}
"""
_MADE_SQL = f"""
WITH RECURSIVE made AS (
    SELECT unnest(%(ids)s::uuid[]) AS id
    UNION
    SELECT m.made FROM made CROSS JOIN LATERAL (
        {_MADE_OF.format(link="l.target_id = made.id", action="a.topic_id = made.id")}
    ) m
)
SELECT id FROM made JOIN memory_topic USING (id) WHERE id <> ALL(%(ids)s::uuid[]) ORDER BY id
"""
_SOURCES_SQL = f"""
SELECT made, source FROM (
    {_MADE_OF.format(link="l.source_id = ANY(%(ids)s::uuid[])", action="a.changes->>'into' = ANY(%(ids)s::text[])")}
) x ORDER BY made, source
"""
_TEXTS_SQL = """
SELECT title FROM memory_topic WHERE id = ANY(%(ids)s) UNION SELECT summary FROM memory_topic WHERE id = ANY(%(ids)s)
UNION SELECT e.before->>x.name FROM memory_topicedit e CROSS JOIN (VALUES ('title'), ('summary')) x (name)
WHERE e.topic_id = ANY(%(ids)s) AND e.before ? x.name
"""
_WRITE_SQL = """
WITH edits AS (
    UPDATE memory_topicedit SET before = before - ARRAY['title', 'summary']
    WHERE topic_id = %(id)s AND before ?| ARRAY['title', 'summary']
)
UPDATE memory_topic SET title = %(title)s, summary = %(summary)s, updated_at = %(now)s WHERE id = %(id)s
"""
# Differences of pairs are emptied, because they quote words of the old text.
_PAIRS_SQL = """
UPDATE memory_duplicatepair SET differences = '[]' WHERE one_id = ANY(%(ids)s) OR other_id = ANY(%(ids)s)
"""
_JOURNAL_SQL = """
WITH events (at, actor, action, topic_id, scope, reason, before, after) AS MATERIALIZED (
    SELECT %(now)s, %(actor)s, 'summary_erased', t.id, s.path, %(reason)s, '{}'::jsonb,
           jsonb_build_object('number', %(number)s::bigint)
    FROM memory_topic t JOIN memory_scope s ON s.id = t.scope_id WHERE t.id = ANY(%(ids)s) ORDER BY t.id
)
INSERT INTO memory_auditevent (at, actor, action, topic_id, scope, reason, before, after)
SELECT * FROM events
"""


def compacted_of(cursor: CursorWrapper, ids: Sequence[uuid.UUID]) -> list[uuid.UUID]:
    """Return the topics that were compacted from the topics ``ids``, directly or in several steps. One query."""
    cursor.execute(_MADE_SQL, {"ids": list(ids), "kind": COMPACTED_FROM, "provenance": PROVENANCE})
    return [row[0] for row in cursor.fetchall()]


def compacted_texts(cursor: CursorWrapper, ids: Sequence[uuid.UUID]) -> set[str]:
    """Return the present and former titles and summaries of the topics ``ids``. One query."""
    cursor.execute(_TEXTS_SQL, {"ids": list(ids)})
    return {row[0] for row in cursor.fetchall() if row[0]}


def compacted_rewrite(cursor: CursorWrapper, ids: Sequence[uuid.UUID], *, now: dt.datetime) -> None:
    """Erase the titles and summaries of compacted topics. Make new ones from the remaining sources, without a model.

    The topics must be locked, and the purged sources must already be deleted. About a dozen statements, plus one for
    each topic.
    """
    if not ids:
        return
    cursor.execute(_SOURCES_SQL, {"ids": [str(each) for each in ids], "kind": COMPACTED_FROM, "provenance": PROVENANCE})
    sources: dict[uuid.UUID, list[uuid.UUID]] = {each: [] for each in ids}
    for made, source in cursor.fetchall():
        sources[made].append(source)
    known = known_load(changed={*ids, *(each for found in sources.values() for each in found)}, read=[], lock=False)
    topics = known.topics
    # A compacted topic that is the source of another one is rewritten first.
    for made in sorted(ids, key=lambda each: any(source in sources for source in sources[each])):
        rest = [topics[source] for source in sources[made] if source in topics]
        leaves = sum(max(1, sum(kind == COMPACTED_FROM for _target, kind in source.links)) for source in rest)
        title, summary = topics_text(rest, leaves=leaves, within=None) if rest else ("", "")
        topics[made].title, topics[made].summary = title, summary
        wanted: dict[str, Any] = {"id": made, "title": title, "summary": summary, "now": now}
        cursor.execute(_WRITE_SQL, wanted)
    cursor.execute(_PAIRS_SQL, {"ids": list(ids)})
    documents_erase(ids)
    texts: dict[uuid.UUID, TopicText] = {each: topics[each].text() for each in ids}
    plan = WritePlan(texts={each: topics[each] for each in ids}, scopes={topics[each].scope for each in ids})
    plan_write(plan, texts=texts, model=embedder_get().model_name, vectors={})


def compacted_journal(
    cursor: CursorWrapper, ids: Sequence[uuid.UUID], *, number: int, actor: str, reason: str, now: dt.datetime
) -> None:
    """Write an audit event for each rewritten topic. One statement."""
    if ids:
        cursor.execute(_JOURNAL_SQL, {"ids": list(ids), "number": number, "actor": actor, "reason": reason, "now": now})
