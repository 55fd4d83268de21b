"""Request and reply schemas of the routes of conversations."""

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import BaseModel, Field, StringConstraints

from memory.agents.chat.intent import IntentName, Source
from memory.api.studies import StudyOut


class ConversationOut(Schema):
    """A conversation with the assistant."""

    conversation_id: uuid.UUID
    name: str = Field(description="The beginning of the first message; empty if it was erased.")
    scope: str
    channel: Literal["api", "console"]
    actor: str = Field(description="Who began it; only this caller can continue it.")
    turns: int
    created_at: dt.datetime
    moved_at: dt.datetime = Field(description="Time of the last message or answer.")
    undone_at: dt.datetime | None = Field(description="Time of the last undo.")
    undone_by: str | None


class ConversationPage(Schema):
    """Conversations, most recently active first; ``next`` is the cursor of the next page, null on the last."""

    items: list[ConversationOut]
    next: str | None


class CallOut(Schema):
    """A function that the model called. Its result is not stored."""

    tool: str
    arguments: Any = Field(description="As the model sent them, shortened if long; empty if erased.")
    ok: bool
    ms: float
    topic_ids: list[uuid.UUID] = Field(description="The topics that the call read or wrote.")
    said: str = Field(description="Short summary of the result.")


class TurnOut(Schema):
    """A message and its answer."""

    place: int = Field(description="Number of the turn, from 1.")
    at: dt.datetime
    message: str = Field(description="For a text that is studied, only its length.")
    reply: str
    intent: IntentName | None
    intent_source: Source | None
    model: str
    rounds: int
    ended: Literal["working", "done", "rounds", "time", "model", "stopped", "failed", "lost"] = Field(
        description="working, done, rounds or time (a limit), model (it failed), stopped (the client left), failed "
        "(an error or a late refusal), or lost (the process was killed)."
    )
    erased: bool = Field(description="A purge has erased its texts.")
    tool_log: list[CallOut]
    study: StudyOut | None = Field(description="The study job of a long message.")


class WrittenOut(Schema):
    """A topic that a conversation wrote to."""

    topic_id: uuid.UUID
    title: str
    made: bool = Field(description="The conversation created it.")
    released: bool
    merged: bool = Field(description="It was merged into another topic.")


class WroteOut(Schema):
    """What a conversation and its studies wrote, without erased content."""

    topics: int = Field(description="Topics created.")
    values: int = Field(description="New values of existing fields.")
    fields: int
    links: int
    merges: int
    taken_back: int = Field(description="How many of these were undone.")
    topic_count: int = Field(description="How many topics it wrote to.")
    items: list[WrittenOut] = Field(description="These topics, newest first; at most 1,000.")


class ConversationDetail(ConversationOut):
    """A conversation with its turns, the newest first; ``next`` is the cursor of the next page, null on the last."""

    wrote: WroteOut
    items: list[TurnOut]
    next: str | None


class ConversationUndoRequest(BaseModel):
    """The reason, and whether to undo or only to preview."""

    reason: Annotated[str, StringConstraints(max_length=500)] = ""
    dry_run: bool = Field(default=False, description="Only report what would be undone; nothing is changed.")
    digest: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None, description="From a dry run; 409 if the effect has changed since."
    )


class TakenBack(Schema):
    """Counts by type."""

    topics: int = Field(description="Topics that the conversation created; they are released.")
    values: int = Field(description="Values that it changed; the former value is a new revision.")
    fields: int = Field(description="Fields that it added to existing topics; they get an empty revision.")
    links: int = Field(description="Links that it made between existing topics; they are removed.")
    merges: int = Field(description="Merges by its studies; they are undone.")


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
    """The effect of an undo or of its dry run. Each list has at most 1,000 items."""

    conversation_id: uuid.UUID
    dry_run: bool
    sentence: str
    taken_back: TakenBack
    items: list[UndoneItem]
    left: list[LeftItem]
    left_count: int
    studies_cancelled: int
    run_id: uuid.UUID | None = Field(description="The run that released its topics; it can be undone.")
    digest: str | None = Field(description="From a dry run: identifies its effect.")
