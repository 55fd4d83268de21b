"""What POST /v1/chat answers."""

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
    arguments: Any = Field(description="As the model sent them; text if they were no JSON.")
    result: Any = Field(
        description="What of the result it was told, 16,000 characters at most, with left_out where a list was longer; "
        "{error} if it was refused."
    )
    ok: bool
    ms: float
    topic_ids: list[uuid.UUID] = Field(description="The topics that it read or wrote.")


class ChatReply(Schema):
    """The answer, and how it came about."""

    reply: str
    intent: IntentName
    intent_source: Source = Field(description="Source of the intent: the request, the model, or a rule as a fallback.")
    tool_log: list[ToolCallOut] = Field(
        description="In the order in which they were made. Beyond 500,000 characters of all, only that they were."
    )
    model: str
    rounds: int = Field(description="How often tools were used before the answer.")
    conversation_id: uuid.UUID = Field(description="Send it to continue the conversation; writes are recorded with it.")
    ended: Ended = Field(
        description="done, or why it ended before: the most rounds, the time, or the model, which failed."
    )
    study: StudyOut | None = Field(description="The study job of a long text, as returned by GET /v1/studies/{id}.")
