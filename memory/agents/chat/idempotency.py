"""The Idempotency-Key of a message: a repeated message gets the stored reply, and nothing is done twice.

A turn takes many transactions. So the key is stored when the turn begins, and the reply is stored when the turn ends.
If a turn ends without a reply, the key can be used again only if the turn has written nothing.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Any

from django.db import connection

from memory.access.principal import Principal
from memory.agents.chat.request import ChatRequest
from memory.agents.chat.turns import turn_ended, turns_lost_close
from memory.core.errors import Conflict
from memory.core.problem_codes import ProblemCode
from memory.core.replies import json_text
from memory.ingest.idempotency import PURGED, StillInProgress, idempotency_claim, idempotency_replay, request_hash
from memory.models import ConversationTurn, ConversationWrite, IdempotencyRecord, StudyJob

# The status of a record without a reply.
_PENDING = 0

# After a purge has emptied the turn, the reply may repeat erased text, so it is not stored.
_STORE_REPLY_SQL = """
UPDATE memory_idempotencyrecord r
SET status = CASE WHEN t.erased THEN %(purged)s ELSE 200 END,
    request_hash = CASE WHEN t.erased THEN '' ELSE r.request_hash END,
    reply = CASE WHEN t.erased THEN 'null' ELSE %(reply)s::jsonb END
FROM memory_conversationturn t WHERE t.id = r.turn_id AND r.turn_id = %(turn)s AND r.status = 0
"""


class MessageAtWork(StillInProgress):
    """The message with this Idempotency-Key is still being answered (409); ``retry_after`` is in seconds."""

    retry_after = 5


def reply_again(request: ChatRequest, *, key: str, principal: Principal, now: dt.datetime) -> dict[str, Any] | None:
    """Return the stored reply to an earlier request with this key; None if the request must be processed.

    At most eight queries. Raises ``MessageAtWork``, ``ValueRefused`` if the key belongs to another request, and
    ``Conflict`` if the earlier turn was interrupted after a write or used topics that have since been erased.
    """
    digest = _digest(request)
    record = (
        IdempotencyRecord.objects.filter(actor=principal.identity, key=key, status=_PENDING, request_hash=digest)
        .select_related("turn")
        .first()
    )
    if record is not None and record.turn is not None:
        _repeat_check(record.turn, now=now)
        # Compare ``status`` again, because another process may have released the key and started a new turn.
        IdempotencyRecord.objects.filter(pk=record.pk, status=_PENDING).delete()
    replay = idempotency_replay(key, digest, principal=principal)
    return None if replay is None else dict(replay[1])


def key_take(request: ChatRequest, *, key: str, principal: Principal, now: dt.datetime) -> None:
    """Claim the key for a new turn. At most two queries.

    Must be called in the transaction that creates the turn, before any other lock is taken. Raises ``StillInProgress``
    if another request has claimed the key first, and ``ValueRefused`` if the key belongs to another request.
    """
    if idempotency_claim(key, _digest(request), principal=principal, now=now) is not None:
        raise MessageAtWork("A request with this Idempotency-Key has just been answered. Send it again.")


def key_bind(turn: ConversationTurn, *, key: str, principal: Principal) -> None:
    """Store which turn has claimed the key. One query."""
    IdempotencyRecord.objects.filter(actor=principal.identity, key=key).update(turn=turn, scope=turn.scope)


def reply_keep(turn: ConversationTurn, reply: Mapping[str, Any]) -> None:
    """Store the reply of a turn under its Idempotency-Key, unless a purge has emptied the turn. One query.

    Must be called in the transaction that closes the turn, after the row of the turn is locked.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STORE_REPLY_SQL, {"turn": turn.pk, "reply": json_text(reply), "purged": PURGED})


def _repeat_check(turn: ConversationTurn, *, now: dt.datetime) -> None:
    """Raise an error if a turn is still running, or if its message must not be answered a second time."""
    if turn_ended(turn, now=now) == ConversationTurn.Ended.WORKING:
        raise MessageAtWork("The message with this Idempotency-Key is still being answered. Send it again later.")
    # A thread that is still answering the message cannot write after its turn is closed.
    turns_lost_close(now=now, conversation=turn.conversation)
    if turn.erased:
        raise Conflict(
            "Memories that the message with this Idempotency-Key used have been erased. To repeat the message, send it "
            "with another key.",
            code=ProblemCode.ERASED_MEANWHILE,
        )
    if _wrote(turn):
        raise Conflict(
            "The message with this Idempotency-Key was interrupted after it had written something, so it is not "
            f"answered again. See conversation {turn.conversation_id} for what was written. To continue, use another "
            "key."
        )


def _wrote(turn: ConversationTurn) -> bool:
    """Return whether the conversation wrote anything between the start of a turn and the start of the next one.

    The table of writes is read, because ``tool_log`` may lack the last write of the turn.
    """
    of_conversation = {"conversation": turn.conversation_id}
    following = ConversationTurn.objects.filter(**of_conversation, place=turn.place + 1)
    until = following.values_list("at", flat=True).first() or dt.datetime.max.replace(tzinfo=dt.UTC)
    return (
        ConversationWrite.objects.filter(**of_conversation, at__gte=turn.at, at__lt=until).exists()
        or StudyJob.objects.filter(**of_conversation, created_at__gte=turn.at, created_at__lt=until).exists()
    )


def _digest(request: ChatRequest) -> str:
    return request_hash("chat", request.model_dump(mode="json", exclude_unset=True))
