"""An Idempotency-Key with a message: sent again, it is answered with the reply it had, and nothing is done twice.

An ingest holds its key in the transaction of its effect. A turn takes minutes and many transactions, so its key is
committed with the turn (``key_take``), and gets the reply in the transaction that closes it (``reply_keep``). A turn
that came to no reply leaves its key as it is: whether anything was written tells what becomes of it (``reply_again``).
"""

import datetime as dt
import json
from collections.abc import Mapping
from typing import Any

from django.db import connection

from memory.access.principal import Principal
from memory.agents.chat.request import ChatRequest
from memory.agents.chat.turns import turn_ended, turns_lost_close
from memory.core.errors import Conflict
from memory.core.problem_codes import ProblemCode
from memory.ingest.idempotency import PURGED, StillInProgress, idempotency_claim, idempotency_replay, request_hash
from memory.models import ConversationTurn, ConversationWrite, IdempotencyRecord, StudyJob

# In place of the status, while there is no reply.
_PENDING = 0
AGAIN_SECONDS = 5

# A turn that a purge has emptied may repeat what was erased.
_STORE_REPLY_SQL = """
UPDATE memory_idempotencyrecord r
SET status = CASE WHEN t.erased THEN %(purged)s ELSE 200 END,
    request_hash = CASE WHEN t.erased THEN '' ELSE r.request_hash END,
    reply = CASE WHEN t.erased THEN 'null' ELSE %(reply)s::jsonb END
FROM memory_conversationturn t WHERE t.id = r.turn_id AND r.turn_id = %(turn)s AND r.status = 0
"""


class MessageAtWork(StillInProgress):
    """The message that came with this Idempotency-Key is still being answered (409); ``retry_after`` is in seconds."""

    retry_after = AGAIN_SECONDS


def reply_again(request: ChatRequest, *, key: str, principal: Principal, now: dt.datetime) -> dict[str, Any] | None:
    """Return the reply of an earlier request with this key, or nothing if this one is to be answered. At most eight
    queries.

    A turn that failed, or was lost, before anything was written frees the key. Raises ``MessageAtWork``,
    ``ValueRefused`` for a key of another request, and ``Conflict`` if the turn came to no reply although it wrote, or
    what it had to do with was erased.
    """
    digest = _digest(request)
    record = (
        IdempotencyRecord.objects.filter(actor=principal.identity, key=key, status=_PENDING, request_hash=digest)
        .select_related("turn")
        .first()
    )
    if record is not None and record.turn is not None:
        _came_to_nothing(record.turn, now=now)
        # Only as it was seen: somebody else may have freed it and begun anew.
        IdempotencyRecord.objects.filter(pk=record.pk, status=_PENDING).delete()
    replay = idempotency_replay(key, digest, principal=principal)
    return None if replay is None else dict(replay[1])


def key_take(request: ChatRequest, *, key: str, principal: Principal, now: dt.datetime) -> IdempotencyRecord:
    """Take the key for a turn that begins, in its transaction and before anything else is locked. At most three
    queries. Raises ``StillInProgress`` if another request was faster, and ``ValueRefused``."""
    if idempotency_claim(key, _digest(request), principal=principal, now=now) is not None:
        raise MessageAtWork("A request with this Idempotency-Key was answered a moment ago; send it again.")
    return IdempotencyRecord.objects.get(actor=principal.identity, key=key)


def key_bind(record: IdempotencyRecord, turn: ConversationTurn) -> None:
    """Tell which turn a key was taken for. One query."""
    record.turn, record.scope = turn, turn.scope
    record.save(update_fields=["turn", "scope"])


def reply_keep(turn: ConversationTurn, reply: Mapping[str, Any]) -> None:
    """Keep the reply of a turn that came with a key; not of one that a purge has emptied. One query.

    Belongs into the transaction that closes the turn, after its row is locked. Unlike the reply to an ingest it holds
    texts, so it is kept as the document it is, in which a purge finds them.
    """
    told = json.dumps(reply, ensure_ascii=False, default=_plain)
    with connection.cursor() as cursor:
        cursor.execute(_STORE_REPLY_SQL, {"turn": turn.pk, "reply": told, "purged": PURGED})


def _came_to_nothing(turn: ConversationTurn, *, now: dt.datetime) -> None:
    """Raise if a turn without a reply is still at work, or may not be repeated."""
    if turn_ended(turn, now=now) == ConversationTurn.Ended.WORKING:
        raise MessageAtWork("The message with this Idempotency-Key is still being answered; send it again later.")
    # What may be left of its process writes nothing more from here on.
    turns_lost_close(now=now, conversation=turn.conversation)
    if turn.erased:
        raise Conflict(
            "Something that the message with this Idempotency-Key had to do with has been erased since; to say it "
            "again, send it with another key.",
            code=ProblemCode.ERASED_MEANWHILE,
        )
    if _wrote(turn):
        raise Conflict(
            "The message with this Idempotency-Key was broken off after something was written, so it is not answered "
            f"again. Conversation {turn.conversation_id} tells what; to go on, send it with another key.",
            code=ProblemCode.MESSAGE_BROKEN_OFF,
        )


def _wrote(turn: ConversationTurn) -> bool:
    """Tell whether anything was written between a turn and the next one of its conversation. At most three queries.

    The log of the turn does not tell it: that is written after the write itself.
    """
    mine = {"conversation": turn.conversation_id}
    after = ConversationTurn.objects.filter(**mine, place=turn.place + 1).values_list("at", flat=True).first()
    until = after or dt.datetime.max.replace(tzinfo=dt.UTC)
    return (
        ConversationWrite.objects.filter(**mine, at__gte=turn.at, at__lt=until).exists()
        or StudyJob.objects.filter(**mine, created_at__gte=turn.at, created_at__lt=until).exists()
    )


def _digest(request: ChatRequest) -> str:
    return request_hash("chat", request.model_dump(mode="json", exclude_unset=True))


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, dt.datetime) else str(value)
