"""Summary of what a conversation has written so far: counts and topics."""

import uuid
from dataclasses import dataclass
from typing import Any

from django.db import connection

from memory.models import Conversation

# The most topics that a page lists. All topics are counted.
MOST_NAMED = 12

# A topic that was restored after its undo does not count as undone.
_COUNTS_SQL = """
SELECT w.what, count(*), count(*) FILTER (
    WHERE w.undone_at IS NOT NULL AND (w.what <> 'topic' OR t.released_at IS NOT NULL OR t.merged_into_id IS NOT NULL)
)
FROM memory_conversationwrite w JOIN memory_topic t ON t.id = w.topic_id
WHERE w.conversation_id = %(conversation)s GROUP BY w.what
"""
_TOPICS_SQL = """
SELECT t.id, t.title, bool_or(w.what = 'topic'), t.released_at IS NOT NULL, t.merged_into_id IS NOT NULL,
       count(*) OVER ()
FROM memory_conversationwrite w JOIN memory_topic t ON t.id = w.topic_id
WHERE w.conversation_id = %(conversation)s
GROUP BY t.id ORDER BY max(w.id) DESC LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class TopicWritten:
    """A topic to which a conversation wrote. ``made`` means that the conversation created it."""

    topic_id: uuid.UUID
    title: str
    made: bool
    released: bool
    merged: bool


@dataclass(frozen=True, slots=True)
class ConversationWrites:
    """What a conversation wrote: counts by type of ``ConversationWrite``, how many of these writes were undone, and the
    topics, the latest first. ``topic_count`` also counts topics that are not listed."""

    counts: dict[str, int]
    taken_back: int
    topics: list[TopicWritten]
    topic_count: int

    @property
    def total(self) -> int:
        """The number of all writes."""
        return sum(self.counts.values())

    @property
    def more(self) -> int:
        """How many topics are not listed."""
        return self.topic_count - len(self.topics)

    @property
    def values(self) -> int:
        """The number of values, of existing and new fields."""
        return self.counts.get("field", 0) + self.counts.get("version", 0)


def conversation_writes(conversation: Conversation, *, most: int = MOST_NAMED) -> ConversationWrites:
    """Return what a conversation has written, except what was erased, with at most ``most`` topics. Two queries."""
    parameters: dict[str, Any] = {"conversation": conversation.pk, "most": most}
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS_SQL, parameters)
        counted = cursor.fetchall()
        cursor.execute(_TOPICS_SQL, parameters)
        rows = cursor.fetchall()
    return ConversationWrites(
        {what: count for what, count, _undone in counted},
        sum(undone for _what, _count, undone in counted),
        [TopicWritten(*row[:5]) for row in rows],
        rows[0][5] if rows else 0,
    )
