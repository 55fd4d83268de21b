"""Assistant: conversations with their tool calls, and the undo of what a conversation wrote.

Each message is answered in its own thread, which stores every step, and the page shows the stored steps. So the
request ends soon, with and without JavaScript, and a user who leaves the page finds the answer later.
"""

import uuid
from contextlib import ExitStack
from typing import Any

import structlog
from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.urls import path, reverse
from django.utils import timezone

from memory.agents.chat.background_turn import Running, turn_slot
from memory.agents.chat.chat import Chat, chat_begin, chat_run
from memory.agents.chat.conversations import (
    conversation_get,
    conversation_name,
    conversation_turns,
    conversations_count,
    conversations_list,
)
from memory.agents.chat.replies import conversation_writes
from memory.agents.chat.request import ChatMessage, ChatRequest
from memory.agents.chat.undo import ConversationUndone, conversation_undo, conversation_undo_preview, undo_summary
from memory.agents.study.control import study_resume
from memory.agents.study.progress import study_as_json
from memory.console.chat_views import TurnShown, turns_shown
from memory.console.fields import Attempt, ReasonField, ScopeField, form_error
from memory.console.list_page import ListPage, NoFilter
from memory.console.page import OPERATOR, READER, ConsoleRequest, go, page, show
from memory.console.undo import run_named, undo_offer
from memory.core.errors import MemoryProblem, NotVisible
from memory.core.truncate import line_cut
from memory.forgetting.runs import run_get
from memory.health import worker_problem
from memory.jobs import tasks
from memory.llm.client import model_summary
from memory.llm.status import SENT
from memory.models import Conversation, StudyJob
from memory.resumable import job_cancel, job_get

logger = structlog.get_logger(__name__)

# Seconds that a form waits for a quick answer. The page shows the progress of a slower answer.
WAIT_SECONDS = 1.0
# The most turns shown on a page.
TURNS = 20
# The most characters of the first message that are used as the name of a conversation.
NAME = 90
# The most items listed in the preview of an undo. Counts include all items.
SHOWN = 100

_INTENTS = [("", "Detect automatically"), ("query", "Query only"), ("ingest", "Remember")]
# The purposes for which a conversation sends texts to a model.
_PURPOSES = ("intent", "chat", "study")


class SayForm(forms.Form):
    """A message and its options."""

    message = forms.CharField(
        label="Message",
        strip=False,
        max_length=settings.MEMSTATE_STUDY_MAX_CHARS,
        widget=forms.Textarea(attrs={"rows": 3, "data-sends": True}),
    )
    intent = forms.ChoiceField(label="Intent", choices=_INTENTS, required=False)
    study = forms.BooleanField(label="Study a long text in the background", required=False, initial=True)
    scope = ScopeField(required=False, help_text="The assistant can read and write this scope and everything below it.")
    conversation = forms.UUIDField(required=False, widget=forms.HiddenInput)

    def asked(self) -> ChatRequest:
        """Return the request for the assistant."""
        data = self.cleaned_data
        # Browsers send a line break as two characters. It must count as one.
        said = ChatMessage(role="user", content=data["message"].replace("\r\n", "\n"))
        return ChatRequest(
            messages=[said],
            intent_override=data["intent"] or None,
            study=data["study"],
            scope=data["scope"] or None,
            conversation_id=data["conversation"],
        )


class ConversationUndoForm(forms.Form):
    """The reason for undoing a conversation, and the digest of the preview."""

    reason = ReasonField(max_length=500)
    digest = forms.CharField(max_length=64, widget=forms.HiddenInput)


@page(get=READER)
def assistant(request: ConsoleRequest) -> HttpResponse:
    """Show the form for a new conversation, and the earlier conversations. Two queries."""
    return _list_page(request, _say_form(None, {"scope": request.GET.get("scope", "")}))


@page(post=OPERATOR)
def assistant_say(request: ConsoleRequest) -> HttpResponse:
    """Accept a message, answer it in a thread, and redirect to the page with its progress."""
    form = SayForm(request.POST)
    conversation = None
    if form.is_valid():
        try:
            if form.cleaned_data["conversation"] is not None:
                conversation = conversation_get(form.cleaned_data["conversation"], principal=request.principal)
            chat = _answer_begin(request, form.asked())
        except NotVisible:
            raise
        except MemoryProblem as problem:
            form.add_error("message", form_error(problem))
        else:
            if conversation is None or not request.htmx:
                return go(request, f"{reverse('console:conversation', args=[chat.conversation.pk])}#last")
            # The reply contains an empty form below the message.
            context = {
                "turn": _turn(request, chat.conversation, chat.turn.place),
                "conversation": chat.conversation,
                "form": _say_form(chat.conversation, form.cleaned_data),
            }
            return show(request, "assistant_said.html", context)
    return _refused(request, form, conversation)


@page(get=READER)
def conversation(request: ConsoleRequest, conversation_id: uuid.UUID) -> HttpResponse:
    """Show the newest messages of a conversation with their tool calls. Seven queries at most."""
    found = conversation_get(conversation_id, principal=request.principal)
    return _conversation_page(request, found, _say_form(found, {}))


