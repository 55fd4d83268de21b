"""The turns of a conversation: their start, the log of their tool calls, and their end.

The row of a turn is created when the message arrives. So a page can show the progress, and the log is kept if the
process is killed. A purge sets ``erased`` on each turn that may repeat erased text. From then on, the log of the turn
stores only that a tool was called, and ``turn_check`` prevents further writes.
"""

import datetime as dt
import json
import uuid
from collections.abc import Callable
from typing import Any

import structlog
from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.db.models import Case, F, Q, Value, When

from memory.agents.tools.tool import ToolCalled
from memory.agents.tools.write_log import topics_lock_shared
from memory.core.errors import Conflict
from memory.core.problem_codes import ProblemCode
from memory.core.truncate import text_cut
from memory.models import Conversation, ConversationTurn
from memory.models.locks import lock_missed

logger = structlog.get_logger(__name__)
Ended = ConversationTurn.Ended

# If a turn has exceeded its time limit by this much, its process must have died. The turn is then "lost".
_LOST_AFTER = dt.timedelta(seconds=60)
# How often MemState tries to close a turn whose row another process has locked.
_TRIES = 3
AT_WORK = "The assistant is still answering the last message of this conversation. Wait for its reply."
# Written over a logged call whose topics were erased. The log then shows only that there was a call.
_ERASED_CALL = {"arguments": {}, "said": "", "topic_ids": [], "seen": []}

# The maximum number of characters of one text in the stored arguments. The whole text is in the topic.
_MAX_TEXT = 600
_MAX_LIST = 20
_MAX_SUMMARY = 300
# The summaries of some tools. ``query`` and ``history`` have a count instead, and all other tools have "Read."
_SUMMARIES = {
    "why": "Explained.",
    "new_topic": "Remembered.",
    "extend_topic": "Written.",
    "version_field": "Written.",
    "link": "Linked.",
}

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
# This lock waits for a purge that has locked the row.
_LOCK_TURN_SQL = "SELECT ended, erased FROM memory_conversationturn WHERE id = %(id)s FOR SHARE"
_EARLIER_TOPICS_SQL = """
SELECT DISTINCT i FROM memory_conversationturn t, jsonb_array_elements(t.tool_log) e,
       jsonb_array_elements_text(coalesce(e->'topic_ids', '[]') || coalesce(e->'seen', '[]')) i
WHERE t.conversation_id = %(conversation)s AND t.place < %(place)s
"""


def turn_begin(conversation: Conversation, *, message: str, model: str, now: dt.datetime) -> ConversationTurn:
    """Create the turn of a new message. Six queries. Raises ``Conflict`` while another turn is running."""
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
    """Lock a conversation so that no turn can start, and return it. A turn whose process died is closed. Three queries.

    Raises ``Conflict`` while a turn is running.
    """
    # FOR NO KEY UPDATE lets other processes write rows that refer to the conversation.
    locked = Conversation.objects.select_for_update(no_key=True).get(pk=conversation_id)
    turns_lost_close(now=now, conversation=locked)
    if turn_at_work(locked, now=now):
        raise Conflict(AT_WORK, code=ProblemCode.BUSY)
    return locked


def turn_at_work(conversation: Conversation, *, now: dt.datetime) -> bool:
    """Return whether the assistant is answering a message of the conversation. One query."""
    rows = ConversationTurn.objects.filter(conversation=conversation, place=conversation.turns, ended=Ended.WORKING)
    return rows.exclude(_lost(now)).exists()


def turns_lost_close(*, now: dt.datetime, conversation: Conversation | None = None) -> int:
    """Close the turns whose process died, in one conversation or in all. Return their number. One query."""
    rows = ConversationTurn.objects.filter(_lost(now))
    return (rows if conversation is None else rows.filter(conversation=conversation)).update(ended=Ended.LOST)


def turn_ended(turn: ConversationTurn, *, now: dt.datetime) -> str:
    """Return how a turn ended. A turn whose process died counts as ended, even if it is not closed yet. No query."""
    return Ended.LOST if turn.ended == Ended.WORKING and turn.at < _lost_before(now) else turn.ended


def intent_store(turn: ConversationTurn, *, intent: str, source: str) -> None:
    """Store the intent of the message. One query."""
    turn.intent, turn.intent_source = intent, source
    turn.save(update_fields=["intent", "intent_source"])


