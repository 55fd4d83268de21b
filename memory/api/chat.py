"""POST /v1/chat: a message to the assistant, answered as JSON or as a stream. GET /v1/chat: conversations."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from ninja import Router

from memory.agents.chat.background_turn import Running, connection_lend, turn_slot
from memory.agents.chat.chat import Chat, chat_begin, chat_run, reply_events
from memory.agents.chat.conversations import conversations_list
from memory.agents.chat.idempotency import reply_again
from memory.agents.chat.replies import ChatReply, ConversationPage, conversation_as_json
from memory.agents.chat.request import ChatRequest
from memory.api.authentication import principal_of
from memory.api.paging import Cursor, Limit, limit_checked
from memory.api.parsing import IdempotencyKey
from memory.api.problems import failure_of, problem_response, refusal_response
from memory.api.replies import json_reply
from memory.api.responses import CHANGE, problems
from memory.core.errors import MemoryProblem
from memory.core.replies import json_text
from memory.jobs import tasks
from memory.models import Conversation

router = Router(tags=["chat"])

EVENT_STREAM = "text/event-stream"
_STREAM = {
    "description": (
        "With Accept: text/event-stream. Server-sent events, each with JSON as its data: `intent` (intent, "
        "intent_source, model, conversation_id), `tool` (one call, as in tool_log), `reply` (reply), `done` (the whole "
        "reply, as in application/json), or `error` (a problem document); `done` or `error` is the last. Comments keep "
        "the connection open. If the client closes it, the work ends at its next round."
    ),
    "schema": {"type": "string"},
}


@router.post(
    "/chat",
    summary="Talk with the assistant",
    response={200: ChatReply, **CHANGE},
    openapi_extra={"responses": {200: {"content": {EVENT_STREAM: _STREAM}}}},
)
def chat(request: HttpRequest, payload: ChatRequest, idempotency_key: IdempotencyKey = None) -> HttpResponseBase:
    """Use the memory to answer the last message, and store what the message asks to remember. Reader keys; agent keys
    to store.

    The language model reads and writes with the permissions and the scope of the key; it cannot forget anything.
    Nothing is written for the intent `query` or with a reader's key. A long text to remember becomes a study job.
    A message that is not studied has at most 60,000 characters (422).
    If the model fails after a tool was used, `ended` and `reply` state the failure and the status is 200.

    A request with a known Idempotency-Key gets the first reply again, also as a stream. If the first request failed
    before a write, it is processed again; if it was interrupted after a write, the status is 409.
    """
    principal, now = principal_of(request, "reader"), timezone.now()
    streams = request.get_preferred_type(["application/json", EVENT_STREAM]) == EVENT_STREAM
    if idempotency_key is not None:
        again = reply_again(payload, key=idempotency_key, principal=principal, now=now)
        if again is not None:
            return _stream(map(_event, reply_events(again))) if streams else json_reply(again)
    with ExitStack() as slot:
        slot.enter_context(turn_slot())
        begun = chat_begin(
            payload, channel=Conversation.Channel.API, principal=principal, now=now, idempotency_key=idempotency_key
        )
        if streams:
            leave = slot.pop_all().close
            running = Running(lambda emit, go_on: _answer(begun, emit, go_on), at_end=leave)
            connection_lend()
            return _stream(_events(running))
        return json_reply(_answer(begun))


@router.get("/chat", summary="List conversations", response={200: ConversationPage, **problems(401, 422, 429, 503)})
def conversation_list(request: HttpRequest, cursor: Cursor = None, limit: Limit = 50) -> HttpResponse:
    """List the caller's conversations, most recently active first. Operator keys list all conversations in their
    scope."""
    principal = principal_of(request, "reader")
    found, following = conversations_list(principal=principal, cursor=cursor, limit=limit_checked(limit))
    return json_reply(ConversationPage(items=[conversation_as_json(each) for each in found], next=following))


def _answer(begun: Chat, *callbacks: Any) -> ChatReply:
    """Run the turn ``begun`` and return its reply. A stream passes two callbacks: ``emit`` and ``go_on``."""
    more = dict(zip(("emit", "go_on"), callbacks, strict=False))
    try:
        return chat_run(begun, clock=timezone.now, enqueue=tasks.study_enqueue, **more)
    finally:
        # Topics that the turn has read count as used even if the turn failed.
        tasks.upkeep_nudge()


# Some clients end a line at these characters too, so they are escaped.
_LINE_ENDS = {ord(sign): f"\\u{ord(sign):04x}" for sign in "\u0085\u2028\u2029"}


def _stream(events: Iterator[str]) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        events,
        content_type=EVENT_STREAM,
        # Keeps proxies from buffering the stream.
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def _events(running: Running) -> Iterator[str]:
    try:
        yield ": the answer follows\n\n"
        for event in running.events():
            yield ": still at it\n\n" if event is None else _event(event)
    finally:
        # This also runs if the client closes the connection before the first event.
        running.stop()


def _event(named: tuple[str, Any]) -> str:
    event, data = named
    if isinstance(data, Exception):
        event, data = "error", json.loads(_problem(data).content)
    return f"event: {event}\ndata: {json_text(data).translate(_LINE_ENDS)}\n\n"


def _problem(problem: Exception) -> HttpResponse:
    if isinstance(problem, MemoryProblem):
        return refusal_response(problem)
    return problem_response(*failure_of(problem))
