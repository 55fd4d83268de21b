"""Turns of a conversation: begun, written down while they happen, closed.

A turn is a row from the moment it is asked, so that two at once cannot take one place, a page can watch it, and what a
killed process did is on record. It holds ids and short tellings; what tools returned is not kept.

A purge marks each turn that may repeat what it erased (``erased``). From then on nothing but the fact of a call is kept
of the turn, and ``turn_check`` throws away what it would still write.
"""

import datetime as dt
import json
import uuid
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.db.models import Case, F, Q, Value, When

from memory.agents.chat.tool_call_text import call_record
from memory.agents.tools.tool import ToolCalled
from memory.agents.tools.write_log import topics_vanished
from memory.core.errors import Conflict
from memory.core.problem_codes import ProblemCode
from memory.models import Conversation, ConversationTurn
from memory.models.locks import lock_missed

Ended = ConversationTurn.Ended

# A turn that works for so much longer than it may has lost its process.
_LOST_AFTER = dt.timedelta(seconds=60)
AT_WORK = "The assistant is still at the last message of this conversation; wait for its reply."
# What is kept of a call that had to do with something erased: that it was made.
_ERASED_CALL = {"arguments": {}, "said": "", "topic_ids": [], "seen": []}

_APPEND_CALLS_SQL = """
UPDATE memory_conversationturn
SET tool_log = tool_log || CASE WHEN erased THEN %(bare)s::jsonb ELSE %(calls)s::jsonb END WHERE id = %(id)s
"""
_ERASE_TURN_SQL = """
UPDATE memory_conversationturn SET erased = true, message = '', reply = '', tool_log = (
    SELECT coalesce(jsonb_agg(e || %(bare)s::jsonb ORDER BY n), '[]')
    FROM jsonb_array_elements(tool_log) WITH ORDINALITY x (e, n)
) WHERE id = %(id)s
"""
# A purge that is at it has the row, and is waited for.
_LOCK_TURN_SQL = "SELECT ended, erased FROM memory_conversationturn WHERE id = %(id)s FOR SHARE"
_EARLIER_TOPICS_SQL = """
SELECT DISTINCT i FROM memory_conversationturn t, jsonb_array_elements(t.tool_log) e,
       jsonb_array_elements_text(coalesce(e->'topic_ids', '[]') || coalesce(e->'seen', '[]')) i
WHERE t.conversation_id = %(conversation)s AND t.place < %(place)s
"""


def turn_begin(conversation: Conversation, *, message: str, model: str, now: dt.datetime) -> ConversationTurn:
    """Write down that a message has come. One turn at a time: its place is taken with the conversation locked.

    A turn whose process was lost is closed on the way. Six queries. Raises ``Conflict`` while another is at work.
    """
    with transaction.atomic():
        held = turns_hold(conversation.pk, now=now)
        turn = ConversationTurn.objects.create(
            conversation=held,
            place=held.turns + 1,
            scope=held.scope,
            at=now,
            message=message,
            model=model,
            ended=Ended.WORKING,
        )
        Conversation.objects.filter(pk=held.pk).update(turns=F("turns") + 1, moved_at=now)
    return turn


def turns_hold(conversation_id: uuid.UUID, *, now: dt.datetime) -> Conversation:
    """Keep turns from beginning until the transaction ends, and return the conversation. Three queries.

    A turn whose process was lost is closed. Raises ``Conflict`` while one is at work.
    """
    # Not for its key, so that whatever refers to the conversation can be written meanwhile.
    held = Conversation.objects.select_for_update(no_key=True).get(pk=conversation_id)
    turns_lost_close(now=now, conversation=held)
    if turn_at_work(held, now=now):
        raise Conflict(AT_WORK, code=ProblemCode.ASSISTANT_AT_WORK)
    return held


def turn_at_work(conversation: Conversation, *, now: dt.datetime) -> bool:
    """Tell whether the assistant is at a message of a conversation. One query."""
    rows = ConversationTurn.objects.filter(conversation=conversation, place=conversation.turns, ended=Ended.WORKING)
    return rows.exclude(_lost(now)).exists()


def turns_lost_close(*, now: dt.datetime, conversation: Conversation | None = None) -> int:
    """Close the turns, of one conversation or of all, whose process was lost, and return how many. One query."""
    rows = ConversationTurn.objects.filter(_lost(now))
    return (rows if conversation is None else rows.filter(conversation=conversation)).update(ended=Ended.LOST)