def purges_wait(turn: ConversationTurn) -> None:
    """Wait for running purges of topics that earlier turns have read. Later purges empty this turn. Two queries."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_EARLIER_TOPICS_SQL, {"conversation": turn.conversation_id, "place": turn.place})
        topics_lock_shared({uuid.UUID(row[0]) for row in cursor.fetchall()})


def turn_check(turn: ConversationTurn) -> None:
    """Lock the turn against a purge until the transaction ends. One query. Must be called at the end of the
    transaction, because a purge locks topics before turns.

    Raises ``Conflict`` if a purge has emptied the turn, or if the turn is closed.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_TURN_SQL, {"id": turn.pk})
        ended, erased = cursor.fetchone()
    if erased:
        raise Conflict(
            "A memory that was read in this conversation has been erased, so nothing was written.",
            code=ProblemCode.ERASED_MEANWHILE,
        )
    if ended != Ended.WORKING:
        raise Conflict("The answer to this message took too long and was stopped, so nothing was written.")


class CallLog:
    """The log of the tool calls of a turn. A call that cannot be logged because of a lock is logged with the next."""

    def __init__(self, turn: ConversationTurn) -> None:
        self.turn = turn
        self._unlogged: list[ToolCalled] = []

    def unlogged_topics(self) -> set[uuid.UUID]:
        """Return the topics of the calls that are not logged yet. A purge of these topics would not find the turn."""
        return {each for called in self._unlogged for each in (*called.topic_ids, *called.seen)}

    def add(self, called: ToolCalled) -> None:
        """Log a call. Two queries in a transaction. Raises database errors other than lock time-outs."""
        self._unlogged.append(called)
        self._store()

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
        """Close the turn with the reply, or without it if a topic of the turn was erased. At most five queries.

        ``at_end`` is called in the transaction, while the turn is locked, unless the turn was already closed. If the
        row stays locked by others, this is logged, but no error is raised: the writes are committed, so the client must
        get the reply.
        """

        def close() -> None:
            Conversation.objects.filter(pk=self.turn.conversation_id).update(moved_at=now)
            stored = Case(When(erased=True, then=Value("")), default=Value(reply))
            open_turns = ConversationTurn.objects.filter(pk=self.turn.pk, ended=Ended.WORKING)
            if open_turns.update(reply=stored, ended=ended, rounds=rounds, study=study_id):
                at_end()

        if not any(self._store(close) for _try in range(_TRIES)):
            logger.error("turn_not_closed", turn=self.turn.pk)

    def _store(self, then: Callable[[], None] = lambda: None) -> bool:
        """Append the calls to the log and call ``then``, in one transaction. If a topic of these calls was erased,
        empty the turn first. Return False if a row stays locked by others; nothing is stored then."""
        calls = [_call_record(each) for each in self._unlogged]
        parameters: dict[str, Any] = {
            "id": self.turn.pk,
            "calls": json.dumps(calls, ensure_ascii=False),
            "emptied": json.dumps([each | _ERASED_CALL for each in calls], ensure_ascii=False),
            "empty": json.dumps(_ERASED_CALL),
        }
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                if topics_lock_shared(self.unlogged_topics()):
                    cursor.execute(_ERASE_TURN_SQL, parameters)
                if calls:
                    cursor.execute(_APPEND_CALLS_SQL, parameters)
                then()
        except OperationalError as problem:
            if lock_missed(problem):
                return False
            raise
        self._unlogged.clear()
        return True


def _lost(now: dt.datetime) -> Q:
    return Q(ended=Ended.WORKING, at__lt=_lost_before(now))


def _lost_before(now: dt.datetime) -> dt.datetime:
    return now - dt.timedelta(seconds=settings.MEMSTATE_CHAT_TIMEOUT_SECONDS) - _LOST_AFTER


def _call_record(called: ToolCalled) -> dict[str, Any]:
    # The record of a call does not contain the result.
    return {
        "tool": called.tool[:100],
        "arguments": _shortened(called.arguments),
        "ok": called.ok,
        "ms": round(called.ms, 1),
        "topic_ids": [str(each) for each in called.topic_ids],
        "seen": [str(each) for each in called.seen],
        "said": _summary(called)[:_MAX_SUMMARY],
    }


def _summary(called: ToolCalled) -> str:
    """Return a short summary of the result, without any text of a topic."""
    result = called.result if isinstance(called.result, dict) else {}
    if not called.ok:
        return str(result.get("error", "It was refused."))
    if called.tool == "query":
        return _counted(len(called.topic_ids), "memory found", "memories found")
    if called.tool == "history":
        return _counted(len(result.get("revisions", ())) + result.get("left_out", 0), "value read", "values read")
    return _SUMMARIES.get(called.tool, "Read.")


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}."


def _shortened(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str):
        return text_cut(value, _MAX_TEXT)
    if depth >= 4:
        return None if isinstance(value, dict | list) else value
    if isinstance(value, dict):
        return {str(name)[:100]: _shortened(each, depth + 1) for name, each in list(value.items())[:_MAX_LIST]}
    if isinstance(value, list):
        return [_shortened(each, depth + 1) for each in value[:_MAX_LIST]]
    return value
