"""Conversations: start, continue and read them."""

import datetime as dt
import uuid
from collections.abc import Sequence

from django.db.models import OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Left

from memory.access.principal import Principal
from memory.agents.chat.turns import turn_ended
from memory.core.cursors import cursor_as_number
from memory.core.errors import NotVisible
from memory.core.ids import uuid7_at
from memory.models import Conversation, ConversationTurn, ConversationWrite
from memory.models.newest_first import newest_page
from memory.predicates.binding import path_q

Channel = Conversation.Channel

# The name of a conversation is the beginning of its first message, in at most this number of characters.
_NAME = 120


def conversation_begin(*, scope: str, channel: str, principal: Principal, now: dt.datetime) -> Conversation:
    """Start a conversation in ``scope``, to which ``principal`` must have access (not checked here). One query."""
    return Conversation.objects.create(
        id=uuid7_at(now),
        scope=scope,
        channel=channel,
        actor=principal.actor,
        identity=principal.identity,
        created_at=now,
        moved_at=now,
    )


def conversation_get(conversation_id: uuid.UUID, *, principal: Principal) -> Conversation:
    """Return a conversation with its ``name``. One query.

    Raises ``NotVisible`` unless the caller has access to its scope and either started it or is an operator.
    """
    found = _named(_visible(principal)).filter(pk=conversation_id).first()
    if found is None:
        raise NotVisible(f"Conversation {conversation_id} does not exist.")
    return found


def conversation_led(conversation_id: uuid.UUID, *, principal: Principal) -> Conversation:
    """Return a conversation that the caller started and so may continue. One query. Raises ``NotVisible``."""
    found = conversation_get(conversation_id, principal=principal)
    if found.identity != principal.identity:
        raise NotVisible(
            f"Conversation {conversation_id} was started by another caller. Only that caller can continue it."
        )
    return found


def conversations_list(
    *, principal: Principal, cursor: str | None, limit: int
) -> tuple[Sequence[Conversation], str | None]:
    """Return a page of conversations, most recently active first, and the cursor of the next page.

    Each conversation has its ``name``. One query. Raises ``ValueRefused`` for an invalid cursor.
    """
    return newest_page(_named(_visible(principal)), by="moved_at", cursor=cursor, limit=limit)


def conversations_behind(topic_id: uuid.UUID, *, principal: Principal, most: int) -> Sequence[Conversation]:
    """Return at most ``most`` conversations that wrote to a topic, most recently active first. One query.

    Each conversation has its ``name``.
    """
    wrote = ConversationWrite.objects.filter(topic=topic_id).values("conversation")
    return list(_named(_visible(principal).filter(pk__in=wrote)).order_by("-moved_at", "-id")[:most])


def conversations_count(*, principal: Principal, at_most: int) -> int:
    """Return the number of conversations that the caller may see, at most ``at_most`` + 1. One query."""
    return _visible(principal)[: at_most + 1].count()


def conversation_turns(
    conversation: Conversation, *, now: dt.datetime, before: int | None = None, limit: int = 50
) -> list[ConversationTurn]:
    """Return the last ``limit`` turns, oldest first, each with its study. One query.

    With ``before``, only turns with a lower ``place`` are returned. A turn whose process died is returned as lost, even
    if it is not closed yet.
    """
    rows = ConversationTurn.objects.filter(conversation=conversation).select_related("study").defer("study__steps")
    if before is not None:
        rows = rows.filter(place__lt=before)
    turns = list(rows.order_by("-place")[:limit])[::-1]
    for turn in turns:
        turn.ended = turn_ended(turn, now=now)
    return turns


def conversation_name(conversation: Conversation) -> str:
    """Return the beginning of the first message of a conversation; empty if the message was erased.

    ``conversation`` must come from a function of this module that adds ``name``.
    """
    return str(conversation.name)  # type: ignore[attr-defined] # an annotation


def conversation_page(
    conversation: Conversation, *, cursor: str | None, limit: int, now: dt.datetime
) -> tuple[list[ConversationTurn], str | None]:
    """Return a page of turns, newest first, and the cursor of the next page. One query.

    Raises ``ValueRefused`` for an invalid cursor.
    """
    before = None if cursor is None else cursor_as_number(cursor)
    turns = conversation_turns(conversation, now=now, before=before, limit=limit)[::-1]
    return turns, str(turns[-1].place) if turns and turns[-1].place > 1 else None


def conversation_messages(
    conversation: Conversation, *, now: dt.datetime, before: int | None = None, limit: int = 30
) -> list[dict[str, str]]:
    """Return the messages and replies of the last ``limit`` turns, as the ``messages`` of a chat request. One query.

    With ``before``, only turns with a lower ``place`` are used.
    """
    turns = conversation_turns(conversation, now=now, before=before, limit=limit)
    messages = [each for turn in turns for each in (("user", turn.message), ("assistant", turn.reply))]
    return [{"role": role, "content": content} for role, content in messages if content]


def _named(rows: QuerySet[Conversation]) -> QuerySet[Conversation]:
    first = ConversationTurn.objects.filter(conversation=OuterRef("pk"), place=1)
    return rows.annotate(name=Coalesce(Subquery(first.values(begin=Left("message", _NAME))), Value("")))


def _visible(principal: Principal) -> QuerySet[Conversation]:
    rows = Conversation.objects.filter(path_q(principal.scope))
    return rows if principal.role == "operator" else rows.filter(identity=principal.identity)
