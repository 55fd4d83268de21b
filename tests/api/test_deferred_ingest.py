"""``?defer=1``: answered before the topic can be found by meaning; the worker does the rest."""

import datetime as dt

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from memory.models import TopicVector
from tests.cast import Caller, worker_turn

# Words that the search for words ignores, so that only meaning can find them.
ONLY_MEANING = "to be or not to be"


def test_what_is_acknowledged_is_found_by_meaning_at_once(agent: Caller):
    topic_id = agent.remember(ONLY_MEANING)
    other = agent.remember("Something else")
    (first, second) = agent.query(ONLY_MEANING)["candidates"]
    assert (first["topic_id"], second["topic_id"]) == (topic_id, other)
    assert first["similarity"] == pytest.approx(1.0, abs=1e-5)
    assert abs(second["similarity"]) < 0.5


@pytest.mark.parametrize("route", ["/v1/ingest?defer=1", "/v1/ingest/batch?defer=true"])
def test_a_deferred_topic_is_found_by_meaning_once_the_worker_has_been(agent: Caller, alice: Caller, route: str):
    before = timezone.now()
    item = {"placement": "new_topic", "title": ONLY_MEANING}
    key = {"Idempotency-Key": "once"}
    waiting = agent.post(route, [item] if "batch" in route else item, headers=key).ok()["waiting"]
    assert agent.post(route, [item] if "batch" in route else item, headers=key).ok()["waiting"] == waiting
    assert (
        waiting["topics"]
        == agent.query("tea")["waiting"]["topics"]
        == agent.get("/v1/stats").ok()["waiting"]["topics"]
        == 1
    )
    assert before < dt.datetime.fromisoformat(waiting["until"])
    # A key of another scope is not shown.
    assert "waiting" not in alice.query("tea")
    assert alice.get("/v1/stats").ok()["waiting"] is None
    assert TopicVector.objects.get().embedding is None
    assert OrmQ.objects.count() == 1
    worker_turn()
    assert TopicVector.objects.get().embedding is not None
    answer = agent.query(ONLY_MEANING)
    assert "waiting" not in answer
    assert answer["candidates"][0]["similarity"] == pytest.approx(1.0, abs=1e-5)
    assert "waiting" not in agent.ingest(title="tea")
    assert agent.get("/v1/stats").ok()["waiting"] is None


def test_a_deferred_topic_is_found_by_word_at_once(agent: Caller):
    topic_id = agent.post("/v1/ingest?defer=1", {"placement": "new_topic", "title": "xylophone"}).ok()["topic_id"]
    agent.remember("Something else")
    assert agent.found("xylophone")[0] == topic_id


def test_a_deferred_change_is_found_by_its_new_meaning_later(agent: Caller):
    topic_id = agent.remember("Tea", values={"kind": "green"})
    change = {"placement": "version_field", "topic_id": topic_id, "fields": [{"name": "kind", "value": "of this"}]}
    agent.post("/v1/ingest?defer=1", change).ok()
    worker_turn()
    (candidate,) = agent.query("Tea\nof this")["candidates"]
    assert candidate["similarity"] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.meaning
def test_a_question_in_other_words_finds_the_fact(agent: Caller):
    agent.remember("The invoice for the new office chairs was paid in March")
    wanted = agent.remember("Mara is allergic to peanuts")
    agent.remember("The night train to Vienna leaves at nine")
    assert agent.found("Which foods must she never eat?", top_k=1) == [wanted]
