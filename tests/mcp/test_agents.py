"""What an agent can do by MCP, with the SDK's own client, over both transports and by both protocols."""

import json
from typing import Any

import pytest
from django.utils import timezone
from mcp.shared.exceptions import MCPError

from memory.access.keys import key_create
from tests.cast import Cast, secret_of, store_rows
from tests.mcp.conftest import FEW, Connect

NOWHERE = "01a1fc41-60f2-748e-9428-06ddf57520a2"


# What the function calling of several vendors refuses is not among them: references, alternatives, formats.
PLAIN = {"type", "properties", "items", "required", "enum", "description", "minimum", "maximum", "minLength"}
PLAIN |= {"maxLength", "minItems", "maxItems"}


def _plain(schema: dict[str, Any]) -> bool:
    """Whether a schema, with all schemas in it, has a type and no other keywords than ``PLAIN``."""
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return isinstance(schema.get("type"), str) and schema.keys() <= PLAIN and all(map(_plain, inner))


def test_an_agent_finds_remembers_and_explains(people: Cast, connect: Connect):
    with connect(secret_of("agent")) as link:
        tools = {tool.name: tool for tool in link.list_tools().tools}
        assert set(tools) == {
            "query",
            "topic",
            "history",
            "why",
            "new_topic",
            "extend_topic",
            "version_field",
            "link",
            "supersede",
            "search",
            "extract",
        }
        for tool in tools.values():
            assert len(tool.description) > 20
            assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
            assert tool.annotations.destructive_hint is False
            assert tool.annotations.read_only_hint is (tool.name in ("query", "topic", "history", "why", "search"))
            assert _plain(tool.input_schema), tool.name

        made = link.call(
            "new_topic", title="Mara", summary="A friend.", kind="person", fields=[{"name": "city", "value": "Berlin"}]
        )
        mara = made["topic_id"]
        there = people.reader.topic(mara)
        assert (there["title"], there["topic_kind"], there["provenance"]) == ("Mara", "person", "mcp")
        link.call("version_field", topic_id=mara, field="city", value="Lisbon", why_changed="She moved.")
        link.call("extend_topic", topic_id=mara, fields=[{"name": "car", "value": "an old Volvo"}])
        older = "2019-05-01T00:00:00Z"
        link.call("version_field", topic_id=mara, field="car", value="an older Volvo", valid_from=older)
        assert link.call("history", topic_id=mara, field="car")["revisions"][1]["valid_from"].startswith("2019-05-01")
        other = people.agent.remember("Lisbon", values={"country": "Portugal"})
        link.call("link", from_topic_id=mara, to_topic_id=other, kind="lives_in")
        event = link.call("new_topic", title="The regatta", happened_at="2024-06-08")
        assert people.reader.topic(event["topic_id"])["fields"][-1]["field_type"] == "date"
        assert link.call("new_topic", title="The regatta")["similar_topic_ids"] == [event["topic_id"]]
        facts = link.call("extract", content="The ferry leaves at nine. The bakery opens at six.")
        assert len(facts["stored"]) == 2
        assert link.call("extract", content="The ferry leaves at nine. When?", store=False)["dropped"] == {
            "question": 1
        }
        assert people.reader.topic(facts["stored"][0])["topic_kind"] == "fact"

        found = link.call("query", q="Mara city Lisbon")["topics"]
        assert mara in [each["topic_id"] for each in found]
        assert all(each["created_at"].startswith(str(timezone.now().year)) for each in found)
        assert link.call("query", q="Mara city Lisbon", created_before="2020-01-01T00:00:00Z")["topics"] == []
        whole = link.call("topic", topic_id=mara)
        assert whole["fields"] == {"note": "A friend.", "city": "Lisbon", "car": "an old Volvo"}
        assert [(each["topic_id"], each["kind"]) for each in whole["linked"]] == [(other, "lives_in")]
        got = link.call("history", topic_id=mara, field="city")
        assert [(each["value"], each["provenance"]) for each in got["revisions"]] == [
            ("Lisbon", "mcp"),
            ("Berlin", "mcp"),
        ]
        assert got["revisions"][0]["why_changed"] == "She moved."
        assert link.call("why", topic_id=mara)["sentences"]
        by_key = people.reader.get(f"/v1/topics/{mara}/fields/city/history").ok()["items"]
        assert {each["actor"] for each in by_key} == {"key:agent"}

        uri = f"memstate://topics/{mara}"
        listed = link.list_resources()
        assert [str(each.uri) for each in listed.resources][-1] == uri
        assert listed.next_cursor is None
        (template,) = link.list_resource_templates().resource_templates
        assert template.uri_template == "memstate://topics/{topic_id}"
        (content,) = link.read_resource(uri).contents
        assert json.loads(content.text) == whole


