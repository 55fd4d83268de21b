"""Conversations: who leads them, who sees them, one turn at a time, and what a killed process leaves."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import OperationalError, connections
from django.utils import timezone
from psycopg.errors import LockNotAvailable

from memory.agents.chat import turns
from memory.agents.chat.conversations import (
    conversation_begin,
    conversation_get,
    conversation_messages,
    conversation_turns,
    conversations_count,
    conversations_list,
)
from memory.agents.chat.turns import turn_begin, turns_lost_close
from memory.core.errors import NotVisible, ValueRefused
from memory.jobs.tasks import tidy
from memory.models import Conversation, ConversationTurn
from tests.agents.chat.talk import ask, say, tell
from tests.cast import Caller, Cast, Clock, principal_like
from tests.llm.server import Model, calling


def test_a_conversation_goes_on_by_its_id(agent: Caller, model: Model):
    model.answers("One.", "Two.")
    first = ask(agent, "one")
    second = ask(agent, "two", conversation_id=first["conversation_id"])
    assert second["conversation_id"] == first["conversation_id"]
    conversation = Conversation.objects.get()
    got = conversation_turns(conversation, now=timezone.now())
    assert [(turn.place, turn.message, turn.reply) for turn in got] == [(1, "one", "One."), (2, "two", "Two.")]
    assert conversation_messages(conversation, now=timezone.now(), limit=1) == [
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": "Two."},
    ]
    assert [turn.place for turn in conversation_turns(conversation, now=timezone.now(), before=2, limit=1)] == [1]


def test_no_one_goes_on_with_the_conversation_of_someone_else(cast: Cast, model: Model):
    model.answers("Yes.")
    mine = ask(cast.alice, "one")["conversation_id"]
    for other in (cast.agent, cast.operator, cast.stranger):
        answer = say(other, "two", conversation_id=mine, intent_override="query")
        assert (answer.status, answer.code) == (404, "not-found")
    unknown = str(uuid.uuid4())
    assert say(cast.alice, "x", conversation_id=unknown).code == "not-found"
    assert Conversation.objects.get().turns == 1


def test_a_conversation_stays_in_its_scope(agent: Caller, model: Model):
    model.answers("Yes.")
    begun = ask(agent, "one", scope="/a")["conversation_id"]
    assert ask(agent, "two", conversation_id=begun, scope="/a/")["conversation_id"] == begun
    answer = say(agent, "three", conversation_id=begun, scope="/b")
    assert (answer.status, answer.code) == (400, "contradictory-request")
    ask(agent, "four", conversation_id=begun)
    assert "the scope /a and" in model.chats[-1].system


def test_conversations_are_seen_by_who_leads_them_and_by_operators(db: None):
    alice, agent, operator = (
        principal_like("agent", "/a"),
        principal_like("agent", "/"),
        principal_like("operator", "/"),
    )
    for number, (leader, scope) in enumerate([(alice, "/a"), (agent, "/a"), (agent, "/b"), (alice, "/a/c")]):
        begun = conversation_begin(scope=scope, channel="console", principal=leader, now=timezone.now())
        turn_begin(begun, message=f"message {number} " + "long " * 100, model="m", now=timezone.now())

    def names(principal: Any, limit: int = 10) -> list[str]:
        found, cursor = [], None
        while True:
            page, cursor = conversations_list(principal=principal, cursor=cursor, limit=limit)
            found += [row.name[:9] for row in page]  # type: ignore[attr-defined]
            if cursor is None:
                return found

    assert names(operator, 1) == [f"message {number}" for number in (3, 2, 1, 0)]
    assert names(agent) == ["message 2", "message 1"]
    assert names(alice) == ["message 3", "message 0"]
    assert names(principal_like("operator", "/a")) == ["message 3", "message 1", "message 0"]
    assert names(principal_like("operator", "/b")) == ["message 2"]
    assert names(principal_like("reader", "/")) == []
    assert conversations_count(principal=operator, at_most=2) == 3
    with pytest.raises(NotVisible):
        conversation_get(Conversation.objects.get(scope="/b").pk, principal=alice)
    with pytest.raises(ValueRefused):
        conversations_list(principal=operator, cursor="x", limit=1)


@pytest.mark.django_db(transaction=True)
def test_a_turn_is_on_record_while_it_works(http_cast: Cast, model: Model):
    seen: list[Any] = []

    def look(_asked: Any) -> str:
        seen.extend(ConversationTurn.objects.values_list("message", "ended", "tool_log"))
        connections.close_all()
        return "Nothing."

    model.answers(calling(("query", {"q": "tea"})), look)
    ask(http_cast.agent, "one")
    ((message, ended, log),) = seen
    assert (message, ended, [each["said"] for each in log]) == ("one", "working", ["0 memories found."])
    turn = ConversationTurn.objects.get()
    assert (turn.ended, turn.tool_log) == ("done", log)


def test_a_turn_whose_process_was_lost_holds_no_one_up(clock: Clock, db: None, settings: Any):
    now = clock.stop()
    begun = conversation_begin(scope="/", channel="api", principal=principal_like(), now=now)
    turn_begin(begun, message="one", model="m", now=now)
    later = clock.forward(seconds=settings.MEMSTATE_CHAT_TIMEOUT_SECONDS + 90)
    # It is reported as lost before anybody has closed it, so that no page waits for it.
    assert [turn.ended for turn in conversation_turns(begun, now=now)] == ["working"]
    assert [turn.ended for turn in conversation_turns(begun, now=later)] == ["lost"]
    assert turn_begin(begun, message="two", model="m", now=later).place == 2
    assert [turn.ended for turn in conversation_turns(begun, now=later)] == ["lost", "working"]
    assert turns_lost_close(now=later) == 0
    tidy()
    assert ConversationTurn.objects.filter(ended="working").count() == 1
    clock.forward(seconds=settings.MEMSTATE_CHAT_TIMEOUT_SECONDS + 90)
    tidy()
    assert not ConversationTurn.objects.filter(ended="working").exists()


def test_a_turn_that_a_fault_of_ours_ends_is_closed(agent: Caller, model: Model, monkeypatch: pytest.MonkeyPatch):
    from memory.agents.chat import chat

    monkeypatch.setattr(chat, "tool_loop_run", lambda *_args, **_more: 1 / 0)
    assert say(agent, "one", intent_override="query").status == 500
    assert ConversationTurn.objects.get().ended == "failed"


@pytest.mark.django_db(transaction=True)
def test_a_conversation_answers_one_request_at_a_time(http_cast: Cast, model: Model):
    model.answers("One.")
    begun = ask(http_cast.agent, "one")["conversation_id"]
    refusals = threading.Semaphore(0)

    def answer_after_three_refusals(_asked: Any) -> str:
        return "Yes." if all(refusals.acquire(timeout=20) for _ in range(3)) else "The others were not refused."

    model.answers(answer_after_three_refusals)

    def send(number: int) -> Any:
        answer = say(http_cast.agent, f"at once {number}", conversation_id=begun, intent_override="query")
        if answer.status == 409:
            refusals.release()
        return answer

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(send, range(4)))
    assert sorted(answer.status for answer in answers) == [200, 409, 409, 409]
    refused = next(answer for answer in answers if answer.status == 409)
    assert refused.code == "busy"
    model.answers("Three.")
    ask(http_cast.agent, "three", conversation_id=begun)
    turns = ConversationTurn.objects.order_by("place")
    assert [(turn.place, turn.ended) for turn in turns] == [(1, "done"), (2, "done"), (3, "done")]
    assert Conversation.objects.get().turns == 3


def test_a_lock_that_is_missed_loses_neither_the_log_nor_the_reply(
    agent: Caller, model: Model, monkeypatch: pytest.MonkeyPatch
):
    missed = OperationalError("canceling statement due to lock timeout")
    missed.__cause__ = LockNotAvailable()
    known, failures = turns.topics_lock_shared, [missed, missed, missed]

    def vanished(ids: Any) -> Any:
        if failures:
            raise failures.pop()
        return known(ids)

    monkeypatch.setattr(turns, "topics_lock_shared", vanished)
    model.answers(
        calling(("new_topic", {"title": "One", "summary": "First."})),
        calling(("new_topic", {"title": "Two", "summary": "Second."})),
        "Both are stored.",
    )
    reply = tell(agent, "Remember one and two.")
    assert ([each["ok"] for each in reply["tool_log"]], reply["reply"]) == ([True, True], "Both are stored.")
    turn = ConversationTurn.objects.get()
    assert (turn.reply, turn.ended) == ("Both are stored.", "done")
    assert [each["topic_ids"] for each in turn.tool_log] == [each["topic_ids"] for each in reply["tool_log"]]
    # If it is never to be had, whoever asked gets the reply all the same.
    failures += [missed] * 9
    assert tell(agent, "Remember three.")["reply"] == "Both are stored."
    model.answers(calling(("new_topic", {"title": "Four", "summary": "Fourth."})), "It is.")
    assert tell(agent, "Remember four.")["reply"] == "It is."
