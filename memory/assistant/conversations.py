"""Conversations and their turns: begun, gone on with, written down while they happen, and read again.

A turn is a row from the moment it is asked, so that two at once cannot take one place, a page can watch it, and what a
killed process did is on record. It holds ids and short tellings; what tools returned is not kept.
"""

import datetime as dt
import json
import uuid
from collections.abc import Collection, Sequence

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Left

from memory.access.principal import Principal
from memory.assistant.telling import call_noted
from memory.domain.errors import Conflict, NotVisible
from memory.domain.identifiers import uuid7
from memory.forgetting.ground import path_q
from memory.models import Conversation, ConversationTurn
from memory.models.newest import newest_page
from memory.toolbox.tool import ToolCalled
from memory.toolbox.written import topics_vanished

Channel = Conversation.Channel
Ended = ConversationTurn.Ended

# A turn that works for so much longer than it may has lost its process.
_LOST_AFTER = dt.timedelta(seconds=60)
# So much of the first message names a conversation in a list.
_NAME = 120

# What was taken out of the row meanwhile stays out: nothing is written anew but the call.
_CALL = "UPDATE memory_conversationturn SET tool_log = tool_log || %(call)s::jsonb WHERE id = %(id)s"
_EMPTIED = """
UPDATE memory_conversationturn SET message = '', tool_log = (
    SELECT coalesce(jsonb_agg(e || '{"arguments": {}, "said": "", "topic_ids": []}' ORDER BY n), '[]')
    FROM jsonb_array_elements(tool_log) WITH ORDINALITY x (e, n)
) WHERE id = %(id)s
"""


def conversation_begin(*, scope: str, channel: str, principal: Principal, now: dt.datetime) -> Conversation:
    """Begin a conversation at ``scope``, which must be one that ``principal`` may work in. One query."""
    return Conversation.objects.create(
        id=uuid7(now_ms=int(now.timestamp() * 1000)), scope=scope, channel=channel, actor=principal.actor,
        identity=principal.identity, created_at=now, moved_at=now,
    )  # fmt: skip


def conversation_get(conversation_id: uuid.UUID, *, principal: Principal) -> Conversation:
    """Return a conversation that the caller leads, or oversees as an operator. One query.

    Raises ``NotVisible`` for any other: whoever may read a store may not therefore read what others talk about.
    """
    found = _visible(principal).filter(pk=conversation_id).first()
    if found is None:
        raise NotVisible(f"There is no conversation {conversation_id}.")
    return found


def conversation_led(conversation_id: uuid.UUID, *, principal: Principal) -> Conversation:
    """Return a conversation that the caller began and may go on with. One query. Raises ``NotVisible``."""
    found = conversation_get(conversation_id, principal=principal)
    if found.identity != principal.identity:
        raise NotVisible(
            f"There is no conversation {conversation_id} of this caller; whoever began it goes on with it."
        )
    return found


def conversations_list(
    *, principal: Principal, cursor: str | None, limit: int
) -> tuple[Sequence[Conversation], str | None]:
    """Return a page of conversations, the last moved first, and the cursor of the next. One query.

    Each has the beginning of its first message as ``name``. Raises ``ValueRefused`` for a foreign cursor.
    """
    first = ConversationTurn.objects.filter(conversation=OuterRef("pk"), place=1)
    rows = _visible(principal).annotate(name=Subquery(first.values(begin=Left("message", _NAME))))
    return newest_page(rows, by="moved_at", cursor=cursor, limit=limit)


def conversations_count(*, principal: Principal, at_most: int) -> int:
    """Return how many conversations there are, or one more than ``at_most``. One query."""
    return _visible(principal)[: at_most + 1].count()


def conversation_turns(
    conversation: Conversation, *, before: int | None = None, limit: int = 50
) -> list[ConversationTurn]:
    """Return the newest turns before a place, in their order, each with its study. One query."""
    rows = ConversationTurn.objects.filter(conversation=conversation).select_related("study")
    if before is not None:
        rows = rows.filter(place__lt=before)
    return list(rows.order_by("-place")[:limit])[::-1]


