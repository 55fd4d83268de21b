"""Turns of a conversation: start, log of tool calls, end.

The row of a turn is created when the message arrives. So two turns cannot have the same place, a page can show the
progress, and the log survives a killed process. The log contains ids and short summaries, but not the results of tools.

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
from memory.agents.tools.write_log import topics_lock_shared
from memory.core.errors import Conflict
from memory.core.problem_codes import ProblemCode
from memory.models import Conversation, ConversationTurn
from memory.models.locks import lock_missed

Ended = ConversationTurn.Ended

# If a turn exceeds its time limit by this much, its process was lost.
_LOST_AFTER = dt.timedelta(seconds=60)
AT_WORK = "The assistant is still answering the last message of this conversation. Wait for its reply."
# The members of a logged call are replaced by these if its topics were erased. The log then shows only that there was a
# call.
_ERASED_CALL = {"arguments": {}, "said": "", "topic_ids": [], "seen": []}

_APPEND_CALLS_SQL = """
UPDATE memory_conversationturn
SET tool_log = tool_log || CASE WHEN erased THEN %(emptied)s::jsonb ELSE %(calls)s::jsonb END WHERE id = %(id)s
"""
_ERASE_TURN_SQL = """
UPDATE memory_conversationturn SET erased = true, message = '', reply = '', tool_log = (
    SELECT coalesce(jsonb_agg(e || %(empty)s::jsonb ORDER BY n), '[]')
    FROM jsonb_array_elements(tool_log) WITH ORDINALITY x (e, n)
) WHERE id = %(id)s
"""
# The lock waits for a purge that has locked the row.
_LOCK_TURN_SQL = "SELECT ended, erased FROM memory_conversationturn WHERE id = %(id)s FOR SHARE"
_EARLIER_TOPICS_SQL = """
SELECT DISTINCT i FROM memory_conversationturn t, jsonb_array_elements(t.tool_log) e,
       jsonb_array_elements_text(coalesce(e->'topic_ids', '[]') || coalesce(e->'seen', '[]')) i
WHERE t.conversation_id = %(conversation)s AND t.place < %(place)s
"""


def turn_begin(conversation: Conversation, *, message: str, model: str, now: dt.datetime) -> ConversationTurn:
    """Create the turn of a new message. Only one turn of a conversation may run at a time.

    Closes an earlier turn whose process was lost. Six queries. Raises ``Conflict`` while another turn is running.
    """
    with transaction.atomic():
        locked = conversation_lock(conversation.pk, now=now)
        turn = ConversationTurn.objects.create(
            conversation=locked,
            place=locked.turns + 1,
            scope=locked.scope,
            at=now,
            message=message,
            model=model,
            ended=Ended.WORKING,
        )
        Conversation.objects.filter(pk=locked.pk).update(turns=F("turns") + 1, moved_at=now)
    return turn


def conversation_lock(conversation_id: uuid.UUID, *, now: dt.datetime) -> Conversation:
    """Lock the conversation, so that no turn can start until the transaction ends, and return it. Three queries.

    Closes a turn whose process was lost. Raises ``Conflict`` while a turn is running.
    """
    # With FOR NO KEY UPDATE, rows that refer to the conversation can be written meanwhile.
    locked = Conversation.objects.select_for_update(no_key=True).get(pk=conversation_id)
    turns_lost_close(now=now, conversation=locked)
    if turn_at_work(locked, now=now):
        raise Conflict(AT_WORK, code=ProblemCode.ASSISTANT_AT_WORK)
    return locked


def turn_at_work(conversation: Conversation, *, now: dt.datetime) -> bool:
    """Return whether the assistant is answering a message of the conversation. One query."""
    rows = ConversationTurn.objects.filter(conversation=conversation, place=conversation.turns, ended=Ended.WORKING)
    return rows.exclude(_lost(now)).exists()


def turns_lost_close(*, now: dt.datetime, conversation: Conversation | None = None) -> int:
    """Close the turns whose process was lost, in one conversation or all, and return their number. One query."""
    rows = ConversationTurn.objects.filter(_lost(now))
    return (rows if conversation is None else rows.filter(conversation=conversation)).update(ended=Ended.LOST)


def turn_ended(turn: ConversationTurn, *, now: dt.datetime) -> str:
    """Return how a turn ended. A turn whose process was lost has ended, even if it is not closed yet. No query."""
    return Ended.LOST if turn.ended == Ended.WORKING and turn.at < _oldest(now) else turn.ended


def intent_store(turn: ConversationTurn, *, intent: str, source: str) -> None:
    """Store the intent of the message. One query."""
    turn.intent, turn.intent_source = intent, source
    turn.save(update_fields=["intent", "intent_source"])


def purges_wait(turn: ConversationTurn) -> None:
    """Wait for running purges of topics that earlier turns have read, so that this turn cannot repeat erased text.

    Purges that begin later find this turn. Two queries.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_EARLIER_TOPICS_SQL, {"conversation": turn.conversation_id, "place": turn.place})
        topics_lock_shared({uuid.UUID(row[0]) for row in cursor.fetchall()})


