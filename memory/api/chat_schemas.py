"""Reply schemas of POST /v1/chat."""

import uuid
from typing import Any

from ninja import Schema
from pydantic import Field

from memory.agents.chat.intent import IntentName, Source
from memory.agents.tools.loop import Ended
from memory.api.studies import StudyOut


class ToolCallOut(Schema):
    """A function that the model called."""

    tool: str
    arguments: Any = Field(description="As the model sent them; text if they were not JSON.")
    result: Any = Field(
        description="The result as sent to the model, at most 16,000 characters, with left_out where a list was cut; "
        "{error} if the call was refused."
    )
    ok: bool
    ms: float
    topic_ids: list[uuid.UUID] = Field(description="The topics that the call read or wrote.")


class ChatReply(Schema):
    """The answer, and how it was produced."""

    reply: str
    intent: IntentName
    intent_source: Source = Field(description="Source of the intent: the request, the model, or a rule as a fallback.")
    tool_log: list[ToolCallOut] = Field(
        description="All calls in order. After 500,000 characters in total, later calls have no result."
    )
    model: str
    rounds: int = Field(description="Rounds of tool calls before the answer.")
    conversation_id: uuid.UUID = Field(description="Send it to continue the conversation; writes are recorded with it.")
    ended: Ended = Field(description="done, or why the turn ended early: rounds or time (a limit), model (it failed).")
    study: StudyOut | None = Field(description="The study job of a long text, as returned by GET /v1/studies/{id}.")