@pytest.mark.parametrize("way", FEW, ids="-".join, indirect=True)
def test_what_cannot_be_done_is_said_and_changes_nothing(people: Cast, connect: Connect):
    topic_id = people.agent.remember("Tea", values={"kind": "green"})
    with connect(secret_of("agent")) as link:
        before = store_rows()
        wrong: list[tuple[str, dict[str, Any], str]] = [
            ("query", {}, "missing-member"),
            ("query", {"q": "tea", "top_k": "many"}, "invalid-member"),
            ("query", {"q": " "}, "invalid-member"),
            ("topic", {"topic_id": "tea"}, "invalid-member"),
            ("topic", {"topic_id": topic_id, "scope": "/"}, "unknown-member"),
            ("topic", {"topic_id": NOWHERE}, "not-found"),
            ("history", {"topic_id": topic_id, "field": "price"}, "not-found"),
            ("why", {"topic_id": NOWHERE}, "not-found"),
            ("new_topic", {"title": ""}, "invalid-member"),
            ("new_topic", {"title": "NUL \x00"}, "invalid-member"),
            ("new_topic", {"title": "Cup", "links": [{"to_topic_id": NOWHERE}]}, "not-found"),
            ("extend_topic", {"topic_id": NOWHERE, "fields": [{"name": "a", "value": "b"}]}, "not-found"),
            ("link", {"from_topic_id": topic_id, "to_topic_id": NOWHERE}, "not-found"),
            ("extract", {"content": "  "}, "missing-member"),
            ("extract", {"content": "Tea is green.", "kind": "study:1"}, "invalid-member"),
        ]
        for tool, arguments, code in wrong:
            assert link.refused(tool, **arguments) == code, (tool, arguments)
        for nothing in ("forget", "purge", "ingest"):
            with pytest.raises(MCPError) as refused:
                link.call_tool(nothing, {"query": "everything"})
            assert refused.value.data == {"code": "not-found"}
        for uri in (f"memstate://topics/{NOWHERE}", "memstate://topics/tea", "file:///etc/passwd"):
            with pytest.raises(MCPError) as refused:
                link.read_resource(uri)
            assert refused.value.data["code"] in ("not-found", "not-found")
        with pytest.raises(MCPError) as refused:
            link.list_resources(cursor="x")
        assert refused.value.data == {"code": "invalid-cursor", "member": "cursor"}
        with pytest.raises(MCPError, match="not found"):
            link.get_prompt("anything")
        assert store_rows() == before


@pytest.mark.parametrize("way", FEW, ids="-".join, indirect=True)
def test_a_key_bound_to_a_scope_sees_and_writes_nothing_outside(people: Cast, connect: Connect):
    inside = people.alice.remember("Her tea", values={"kind": "green"})
    outside = people.agent.remember("Another's tea", values={"kind": "black"}, scope="/user/bob")
    with connect(secret_of("alice")) as link:
        assert [each["topic_id"] for each in link.call("query", q="tea", top_k=50)["topics"]] == [inside]
        assert [str(each.uri) for each in link.list_resources().resources] == [f"memstate://topics/{inside}"]
        before = store_rows()
        for tool, more in (
            ("topic", {}),
            ("why", {}),
            ("history", {"field": "kind"}),
            ("version_field", {"field": "kind", "value": "red"}),
            ("extend_topic", {"fields": [{"name": "price", "value": "3"}]}),
        ):
            assert link.refused(tool, topic_id=outside, **more) == "not-found"
        assert link.refused("link", from_topic_id=inside, to_topic_id=outside) == "not-found"
        with pytest.raises(MCPError) as hidden:
            link.read_resource(f"memstate://topics/{outside}")
        assert hidden.value.data == {"code": "not-found"}
        assert store_rows() == before
        made = link.call("new_topic", title="Her cup")["topic_id"]
        facts = link.call("extract", content="The ferry leaves at nine.")["stored"]
        assert {people.reader.topic(each)["scope"] for each in (made, *facts)} == {"/user/alice"}


