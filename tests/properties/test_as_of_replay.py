"""``as_of`` answers what the store answered then: each answer of the past is asked for again at the end."""

import datetime as dt
import uuid
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from tests.cast import Caller, Cast
from tests.generated import examples

pytestmark = pytest.mark.django_db

START = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
IDS = [str(uuid.UUID(int=number)) for number in range(1, 5)]

names = st.sampled_from(["city", "job", "pet"])
values = st.sampled_from(["Oslo", "Rome", "cook", "pilot", "", "cat"])
places = st.integers(0, len(IDS) - 1)
fields = st.lists(
    st.fixed_dictionaries({"name": names, "value": values}, optional={"ref": places, "why_changed": values}), max_size=3
)
edges = st.lists(st.fixed_dictionaries({"to": places, "kind": st.sampled_from(["knows", "follows"])}), max_size=2)
steps = st.fixed_dictionaries(
    {
        "verb": st.sampled_from(["ingest", "ingest", "ingest", "version", "title", "summary", "pin", "query"]),
        "topic": places,
        "text": st.sampled_from(["harbor", "bakery", "lantern", "orchard"]),
        "fields": fields,
        "edges": edges,
        "pause": st.sampled_from([0.000001, 0.5, 3600.0, 86_400.0 * 40]),
    }
)


def do(step: dict[str, Any], made: set[str], caller: Caller, created_at: dt.datetime | None) -> None:
    """Take one step; what does not apply to the store as it stands is left out."""
    topic_id = IDS[step["topic"]]
    backdated = {} if created_at is None else {"created_at": created_at.isoformat()}
    items = [
        {key: value for key, value in entry.items() if key != "ref"}
        | ({"ref_topic_id": IDS[entry["ref"]]} if "ref" in entry and IDS[entry["ref"]] in made else {})
        for entry in step["fields"]
    ]
    links = [
        {"to_topic_id": IDS[edge["to"]], "kind": edge["kind"]} for edge in step["edges"] if IDS[edge["to"]] in made
    ]
    if topic_id not in made:
        caller.ingest(topic_id=topic_id, title=step["text"], summary="", fields=items, edges=links, **backdated)
        made.add(topic_id)
    elif step["verb"] == "ingest":
        caller.ingest("extend_topic", topic_id=topic_id, fields=items, edges=links, **backdated)
    elif step["verb"] == "version":
        caller.ingest("version_field", topic_id=topic_id, fields=(items or [{"name": "city"}])[:1], **backdated)
    elif step["verb"] == "pin":
        caller.post(f"/v1/topics/{topic_id}/pin", {}).ok()
    elif step["verb"] == "query":
        caller.query("harbor", stages=["semantic"])
    elif created_at is None:
        caller.patch(f"/v1/topics/{topic_id}", {step["verb"]: step["text"]}).ok()


def answers(caller: Caller, as_of: dt.datetime | None) -> list[dict[str, Any]]:
    """What the store says of every topic, without what is of the present by its nature (salience, counts)."""
    past = {} if as_of is None else {"as_of": as_of.isoformat()}
    reply = caller.query(
        "", stages=["structural", "temporal"], explain=True, topic_ids=IDS, depth=3, include_cold=True, **past
    )
    return [
        {
            "told": {name: bundle[name] for name in ("topic_id", "title", "summary", "created_at")},
            "neighbors": {neighbor["topic_id"]: neighbor["depth"] for neighbor in bundle["neighbors"]},
            "fields": {
                entry["name"]: (entry["field_type"], entry["ref_topic_id"], entry["current"], entry["history"])
                for entry in bundle["fields"]
            },
        }
        for bundle in reply["candidates"]
    ]


def histories_known(caller: Caller) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """What the explicit lookup tells of each field, oldest first."""
    found = {}
    for topic_id in IDS:
        for name in ("city", "job", "pet"):
            reply = caller.get(f"/v1/topics/{topic_id}/fields/{name}/history")
            if reply.status == 200:
                found[topic_id, name] = reply.json["items"][::-1]
    return found


@pytest.mark.parametrize("imported", [False, True], ids=["as it happens", "brought in with its age"])
@examples(12)
@given(history=st.lists(steps, min_size=2, max_size=10))
def test_as_of_answers_what_was_answered_then(cast: Cast, imported: bool, history: list[dict[str, Any]]) -> None:
    caller = cast.operator
    made: set[str] = set()
    now = START
    then: list[tuple[dt.datetime, list[dict[str, Any]]]] = []
    with pytest.MonkeyPatch.context() as patch, transaction.atomic():
        patch.setattr(timezone, "now", lambda: START + dt.timedelta(days=1000) if imported else now)
        for step in history:
            now += dt.timedelta(seconds=step["pause"])
            do(step, made, caller, now if imported else None)
            then.append((now, answers(caller, None)))
        known = histories_known(caller)
        for moment, got in then:
            assert answers(caller, moment) == got
            for bundle in got:
                for name, (_type, _ref, _current, history_then) in bundle["fields"].items():
                    looked_up = [
                        revision["id"]
                        for revision in known[bundle["told"]["topic_id"], name]
                        if dt.datetime.fromisoformat(revision["recorded_at"]) <= moment
                    ]
                    assert looked_up == [revision["id"] for revision in history_then]
        assert answers(caller, START - dt.timedelta(seconds=1)) == []
        transaction.set_rollback(True)


def test_a_moment_between_two_changes_knows_the_first_and_not_the_second(agent: Caller, clock: Any) -> None:
    clock.stop()
    topic_id = agent.remember("Anna", values={"city": "Oslo"})
    clock.forward(days=1)
    middle = clock.now + dt.timedelta(hours=1)
    clock.forward(days=1)
    agent.ingest("version_field", topic_id=topic_id, fields=[{"name": "city", "value": "Rome"}])
    agent.patch(f"/v1/topics/{topic_id}", {"title": "Anna Berg", "summary": "moved"}).ok()

    def known(**more: Any) -> tuple[Any, ...]:
        (bundle,) = agent.query("", stages=[], topic_ids=[topic_id], **more)["candidates"]
        return bundle["title"], bundle["summary"], bundle["fields"][0]["current"]["value"]

    assert known(as_of=middle.isoformat()) == ("Anna", "", "Oslo")
    assert known() == ("Anna Berg", "moved", "Rome")


@pytest.mark.parametrize("part", ["topic_kind", "categories", "neighbor"])
def test_what_was_edited_is_reported_as_it_was(agent: Caller, clock: Any, part: str) -> None:
    clock.stop()
    topic_id = agent.remember("Anna", topic_kind="person", categories=["people"])
    other = agent.remember("Bergen", edges=[{"to_topic_id": topic_id, "kind": "home_of"}])
    clock.forward(days=1)
    middle = clock.now
    clock.forward(days=1)
    change = {"title": "Anna Berg", "topic_kind": "friend", "categories": ["friends"]}
    agent.patch(f"/v1/topics/{topic_id}", change).ok()
    reply = agent.query("", stages=["structural"], topic_ids=[topic_id, other], as_of=middle.isoformat())
    anna, bergen = reply["candidates"]
    got = {**anna, "neighbor": bergen["neighbors"][0]["title"]}
    assert got[part] == {"topic_kind": "person", "categories": ["people"], "neighbor": "Anna"}[part]
