"""The assistant through the client, at once and event by event, with a model by script."""

import threading
import time
from typing import Any

import pytest

from memory.agents.chat import background_turn as running
from memstate import Conflict, ConnectionBroken, NotAllowed, TimedOut, Unavailable
from tests.cast import secret_of
from tests.client.conftest import Maker
from tests.client.proxy import CUT, CUT_IN_THE_MIDST, PASS, Proxy, answer
from tests.client.test_against_the_server import Tour
from tests.llm.server import Model, calling, failing
from tests.waits import eventually

STATEMENT = [{"role": "user", "content": "Remember that Mara drinks tea."}]
QUESTION = [{"role": "user", "content": "What does Mara drink?"}]


def test_the_assistant_answers_at_once_and_event_by_event(
    make_client: Maker, http_cast: Any, live_server: Any, model: Model, waits: list[float]
):
    # Without the proxy, which would read a stream to its end first.
    client = make_client(live_server.url, secret_of("agent"))
    client.ingest("new_topic", title="Tea", summary="Mara drinks green tea.")
    model.answers("Green tea.")
    tour = Tour(client)
    reply = tour.chat(QUESTION, intent_override="query")
    assert (reply["reply"], reply["intent"], reply["intent_source"]) == ("Green tea.", "query", "override")

    events = list(client.chat_stream(QUESTION, intent_override="query", scope="/user/mara"))
    assert [event.name for event in events] == ["intent", "reply", "done"]
    assert events[0].data["intent"] == "query"
    assert events[-1].data["reply"] == "Green tea."
    assert [len(page["items"]) for page in client.pages(client.conversations, limit=1)] == [1, 1]
    assert tour.conversation(reply["conversation_id"])["items"][0]["reply"] == "Green tea."

    with pytest.raises(NotAllowed):
        list(make_client(live_server.url, "ms_made-up").chat_stream(QUESTION))
    model.answers(failing())
    with pytest.raises(Unavailable):
        client.chat(QUESTION, intent_override="query")
    with pytest.raises(Unavailable):
        list(client.chat_stream(QUESTION, intent_override="query"))


def test_a_reply_may_take_longer_than_the_timeout_while_the_stream_shows_life(
    make_client: Maker, http_cast: Any, live_server: Any, model: Model, monkeypatch: pytest.MonkeyPatch
):
    # The client waits so long for a sign of life, and signs come ten times as often.
    seconds = 5.0
    monkeypatch.setattr(running, "BEAT_SECONDS", seconds / 10)
    client = make_client(live_server.url, secret_of("agent"), timeout=seconds)
    until = time.monotonic() + seconds * 1.2

    def late(_asked: Any) -> str:
        time.sleep(max(0.0, until - time.monotonic()))
        return "It is noted."

    model.answers(calling(("new_topic", {"title": "Tea"})), late)
    reply = client.chat(STATEMENT, intent_override="ingest")
    assert (reply["reply"], [call["tool"] for call in reply["tool_log"]]) == ("It is noted.", ["new_topic"])
    assert [topic["title"] for topic in client.topics()["items"]] == ["Tea"]


def test_a_silent_stream_is_given_up(
    make_client: Maker, http_cast: Any, live_server: Any, model: Model, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(running, "BEAT_SECONDS", 60.0)
    given_up = threading.Event()

    def late(_asked: Any) -> str:
        given_up.wait(30)
        return "Too late."

    model.answers(late)
    with pytest.raises(TimedOut):
        make_client(live_server.url, secret_of("agent"), timeout=0.6, retries=0).chat(STATEMENT)
    given_up.set()
    # The server is still at it, and would be in the midst of the next test.
    eventually(lambda: running._slots_taken == 0)


def test_a_reply_that_breaks_off_is_no_reply(alone: Proxy, make_client: Maker, waits: list[float]):
    client, whole = make_client(alone.url, "ms_any"), {"Content-Type": "text/event-stream"}
    broken = answer(200, whole, b'event: intent\ndata: {"intent": "query"}\n\n')
    # Whoever stands in between may want no streams.
    alone.does(broken, answer(200, body={"reply": "Tea."}))
    assert client.chat(QUESTION) == {"reply": "Tea."}
    assert (len(alone.asked), len(set(alone.keys))) == (2, 1)
    alone.does(*[broken] * 5)
    with pytest.raises(ConnectionBroken, match="POST /v1/chat: the reply ended too early"):
        client.chat(QUESTION)
    problem = b'{"type": "about:blank", "title": "", "status": 409, "detail": "Still at it."}'
    alone.does(answer(200, whole, b"event: error\ndata: " + problem + b"\n\n"))
    with pytest.raises(Conflict, match="Still at it"):
        client.chat(QUESTION)
    assert len(alone.asked) == 8


def test_a_message_whose_reply_was_lost_is_sent_again_and_answered_once(
    agent: Any, proxy: Proxy, model: Model, waits: list[float]
):
    model.answers(calling(("new_topic", {"title": "Tea"})), "It is noted.")
    proxy.does(CUT, CUT_IN_THE_MIDST, PASS)
    reply = agent.chat(STATEMENT, intent_override="ingest")
    assert (reply["reply"], [topic["title"] for topic in agent.topics()["items"]]) == ("It is noted.", ["Tea"])
    assert (len(set(proxy.keys[:3])), waits) == (1, [0.5, 1.0])
    # One of one's own holds over restarts, also for who listens event by event.
    mine = agent.chat(STATEMENT, intent_override="ingest", idempotency_key="mara-1")
    events = agent.chat_stream(STATEMENT, intent_override="ingest", idempotency_key="mara-1")
    assert list(events)[-1].data == mine
    # A model that failed before anything was written is asked again.
    model.answers(failing())
    with pytest.raises(Unavailable):
        agent.chat(QUESTION, intent_override="query")
    assert len(set(proxy.keys[-5:])) == 1


def test_a_conversation_goes_on_where_it_began(alone: Proxy, make_client: Maker):
    client = make_client(alone.url, "ms_any", scope="/user")
    alone.does(*[answer(200, body={"reply": "Tea."})] * 2)
    client.chat(QUESTION)
    client.chat(QUESTION, conversation_id="01900000-0000-7000-8000-000000000001")
    assert [each.json.get("scope") for each in alone.asked] == ["/user", None]
