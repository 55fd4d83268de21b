"""The replies about conversations, their turns, what they wrote, and their undo."""

import datetime as dt
import uuid
from collections.abc import Mapping
from typing import Annotated, Any, cast, get_args

from memory.agents.chat.conversations import conversation_name
from memory.agents.chat.intent import IntentName, Source
from memory.agents.chat.undo import What
from memory.agents.study.progress import StudyOut, study_as_json
from memory.agents.tools.loop import Ended
from memory.agents.tools.tool import ToolCallOut
from memory.core.replies import TypedDict, doc, one_of
from memory.models import Conversation, ConversationTurn
from memory.models.labels import label_sql
from memory.models.statements import dicts_read

# The maximum number of topics that a page lists. All topics are counted.
MAX_NAMED = 12

# A topic that was restored after its undo does not count as undone.
_COUNTS_SQL = """
SELECT count(*) FILTER (WHERE w.what = 'topic') AS topics,
    count(*) FILTER (WHERE w.what = 'version') AS values,
    count(*) FILTER (WHERE w.what = 'field') AS fields,
    count(*) FILTER (WHERE w.what = 'link') AS links,
    count(*) FILTER (WHERE w.what = 'merged') AS merges,
    count(*) FILTER (WHERE w.undone_at IS NOT NULL
        AND (w.what <> 'topic' OR t.released_at IS NOT NULL OR t.merged_into_id IS NOT NULL)) AS taken_back,
    count(DISTINCT t.id) AS topic_count
FROM memory_conversationwrite w JOIN memory_topic t ON t.id = w.topic_id WHERE w.conversation_id = %(conversation)s
"""
_TOPICS_SQL = f"""
SELECT t.id AS topic_id, {label_sql()} AS title, bool_or(w.what = 'topic') AS made,
    t.released_at IS NOT NULL AS released, t.merged_into_id IS NOT NULL AS merged
FROM memory_conversationwrite w JOIN memory_topic t ON t.id = w.topic_id
WHERE w.conversation_id = %(conversation)s
GROUP BY t.id ORDER BY max(w.id) DESC LIMIT %(most)s
"""


class ChatReply(TypedDict):
    """The answer, and how it was produced."""

    reply: str
    intent: Annotated[str, one_of(get_args(IntentName))]
    intent_source: Annotated[
        str, one_of(get_args(Source)), doc("Source of the intent: the request, the model, or a rule as a fallback.")
    ]
    tool_log: Annotated[
        list[ToolCallOut], doc("All calls in order. After 500,000 characters in total, later calls have no result.")
    ]
    model: str
    rounds: Annotated[int, doc("Rounds of tool calls before the answer.")]
    conversation_id: Annotated[uuid.UUID, doc("Send it to continue the conversation; writes are recorded with it.")]
    ended: Annotated[
        str,
        one_of(get_args(Ended)),
        doc("done, or why the turn ended early: rounds or time (a limit), model (it failed)."),
    ]
    study: Annotated[StudyOut | None, doc("The study job of a long text, as returned by GET /v1/studies/{id}.")]


class ConversationOut(TypedDict):
    """A conversation with the assistant."""

    conversation_id: uuid.UUID
    name: Annotated[str, doc("The beginning of the first message; empty if it was erased.")]
    scope: str
    channel: Annotated[str, one_of(Conversation.Channel.values)]
    actor: Annotated[str, doc("Who began it; only this caller can continue it.")]
    turns: int
    created_at: dt.datetime
    moved_at: Annotated[dt.datetime, doc("Time of the last message or answer.")]
    undone_at: Annotated[dt.datetime | None, doc("Time of the last undo.")]
    undone_by: str | None


class ConversationPage(TypedDict):
    """Conversations, most recently active first; ``next`` is the cursor of the next page, null on the last."""

    items: list[ConversationOut]
    next: str | None


class CallOut(TypedDict):
    """A function that the model called. Its result is not stored."""

    tool: str
    arguments: Annotated[Any, doc("As the model sent them, shortened if long; empty if erased.")]
    ok: bool
    ms: float
    topic_ids: Annotated[list[uuid.UUID], doc("The topics that the call read or wrote.")]
    said: Annotated[str, doc("Short summary of the result.")]


