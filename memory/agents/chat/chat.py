"""Answers one message to the assistant: finds its intent, uses tools or starts a study, and logs the turn.

``chat_begin`` checks the request and starts a turn. It runs before any part of the response is sent, so that an invalid
request gets its own status code. Then ``chat_run`` answers the message, in the thread of the request or in a background
thread.
"""

import datetime as dt
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from django.conf import settings
from django.db import transaction

from memory.access.principal import Principal
from memory.agents.chat.conversations import conversation_begin, conversation_led, conversation_messages
from memory.agents.chat.idempotency import key_bind, key_take, reply_keep
from memory.agents.chat.intent import SECONDS, Intent, intent_find
from memory.agents.chat.prompts import instructions_of, long_message, reply_of, study_sentence
from memory.agents.chat.replies import ChatReply
from memory.agents.chat.request import ChatMessage, ChatRequest, length_check, model_messages, request_check, wishes_of
from memory.agents.chat.turns import CallLog, Ended, intent_store, purges_wait, turn_begin, turn_check
from memory.agents.study.control import study_start
from memory.agents.study.progress import study_as_json
from memory.agents.tools.loop import LoopEnd, tool_loop_run
from memory.agents.tools.read_tools import reading_tools
from memory.agents.tools.tool import Toolbox, ToolCalled
from memory.agents.tools.write_log import item_write
from memory.agents.tools.write_tools import writing_tools
from memory.core.callbacks import Clock, Enqueue
from memory.core.errors import MemoryProblem, RequestRefused, ValueRefused
from memory.ingest.items import IngestItem
from memory.ingest.plan import ItemReply
from memory.llm.chat_request import mark_make, model_configured
from memory.llm.dialogue import dialogue_begin, model_named
from memory.llm.wire import ModelProblem, ModelUnavailable
from memory.models import Conversation, ConversationTurn

Event = Literal["intent", "tool", "reply", "done"]
Emit = Callable[[Event, Mapping[str, Any]], None]
# The keys of a reply whose values are known before the work starts.
_KNOWN_FIRST = ("intent", "intent_source", "model", "conversation_id")

_NO_MODEL = (
    "No language model is configured. Set MEMSTATE_LLM_MODEL, and MEMSTATE_LLM_BASE_URL and MEMSTATE_LLM_API_KEY if "
    "the endpoint needs them. For details, see the page Model in the console."
)
# With these kinds of ``ModelProblem``, the model has answered, but without a usable text. A retry would hardly help, so
# the client gets a reply and not an error.
_UNUSABLE_ANSWERS = frozenset({"refused", "cut_off", "empty"})


@dataclass(frozen=True, slots=True)
class Chat:
    """A turn that has started. ``principal`` is the caller, limited to the scope of the conversation. If ``recalls`` is
    true, the earlier messages are read from the store. If ``keyed`` is true, the reply is stored under an
    Idempotency-Key."""

    request: ChatRequest
    principal: Principal
    conversation: Conversation
    turn: ConversationTurn
    recalls: bool = False
    keyed: bool = False