def conversation_messages(conversation: Conversation, *, limit: int = 30) -> list[dict[str, str]]:
    """Return what was said in the last turns, as the messages of a request. One query."""
    messages = []
    for turn in conversation_turns(conversation, limit=limit):
        for role, content in (("user", turn.message), ("assistant", turn.reply)):
            if content:
                messages.append({"role": role, "content": content})
    return messages


def turn_begin(conversation: Conversation, *, message: str, model: str, now: dt.datetime) -> ConversationTurn:
    """Write down that a message has come. One turn at a time: its place is taken with the conversation locked.

    A turn whose process was lost is closed on the way. Five queries. Raises ``Conflict`` while another is at work.
    """
    with transaction.atomic():
        # Not for its key, so that whatever refers to the conversation can be written meanwhile.
        held = Conversation.objects.select_for_update(no_key=True).get(pk=conversation.pk)
        last = ConversationTurn.objects.filter(conversation=held, place=held.turns).only("id", "at", "ended").first()
        if last is not None and last.ended == Ended.WORKING:
            if last.at > now - dt.timedelta(seconds=settings.MEMSTATE_CHAT_TIMEOUT_SECONDS) - _LOST_AFTER:
                raise Conflict("The assistant is still at the last message of this conversation; wait for its reply.")
            ConversationTurn.objects.filter(pk=last.pk).update(ended=Ended.LOST)
        turn = ConversationTurn.objects.create(
            conversation=held, place=held.turns + 1, scope=held.scope, at=now, message=message, model=model,
            ended=Ended.WORKING,
        )  # fmt: skip
        Conversation.objects.filter(pk=held.pk).update(turns=F("turns") + 1, moved_at=now)
    return turn


def turn_intend(turn: ConversationTurn, *, intent: str, source: str) -> None:
    """Write down what the message is taken to want. One query."""
    turn.intent, turn.intent_source = intent, source
    turn.save(update_fields=["intent", "intent_source"])


def turn_call(turn: ConversationTurn, called: ToolCalled, *, heard: Collection[uuid.UUID]) -> None:
    """Add a call to a turn. Two queries in a transaction.

    ``heard`` are the topics that the turn has had to do with, this call included. If one was erased meanwhile, nothing
    is kept of the call but that it was made.
    """
    noted = call_noted(called)
    with transaction.atomic(), connection.cursor() as cursor:
        if topics_vanished(heard):
            noted |= {"arguments": {}, "said": "", "topic_ids": []}
        cursor.execute(_CALL, {"call": json.dumps([noted], ensure_ascii=False), "id": turn.pk})


def turn_end(
    turn: ConversationTurn, *, reply: str, ended: str, rounds: int, log: Sequence[ToolCalled], now: dt.datetime,
    study_id: uuid.UUID | None = None,
) -> None:  # fmt: skip
    """Close a turn, once, with the reply. Four queries in a transaction.

    If a topic of its calls was erased meanwhile, neither the reply nor the message is kept: they may repeat it.
    """
    touched = {topic_id for called in log for topic_id in called.topic_ids}
    with transaction.atomic(), connection.cursor() as cursor:
        if topics_vanished(touched):
            cursor.execute(_EMPTIED, {"id": turn.pk})
            reply = ""
        open_turns = ConversationTurn.objects.filter(pk=turn.pk, ended=Ended.WORKING)
        open_turns.update(reply=reply, ended=ended, rounds=rounds, study=study_id)
        Conversation.objects.filter(pk=turn.conversation_id).update(moved_at=now)
    turn.ended = ended


def _visible(principal: Principal) -> QuerySet[Conversation]:
    rows = Conversation.objects.filter(path_q(principal.scope))
    return rows if principal.role == "operator" else rows.filter(identity=principal.identity)
