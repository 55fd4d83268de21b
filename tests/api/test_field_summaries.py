"""Field summaries: what stands in an answer in place of revisions that have turned cold."""

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from memory.models import Field, FieldSummary
from tests.cast import Caller, Clock


@pytest.fixture
def topic(agent: Caller, settings: Any) -> str:
    """A topic with eight revisions of ``city``, of which the first five are cold, and one of ``pet``."""
    settings.MEMSTATE_KNOBS = {**settings.MEMSTATE_KNOBS, "max_field_history": 3}
    topic_id = agent.remember("Mara", values={"city": "City 0", "pet": "a cat"})
    for number in range(1, 8):
        agent.ingest("version_field", topic_id=topic_id, fields=[{"name": "city", "value": f"City {number}"}])
    return topic_id


def summary_make(topic_id: str, text: str, *, at: dt.datetime | None = None, **members: Any) -> FieldSummary:
    field = Field.objects.get(topic_id=topic_id, name="city")
    defaults = {"from_seq": 1, "through_seq": 5, "method": "extractive", "depth": 1}
    return FieldSummary.objects.create(
        field=field, text=text, created_at=at or timezone.now(), **{**defaults, **members}
    )


def got(agent: Caller, topic_id: str, **asked: Any) -> list[Any]:
    """The summary of the field as a search and a choice by id tell it, which is the same."""
    answers = [agent.query("Mara", **asked), agent.query("?", stages=["structural"], topic_ids=[topic_id], **asked)]
    found = []
    for answer in answers:
        (bundle,) = answer["candidates"]
        fields = {field["name"]: field for field in bundle["fields"]}
        if "pet" in fields:
            assert fields["pet"]["summary"] is None
        found.append(fields["city"]["summary"])
    assert found[0] == found[1]
    return found[0]


def looked_up(agent: Caller, topic_id: str) -> Any:
    fields = {field["name"]: field for field in agent.topic(topic_id)["fields"]}
    assert fields["pet"]["summary"] is None
    return fields["city"]["summary"]


SAID = {"text": "City 0, then City 4", "from_seq": 1, "through_seq": 5, "method": "extractive", "depth": 1}


def test_a_summary_is_reported_by_queries_and_by_lookup(agent: Caller, topic: str) -> None:
    summary_make(topic, "City 0, then City 4")
    assert got(agent, topic) == SAID
    assert got(agent, topic, field_names=["city"]) == SAID
    assert looked_up(agent, topic) == SAID


def test_without_a_summary_there_is_none(agent: Caller, topic: str) -> None:
    assert got(agent, topic) is None
    assert looked_up(agent, topic) is None


def test_the_newest_one_counts(agent: Caller, topic: str) -> None:
    summary_make(topic, "old", through_seq=3)
    summary_make(topic, "new", method="llm", depth=2)
    assert got(agent, topic) == {"text": "new", "from_seq": 1, "through_seq": 5, "method": "llm", "depth": 2}
    assert looked_up(agent, topic)["text"] == "new"


def test_one_that_was_withdrawn_is_not_reported_and_the_one_before_it_is(agent: Caller, topic: str) -> None:
    summary_make(topic, "City 0, then City 4")
    later = summary_make(topic, "withdrawn", withdrawn_at=timezone.now())
    assert got(agent, topic) == SAID
    assert looked_up(agent, topic) == SAID
    FieldSummary.objects.exclude(pk=later.pk).update(withdrawn_at=timezone.now())
    assert got(agent, topic) is None
    assert looked_up(agent, topic) is None


def test_it_is_looked_up_only_where_revisions_are_cold(agent: Caller, topic: str) -> None:
    summary_make(topic, "of revisions that are warm again")
    Field.objects.filter(topic_id=topic).update(cold_through=0)
    assert got(agent, topic) is None
    assert looked_up(agent, topic) is None


def test_cold_revisions_come_beside_the_summary_when_asked_for(agent: Caller, topic: str) -> None:
    summary_make(topic, "City 0, then City 4")

    def history(**asked: Any) -> list[str]:
        (bundle,) = agent.query("Mara", explain=True, **asked)["candidates"]
        (field,) = [field for field in bundle["fields"] if field["name"] == "city"]
        assert field["summary"] == SAID
        return [revision["value"] for revision in field["history"]]

    assert history() == ["City 5", "City 6", "City 7"]
    assert history(include_cold=True) == [f"City {number}" for number in range(8)]


def test_the_past_knows_only_summaries_that_were_in_force_then(agent: Caller, topic: str, clock: Clock) -> None:
    start = clock.stop()
    first = summary_make(topic, "first", at=start + dt.timedelta(days=1))
    summary_make(topic, "second", at=start + dt.timedelta(days=2))
    FieldSummary.objects.filter(pk=first.pk).update(withdrawn_at=start + dt.timedelta(days=4))
    FieldSummary.objects.exclude(pk=first.pk).update(withdrawn_at=start + dt.timedelta(days=3))
    # All revisions are warm by now, which says nothing about the past.
    Field.objects.filter(topic_id=topic).update(cold_through=0)
    clock.forward(days=10)

    def then(**delta: float) -> str | None:
        summary = got(agent, topic, as_of=(start + dt.timedelta(**delta)).isoformat())
        return summary["text"] if summary else None

    assert then(hours=1) is None
    assert then(days=1) == "first"
    assert then(days=1.5) == "first"
    assert then(days=2.5) == "second"
    # The moment of withdrawal is the first without it.
    assert then(days=3) == "first"
    assert then(days=3.5) == "first"
    assert then(days=4) is None
    assert got(agent, topic) is None


def test_other_fields_and_topics_have_summaries_of_their_own(agent: Caller, topic: str) -> None:
    summary_make(topic, "City 0, then City 4")
    other = agent.remember("Mara's sister", values={"city": "Rome"})
    Field.objects.filter(topic_id=other).update(cold_through=1)
    bundles = {bundle["topic_id"]: bundle for bundle in agent.query("Mara")["candidates"]}
    assert [field["summary"] for field in bundles[other]["fields"]] == [None]
    assert [field["summary"] for field in bundles[topic]["fields"]] == [SAID, None]