def chat_begin(
    request: ChatRequest,
    *,
    channel: str,
    principal: Principal,
    now: dt.datetime,
    recalls: bool = False,
    idempotency_key: str | None = None,
) -> Chat:
    """Check a request and create its turn. Eight queries; an ``idempotency_key`` adds two.

    A caller with an ``idempotency_key`` must call ``reply_again`` first. With ``recalls``, the earlier messages are
    read from the conversation. Raises ``NotVisible`` if the caller may not continue the conversation,
    ``RequestRefused`` if the conversation has another scope, ``Conflict`` while its last message is being answered,
    ``ModelUnavailable`` if no model is configured, and the errors of ``request_check`` and ``key_take``.
    """
    principal.require("reader")
    scope = principal.scope_chosen(request.scope)
    request_check(request, principal=principal)
    conversation = None
    if request.conversation_id is not None:
        conversation = conversation_led(request.conversation_id, principal=principal)
        if request.scope is not None and scope != conversation.scope:
            raise RequestRefused(
                f"This conversation belongs to the scope {conversation.scope}. Start a new one for {scope}.",
                member="scope",
            )
    if not model_configured():
        raise ModelUnavailable(_NO_MODEL, kind="not_configured")
    studied = request.study and request.is_long and principal.role != "reader" and request.intent_override != "query"
    message = long_message(len(request.last)) if studied else request.last
    with transaction.atomic():
        if idempotency_key:
            key_take(request, key=idempotency_key, principal=principal, now=now)
        if conversation is None:
            conversation = conversation_begin(scope=scope, channel=channel, principal=principal, now=now)
        turn = turn_begin(conversation, message=message, model=model_named(request.model), now=now)
        if idempotency_key:
            key_bind(turn, key=idempotency_key, principal=principal)
    return Chat(
        request, replace(principal, scope=conversation.scope), conversation, turn, recalls, keyed=bool(idempotency_key)
    )


def chat_run(
    chat: Chat,
    *,
    clock: Clock,
    enqueue: Enqueue,
    emit: Emit = lambda _event, _data: None,
    go_on: Callable[[], bool] = lambda: True,
) -> ChatReply:
    """Answer the message and return the reply. ``emit`` is called with each event. ``go_on`` is called before each
    round of tool calls. If it returns False, the work stops, and earlier writes are kept.

    Takes at most ``MEMSTATE_CHAT_TIMEOUT_SECONDS`` plus one tool call. Each tool call costs its own queries and two for
    the log. Raises ``ModelProblem`` if the model fails before the first tool call. A later failure is described in the
    reply, because something may have been written. Also raises the errors of ``study_start``, and database errors. The
    turn is closed in any case.
    """
    call_log = CallLog(chat.turn)
    try:
        return _run(_recalled(chat, now=clock()), call_log, clock=clock, enqueue=enqueue, emit=emit, go_on=go_on)
    except Exception as problem:
        # Only a ``MemoryProblem`` has a sentence for users. Other exceptions are only logged.
        sentence = problem.sentence if isinstance(problem, MemoryProblem) else ""
        ended = Ended.MODEL if isinstance(problem, ModelProblem) else Ended.FAILED
        call_log.end(reply=sentence, ended=ended, rounds=0, now=clock())
        raise


def _recalled(chat: Chat, *, now: dt.datetime) -> Chat:
    """If ``chat.recalls``, return a copy with the earlier messages of the conversation; otherwise return ``chat``."""
    if not chat.recalls:
        return chat
    purges_wait(chat.turn)
    before = conversation_messages(chat.conversation, now=now, before=chat.turn.place)
    messages = [*map(ChatMessage.model_validate, before), chat.request.messages[-1]]
    return replace(chat, request=chat.request.model_copy(update={"messages": messages}))