@page(get=READER)
def conversation_turn(request: ConsoleRequest, conversation_id: uuid.UUID, place: int) -> HttpResponse:
    """Return one message in its present state, for the page that polls it. Three queries."""
    found = conversation_get(conversation_id, principal=request.principal)
    if not request.htmx:
        return go(request, "console:conversation", conversation_id)
    turn = _turn(request, found, place)
    if turn.working and request.GET.get("seen") == str(len(turn.calls)):
        # Nothing is replaced, so that elements that the user has expanded stay expanded.
        return HttpResponse(status=204)
    reply = show(request, "parts/assistant_turn.html", {"turn": turn, "conversation": found})
    if not turn.working:
        # This event makes the page reload what the conversation wrote.
        reply.headers["HX-Trigger-After-Swap"] = "conversation-moved"
    return reply


@page(get=READER)
def conversation_written(request: ConsoleRequest, conversation_id: uuid.UUID) -> HttpResponse:
    """Return the topics that the assistant has written in this conversation so far. Three queries."""
    found = conversation_get(conversation_id, principal=request.principal)
    if not request.htmx:
        return go(request, "console:conversation", conversation_id)
    return show(request, "parts/assistant_written.html", {"conversation": found, "wrote": conversation_writes(found)})


@page(get=OPERATOR, post=OPERATOR)
def conversation_take_back(request: ConsoleRequest, conversation_id: uuid.UUID) -> HttpResponse:
    """Show which changes of a conversation would be undone, and why the others would not. A posted form undoes exactly
    the changes that were shown. If they would be different by now, they are shown again. Eleven queries, plus those of
    ``conversation_undo``."""
    found = conversation_get(conversation_id, principal=request.principal)
    form = ConversationUndoForm(request.POST if request.method == "POST" else None)
    attempt = Attempt(form)
    with attempt:
        if form.is_valid():
            undone = conversation_undo(
                conversation_id,
                principal=request.principal,
                reason=form.cleaned_data["reason"],
                now=timezone.now(),
                digest=form.cleaned_data["digest"],
            )
            _undo_notice(request, undone)
            tasks.upkeep_nudge()
            return go(request, "console:conversation", conversation_id)
    look = conversation_undo_preview(conversation_id, principal=request.principal, now=timezone.now())
    context = {
        "conversation": found,
        "name": _name(found),
        "form": form,
        "look": look,
        "refusal": attempt.refused,
        "sentence": undo_summary(look, done=False),
        "taken": look.taken_back[:SHOWN],
        "taken_more": max(0, len(look.taken_back) - SHOWN),
        "left": look.left[:SHOWN],
        "left_more": max(0, len(look.left) - SHOWN),
    }
    return show(request, "assistant_undo.html", context, status=attempt.status)


def _undo_notice(request: ConsoleRequest, undone: ConversationUndone) -> None:
    sentence = undo_summary(undone, done=True)
    if undone.run_id is None:
        messages.success(request, sentence)
        return
    run = run_get(undone.run_id, principal=request.principal)
    if undone.counts["topic"] == len(undone.taken_back):
        undo_offer(request, sentence, run)
    else:
        # Undoing the run restores the topics and nothing else.
        run_named(request, f"{sentence} Undoing its run restores the released memories.", run)


@page(get=READER)
def study_progress(request: ConsoleRequest, study_id: uuid.UUID) -> HttpResponse:
    """Return the progress of a study, for the page of its conversation. Two queries."""
    job = job_get(StudyJob, study_id, principal=request.principal)
    if not request.htmx:
        return go(request, "console:conversation", job.conversation_id)
    reply = show(
        request,
        "parts/assistant_study.html",
        {
            "study": study_as_json(job),
            "worker": worker_problem(timezone.now(), waits=job.status == StudyJob.Status.WORKING),
        },
    )
    if job.status != StudyJob.Status.WORKING:
        reply.headers["HX-Trigger-After-Swap"] = "conversation-moved"
    return reply


@page(post=OPERATOR)
def study_stop(request: ConsoleRequest, study_id: uuid.UUID) -> HttpResponse:
    """Cancel a study, but keep what it has stored."""
    job = job_cancel(StudyJob, study_id, principal=request.principal, now=timezone.now())
    messages.success(request, f"The study is stopped. Results of the {job.done:,} parts read so far are kept.")
    return go(request, "console:conversation", job.conversation_id)


@page(post=OPERATOR)
def study_go_on(request: ConsoleRequest, study_id: uuid.UUID) -> HttpResponse:
    """Resume a study that was cancelled or has failed."""
    job = study_resume(study_id, principal=request.principal, now=timezone.now(), enqueue=tasks.study_enqueue)
    messages.success(request, "The study continues where it stopped.")
    return go(request, "console:conversation", job.conversation_id)


