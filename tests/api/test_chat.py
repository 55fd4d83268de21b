"""POST /v1/chat as a route: what is refused before anybody is asked, long texts, and the stream of events."""

import json
import socket
import struct
import threading
from pathlib import Path
from typing import Any

import pytest
from django_q.models import OrmQ

from memory.agents.chat import background_turn as running
from memory.models import Conversation, ConversationTurn, StudyJob, Topic
from tests.agents.chat.talk import ask, say
from tests.cast import Answer, Caller, Cast, code_of, secret_of, store_rows
from tests.llm import server
from tests.llm.server import Model, calling
from tests.waits import eventually
from tests.web_server import WebServer

STREAM = {"Accept": "text/event-stream"}
LONG = "The roof of the house was painted grey in May. " * 300


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


@pytest.mark.parametrize(
    ("body", "status", "what"),
    [
        ({}, 422, "missing-member"),
        ({"messages": []}, 422, "messages"),
        ({"messages": [user("x")] * 1001}, 422, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, 422, "messages.0.role"),
        ({"messages": [{"role": "user", "content": None}]}, 422, "messages.0.content"),
        ({"messages": [user("   ")]}, 422, "missing-member"),
        ({"messages": [user("x"), {"role": "assistant", "content": "y"}]}, 400, "conflict"),
        ({"messages": [user("x")], "intent_turns": 0}, 422, "intent_turns"),
        ({"messages": [user("x")], "intent_turns": 65}, 422, "intent_turns"),
        ({"messages": [user("x")], "max_tool_rounds": 0}, 422, "max_tool_rounds"),
        ({"messages": [user("x")], "max_tool_rounds": 257}, 422, "max_tool_rounds"),
        ({"messages": [user("x")], "intent_override": "purge"}, 422, "intent_override"),
        ({"messages": [user("x")], "model": ""}, 422, "model"),
        ({"messages": [user("x")], "conversation_id": "7"}, 422, "conversation_id"),
        ({"messages": [user("x")], "scope": "//a b/.."}, 422, "invalid-scope"),
        ({"messages": [user("x" * 60_001)], "intent_override": "query"}, 422, "too-large"),
        ({"messages": [user("x" * 60_001)], "study": False}, 422, "too-large"),
    ],
)
def test_what_is_wrong_is_refused_before_anybody_is_asked(
    agent: Caller, model: Model, body: Any, status: int, what: str
):
    before = store_rows()
    for headers in ({}, STREAM):
        answer = agent.post("/v1/chat", body, headers=headers)
        assert (answer.status, what in answer.about) == (status, True), answer.detail
    assert (store_rows(), model.asked) == (before, [])


def test_a_scope_outside_of_the_key_is_not_there(alice: Caller, model: Model):
    assert say(alice, "x", scope="/user/bob").status == 404
    assert not Conversation.objects.exists()


def test_a_long_text_that_is_to_be_remembered_becomes_a_study(agent: Caller, model: Model):
    model.answers({"intent": "ingest"})
    reply = say(agent, LONG, scope="/house").ok()
    job = StudyJob.objects.get()
    assert (reply["study"]["study_id"], reply["study"]["status"]) == (str(job.id), "working")
    assert (str(job.conversation_id), job.scope) == (reply["conversation_id"], "/house")
    assert (reply["intent"], reply["rounds"], reply["tool_log"], reply["ended"]) == ("ingest", 0, [], "done")
    assert f"{len(LONG):,} characters" in reply["reply"]
    assert f"in {job.segments} parts" in reply["reply"]
    assert agent.get(f"/v1/studies/{job.id}").ok() == reply["study"]
    assert OrmQ.objects.count() == 1
    # The text is the source's, and the conversation has no word of it.
    turn = ConversationTurn.objects.get()
    assert (turn.study_id, turn.message) == (job.id, f"(A text of {len(LONG):,} characters.)")
    # The model was asked for the intent alone, from the ends of the text.
    assert len(model.chats) == 1
    assert len(str(model.chats[0].body)) < 20_000


@pytest.mark.parametrize("members", [{"study": False, "intent_override": "ingest"}, {"intent_override": "query"}])
def test_a_long_text_is_answered_at_once_if_it_is_not_to_be_studied(agent: Caller, model: Model, members: Any):
    model.answers("Grey.")
    reply = say(agent, LONG, **members).ok()
    assert (reply["reply"], reply["study"]) == ("Grey.", None)
    assert model.chats[0].messages[-1]["content"] == LONG
    assert not StudyJob.objects.exists()


def test_a_text_that_turns_out_to_be_a_question_is_too_long_to_be_answered(agent: Caller, model: Model):
    model.answers({"intent": "query"})
    answer = say(agent, LONG * 6)
    assert answer.status == 422
    assert answer.code == "too-large"
    assert ConversationTurn.objects.get().ended == "failed"


def test_there_is_room_for_so_many_messages_at_once(agent: Caller, model: Model, settings: Any):
    settings.MEMSTATE_WEB_THREADS = 2
    model.answers("Yes.")
    with running.turn_slot():
        answer = say(agent, "x", intent_override="query")
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        assert answer.code == "too-many-requests"
        assert not Conversation.objects.exists()
    assert ask(agent, "x")["reply"] == "Yes."


# The stream


