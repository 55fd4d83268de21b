"""The request of a client to the assistant: the schema of ``POST /v1/chat``."""

import uuid
from typing import Annotated, Literal

from django.conf import settings
from pydantic import ConfigDict, Field, StringConstraints

from memory.access.principal import Principal
from memory.agents.chat.intent import IntentName
from memory.core.errors import RequestRefused, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.requests import RequestModel
from memory.core.scopes import MAX_SCOPE_LENGTH

MAX_MESSAGES = 1_000
# Messages with more characters can be studied, but not answered. The model's context must also hold tool results.
MAX_ANSWERED = 60_000
# The maximum number of characters of earlier messages that the model gets. The oldest messages are left out.
MAX_BEFORE = 40_000
# The maximum number of characters of the caller's own instructions to the model.
MAX_WISHES = 8_000


class ChatMessage(RequestModel):
    """One message of the conversation. The model gets messages of the role ``system`` after the instructions of
    MemState."""

    model_config = ConfigDict(frozen=True)

    role: Literal["user", "assistant", "system"]
    # ``request_check`` checks lower limits, and its errors name the limit.
    content: Annotated[str, StringConstraints(max_length=2_000_000)]


class ChatRequest(RequestModel):
    """The messages so far and how to answer them. The last message is the user's."""

    model_config = ConfigDict(frozen=True)

    messages: list[ChatMessage] = Field(
        min_length=1,
        max_length=MAX_MESSAGES,
        description=f"Oldest first. Of those before the last, the newest {MAX_BEFORE:,} characters are read.",
    )
    model: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        default=None, description="Another model at the same endpoint than MEMSTATE_LLM_MODEL."
    )
    intent_override: IntentName | None = Field(
        default=None, description="The intent of the last message. By default, the model decides."
    )
    intent_turns: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="How many of the last messages determine the intent; default MEMSTATE_CHAT_INTENT_TURNS.",
    )
    max_tool_rounds: int | None = Field(
        default=None, ge=1, le=256, description="How often tools may be used, at most MEMSTATE_CHAT_MAX_TOOL_ROUNDS."
    )
    study: bool = Field(default=True, description="A long message to remember is studied in a background job.")
    scope: str | None = Field(default=None, max_length=MAX_SCOPE_LENGTH)
    conversation_id: uuid.UUID | None = Field(
        default=None, description="Continues a conversation that this caller started. Without it, a new one starts."
    )

    @property
    def last(self) -> str:
        """The message to answer."""
        return self.messages[-1].content

    @property
    def is_long(self) -> bool:
        """Whether the last message is long enough to be studied."""
        return len(self.last) > settings.MEMSTATE_CHAT_CHUNK_THRESHOLD_CHARS


def request_check(request: ChatRequest, *, principal: Principal) -> None:
    """Check a request before the model is called or anything is written. No queries.

    Raises ``RequestRefused`` unless the last message has the role user, ``ValueRefused`` if it is empty or too long,
    and ``NotAllowed`` if the request asks to store something but the caller may not write.
    """
    if request.messages[-1].role != "user":
        raise RequestRefused(
            "The last message must have the role user, because it is the one that is answered.",
            code=ProblemCode.CONFLICT,
            member="messages",
        )
    if not request.last.strip():
        raise ValueRefused("The last message is empty.", code=ProblemCode.MISSING_MEMBER, member="messages")
    if request.intent_override not in (None, "query"):
        principal.require("agent")
    read_only = principal.role == "reader" or request.intent_override == "query"
    if read_only or not (request.study and request.is_long):
        length_check(request)


def length_check(request: ChatRequest) -> None:
    """Raise ``ValueRefused`` if the last message is too long to be answered directly."""
    if len(request.last) > MAX_ANSWERED:
        raise ValueRefused(
            f"The last message has {len(request.last):,} characters; the limit is {MAX_ANSWERED:,}. To store a longer "
            "text, send it with study: true and intent_override: ingest.",
            code=ProblemCode.TOO_LARGE,
            member="messages",
        )


def model_messages(request: ChatRequest) -> list[dict[str, str]]:
    """Return the newest earlier messages, at most ``MAX_BEFORE`` characters in total, and then the last message.

    Empty messages and messages of the role ``system`` are left out.
    """
    earlier, remaining = [], MAX_BEFORE
    *before, last = [each for each in request.messages if each.role != "system" and each.content.strip()]
    for each in reversed(before):
        remaining -= len(each.content)
        if remaining < 0:
            break
        earlier.append({"role": str(each.role), "content": each.content})
    return [*reversed(earlier), {"role": str(last.role), "content": last.content}]


def wishes_of(request: ChatRequest) -> str:
    """Return the caller's messages of the role ``system`` as one text. If it is too long, only its end is returned."""
    return "\n\n".join(each.content for each in request.messages if each.role == "system")[-MAX_WISHES:]
