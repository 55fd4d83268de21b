"""The assistant through the client, at once and event by event, with a model by script."""

from typing import Any

import pytest

from memory.client import NotAllowed, Unavailable
from tests.cast import secret_of
from tests.client.conftest import Maker
from tests.client.proxy import Proxy
from tests.client.test_against_the_server import Tour
from tests.llm.server import Model, failing

QUESTION = [{"role": "user", "content": "What does Mara drink?"}]


def test_the_assistant_answers_at_once_and_event_by_event(
    make_client: Maker, http_cast: Any, live_server: Any, model: Model
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
    assert tour.studies()["items"] == []

    with pytest.raises(NotAllowed):
        list(make_client(live_server.url, "ms_made-up").chat_stream(QUESTION))
    model.answers(failing())
    with pytest.raises(Unavailable):
        client.chat(QUESTION, intent_override="query")
    with pytest.raises(Unavailable):
        list(client.chat_stream(QUESTION, intent_override="query"))


def test_a_message_is_not_sent_twice(agent: Any, proxy: Proxy, model: Model):
    model.answers(failing())
    with pytest.raises(Unavailable):
        agent.chat(QUESTION, intent_override="query")
    assert len(proxy.asked) == 1
