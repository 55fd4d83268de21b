"""Conversations and their turns as programs are told of them."""

from typing import Any

from memory.agents.chat.conversations import conversation_name
from memory.agents.chat.write_summary import ConversationWrites
from memory.agents.study.progress import study_as_json
from memory.models import Conversation, ConversationTurn

# What of a call is told; which topics were only to be seen in a result is for purges.
_CALL = ("tool", "arguments", "ok", "ms", "topic_ids", "said")


def conversation_as_json(conversation: Conversation) -> dict[str, Any]:
    """Return a conversation as lists tell it. No query."""
    return {
        "conversation_id": conversation.pk,
        "name": conversation_name(conversation),
        "scope": conversation.scope,
        "channel": conversation.channel,
        "actor": conversation.actor,
        "turns": conversation.turns,
        "created_at": conversation.created_at,
        "moved_at": conversation.moved_at,
        "undone_at": conversation.undone_at,
        "undone_by": conversation.undone_by or None,
    }


def turn_as_json(turn: ConversationTurn) -> dict[str, Any]:
    """Return a message and what became of it, as ``conversation_turns`` has read it. No query."""
    return {
        "place": turn.place,
        "at": turn.at,
        "message": turn.message,
        "reply": turn.reply,
        "intent": turn.intent or None,
        "intent_source": turn.intent_source or None,
        "model": turn.model,
        "rounds": turn.rounds,
        "ended": turn.ended,
        "erased": turn.erased,
        "tool_log": [{name: call.get(name) for name in _CALL} for call in turn.tool_log],
        "study": study_as_json(turn.study) if turn.study else None,
    }


def writes_as_json(wrote: ConversationWrites) -> dict[str, Any]:
    """Return what a conversation has written: how much of each sort, and its topics, the latest first. No query."""
    count = wrote.counts.get
    return {
        "topics": count("topic", 0),
        "values": count("version", 0),
        "fields": count("field", 0),
        "links": count("link", 0),
        "merges": count("merged", 0),
        "taken_back": wrote.taken_back,
        "topic_count": wrote.topic_count,
        "items": [
            {
                "topic_id": each.topic_id,
                "title": each.title,
                "made": each.made,
                "released": each.released,
                "merged": each.merged,
            }
            for each in wrote.topics
        ],
    }
