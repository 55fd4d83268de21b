"""Turns of a conversation: start, log of tool calls, end.

The row of a turn is created when the message arrives. So two turns cannot have the same place, a page can show the
progress, and the log survives a killed process. It contains ids and short summaries, but not the results of tools.

A purge marks each turn that may repeat erased text (``erased``). From then on, the log stores only that a tool was
called, and ``turn_check`` prevents further writes.
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

# A turn that exceeds its time limit by this much has lost its process.
_LOST_AFTER = dt.timedelta(seconds=60)
AT_WORK = "The assistant is still answering the last message of this conversation. Wait for its reply."
# Replaces the members of a logged call whose topics were erased: only the fact of the call is kept.
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
# Waits for a purge that has locked the row.
_LOCK_TURN_SQL = "SELECT ended, erased FROM memory_conversationturn WHERE id = %(id)s FOR SHARE"
_EARLIER_TOPICS_SQL = """
SELECT DISTINCT i FROM memory_conversationturn t, jsonb_array_elements(t.tool_log) e,
       jsonb_array_elements_text(coalesce(e->'topic_ids', '[]') || coalesce(e->'seen', '[]')) i
WHERE t.conversation_id = %(conversation)s AND t.place < %(place)s
"""


def turn_begin(conversation: Conversation, *, message: str, model: str, now: dt.datetime) -> ConversationTurn:
    """Create the turn of a new message, with the conversation locked, because only one turn may run at a time.

    Closes an earlier turn whose process was lost. Six queries. Raises ``Conflict`` while another turn is running.
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
    """Lock the conversation, so that no turn can start until the transaction ends, and return it. Three queries.

    Closes a turn whose process was lost. Raises ``Conflict`` while a turn is running.
    """
    # FOR NO KEY UPDATE, so that rows that refer to the conversation can be written meanwhile.
    held = Conversation.objects.select_for_update(no_key=True).get(pk=conversation_id)
    turns_lost_close(now=now, conversation=held)
    if turn_at_work(held, now=now):
        raise Conflict(AT_WORK, code=ProblemCode.ASSISTANT_AT_WORK)
    return held


def turn_at_work(conversation: Conversation, *, now: dt.datetime) -> bool:
    """Return whether the assistant is answering a message of the conversation. One query."""
    rows = ConversationTurn.objects.filter(conversation=conversation, place=conversation.turns, ended=Ended.WORKING)
    return rows.exclude(_lost(now)).exists()


def turns_lost_close(*, now: dt.datetime, conversation: Conversation | None = None) -> int:
    """Close the turns whose process was lost, in one conversation or all, and return their number. One query."""
    rows = ConversationTurn.objects.filter(_lost(now))
    return (rows if conversation is None else rows.filter(conversation=conversation)).update(ended=Ended.LOST)


def turn_ended(turn: ConversationTurn, *, now: dt.datetime) -> str:
    """Return how a turn ended, also if it was lost and is not closed yet. No query."""
    return Ended.LOST if turn.ended == Ended.WORKING and turn.at < _oldest(now) else turn.ended


def turn_intend(turn: ConversationTurn, *, intent: str, source: str) -> None:
    """Store the intent of the message. One query."""
    turn.intent, turn.intent_source = intent, source
    turn.save(update_fields=["intent", "intent_source"])


def turn_recall(turn: ConversationTurn) -> None:
    """Wait for running purges of topics that earlier turns have read, so that this turn cannot repeat erased text.

    Later purges find this turn. Two queries.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_EARLIER_TOPICS_SQL, {"conversation": turn.conversation_id, "place": turn.place})
        topics_vanished({uuid.UUID(row[0]) for row in cursor.fetchall()})


def turn_check(turn: ConversationTurn) -> None:
    """Lock the turn against a purge until the transaction ends. One query.

    Call it at the end of the transaction in which the turn writes, after all topics are locked: a purge locks topics
    before turns. Raises ``Conflict`` if the turn was emptied by a purge or is closed.
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
    """The log of the tool calls of a turn. If a row is locked, the call is logged with the next one or at the end."""

    def __init__(self, turn: ConversationTurn) -> None:
        self.turn = turn
        self._waiting: list[ToolCalled] = []

    def heard(self) -> set[uuid.UUID]:
        """Return the topics of calls that are not logged yet, by which a purge cannot find the turn."""
        return {each for called in self._waiting for each in (*called.topic_ids, *called.seen)}

    def call(self, called: ToolCalled) -> None:
        """Log a call. Two queries in a transaction. Raises database errors, except lock time-outs."""
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
        """Close the turn with the reply, if it is still open. Two queries in a transaction, four with calls to log.

        If a topic of the turn was erased, the reply is not stored, because it may repeat the topic. ``at_end`` is
        called in the transaction, with the turn locked, unless the turn was closed before.
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
    """Return the start of the oldest turn that may still be running."""
    return now - dt.timedelta(seconds=settings.MEMSTATE_CHAT_TIMEOUT_SECONDS) - _LOST_AFTER
