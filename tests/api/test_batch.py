"""POST /v1/ingest/batch: many items, each answered for itself."""

import json
import uuid
from typing import Any

import pytest

from memory.models import Topic, WakeUp
from tests.cast import Answer, Caller, code_of, store_rows


def batch(caller: Caller, items: list[Any], **more: Any) -> Any:
    return caller.post("/v1/ingest/batch", items, **more).ok()


def lines(caller: Caller, *texts: bytes, content_type: str = "application/x-ndjson") -> Answer:
    return caller.post("/v1/ingest/batch", body=b"\n".join(texts), headers={"Content-Type": content_type})


def new(title: str, **members: Any) -> dict[str, Any]:
    return {"placement": "new_topic", "title": title, **members}


def test_each_item_is_answered_in_its_place(agent: Caller):
    reply = batch(agent, [new("One"), new("Two", fields=[{"name": "a", "value": "b"}])])
    assert (reply["accepted"], reply["refused"]) == (2, 0)
    one, two = reply["results"]
    assert (one["index"], one["status"]) == (0, 200)
    assert (two["index"], two["status"]) == (1, 200)
    assert one["applied"] == [f"created_topic:{one['topic_id']}"]
    assert two["applied"] == [f"created_topic:{two['topic_id']}", "field:a"]
    assert set(two["version_ids"]) == {"a"}
    assert agent.topic(one["topic_id"])["title"] == "One"
    assert agent.topic(two["topic_id"])["fields"][0]["current"]["value"] == "b"


def test_an_empty_batch_is_answered(agent: Caller):
    assert batch(agent, []) == {"results": [], "accepted": 0, "refused": 0}


def test_later_items_may_name_topics_of_earlier_ones(agent: Caller):
    mara, berlin = str(uuid.uuid4()), str(uuid.uuid4())
    reply = batch(
        agent,
        [
            new("Berlin", topic_id=berlin),
            new("Mara", topic_id=mara, edges=[{"to_topic_id": berlin, "kind": "lives_in"}]),
            {"placement": "extend_topic", "topic_id": mara, "fields": [{"name": "tea", "value": "green"}]},
            {"placement": "version_field", "topic_id": mara, "fields": [{"name": "tea", "value": "black"}]},
            {
                "placement": "version_field",
                "topic_id": mara,
                "fields": [{"name": "city", "value": "Berlin", "ref_topic_id": berlin}],
            },
        ],
    )
    assert [result["status"] for result in reply["results"]] == [200] * 5
    topic = agent.topic(mara)
    assert [(entry["name"], entry["current"]["value"]) for entry in topic["fields"]] == [
        ("tea", "black"),
        ("city", "Berlin"),
    ]
    assert topic["fields"][1]["ref_topic_id"] == berlin
    assert [(link["topic_id"], link["direction"]) for link in topic["neighbors"]] == [(berlin, "out")]
    history = agent.get(f"/v1/topics/{mara}/fields/tea/history").ok()["items"]
    assert [(revision["seq"], revision["value"]) for revision in history] == [(2, "black"), (1, "green")]
    # What was written last is what the topic is found by.
    assert agent.found("black", top_k=1) == [mara]


def test_an_item_may_not_name_a_topic_of_a_later_one(agent: Caller):
    later = str(uuid.uuid4())
    reply = batch(agent, [new("One", edges=[{"to_topic_id": later, "kind": "x"}]), new("Two", topic_id=later)])
    assert [result["status"] for result in reply["results"]] == [400, 200]


BAD: list[tuple[Any, int, str]] = [
    (new("Bad", fields=[{"name": "n", "value": "four", "field_type": "int"}]), 422, "invalid-member"),
    (new("Bad", salience=11), 422, "invalid-member"),
    (new("Bad", topic_id="x"), 422, "invalid-member"),
    ({"placement": "elsewhere"}, 422, "invalid-member"),
    ({"placement": "extend_topic"}, 400, "missing-member"),
    ({"placement": "extend_topic", "topic_id": str(uuid.UUID(int=7))}, 400, "not-found"),
    (new("Bad", created_at="2020-01-01T00:00:00Z"), 403, "role-too-low"),
    (new("Bad", scope="/a b"), 422, "invalid-scope"),
    (new("x" * 1001), 422, "invalid-member"),
    ({}, 422, "missing-member"),
    ([], 422, "invalid-member"),
    (None, 422, "invalid-member"),
    (7, 422, "invalid-member"),
    ("new_topic", 422, "invalid-member"),
]