@pytest.mark.parametrize("way", FEW, ids="-".join, indirect=True)
def test_a_key_that_may_forget_lists_and_then_releases(people: Cast, connect: Connect):
    secret = "ms_the-secret-of-one-that-may-forget"
    key_create(name="forgetter", role="agent", secret=secret, scope="/user/alice", may_forget=True)
    topics = [people.alice.remember(f"Note {number}", categories=["notes"]) for number in range(20)]
    people.operator.post(f"/v1/topics/{topics[1]}/pin", {}).ok()
    old = "2024-05-01T00:00:00Z"
    log = people.operator.remember("A log", scope="/user/alice/work", categories=["logs"], created_at=old)
    outside = people.operator.remember("Another log", scope="/user/bob", categories=["logs"], created_at=old)
    with connect(secret, fresh=True) as link:
        (tool,) = [tool for tool in link.list_tools().tools if tool.name == "forget"]
        assert _plain(tool.input_schema)
        assert (tool.annotations.destructive_hint, tool.annotations.read_only_hint) == (True, False)
        listed = link.call("forget", scope="/user/alice", older_than="30d", categories=["logs"])
        assert (listed["forgotten"], [each["topic_id"] for each in listed["topics"]]) == (False, [log])
        assert people.reader.get(f"/v1/topics/{log}").ok()["released_at"] is None
        assert link.refused("forget", confirm=listed["confirm"], query="A log") == "contradictory-request"
        assert link.refused("forget", scope="/user/bob", older_than="30d") == "not-found"
        assert link.refused("forget") == "missing-member"
        assert link.call("forget", topic_ids=[outside])["confirm"] is None
        done = link.call("forget", confirm=listed["confirm"], reason="She asked for it.")
        assert (done["forgotten"], done["count"]) == (True, 1)
        assert people.reader.get(f"/v1/topics/{log}").ok()["released_at"]
        more = link.call("forget", topic_ids=topics[:2])
        assert [each["topic_id"] for each in more["topics"]] == topics[:1]
        assert link.refused("forget", confirm=more["confirm"]) == "agent-forget-limit"
    run = people.operator.get(f"/v1/runs/{done['run_id']}").ok()
    assert run["actor"] == "key:forgetter"
    people.operator.post(f"/v1/runs/{done['run_id']}/undo", {}).ok()
    assert people.reader.get(f"/v1/topics/{log}").ok()["released_at"] is None
    with connect(secret_of("operator")) as link:
        assert "forget" not in {tool.name for tool in link.list_tools().tools}


@pytest.mark.parametrize("way", FEW, ids="-".join, indirect=True)
def test_a_readers_key_reads(people: Cast, connect: Connect):
    topic_id = people.agent.remember("Tea", values={"kind": "green"})
    with connect(secret_of("reader")) as link:
        tools = {tool.name: tool for tool in link.list_tools().tools}
        assert set(tools) == {"query", "topic", "history", "why", "search", "extract"}
        assert all(tool.annotations.read_only_hint for tool in tools.values())
        before = store_rows()
        assert link.call("extract", content="The ferry leaves at nine.")["stored"] == []
        for writing in ("new_topic", "extend_topic", "version_field", "link"):
            assert link.refused(writing) == "role-too-low"
        assert link.refused("extract", content="The ferry leaves at nine.", store=True) == "unknown-member"
        assert store_rows() == before
        assert link.call("topic", topic_id=topic_id)["title"] == "Tea"


@pytest.mark.parametrize("way", FEW, ids="-".join, indirect=True)
def test_lists_of_resources_go_on_page_by_page(people: Cast, connect: Connect):
    items = [{"placement": "new_topic", "title": f"Topic {number}"} for number in range(120)]
    assert people.agent.post("/v1/ingest/batch", items).ok()["accepted"] == 120
    with connect(secret_of("reader")) as link:
        seen, cursor = [], None
        while True:
            page = link.list_resources(cursor=cursor)
            seen += [str(each.uri) for each in page.resources]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert len(seen) == len(set(seen)) == 120


@pytest.mark.parametrize("way", FEW, ids="-".join, indirect=True)
def test_many_calls_at_once_are_each_answered(people: Cast, connect: Connect):
    with connect(secret_of("agent")) as link:
        begun = [link.later("call_tool", "new_topic", {"title": f"Cup {number}"}) for number in range(20)]
        begun += [link.later("call_tool", "query", {"q": f"Cup {number}"}) for number in range(20)]
        made = {each.result(60).structured_content["topic_id"] for each in begun[:20]}
        assert all(not each.result(60).is_error for each in begun)
    assert len(made) == 20
    assert {people.reader.topic(each)["label"] for each in made} == {f"Cup {number}" for number in range(20)}