def _answer_begin(request: ConsoleRequest, asked: ChatRequest) -> Chat:
    """Store the message, answer it in a thread, and wait up to ``WAIT_SECONDS`` for the answer."""
    with ExitStack() as place:
        place.enter_context(turn_slot())
        chat = chat_begin(
            asked, channel=Conversation.Channel.CONSOLE, principal=request.principal, now=timezone.now(), recalls=True
        )
        running = Running(lambda _tell, _go_on: _answer(chat), at_end=place.pop_all().close)
    running.join(WAIT_SECONDS)
    return chat


def _answer(chat: Chat) -> None:
    """Run a turn to its end, even if the page is closed. The turn records how it ended."""
    try:
        chat_run(chat, clock=timezone.now, enqueue=tasks.study_enqueue)
    except MemoryProblem as problem:
        logger.info("conversation_refused", problem=type(problem).__name__)
    except Exception:
        logger.exception("conversation_failed", conversation=str(chat.conversation.pk))
    finally:
        # Wake the worker even if the turn failed: the worker records a use of each topic that the turn has read.
        tasks.upkeep_nudge()


def _say_form(conversation: Conversation | None, said: dict[str, Any]) -> SayForm:
    """Return a form without a message, and with the options of the last message."""
    initial = {"intent": said.get("intent", ""), "study": said.get("study", True), "scope": said.get("scope", "")}
    form = SayForm(initial={**initial, "conversation": conversation.pk if conversation else None})
    if conversation is not None:
        # The first message sets the scope of a conversation.
        del form.fields["scope"]
    return form


def _refused(request: ConsoleRequest, form: SayForm, conversation: Conversation | None) -> HttpResponse:
    if conversation is None:
        return _list_page(request, form, status=422)
    del form.fields["scope"]
    if not request.htmx:
        return _conversation_page(request, conversation, form, status=422)
    reply = show(request, "parts/assistant_say.html", {"form": form, "conversation": conversation}, status=422)
    reply.headers["HX-Retarget"] = "#say"
    reply.headers["HX-Reswap"] = "outerHTML"
    return reply


def _list_page(request: ConsoleRequest, form: SayForm, *, status: int = 200) -> HttpResponse:
    context = {
        **CONVERSATIONS.context(request),
        "form": form,
        **_model(),
        "long": settings.MEMSTATE_CHAT_CHUNK_THRESHOLD_CHARS,
    }
    return show(request, "assistant.html", context, status=status)


def _conversation_page(
    request: ConsoleRequest, found: Conversation, form: SayForm, *, status: int = 200
) -> HttpResponse:
    before = request.GET.get("before", "")
    shown = int(before) if before.isascii() and before.isdigit() and len(before) < 9 else None
    rows = conversation_turns(found, now=timezone.now(), before=shown, limit=TURNS)
    turns = turns_shown(rows, principal=request.principal)
    working = any(turn.study and turn.study["status"] == StudyJob.Status.WORKING for turn in turns)
    context = {
        "conversation": found,
        "name": _name(found),
        "turns": turns,
        "older": turns[0].place if turns and turns[0].place > 1 else None,
        "before": shown,
        "form": form,
        "wrote": conversation_writes(found),
        "mine": found.identity == request.principal.identity,
        "working": working or any(turn.working for turn in turns),
        "worker": worker_problem(timezone.now(), waits=working),
        **_model(),
    }
    return show(request, "assistant_conversation.html", context, status=status)


def _model() -> dict[str, Any]:
    return {"model": model_summary(), "sent": [SENT[each] for each in _PURPOSES if each in SENT]}


def _turn(request: ConsoleRequest, conversation: Conversation, place: int) -> TurnShown:
    rows = conversation_turns(conversation, now=timezone.now(), before=place + 1, limit=1)
    if not rows or rows[0].place != place:
        raise NotVisible(f"Message {place:,} of this conversation does not exist.")
    return turns_shown(rows, principal=request.principal)[0]


def _name(conversation: Conversation) -> str:
    return line_cut(conversation_name(conversation), NAME) or "A conversation"


# Conversations, most recent first. One query for a page, one for the count.
CONVERSATIONS = ListPage(
    name="assistant",
    address="assistant/",
    form=NoFilter,
    fetch=lambda asked, cursor, limit: conversations_list(principal=asked.principal, cursor=cursor, limit=limit),
    count=lambda asked, most: conversations_count(principal=asked.principal, at_most=most),
    noun="conversation",
    view=assistant,
)

urlpatterns = [
    *CONVERSATIONS.urlpatterns,
    path("assistant/say/", assistant_say, name="assistant_say"),
    path("assistant/<uuid:conversation_id>/", conversation, name="conversation"),
    path("assistant/<uuid:conversation_id>/<int:place>/", conversation_turn, name="conversation_turn"),
    path("assistant/<uuid:conversation_id>/written/", conversation_written, name="conversation_written"),
    path("assistant/<uuid:conversation_id>/undo/", conversation_take_back, name="conversation_undo"),
    path("assistant/studies/<uuid:study_id>/", study_progress, name="study_progress"),
    path("assistant/studies/<uuid:study_id>/cancel/", study_stop, name="study_cancel"),
    path("assistant/studies/<uuid:study_id>/resume/", study_go_on, name="study_resume"),
]