class TurnOut(TypedDict):
    """A message and its answer."""

    place: Annotated[int, doc("Number of the turn, from 1.")]
    at: dt.datetime
    message: Annotated[str, doc("For a text that is studied, only its length.")]
    reply: str
    intent: Annotated[str, one_of(get_args(IntentName))] | None
    intent_source: Annotated[str, one_of(get_args(Source))] | None
    model: str
    rounds: int
    ended: Annotated[
        str,
        one_of(ConversationTurn.Ended.values),
        doc(
            "working, done, rounds or time (a limit), model (it failed), stopped (the client left), "
            "failed (an error or a late refusal), or lost (the process was killed)."
        ),
    ]
    erased: Annotated[bool, doc("A purge has erased its texts.")]
    tool_log: list[CallOut]
    study: Annotated[StudyOut | None, doc("The study job of a long message.")]


class WrittenOut(TypedDict):
    """A topic that a conversation wrote to."""

    topic_id: uuid.UUID
    title: str
    made: Annotated[bool, doc("The conversation created it.")]
    released: bool
    merged: Annotated[bool, doc("It was merged into another topic.")]


class WroteOut(TypedDict):
    """What a conversation and its studies wrote, without erased content."""

    topics: Annotated[int, doc("Topics created.")]
    values: Annotated[int, doc("New values of existing fields.")]
    fields: int
    links: int
    merges: int
    taken_back: Annotated[int, doc("How many of these were undone.")]
    topic_count: Annotated[int, doc("How many topics it wrote to.")]
    items: Annotated[list[WrittenOut], doc("These topics, newest first; at most 1,000.")]


class ConversationDetail(ConversationOut):
    """A conversation with its turns, the newest first; ``next`` is the cursor of the next page, null on the last."""

    wrote: WroteOut
    items: list[TurnOut]
    next: str | None


class TakenBack(TypedDict):
    """Counts by type."""

    topics: Annotated[int, doc("Topics that the conversation created; they are released.")]
    values: Annotated[int, doc("Values that it changed; the former value is a new revision.")]
    fields: Annotated[int, doc("Fields that it added to existing topics; they get an empty revision.")]
    links: Annotated[int, doc("Links that it made between existing topics; they are removed.")]
    merges: Annotated[int, doc("Merges by its studies; they are undone.")]


class UndoneItem(TypedDict):
    """One change that is undone. A link is listed with its source."""

    what: What
    topic_id: uuid.UUID
    title: str
    told: str


class LeftItem(UndoneItem):
    """One change that is kept."""

    why: str


class ConversationUndoReply(TypedDict):
    """The effect of an undo or of its dry run. Each list has at most 1,000 items."""

    conversation_id: uuid.UUID
    dry_run: bool
    sentence: str
    taken_back: TakenBack
    items: list[UndoneItem]
    left: list[LeftItem]
    left_count: int
    studies_cancelled: int
    run_id: Annotated[uuid.UUID | None, doc("The run that released its topics; it can be undone.")]
    digest: Annotated[str | None, doc("From a dry run: identifies its effect.")]


def conversation_as_json(conversation: Conversation) -> ConversationOut:
    """Return a conversation for lists. No query."""
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


def turn_as_json(turn: ConversationTurn) -> TurnOut:
    """Return a turn read by ``conversation_turns``. No query."""
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
        "tool_log": [_call_as_json(call) for call in turn.tool_log],
        "study": study_as_json(turn.study) if turn.study else None,
    }


def conversation_writes(conversation: Conversation, *, most: int = MAX_NAMED) -> WroteOut:
    """Return counts of what a conversation has written, and its latest topics. Erased topics are left out.

    Two queries.
    """
    (counts,) = dicts_read(_COUNTS_SQL, {"conversation": conversation.pk})
    items: list[WrittenOut] = dicts_read(_TOPICS_SQL, {"conversation": conversation.pk, "most": most})
    return cast(WroteOut, {**counts, "items": items})


def _call_as_json(call: Mapping[str, Any]) -> CallOut:
    return cast(CallOut, {name: call.get(name) for name in CallOut.__annotations__})
