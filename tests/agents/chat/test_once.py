"""The Idempotency-Key of a message: sent again it is answered with the same reply, and nothing is done twice."""

import datetime as dt
import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.utils import timezone

from memory.access.principal import SYSTEM, Principal
from memory.agents.chat.chat import chat_begin, chat_run
from memory.agents.chat.request import ChatMessage, ChatRequest
from memory.agents.tools import read_tools as reading
from memory.core.replies import json_text
from memory.erasure.purge import topics_purge
from memory.erasure.verify import erasure_verify
from memory.jobs import tasks
from memory.models import ApiKey, Conversation, ConversationTurn, IdempotencyRecord, StudyJob, Topic
from memstate import STILL_IN_PROGRESS
from tests.api.test_chat import STREAM, events_of
from tests.cast import Answer, Caller, Cast, Clock, store_rows
from tests.erasure.erasing import EMAIL, NEEDLES, PERSON, traces
from tests.llm.server import Model, calling, failing

TEA = calling(("new_topic", {"title": "Tea", "fields": [{"name": "kind", "value": "grün"}]}))


def send(caller: Caller, text: str, key: str, *, stream: bool = False, **members: Any) -> Answer:
    body = {"messages": [{"role": "user", "content": text}], "intent_override": "ingest", **members}
    return caller.post("/v1/chat", body, headers={"Idempotency-Key": key, **(STREAM if stream else {})})


@pytest.mark.django_db(transaction=True)
def test_the_same_message_gets_the_same_reply_at_once_and_as_a_stream(http_cast: Cast, model: Model):
    agent = http_cast.agent
    model.answers(TEA, "Noted.\u2028So it is.")
    first = events_of(send(agent, "Remember tea.", "k1", stream=True))
    asked, rows = len(model.asked), store_rows()
    assert [name for name, _data in first] == ["intent", "tool", "reply", "done"]
    assert events_of(send(agent, "Remember tea.", "k1", stream=True)) == first
    assert send(agent, "Remember tea.", "k1").ok() == first[-1][1]
    # The same one answered at once.
    model.answers(calling(("query", {"q": "tea"})), "Green.")
    plain = send(agent, "Which?", "k2", intent_override="query").ok()
    assert send(agent, "Which?", "k2", intent_override="query").ok() == plain
    assert events_of(send(agent, "Which?", "k2", stream=True, intent_override="query"))[-1] == ("done", plain)
    assert (len(model.asked), Topic.objects.count()) == (asked + 2, 1)
    assert store_rows() == rows | {
        table: rows[table] + 1
        for table in ("memory_conversation", "memory_conversationturn", "memory_idempotencyrecord", "memory_accesslog")
    }


def test_a_key_belongs_to_one_caller_and_one_message(cast: Cast, model: Model):
    model.answers(TEA, "Noted.")
    first = send(cast.agent, "Remember tea.", "k1").ok()
    for other in (send(cast.agent, "Remember coffee.", "k1"), send(cast.agent, "Remember tea.", "k1", scope="/a")):
        assert (other.status, other.code) == (422, "idempotency-key-reused")
    item = {"placement": "new_topic", "title": "Tea"}
    assert cast.agent.post("/v1/ingest", item, headers={"Idempotency-Key": "k1"}).status == 422
    assert send(cast.agent, "x", "k" * 201).status == 422
    theirs = send(cast.alice, "Remember tea.", "k1").ok()
    assert (theirs["reply"], theirs["conversation_id"] != first["conversation_id"]) == ("Noted.", True)


def test_what_failed_before_anything_was_written_may_be_tried_again(agent: Caller, model: Model, settings: Any):
    model.answers(failing(), failing(), failing())
    assert send(agent, "Remember tea.", "k1").status == 503
    model.answers(TEA, "Noted.")
    assert send(agent, "Remember coffee.", "k1").status == 422
    reply = send(agent, "Remember tea.", "k1").ok()
    assert send(agent, "Remember tea.", "k1").ok() == reply
    # What is refused at the beginning takes no key.
    settings.MEMSTATE_LLM_MODEL = ""
    assert send(agent, "Remember milk.", "k2").status == 503
    settings.MEMSTATE_LLM_MODEL = "a-model"
    assert IdempotencyRecord.objects.count() == 1
    assert send(agent, "Remember milk.", "k2").ok()["reply"] == "Noted."
    # What later messages of the conversation wrote is theirs.
    begun = reply["conversation_id"]
    model.answers(failing(), failing(), failing())
    assert send(agent, "Remember rice.", "k3", conversation_id=begun).status == 503
    model.answers(TEA, "Noted.")
    assert send(agent, "Remember more.", "k4", conversation_id=begun).ok()["tool_log"][0]["ok"]
    assert send(agent, "Remember rice.", "k3", conversation_id=begun).ok()["reply"] == "Noted."


