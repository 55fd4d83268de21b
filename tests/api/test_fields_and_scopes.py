"""Topics chosen by their title or by the values of their fields, emptied fields, and the list of scopes."""

from typing import Any
from urllib.parse import urlencode

import pytest

from memory.models import AccessLog, Field
from tests.cast import Caller, Cast

FIELDS = {"color": "red", "size": "10"}


def titles(answer: dict[str, list[dict[str, str]]], member: str) -> list[str]:
    return sorted(row["title"] for row in answer[member])


@pytest.mark.parametrize("extra", [{}, {"kinds": ["note"]}, {"include_archived": True}])
def test_a_query_returns_only_topics_with_exactly_these_values(agent: Caller, extra: dict[str, object]):
    agent.remember("Bike", topic_kind="note", values=FIELDS)
    agent.remember("Bike in blue", topic_kind="note", values={**FIELDS, "color": "blue"})
    agent.remember("Bike in Red", topic_kind="note", values={**FIELDS, "color": "Red"})
    agent.remember("Bike without", topic_kind="note")

    def found(values: dict[str, str]) -> list[str]:
        return titles(agent.query("bike", field_values=values, **extra), "candidates")

    assert found({"color": "red"}) == ["Bike"]
    assert found(FIELDS) == ["Bike"]
    assert found({"size": "10"}) == ["Bike", "Bike in Red", "Bike in blue"]
    assert found({"color": "red", "size": "11"}) == []
    assert found({"none": "red"}) == []


def test_only_the_present_value_counts(agent: Caller):
    topic = agent.remember("Bike", values={"color": "red"})
    changed = {"placement": "version_field", "topic_id": topic, "fields": [{"name": "color", "value": "blue"}]}
    agent.post("/v1/ingest", changed).ok()
    assert agent.query("bike", field_values={"color": "red"})["candidates"] == []
    assert len(agent.query("bike", field_values={"color": "blue"})["candidates"]) == 1
    chosen = {"q": "", "stages": ["structural"], "topic_ids": [topic]}
    assert agent.post("/v1/query", {**chosen, "field_values": {"color": "red"}}).ok()["candidates"] == []
    assert len(agent.post("/v1/query", {**chosen, "field_values": {"color": "blue"}}).ok()["candidates"]) == 1


def test_the_values_of_a_question_are_kept_where_a_purge_masks_them(agent: Caller):
    agent.query("bike", field_values={"color": "red"})
    assert AccessLog.objects.get().request["field_values"] == [{"name": "color", "value": "red"}]


def test_detached_fields_are_returned_on_request(agent: Caller):
    topic = agent.remember("Bike", values=FIELDS)
    Field.objects.filter(topic=topic, name="size").update(detached=True)
    chosen = {"q": "", "stages": ["structural"], "topic_ids": [topic]}
    for wanted, names in (({}, {"color"}), ({"include_detached": True}, {"color", "size"})):
        (found,) = agent.post("/v1/query", {**chosen, **wanted}).ok()["candidates"]
        assert {field["name"] for field in found["fields"]} == names


def test_fields_are_emptied_and_keep_their_history(agent: Caller):
    topic = agent.remember("Bike", values=FIELDS)
    emptied = {"placement": "extend_topic", "topic_id": topic, "empty_fields": ["color", "color"]}
    assert agent.post("/v1/ingest", emptied).ok()["applied"] == ["version:color"]
    assert agent.post("/v1/ingest", emptied).ok()["applied"] == []
    fields = {each["name"]: each["current"]["value"] for each in agent.get(f"/v1/topics/{topic}").ok()["fields"]}
    assert fields == {"color": "", "size": "10"}
    history = agent.get(f"/v1/topics/{topic}/fields/color/history").ok()["items"]
    assert [each["value"] for each in history] == ["", "red"]
    unknown = agent.post("/v1/ingest", {**emptied, "empty_fields": ["size", "colour"]})
    assert (unknown.status, unknown.code) == (422, "not-found")
    both = agent.post("/v1/ingest", {**emptied, "fields": [{"name": "size", "value": "1"}], "empty_fields": ["size"]})
    assert (both.status, both.code) == (400, "contradictory-request")
    for placement in ("new_topic", "version_field"):
        item = {"placement": placement, "title": "x", "fields": [{"name": "a", "value": "b"}], "empty_fields": ["a"]}
        known = {"topic_id": topic} if placement == "version_field" else {}
        answer = agent.post("/v1/ingest", {**item, **known})
        assert (answer.status, answer.code) == (400, "contradictory-request")


def test_topics_are_listed_by_their_exact_title_in_one_scope(agent: Caller):
    for scope in ("/a", "/a/b", "/c"):
        agent.remember("Tea", scope=scope)
    agent.remember("tea", scope="/a")

    def listed(**where: Any) -> list[str]:
        rows = agent.get(f"/v1/topics?{urlencode(where)}").ok()["items"]
        return sorted(f"{row['scope']} {row['title']}" for row in rows)

    assert listed(title="Tea") == ["/a Tea", "/a/b Tea", "/c Tea"]
    assert listed(title="Tea", scope="/a") == ["/a Tea", "/a/b Tea"]
    assert listed(title="Tea", scope="/a", below="false") == ["/a Tea"]
    assert listed(scope="/a", below="false") == ["/a Tea", "/a tea"]


def test_scopes_with_topics_are_listed_page_by_page(cast: Cast):
    agent, alice = cast.agent, cast.alice
    for scope, kind in (("/a", "note"), ("/a/b", "note"), ("/a/b", ""), ("/ab", "item"), ("/user/alice", "note")):
        agent.remember(f"{scope} {kind}", scope=scope, topic_kind=kind)
    gone = agent.remember("Gone", scope="/gone")
    cast.operator.post("/v1/forget", {"verb": "release", "filter": {"ids": [gone]}, "dry_run": False}).ok()

    def listed(caller: Caller, **where: Any) -> list[tuple[str, int]]:
        rows: list[tuple[str, int]] = []
        more: dict[str, str] = {}
        while True:
            page = caller.get(f"/v1/scopes?{urlencode({**where, **more})}").ok()
            rows += [(row["scope"], row["topics"]) for row in page["items"]]
            if page["next"] is None:
                return rows
            more = {"cursor": page["next"]}

    everything = [("/a", 1), ("/a/b", 2), ("/ab", 1), ("/user/alice", 1)]
    assert listed(agent) == listed(agent, limit=1) == everything
    assert listed(agent, scope="/a") == everything[:2]
    assert listed(agent, kind="note") == [("/a", 1), ("/a/b", 1), ("/user/alice", 1)]
    long = f"/{'ä' * 490}"
    for number in range(2):
        agent.remember("Long", scope=f"{long}/{number}")
    assert listed(agent, scope=long, limit=1) == [(f"{long}/0", 1), (f"{long}/1", 1)]
    assert listed(alice) == [("/user/alice", 1)]
    assert alice.get("/v1/scopes?scope=/a").status == 404
    assert agent.get("/v1/scopes?cursor=x").code == "invalid-cursor"