def turn_check(turn: ConversationTurn) -> None:
    """Lock the turn against a purge until the transaction ends. One query.

    Must be called at the end of the transaction in which the turn writes, after all topics are locked, because a purge
    locks topics before turns. Raises ``Conflict`` if a purge has emptied the turn or if the turn is closed.
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


class CallLog:
    """The log of the tool calls of a turn. A call that cannot be logged because of a lock is logged together with the
    next call, or when the turn is closed."""

    def __init__(self, turn: ConversationTurn) -> None:
        self.turn = turn
        self._unlogged: list[ToolCalled] = []

    def unlogged_topics(self) -> set[uuid.UUID]:
        """Return the topics of calls that are not logged yet. A purge of such a topic cannot find the turn."""
        return {each for called in self._unlogged for each in (*called.topic_ids, *called.seen)}

    def add(self, called: ToolCalled) -> None:
        """Log a call. Two queries in a transaction. Raises database errors, except lock time-outs."""
        self._unlogged.append(called)
        try:
            with transaction.atomic():
                self._write()
        except OperationalError as problem:
            if not lock_missed(problem):
                raise
        else:
            self._unlogged.clear()

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

        If a topic of the turn was erased, the reply is not stored, because the reply may repeat its text. ``at_end`` is
        called in the transaction, with the turn locked, unless the turn was already closed.
        """
        with transaction.atomic():
            self._write()
            Conversation.objects.filter(pk=self.turn.conversation_id).update(moved_at=now)
            stored = Case(When(erased=True, then=Value("")), default=Value(reply))
            open_turns = ConversationTurn.objects.filter(pk=self.turn.pk, ended=Ended.WORKING)
            if open_turns.update(reply=stored, ended=ended, rounds=rounds, study=study_id):
                at_end()
        self._unlogged.clear()
        self.turn.ended = ended

    def _write(self) -> None:
        """Append the calls to the log. If a topic of these calls was erased, empty the turn first."""
        if not self._unlogged:
            return
        calls = [call_record(each) for each in self._unlogged]
        parameters: dict[str, Any] = {
            "id": self.turn.pk,
            "calls": json.dumps(calls, ensure_ascii=False),
            "emptied": json.dumps([each | _ERASED_CALL for each in calls], ensure_ascii=False),
        }
        with connection.cursor() as cursor:
            if topics_lock_shared(self.unlogged_topics()):
                cursor.execute(_ERASE_TURN_SQL, {"id": self.turn.pk, "empty": json.dumps(_ERASED_CALL)})
            cursor.execute(_APPEND_CALLS_SQL, parameters)


def _lost(now: dt.datetime) -> Q:
    return Q(ended=Ended.WORKING, at__lt=_oldest(now))


def _oldest(now: dt.datetime) -> dt.datetime:
    """Return the start of the oldest turn that may still be running."""
    return now - dt.timedelta(seconds=settings.MEMSTATE_CHAT_TIMEOUT_SECONDS) - _LOST_AFTER
