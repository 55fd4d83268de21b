"""Archiving takes a topic out of recall and nothing else: it is kept whole, found by id, and can be restored."""

import datetime as dt
from typing import Any

import pytest

from memory.models import AuditEvent, Revision, Topic, TopicDocument, TopicVector, Vitality
from tests.cast import Caller, Clock, store_rows, worker_turn


def archive(operator: Caller, topic_id: str) -> Any:
    return operator.post(f"/v1/topics/{topic_id}/archive", {"reason": "for the test"}).ok()


def test_only_operators_archive_and_restore(agent: Caller, reader: Caller, operator: Caller):
    topic_id = agent.remember("Tea")
    before = store_rows()
    for caller in (agent, reader):
        for verb in ("archive", "restore"):
            answer = caller.post(f"/v1/topics/{topic_id}/{verb}")
            assert answer.status == 403
            assert answer.code == "role-too-low"
    assert store_rows() == before
    assert archive(operator, topic_id)["rung"] == "archived"


def test_an_archived_topic_is_on_no_default_read_path(agent: Caller, operator: Caller):
    gone, kept = agent.remember("Tea in the cellar"), agent.remember("Tea in the attic")
    agent.ingest("extend_topic", topic_id=kept, edges=[{"to_topic_id": gone, "kind": "beside"}])
    archive(operator, gone)
    worker_turn()
    assert agent.found("Tea in the cellar") == [kept]
    assert agent.found("?", stages=["structural"], topic_ids=[gone, kept]) == [kept]
    (bundle,) = agent.query("Tea", depth=3)["candidates"]
    assert bundle["neighbors"] == []
    assert [item["topic_id"] for item in agent.get("/v1/topics").ok()["items"]] == [kept]
    assert [item["topic_id"] for item in agent.get("/v1/topics?text=cellar").ok()["items"]] == []
    assert agent.ingest(title="Tea in the cellar", suggest_similar=True)["similar_topic_ids"] == []


def test_its_words_are_not_lent_to_its_neighbours(agent: Caller, operator: Caller):
    gone, kept = agent.remember("Xylophone"), agent.remember("Tea")
    agent.ingest("extend_topic", topic_id=kept, edges=[{"to_topic_id": gone, "kind": "beside"}])

    def lent() -> float:
        found = agent.query("xylophone", explain=True)["candidates"]
        (parts,) = [bundle["score_parts"] for bundle in found if bundle["topic_id"] == kept]
        return float(parts["neighbor_words"])

    assert lent() > 0
    archive(operator, gone)
    assert lent() == 0


def test_it_is_found_by_id_by_its_rung_and_by_include_archived(agent: Caller, operator: Caller):
    gone = agent.remember("Tea", values={"kind": "green"})
    archive(operator, gone)
    got = agent.topic(gone)
    assert (got["rung"], got["archived"], got["fields"][0]["current"]["value"]) == ("archived", True, "green")
    assert [item["topic_id"] for item in agent.get("/v1/topics?rung=archived").ok()["items"]] == [gone]
    assert agent.found("tea", include_archived=True) == [gone]
    assert agent.get(f"/v1/topics/{gone}/fields/kind/history").ok()["items"][0]["value"] == "green"