def test_a_study_is_begun_once(agent: Caller, model: Model):
    text = "The roof of the house was painted grey in May. " * 300
    reply = send(agent, text, "k1").ok()
    assert send(agent, text, "k1").ok() == reply
    assert str(StudyJob.objects.get().id) == reply["study"]["study_id"]


def test_while_a_message_is_at_work_its_twin_is_reported_so(agent: Caller, model: Model, clock: Clock, settings: Any):
    now = clock.stop()
    chat = begun("Remember tea.", "k1", now=now)
    rows = store_rows()
    twin = send(agent, "Remember tea.", "k1")
    assert (twin.status, twin.json["type"], twin.headers["retry-after"]) == (409, STILL_IN_PROGRESS, "5")
    assert send(agent, "Remember coffee.", "k1").status == 422
    assert store_rows() == rows
    # Its process is gone, and it had written nothing.
    clock.forward(seconds=settings.MEMSTATE_CHAT_TIMEOUT_SECONDS + 90)
    model.answers(TEA, "Noted.")
    assert send(agent, "Remember tea.", "k1").ok()["reply"] == "Noted."
    assert ConversationTurn.objects.get(pk=chat.turn.pk).ended == "lost"
    # Whatever is left of the process writes nothing, and does not take the key away.
    model.answers(TEA, "Noted.")
    late = chat_run(chat, clock=lambda: clock.now, enqueue=lambda _job: None)
    assert late["tool_log"][0]["result"]["code"] == "conflict"
    assert send(agent, "Remember tea.", "k1").ok()["tool_log"][0]["ok"]
    assert Topic.objects.count() == 1


def test_what_was_broken_off_after_it_wrote_is_not_done_again(
    agent: Caller, model: Model, clock: Clock, settings: Any, monkeypatch: pytest.MonkeyPatch
):
    from memory.agents.chat import turns

    clock.stop()
    model.answers(TEA, lambda _asked: pytest.fail("The process was gone."))
    # As the kill of its process: the topic is stored, and the call is not on record.
    chat = begun("Remember tea.", "k1", now=clock.now)
    monkeypatch.setattr(turns.CallLog, "add", _killed)
    with pytest.raises(KeyboardInterrupt):
        chat_run(chat, clock=lambda: clock.now, enqueue=lambda _job: None)
    clock.forward(seconds=settings.MEMSTATE_CHAT_TIMEOUT_SECONDS + 90)
    for _time in range(2):
        answer = send(agent, "Remember tea.", "k1")
        assert (answer.status, answer.code) == (409, "conflict")
        assert str(Conversation.objects.get().pk) in answer.detail
    assert Topic.objects.count() == 1
    # Nor if that has been erased since: the turn is emptied although its log does not name the topic.
    topics_purge([Topic.objects.get().pk], principal=SYSTEM, reason="a test", now=clock.now)
    turn = ConversationTurn.objects.get()
    assert (turn.message, turn.erased, IdempotencyRecord.objects.get().status) == ("", True, 410)
    assert send(agent, "Remember tea.", "k1").code == "erased-meanwhile"
    assert not Topic.objects.exists()


def test_a_stream_that_was_stopped_frees_its_key_unless_it_wrote(agent: Caller, model: Model):
    model.answers(TEA, "Noted.")
    stopped = begun("Remember tea.", "k1")
    chat_run(stopped, clock=timezone.now, enqueue=lambda _job: None, go_on=lambda: False)
    assert ConversationTurn.objects.get().ended == "stopped"
    reply = send(agent, "Remember tea.", "k1").ok()
    assert (reply["ended"], Topic.objects.count()) == ("done", 1)

    model.answers(TEA, "Noted.")
    listens = iter([True, True, False, False])
    again = begun("Remember it.", "k2")
    got = chat_run(again, clock=timezone.now, enqueue=lambda _job: None, go_on=lambda: next(listens))
    assert send(agent, "Remember it.", "k2").ok() == json.loads(json_text(got))
    assert "What was written is kept." in got["reply"]


@pytest.mark.django_db(transaction=True)
def test_of_concurrent_messages_with_one_idempotency_key_one_is_answered(http_cast: Cast, model: Model):
    refusals = threading.Semaphore(0)

    def answer_after_three_refusals(_asked: Any) -> str:
        return "Noted." if all(refusals.acquire(timeout=20) for _ in range(3)) else "The others were not refused."

    model.answers(TEA, answer_after_three_refusals)

    def send_once(_number: int) -> Answer:
        answer = send(http_cast.agent, "Remember tea.", "k1")
        if answer.status == 409:
            refusals.release()
        return answer

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(send_once, range(4)))
    assert sorted(answer.status for answer in answers) == [200, 409, 409, 409]
    assert {answer.json["type"] for answer in answers if answer.status == 409} == {STILL_IN_PROGRESS}
    assert (Conversation.objects.count(), Topic.objects.count()) == (1, 1)
    assert send(http_cast.agent, "Remember tea.", "k1").ok() in [each.json for each in answers]


