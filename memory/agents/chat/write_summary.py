"""What a conversation has written so far, in numbers and topic by topic, for those who look at it."""

import uuid
from dataclasses import dataclass
from typing import Any

from django.db import connection

from memory.models import Conversation

# So many topics are named on a page; all are counted.
MOST_NAMED = 12

# A topic that was brought back since is there again.
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
    """A topic that a conversation wrote to: ``made`` if it is its own."""

    topic_id: uuid.UUID
    title: str
    made: bool
    released: bool
    merged: bool


@dataclass(frozen=True, slots=True)
class ConversationWrites:
    """What a conversation wrote: how much of each sort of ``ConversationWrite``, how much of it was taken back, and the
    topics, the latest first; ``topic_count`` counts those that are not named too."""

    counts: dict[str, int]
    taken_back: int
    topics: list[TopicWritten]
    topic_count: int

    @property
    def total(self) -> int:
        """How much in all."""
        return sum(self.counts.values())

    @property
    def more(self) -> int:
        """How many topics are not named."""
        return self.topic_count - len(self.topics)

    @property
    def values(self) -> int:
        """Values, of fields that were there and of new ones."""
        return self.counts.get("field", 0) + self.counts.get("version", 0)

    @property
    def all_undone(self) -> bool:
        """Whether nothing is left of it."""
        return self.taken_back == self.total


def conversation_writes(conversation: Conversation, *, most: int = MOST_NAMED) -> ConversationWrites:
    """Return what a conversation has written, but for what was erased since, with ``most`` topics. Two queries."""
    wanted: dict[str, Any] = {"conversation": conversation.pk, "most": most}
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS_SQL, wanted)
        counted = cursor.fetchall()
        cursor.execute(_TOPICS_SQL, wanted)
        rows = cursor.fetchall()
    return ConversationWrites(
        {what: count for what, count, _undone in counted},
        sum(undone for _what, _count, undone in counted),
        [TopicWritten(*row[:5]) for row in rows],
        rows[0][5] if rows else 0,
    )