def test_archiving_keeps_every_row_and_halves_the_salience(agent: Caller, operator: Caller, clock: Clock):
    clock.set(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    gone = agent.remember("Tea", values={"kind": "green"}, salience=3)
    before = store_rows()
    got = archive(operator, gone)
    assert got["salience"] == pytest.approx(1.5)
    after = store_rows()
    assert {name: after[name] - before[name] for name in before if after[name] != before[name]} == {
        "memory_auditevent": 1,
        "memory_forgetrun": 1,
        "memory_forgetaction": 1,
    }
    assert Topic.objects.get().rung == 3
    assert not Vitality.objects.get().live
    assert not TopicVector.objects.get().live
    assert not TopicDocument.objects.get().live
    assert Revision.objects.get().value == "green"
    event = AuditEvent.objects.get(action="archived")
    assert (event.actor, event.reason) == ("key:operator", "for the test")


def test_restoring_brings_it_back_onto_every_path(agent: Caller, operator: Caller, clock: Clock):
    clock.set(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    gone, kept = agent.remember("Tea in the cellar"), agent.remember("Tea in the attic")
    agent.ingest("extend_topic", topic_id=kept, edges=[{"to_topic_id": gone, "kind": "beside"}])
    archive(operator, gone)
    clock.forward(days=300)
    got = operator.post(f"/v1/topics/{gone}/restore").ok()
    assert (got["rung"], got["archived"], got["salience"]) == ("active", False, pytest.approx(1.0))
    worker_turn()
    assert agent.found("Tea in the cellar")[0] == gone
    assert {each["topic_id"] for each in agent.topic(kept)["neighbors"]} == {gone}
    (bundle,) = agent.query("attic", topic_ids=[kept])["candidates"]
    assert [each["topic_id"] for each in bundle["neighbors"]] == [gone]
    assert gone in [item["topic_id"] for item in agent.get("/v1/topics").ok()["items"]]


def test_a_restored_topic_has_the_salience_it_had_if_that_is_more(agent: Caller, operator: Caller, clock: Clock):
    clock.set(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    gone = agent.remember("Tea", salience=4)
    archive(operator, gone)
    assert operator.post(f"/v1/topics/{gone}/restore").ok()["salience"] == pytest.approx(4)


def test_what_does_not_fit_the_state_is_a_conflict(agent: Caller, operator: Caller):
    topic_id = agent.remember("Tea")
    answer = operator.post(f"/v1/topics/{topic_id}/restore")
    assert (answer.status, answer.code) == (409, "conflict")
    archive(operator, topic_id)
    before = store_rows()
    answer = operator.post(f"/v1/topics/{topic_id}/archive")
    assert (answer.status, answer.code) == (409, "conflict")
    assert store_rows() == before


def test_writing_to_an_archived_topic_keeps_it_archived(agent: Caller, operator: Caller):
    gone = agent.remember("Tea", values={"kind": "green"})
    archive(operator, gone)
    agent.ingest("version_field", topic_id=gone, fields=[{"name": "kind", "value": "black"}])
    agent.patch(f"/v1/topics/{gone}", {"title": "Black tea"}).ok()
    worker_turn()
    assert agent.found("black tea") == []
    assert agent.topic(gone)["rung"] == "archived"
    operator.post(f"/v1/topics/{gone}/restore").ok()
    assert agent.found("black") == [gone]


def test_detached_topics_are_found_but_are_nobodys_neighbours(agent: Caller):
    loose, hub = agent.remember("Tea"), agent.remember("Kitchen")
    agent.ingest("extend_topic", topic_id=hub, edges=[{"to_topic_id": loose, "kind": "holds"}])
    Topic.objects.filter(pk=loose).update(rung=2)
    Vitality.objects.filter(pk=loose).update(rung=2)
    assert agent.found("tea", top_k=1) == [loose]
    (bundle,) = agent.query("?", stages=["structural"], topic_ids=[hub], depth=3)["candidates"]
    assert bundle["neighbors"] == []
    assert [(each["topic_id"], each["rung"]) for each in agent.topic(hub)["neighbors"]] == [(loose, "detached")]


def test_a_detached_field_is_shown_when_it_is_named(agent: Caller):
    from memory.models import Field

    topic_id = agent.remember("Tea", values={"kind": "green", "price": "4"})
    Field.objects.filter(name="price").update(detached=True)

    def names(**asked: Any) -> list[str]:
        (bundle,) = agent.query("tea", **asked)["candidates"]
        return [entry["name"] for entry in bundle["fields"]]

    assert names() == ["kind"]
    assert names(field_names=["price"]) == ["price"]
    assert [entry["name"] for entry in agent.topic(topic_id)["fields"]] == ["kind", "price"]


@pytest.mark.parametrize("state", ["released_at", "merged_into_id"])
def test_released_and_merged_topics_are_never_shown_even_with_include_archived(agent: Caller, state: str):
    from django.utils import timezone

    gone, kept = agent.remember("Tea in the cellar"), agent.remember("Tea in the attic")
    agent.ingest("extend_topic", topic_id=kept, edges=[{"to_topic_id": gone, "kind": "beside"}])
    Topic.objects.filter(pk=gone).update(**{state: timezone.now() if state == "released_at" else kept})
    for model in (Vitality, TopicVector, TopicDocument):
        model.objects.filter(pk=gone).update(live=False)  # type: ignore[attr-defined]
    assert agent.found("Tea in the cellar", include_archived=True) == [kept]
    assert agent.found("?", stages=[], topic_ids=[gone, kept], include_archived=True) == [kept]
    assert agent.query("attic", depth=3, include_archived=True)["candidates"][0]["neighbors"] == []
    assert [item["topic_id"] for item in agent.get("/v1/topics?rung=any").ok()["items"]] == [kept]
    assert agent.topic(kept)["neighbors"] == []