# What a purge leaves of it


def test_a_reply_that_a_purge_has_touched_is_not_given_again(agent: Caller, operator: Caller, model: Model):
    secret = agent.remember(PERSON, values={"email": EMAIL})
    other = agent.remember("Harbor walk", edges=[{"to_topic_id": secret}])
    # One was read, one was seen beside another, one was only written about; the last had nothing to do with it.
    for key, call in (("read", ("topic", {"topic_id": secret})), ("seen", ("topic", {"topic_id": other}))):
        model.answers(calling(call), "The lady with the two dachshunds.")
        send(agent, "Who?", key, intent_override="query").ok()
    model.answers(f'I know nobody of {EMAIL}. "topic_id": "{"-" * 36}"')
    send(agent, f"Who is {EMAIL}?", "named", intent_override="query").ok()
    model.answers("Green.")
    kept = send(agent, "Which?", "apart", intent_override="query").ok()
    topics_purge([uuid.UUID(secret)], principal=SYSTEM, reason="a test", now=timezone.now())
    assert traces("dachshunds", *NEEDLES) == []
    for key in ("read", "seen"):
        answer = send(agent, "Who?", key, intent_override="query")
        assert (answer.status, answer.code) == (409, "erased-meanwhile")
    record = IdempotencyRecord.objects.get(key="named")
    assert (record.status, record.reply["reply"].partition(". ")[0]) == (200, "I know nobody of [erased]")
    assert send(agent, "Which?", "apart", intent_override="query").ok() == kept
    assert erasure_verify().ok


def test_an_erasure_in_the_midst_of_a_message_leaves_no_reply_of_it(
    agent: Caller, model: Model, monkeypatch: pytest.MonkeyPatch
):
    secret = agent.remember(PERSON, values={"email": EMAIL})

    def why(*_args: Any, **_more: Any) -> Any:
        topics_purge([uuid.UUID(secret)], principal=SYSTEM, reason="a test", now=timezone.now())
        return {"sentences": [EMAIL]}

    monkeypatch.setattr(reading, "topic_why", why)
    # Before it is noted that the topic was read, and after that.
    for key, calls in (("late", ["why"]), ("early", ["topic", "why"])):
        secret = secret if Topic.objects.filter(pk=secret) else agent.remember(PERSON, values={"email": EMAIL})
        model.answers(*(calling((each, {"topic_id": secret})) for each in calls), f"It is {EMAIL}.")
        assert EMAIL in send(agent, "Who is that?", key, intent_override="query").ok()["reply"]
        record = IdempotencyRecord.objects.get(key=key)
        assert (record.status, record.reply, record.request_hash) == (410, None, "")
        assert send(agent, "Who is that?", key, intent_override="query").status == 409
        assert traces(*NEEDLES) == []


def test_an_operator_of_a_scope_erases_in_the_replies_of_that_scope(operator: Caller, model: Model):
    model.answers(f"Nobody has {EMAIL}.")
    for scope in ("/a", "/b"):
        send(operator, "Who?", scope, intent_override="query", scope=scope).ok()
    gone = operator.remember(PERSON, values={"email": EMAIL}, scope="/a")
    topics_purge([uuid.UUID(gone)], principal=Principal("key:a", "a", "operator", "/a"), reason="", now=timezone.now())
    got = {record.scope: record.reply["reply"] for record in IdempotencyRecord.objects.all()}
    assert got == {"/a": "Nobody has [erased].", "/b": f"Nobody has {EMAIL}."}


def test_the_reply_is_forgotten_after_a_week(agent: Caller, model: Model, clock: Clock):
    model.answers(TEA, "Noted.")
    clock.stop()
    send(agent, "Remember tea.", "k1").ok()
    clock.forward(days=7, seconds=1)
    tasks.tidy()
    assert not IdempotencyRecord.objects.exists()
    assert ConversationTurn.objects.count() == 1


def begun(text: str, key: str, *, now: dt.datetime | None = None) -> Any:
    """The message of the caller ``agent``, whose turn has begun and is at work."""
    request = ChatRequest(messages=[ChatMessage(role="user", content=text)], intent_override="ingest")
    leader = Principal(f"key:{ApiKey.objects.get(name='agent').pk}", "key:agent", "agent")
    return chat_begin(request, channel="api", principal=leader, now=now or timezone.now(), idempotency_key=key)


def _killed(*_args: Any) -> None:
    raise KeyboardInterrupt