def events_of(answer: Answer) -> list[tuple[str, Any]]:
    """The events of a stream, without its comments; read by someone who takes whatever ends a line for its end."""
    found = []
    for block in answer.text.split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith(":")]
        if lines:
            assert [line.partition(": ")[0] for line in lines] == ["event", "data"], block
            found.append((lines[0].partition(": ")[2], json.loads(lines[1].partition(": ")[2])))
    return found


@pytest.mark.django_db(transaction=True)
def test_a_stream_has_an_event_for_each_step(http_cast: Cast, model: Model, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(running, "BEAT_SECONDS", 0.05)
    beaten, real = threading.Event(), running.Running.events

    def noted(turn: Any) -> Any:
        for event in real(turn):
            if event is None:
                beaten.set()
            yield event

    monkeypatch.setattr(running.Running, "events", noted)
    agent = http_cast.agent
    tea = agent.remember("Tea\nand\r\nmore")

    def late(_asked: Any) -> str:
        beaten.wait(30)
        return "It\nis\u2028tea."

    model.answers(calling(("query", {"q": "tea"}), ("topic", {"topic_id": "x"})), late)
    answer = say_stream(agent, "Which?", intent_override="query")
    assert (answer.status, answer.content_type) == (200, "text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    assert ": still at it\n\n" in answer.text
    events = events_of(answer)
    assert [name for name, _data in events] == ["intent", "tool", "tool", "reply", "done"]
    got = dict(events)
    whole = got["done"]
    assert got["intent"] == {name: whole[name] for name in ("intent", "intent_source", "model", "conversation_id")}
    assert [data for name, data in events if name == "tool"] == whole["tool_log"]
    assert whole["tool_log"][0]["topic_ids"] == [tea]
    assert got["reply"] == {"reply": "It\nis\u2028tea."} == {"reply": whole["reply"]}
    # The same as the plain answer, but for what is of one time.
    plain = ask(agent, "Which?")
    assert plain.keys() == whole.keys()
    # What fails once the stream has begun is its last event, with the problem document as its data.
    model.answers(server.limited(after=400))
    last = events_of(say_stream(agent, "Which?", intent_override="query"))[-1]
    assert last[0] == "error"
    assert (last[1]["status"], code_of(last[1])) == (503, "model-rate-limited")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("text/event-stream", "text/event-stream"),
        ("text/event-stream, application/json;q=0.5", "text/event-stream"),
        ("*/*", "application/json"),
        ("application/json, text/event-stream", "application/json"),
        ("text/html", "application/json"),
    ],
)
def test_who_wants_a_stream_says_so(http_cast: Cast, model: Model, accept: str, kind: str):
    model.answers("Yes.")
    answer = say_stream(http_cast.agent, "x", accept, intent_override="query")
    assert (answer.status, answer.content_type) == (200, kind)


def say_stream(caller: Caller, text: str, accept: str = "text/event-stream", /, **members: Any) -> Answer:
    return caller.post("/v1/chat", {"messages": [user(text)], **members}, headers={"Accept": accept})


@pytest.mark.django_db(transaction=True)
def test_under_gunicorn_a_stream_arrives_bit_by_bit_and_ends_with_its_listener(
    http_cast: Cast, served_model: Model, tmp_path: Path
):
    gone = threading.Event()

    def second(_asked: Any) -> Any:
        # Whoever listens is gone by now, and the server has noticed when it wrote to them.
        gone.wait(60)
        return calling(("new_topic", {"title": "Second"}))

    scripted = {
        "MEMSTATE_LLM_MODEL": server.MODEL,
        "MEMSTATE_LLM_BASE_URL": served_model.url,
        "MEMSTATE_LLM_API_KEY": server.KEY,
        "MEMSTATE_WEB_THREADS": "4",
    }
    with WebServer(tmp_path / "web.log", **scripted) as web:
        served_model.answers(calling(("new_topic", {"title": "First"})), second)
        body = json.dumps({"messages": [user("Remember two things.")], "intent_override": "ingest"}).encode()
        listener = socket.create_connection(("127.0.0.1", web.port), timeout=20)
        listener.sendall(
            b"POST /v1/chat HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
            b"Content-Type: application/json\r\nX-API-Key: %s\r\nContent-Length: %d\r\n\r\n"
            % (secret_of("agent").encode(), len(body))
            + body
        )
        heard = b""
        while b"event: tool" not in heard:
            part = listener.recv(4096)
            assert part, heard
            heard += part
        # The first call is reported while the model still thinks about the second.
        assert b"event: intent" in heard
        assert b"event: reply" not in heard
        assert ConversationTurn.objects.get().ended == "working"
        # Away without a word.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        listener.close()
        threading.Timer(2 * running.BEAT_SECONDS, gone.set).start()
        eventually(lambda: ConversationTurn.objects.get().ended != "working", 30.0)
        turn = ConversationTurn.objects.get()
        assert (turn.ended, [each["said"] for each in turn.tool_log]) == ("stopped", ["Remembered."])
        assert list(Topic.objects.values_list("title", flat=True)) == ["First"]
        # Its place is free again, and so is everything else that it held.
        served_model.answers("Still here.")
        caller = Caller(web.send, secret_of("agent"))
        for _time in range(6):
            assert ask(caller, "x")["reply"] == "Still here."
        assert events_of(say_stream(caller, "x", intent_override="query"))[-1][1]["reply"] == "Still here."