@pytest.mark.parametrize(("bad", "status", "code"), BAD)
def test_one_bad_item_does_not_harm_the_others(agent: Caller, bad: Any, status: int, code: str):
    reply = batch(agent, [new("Before"), bad, new("After")])
    before, refused, after = reply["results"]
    assert (reply["accepted"], reply["refused"]) == (2, 1)
    assert (refused["status"], code_of(refused)) == (status, code)
    assert refused["index"] == 1
    assert sorted(Topic.objects.values_list("title", flat=True)) == ["After", "Before"]
    assert {before["status"], after["status"]} == {200}


def test_a_refused_item_leaves_nothing_for_the_items_after_it(agent: Caller):
    wanted = str(uuid.uuid4())
    reply = batch(
        agent,
        [
            new("Half", topic_id=wanted, edges=[{"to_topic_id": str(uuid.uuid4()), "kind": "x"}]),
            {"placement": "extend_topic", "topic_id": wanted, "fields": [{"name": "a", "value": "b"}]},
            new("Whole", topic_id=wanted),
        ],
    )
    assert [result["status"] for result in reply["results"]] == [400, 400, 200]
    assert agent.topic(wanted)["title"] == "Whole"


def test_the_same_id_twice_is_a_conflict_for_the_second(agent: Caller):
    wanted = str(uuid.uuid4())
    reply = batch(agent, [new("First", topic_id=wanted), new("Second", topic_id=wanted)])
    assert [result["status"] for result in reply["results"]] == [200, 409]
    assert agent.topic(wanted)["title"] == "First"


@pytest.mark.parametrize(
    "content_type", ["application/x-ndjson", "application/jsonl", "application/x-ndjson; charset=utf-8"]
)
def test_json_lines_are_a_batch(agent: Caller, content_type: str):
    texts = [json.dumps(new(f"Line {number}")).encode() for number in range(3)]
    reply = lines(agent, *texts, b"", content_type=content_type).ok()
    assert [result["status"] for result in reply["results"]] == [200] * 3
    assert sorted(Topic.objects.values_list("title", flat=True)) == ["Line 0", "Line 1", "Line 2"]


def test_a_line_that_is_no_json_is_refused_by_itself(agent: Caller):
    good = json.dumps(new("Good")).encode()
    reply = lines(agent, good, b'{"placement": ', good, b'"\xff"', b'{"title": "\\u0000"}', b"[" * 100).ok()
    assert [result["status"] for result in reply["results"]] == [200, 400, 200, 400, 422, 400]
    assert [code_of(result) for result in reply["results"] if result["status"] != 200] == [
        "invalid-json",
        "invalid-json",
        "invalid-member",
        "invalid-json",
    ]
    assert (reply["accepted"], reply["refused"]) == (2, 4)


def test_a_thousand_items_are_accepted_and_one_more_is_refused(agent: Caller):
    items = [new(f"Topic {number}") for number in range(1000)]
    before = store_rows()
    answer = agent.post("/v1/ingest/batch", [*items, new("One too many")])
    assert answer.status == 422
    assert answer.code == "too-large"
    assert store_rows() == before
    assert batch(agent, items)["accepted"] == 1000
    assert Topic.objects.count() == 1000


@pytest.mark.parametrize("body", [{}, {"items": []}, 7, "x", None, True])
def test_what_is_no_list_is_no_batch(agent: Caller, body: Any):
    answer = agent.post("/v1/ingest/batch", body)
    assert answer.status == 400
    assert answer.code == "invalid-body"


def test_a_batch_over_many_scopes_leaves_word_for_the_reasoner_in_each(agent: Caller):
    batch(agent, [new("A", scope="/a"), new("B", scope="/b"), new("B2", scope="/b")])
    batch(agent, [new("B3", scope="/b")])
    events = {wake.scope.path: (wake.event, wake.times) for wake in WakeUp.objects.select_related("scope")}
    assert events == {"/a": ("ingest_complete", 1), "/b": ("ingest_complete", 2)}


def test_the_number_of_statements_does_not_grow_with_the_items(agent: Caller, django_assert_max_num_queries: Any):
    agent.remember("A first one makes the scope and warms up")
    with django_assert_max_num_queries(30):
        batch(agent, [new(f"Few {number}", fields=[{"name": "a", "value": "b"}]) for number in range(3)])
    with django_assert_max_num_queries(30):
        batch(agent, [new(f"Many {number}", fields=[{"name": "a", "value": "b"}]) for number in range(300)])
