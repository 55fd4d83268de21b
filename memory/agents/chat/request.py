"""What a client says to the assistant. This shape is the request schema of ``POST /v1/chat``."""

import uuid
from typing import Annotated, Literal

from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from memory.access.principal import Principal
from memory.agents.chat.intent import IntentName
from memory.core.errors import RequestRefused, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import MAX_SCOPE_LENGTH

MOST_MESSAGES = 1_000
# A message that is answered rather than studied has to leave room for what the tools return.
MOST_ANSWERED = 60_000
# So much of the messages before it is said to the model, the newest of them.
MOST_BEFORE = 40_000
# So much of what the caller wishes beside our instructions.
MOST_WISHES = 8_000


class ChatMessage(BaseModel):
    """One message of the conversation. Those of the role ``system`` are wishes, which stand behind our instructions."""

    model_config = ConfigDict(frozen=True)

    role: Literal["user", "assistant", "system"]
    # The refusal beyond the limits is a sentence with the limit in it, so it is not the schema's.
    content: Annotated[str, StringConstraints(max_length=2_000_000)]


class ChatRequest(BaseModel):
    """What was said so far, and how it is to be answered. The last message is the user's."""

    model_config = ConfigDict(frozen=True)

    messages: list[ChatMessage] = Field(
        min_length=1,
        max_length=MOST_MESSAGES,
        description=f"Oldest first. Of those before the last, the newest {MOST_BEFORE:,} characters are read.",
    )
    model: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        default=None, description="Another model at the same endpoint than MEMSTATE_LLM_MODEL."
    )
    intent_override: IntentName | None = Field(
        default=None, description="What the last message wants, if it is not to be found out."
    )
    intent_turns: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="From how many of the last messages the intent is told; MEMSTATE_CHAT_INTENT_TURNS if left out.",
    )
    max_tool_rounds: int | None = Field(
        default=None,
        ge=1,
        le=256,
        description="How often tools may be used. No more than MEMSTATE_CHAT_MAX_TOOL_ROUNDS, whatever is asked for.",
    )
    study: bool = Field(
        default=True, description="A long message that is to be remembered becomes a job in the background."
    )
    scope: str | None = Field(default=None, max_length=MAX_SCOPE_LENGTH)
    conversation_id: uuid.UUID | None = Field(
        default=None, description="Goes on with a conversation that this caller began; else a new one begins."
    )

    @property
    def last(self) -> str:
        """The message that is to be answered."""
        return self.messages[-1].content

    @property
    def rounds(self) -> int:
        """How often tools may be used."""
        most: int = settings.MEMSTATE_CHAT_MAX_TOOL_ROUNDS
        return min(self.max_tool_rounds or most, most)

    @property
    def turns(self) -> int:
        """From how many messages the intent is told."""
        return self.intent_turns or settings.MEMSTATE_CHAT_INTENT_TURNS

    @property
    def is_long(self) -> bool:
        """Whether the last message is long enough to be studied."""
        return len(self.last) > settings.MEMSTATE_CHAT_CHUNK_THRESHOLD_CHARS


def request_check(request: ChatRequest, *, principal: Principal) -> None:
    """Raise what is wrong with a request before anything is asked or written. No queries.

    ``RequestRefused`` if the last message is not the user's, ``ValueRefused`` if it is empty, or too long and cannot be
    studied, ``NotAllowed`` if it is to be remembered and the key may not write.
    """
    if request.messages[-1].role != "user":
        raise RequestRefused(
            "The last message must be the user's: it is the one that is answered.",
            code=ProblemCode.LAST_MESSAGE_NOT_OF_USER,
        )
    if not request.last.strip():
        raise ValueRefused("The last message is empty.", code=ProblemCode.EMPTY_TEXT)
    if request.intent_override not in (None, "query"):
        principal.require("agent")
    read_only = principal.role == "reader" or request.intent_override == "query"
    if read_only or not (request.study and request.is_long):
        length_check(request)


def length_check(request: ChatRequest) -> None:
    """Raise ``ValueRefused`` if the last message is too long to be answered at once. No queries."""
    if len(request.last) > MOST_ANSWERED:
        raise ValueRefused(
            f"The last message has {len(request.last):,} characters; what is answered at once has {MOST_ANSWERED:,} at "
            "most. To have a longer text remembered, send it with study: true and intent_override: ingest.",
            code=ProblemCode.TEXT_TOO_LONG,
        )


def model_messages(request: ChatRequest) -> list[dict[str, str]]:
    """Return what is said to the model: the last message, and the newest before it that fit. No queries."""
    said, left = [], MOST_BEFORE
    *before, last = [each for each in request.messages if each.role != "system" and each.content.strip()]
    for each in reversed(before):
        left -= len(each.content)
        if left < 0:
            break
        said.append({"role": str(each.role), "content": each.content})
    return [*reversed(said), {"role": str(last.role), "content": last.content}]


def wishes_of(request: ChatRequest) -> str:
    """Return the system messages of the caller as one text, the newest of it if it is long. No queries."""
    return "\n\n".join(each.content for each in request.messages if each.role == "system")[-MOST_WISHES:]
