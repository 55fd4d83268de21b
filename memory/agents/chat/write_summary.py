"""Summary of what a conversation has written so far: counts and topics."""

from typing import cast

from memory.agents.chat.replies import WrittenOut, WroteOut
from memory.models import Conversation
from memory.models.labels import label_sql
from memory.models.statements import dicts_read

# The maximum number of topics that a page lists. All topics are counted.
MAX_NAMED = 12

# A topic that was restored after its undo does not count as undone.
_COUNTS_SQL = """
SELECT count(*) FILTER (WHERE w.what = 'topic') AS topics,
    count(*) FILTER (WHERE w.what = 'version') AS values,
    count(*) FILTER (WHERE w.what = 'field') AS fields,
    count(*) FILTER (WHERE w.what = 'link') AS links,
    count(*) FILTER (WHERE w.what = 'merged') AS merges,
    count(*) FILTER (WHERE w.undone_at IS NOT NULL
        AND (w.what <> 'topic' OR t.released_at IS NOT NULL OR t.merged_into_id IS NOT NULL)) AS taken_back,
    count(DISTINCT t.id) AS topic_count
FROM memory_conversationwrite w JOIN memory_topic t ON t.id = w.topic_id WHERE w.conversation_id = %(conversation)s
"""
_TOPICS_SQL = f"""
SELECT t.id AS topic_id, {label_sql()} AS title, bool_or(w.what = 'topic') AS made,
    t.released_at IS NOT NULL AS released, t.merged_into_id IS NOT NULL AS merged
FROM memory_conversationwrite w JOIN memory_topic t ON t.id = w.topic_id
WHERE w.conversation_id = %(conversation)s
GROUP BY t.id ORDER BY max(w.id) DESC LIMIT %(most)s
"""


def conversation_writes(conversation: Conversation, *, most: int = MAX_NAMED) -> WroteOut:
    """Return counts of what a conversation has written, and its latest topics. Erased topics are left out.

    Two queries.
    """
    (counts,) = dicts_read(_COUNTS_SQL, {"conversation": conversation.pk})
    items: list[WrittenOut] = dicts_read(_TOPICS_SQL, {"conversation": conversation.pk, "most": most})
    return cast(WroteOut, {**counts, "items": items})
