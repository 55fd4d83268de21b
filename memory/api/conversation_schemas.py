"""What routes about conversations take and answer."""

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import BaseModel, Field, StringConstraints

from memory.agents.chat.intent import IntentName, Source
from memory.api.studies import StudyOut


class ConversationOut(Schema):
    """Messages to the assistant that belong together."""

    conversation_id: uuid.UUID
    name: str = Field(description="The beginning of the first message; empty if that was erased.")
    scope: str
    channel: Literal["api", "console"]
    actor: str = Field(description="Who began it, and alone goes on with it.")
    turns: int
    created_at: dt.datetime
    moved_at: dt.datetime = Field(description="When the last message came or was answered.")
    undone_at: dt.datetime | None = Field(description="When what it wrote was last undone.")
    undone_by: str | None


class ConversationPage(Schema):
    """Conversations, the one that moved last first; ``next`` is the cursor of the next page, null on the last."""

    items: list[ConversationOut]
    next: str | None


class CallOut(Schema):
    """A function that the model called, as a conversation keeps it: what it returned is not kept."""

    tool: str
    arguments: Any = Field(description="As the model sent them, cut where they are long; empty if erased.")
    ok: bool
    ms: float
    topic_ids: list[uuid.UUID] = Field(description="The topics that it read or wrote.")
    said: str = Field(description="Short summary of the result.")


class TurnOut(Schema):
    """A message and what became of it."""

    place: int = Field(description="From 1, without a gap.")
    at: dt.datetime
    message: str = Field(description="Of a text that is studied, only how long it was.")
    reply: str
    intent: IntentName | None
    intent_source: Source | None
    model: str
    rounds: int
    ended: Literal["working", "done", "rounds", "time", "model", "stopped", "failed", "lost"] = Field(
        description="How it ended: done, at a limit, with the model's failure, because whoever asked went away, by a "
        "fault or a late refusal, or with its process; or that the assistant is at it."
    )
    erased: bool = Field(description="A purge has emptied it.")
    tool_log: list[CallOut]
    study: StudyOut | None = Field(description="The job that a long message became.")


class WrittenOut(Schema):
    """A topic that a conversation wrote to."""

    topic_id: uuid.UUID
    title: str
    made: bool = Field(description="It is the conversation's own.")
    released: bool
    merged: bool = Field(description="Into another topic.")


class WroteOut(Schema):
    """What a conversation and its studies wrote, but for what was erased."""

    topics: int = Field(description="Made.")
    values: int = Field(description="Newer values of fields that were there.")
    fields: int
    links: int
    merges: int
    taken_back: int = Field(description="How many of these were undone.")
    topic_count: int = Field(description="How many topics it wrote to.")
    items: list[WrittenOut] = Field(description="These topics, the latest first; the first thousand.")


class ConversationDetail(ConversationOut):
    """A conversation with its turns, the newest first; ``next`` is the cursor of the next page, null on the last."""

    wrote: WroteOut
    items: list[TurnOut]
    next: str | None


class ConversationUndoRequest(BaseModel):
    """The reason, and whether this is a dry run."""

    reason: Annotated[str, StringConstraints(max_length=500)] = ""
    dry_run: bool = Field(default=False, description="Only report what would be undone; nothing is changed.")
    digest: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None, description="From a dry run; refused if the effect has changed since."
    )


class TakenBack(Schema):
    """How much of each sort."""

    topics: int = Field(description="Made by the conversation; released.")
    values: int = Field(description="Written over by it; what was there before is a new revision.")
    fields: int = Field(description="Added by it to topics that were there; their newest revision is empty.")
    links: int = Field(description="Made by it between topics that were there; removed.")
    merges: int = Field(description="Of its studies; taken apart.")


class UndoneItem(Schema):
    """One change that is undone. A link is listed with its source."""

    what: Literal["topic", "value", "field", "link", "merge"]
    topic_id: uuid.UUID
    title: str
    told: str


class LeftItem(UndoneItem):
    """One change that is kept."""

    why: str


class ConversationUndoReply(Schema):
    """What an undo did, or would do. The lists hold the first thousand of each."""

    conversation_id: uuid.UUID
    dry_run: bool
    sentence: str
    taken_back: TakenBack
    items: list[UndoneItem]
    left: list[LeftItem]
    left_count: int
    studies_cancelled: int
    run_id: uuid.UUID | None = Field(description="Takes the release of its topics back.")
    digest: str | None = Field(description="From a dry run: identifies its effect.")