def turn_ended(turn: ConversationTurn, *, now: dt.datetime) -> str:
    """Return how a turn ended, also if it was lost and nobody has closed it yet. No query."""
    return Ended.LOST if turn.ended == Ended.WORKING and turn.at < _oldest(now) else turn.ended


def turn_intend(turn: ConversationTurn, *, intent: str, source: str) -> None:
    """Write down what the message is taken to want. One query."""
    turn.intent, turn.intent_source = intent, source
    turn.save(update_fields=["intent", "intent_source"])


def turn_recall(turn: ConversationTurn) -> None:
    """Wait for purges that are at something which earlier turns have read, so that what these say now may be repeated:
    whoever purges it later finds this turn. Two queries."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_EARLIER_TOPICS_SQL, {"conversation": turn.conversation_id, "place": turn.place})
        topics_vanished({uuid.UUID(row[0]) for row in cursor.fetchall()})


def turn_check(turn: ConversationTurn) -> None:
    """Keep a purge from emptying a turn until the transaction ends. One query.

    Belongs at the end of the transaction in which the turn writes something, when all topics of it are locked, as a
    purge locks them before turns. Raises ``Conflict`` if the turn was emptied before, or is closed.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_TURN_SQL, {"id": turn.pk})
        ended, erased = cursor.fetchone()
    if erased:
        raise Conflict(
            "A topic that was read in this conversation has been erased, so nothing was written.",
            code=ProblemCode.ERASED_MEANWHILE,
        )
    if ended != Ended.WORKING:
        raise Conflict(
            "The answer to this message took too long and was stopped, so nothing was written.",
            code=ProblemCode.MESSAGE_GIVEN_UP,
        )


class Notes:
    """The calls of a turn, written down as they are made. What cannot be noted at once, as others hold the rows, is
    noted with the next call or at the end."""

    def __init__(self, turn: ConversationTurn) -> None:
        self.turn = turn
        self._waiting: list[ToolCalled] = []

    def heard(self) -> set[uuid.UUID]:
        """Return the topics of calls that are not on record yet: no purge finds the turn by these."""
        return {each for called in self._waiting for each in (*called.topic_ids, *called.seen)}

    def call(self, called: ToolCalled) -> None:
        """Note a call. Two queries in a transaction. Raises what the database raises, but for a lock."""
        self._waiting.append(called)
        try:
            with transaction.atomic():
                self._write()
        except OperationalError as problem:
            if not lock_missed(problem):
                raise
        else:
            self._waiting.clear()

    def end(
        self,
        *,
        reply: str,
        ended: str,
        rounds: int,
        now: dt.datetime,
        study_id: uuid.UUID | None = None,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Close the turn, once, with the reply. Two queries in a transaction, four with calls to note.

        If a topic that it had to do with was erased, the reply is not kept: it may repeat it. ``at_end`` is called in
        the transaction, when the turn is locked, unless others have closed it before.
        """
        with transaction.atomic():
            self._write()
            Conversation.objects.filter(pk=self.turn.conversation_id).update(moved_at=now)
            kept = Case(When(erased=True, then=Value("")), default=Value(reply))
            open_turns = ConversationTurn.objects.filter(pk=self.turn.pk, ended=Ended.WORKING)
            if open_turns.update(reply=kept, ended=ended, rounds=rounds, study=study_id):
                at_end()
        self._waiting.clear()
        self.turn.ended = ended

    def _write(self) -> None:
        if not self._waiting:
            return
        calls = [call_record(each) for each in self._waiting]
        told: dict[str, Any] = {"id": self.turn.pk, "bare": json.dumps(_ERASED_CALL)}
        with connection.cursor() as cursor:
            if topics_vanished(self.heard()):
                cursor.execute(_ERASE_TURN_SQL, told)
            bare = json.dumps([each | _ERASED_CALL for each in calls], ensure_ascii=False)
            cursor.execute(_APPEND_CALLS_SQL, {**told, "calls": json.dumps(calls, ensure_ascii=False), "bare": bare})


def _lost(now: dt.datetime) -> Q:
    return Q(ended=Ended.WORKING, at__lt=_oldest(now))


def _oldest(now: dt.datetime) -> dt.datetime:
    """Return when the oldest turn began that may still be at work."""
    return now - dt.timedelta(seconds=settings.MEMSTATE_CHAT_TIMEOUT_SECONDS) - _LOST_AFTER