def _run(
    chat: Chat, call_log: CallLog, *, clock: Clock, enqueue: Enqueue, emit: Emit, go_on: Callable[[], bool]
) -> ChatReply:
    request, until = chat.request, time.monotonic() + settings.MEMSTATE_CHAT_TIMEOUT_SECONDS
    intent = _intent(chat)
    intent_store(chat.turn, intent=intent.intent, source=intent.source)
    body: ChatReply = {
        "reply": "",
        "intent": intent.intent,
        "intent_source": intent.source,
        "tool_log": [],
        "model": model_named(request.model),
        "rounds": 0,
        "conversation_id": chat.conversation.id,
        "ended": "done",
        "study": None,
    }
    emit("intent", {name: value for name, value in body.items() if name in _KNOWN_FIRST})
    study_id, keeps_reply = None, True
    if intent.writes and request.study and request.is_long:
        now = clock()
        job = study_start(
            request.last,
            conversation_id=chat.conversation.id,
            scope=chat.conversation.scope,
            model=request.model or "",
            principal=chat.principal,
            now=now,
            enqueue=enqueue,
        )
        study_id, body["study"] = job.id, study_as_json(job)
        body["reply"], ended = study_sentence(len(request.last), job.segments), "done"
    else:
        length_check(request)
        end = _talk(
            chat, call_log, writes=intent.writes, seconds=until - time.monotonic(), clock=clock, emit=emit, go_on=go_on
        )
        ended = Ended.STOPPED if end.ended == "time" and not go_on() else end.ended
        # A client that has disconnected did not get the reply. If nothing was written, the reply is not stored, so that
        # a repeated message is answered again.
        keeps_reply = ended != Ended.STOPPED or any(called.wrote for called in end.log)
        body |= {"reply": reply_of(end), "rounds": end.rounds, "ended": end.ended}
        body["tool_log"] = [called.as_json() for called in end.log]
    call_log.end(
        reply=body["reply"],
        ended=ended,
        rounds=body["rounds"],
        now=clock(),
        study_id=study_id,
        at_end=lambda: reply_keep(chat.turn, body) if chat.keyed and keeps_reply else None,
    )
    emit("reply", {"reply": body["reply"]})
    emit("done", body)
    return body


def reply_events(body: dict[str, Any]) -> Iterator[tuple[Event, dict[str, Any]]]:
    """Yield the events of ``chat_run`` for a stored reply, in the same order."""
    yield "intent", {name: body[name] for name in _KNOWN_FIRST}
    for called in body["tool_log"]:
        yield "tool", called
    yield "reply", {"reply": body["reply"]}
    yield "done", body


def _intent(chat: Chat) -> Intent:
    request = chat.request
    if request.intent_override is not None:
        return Intent(request.intent_override, "override")
    if chat.principal.role == "reader":
        # Readers cannot write.
        return Intent("query", "rule")
    messages = [{"role": str(each.role), "content": each.content} for each in request.messages]
    turns = request.intent_turns or settings.MEMSTATE_CHAT_INTENT_TURNS
    return intent_find(messages, turns=turns, within=min(SECONDS, settings.MEMSTATE_CHAT_TIMEOUT_SECONDS))


def _talk(
    chat: Chat, call_log: CallLog, *, writes: bool, seconds: float, clock: Clock, emit: Emit, go_on: Callable[[], bool]
) -> LoopEnd:
    """Let the model use tools until it answers. Raises ``ModelProblem`` if the model fails before the first tool call.

    Raises ``ValueRefused`` if the endpoint does not have the requested model.
    """
    request, mark, most = chat.request, mark_make(), settings.MEMSTATE_CHAT_MAX_TOOL_ROUNDS

    def tick(called: ToolCalled) -> None:
        call_log.add(called)
        emit("tool", called.as_json())

    def write(item: IngestItem) -> ItemReply:
        return item_write(
            item,
            principal=chat.principal,
            now=clock(),
            conversation_id=chat.conversation.id,
            unlogged=call_log.unlogged_topics(),
            check=lambda: turn_check(chat.turn),
        )

    tools = reading_tools(chat.principal, clock=clock)
    if writes:
        tools += writing_tools(write)
    instructions = instructions_of(writes=writes, scope=chat.conversation.scope, wishes=wishes_of(request), now=clock())
    end = tool_loop_run(
        dialogue_begin(instructions, model_messages(request), mark=mark),
        Toolbox(tools),
        mark=mark,
        most_rounds=min(request.max_tool_rounds or most, most),
        seconds=seconds,
        purpose="chat",
        model=request.model,
        tick=tick,
        go_on=go_on,
    )
    if end.problem is not None and end.problem.kind == "absent" and request.model and not end.log:
        raise ValueRefused(end.problem.sentence, code=end.problem.code)
    if end.ended == "model" and end.problem is not None and not end.log and end.problem.kind not in _UNUSABLE_ANSWERS:
        raise end.problem
    if end.ended == "done" and not end.reply:
        end.ended = "model"
    return end
