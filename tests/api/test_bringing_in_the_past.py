"""``created_at``: an operator brings in an existing memory with its age, in the order in which it came about."""

import datetime as dt
from typing import Any

import pytest

from memory.models import Revision
from tests.cast import Caller, store_rows, worker_turn


def at(year: int) -> str:
    return f"{year}-01-01T00:00:00Z"


def extend(operator: Caller, topic_id: str, year: int, **members: Any) -> Any:
    item = {"placement": "extend_topic", "topic_id": topic_id, "created_at": at(year), **members}
    return operator.post("/v1/ingest", item)


def test_a_memory_comes_in_with_its_age(operator: Caller):
    topic_id = operator.remember("Mara", created_at=at(2020), values={"city": "Leipzig"})
    extend(operator, topic_id, 2022, fields=[{"name": "city", "value": "Berlin"}]).ok()
    topic = operator.topic(topic_id)
    assert dt.datetime.fromisoformat(topic["created_at"]).year == 2020
    assert dt.datetime.fromisoformat(topic["updated_at"]).year == 2022
    # It was learned long ago, and has just been used.
    assert topic["salience"] > 0.99

    def city(year: int) -> list[str]:
        found = operator.query("Mara", as_of=at(year))["candidates"]
        return [entry["current"]["value"] for bundle in found for entry in bundle["fields"]]

    assert [city(year) for year in (2019, 2021, 2023)] == [[], ["Leipzig"], ["Berlin"]]


def test_the_clock_of_use_starts_on_arrival_unless_the_last_use_is_known(operator: Caller, clock: Any):
    clock.set(dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC))
    arrived = operator.remember("Mara", created_at=at(2020), values={"city": "Leipzig"})
    used = operator.remember("Nils", created_at=at(2020), last_used_at="2025-12-02T12:00:00Z", values={"city": "Bonn"})
    assert operator.topic(arrived)["salience"] == pytest.approx(1)
    assert operator.topic(used)["salience"] == pytest.approx(0.5)
    extend(operator, used, 2021, fields=[{"name": "tea", "value": "green"}]).ok()
    clock.forward(days=30)
    assert operator.topic(used)["salience"] == pytest.approx(0.25)


@pytest.mark.parametrize("last_used_at", [at(2019), "2999-01-01T00:00:00Z"])
def test_a_last_use_that_cannot_be_is_refused(operator: Caller, last_used_at: str):
    item = {"placement": "new_topic", "title": "Mara", "created_at": at(2020), "last_used_at": last_used_at}
    before = store_rows()
    answer = operator.post("/v1/ingest", item)
    assert (answer.status, answer.code) == (422, "invalid-member")
    assert store_rows() == before


def test_the_last_use_is_for_operators(agent: Caller):
    item = {"placement": "new_topic", "title": "Mara", "last_used_at": at(2020)}
    assert agent.post("/v1/ingest", item).status == 403


def test_imported_memories_of_last_spring_are_there_after_weeks_and_events(operator: Caller, clock: Any):
    """An import of old memories into a store that is past its soft limit."""
    clock.set(dt.datetime(2026, 11, 1, 12, tzinfo=dt.UTC))
    policy = {"values": {"topic_count_soft_limit": 0}, "reason": "for the test"}
    operator.put("/v1/policies/", policy).ok()
    made = [
        operator.remember(text, created_at="2026-05-02T09:00:00Z")
        for text in ("Rita is allergic to shellfish", "Rita works nights", "Rita has a son")
    ]
    for turn in range(10):
        operator.remember(f"Something else {turn}")
        worker_turn()
        clock.forward(days=4)
    assert {operator.topic(topic_id)["rung"] for topic_id in made} <= {"active", "summarized"}


def test_what_was_learned_before_cannot_be_slipped_in_behind(operator: Caller):
    topic_id = operator.remember("Mara", created_at=at(2020), values={"city": "Leipzig"})
    extend(operator, topic_id, 2022, fields=[{"name": "city", "value": "Berlin"}]).ok()
    before = store_rows()
    answer = extend(operator, topic_id, 2021, fields=[{"name": "city", "value": "Hamburg"}])
    assert (answer.status, answer.code) == (422, "invalid-member")
    answer = extend(operator, topic_id, 2019, fields=[{"name": "tea", "value": "green"}])
    assert (answer.status, answer.code) == (422, "invalid-member")
    assert store_rows() == before
    # Another field has a past of its own.
    extend(operator, topic_id, 2021, fields=[{"name": "tea", "value": "green"}]).ok()


def test_the_same_holds_within_a_batch(operator: Caller):
    topic_id = "11111111-1111-4111-8111-111111111111"

    def item(year: int, value: str, placement: str = "version_field") -> dict[str, Any]:
        fields = [{"name": "city", "value": value}]
        return {"placement": placement, "topic_id": topic_id, "created_at": at(year), "fields": fields}

    items = [item(2020, "Leipzig", "new_topic"), item(2022, "Berlin"), item(2021, "Hamburg"), item(2022, "Rome")]
    reply = operator.post("/v1/ingest/batch", items).ok()
    assert [result["status"] for result in reply["results"]] == [200, 200, 422, 200]


@pytest.mark.parametrize("hours", [0, 1])
def test_moments_of_learning_never_run_against_the_numbers(agent: Caller, clock: Any, hours: int):
    clock.set(dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC))
    topic_id = agent.remember("Mara", values={"city": "Leipzig"})
    # The clock of another writer, who read it before and writes after.
    clock.forward(hours=-hours)
    agent.ingest("version_field", topic_id=topic_id, fields=[{"name": "city", "value": "Berlin"}])
    moments = list(Revision.objects.order_by("seq").values_list("recorded_at", flat=True))
    assert moments == sorted(moments)
    (bundle,) = agent.query("Mara", as_of="2026-01-01T12:00:00Z")["candidates"]
    assert bundle["fields"][0]["current"]["value"] == "Berlin"
