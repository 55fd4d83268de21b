"""A field keeps its type when a new value comes without one."""

from typing import Any

import pytest

from memory.api.app import api
from tests.cast import Caller, store_rows


def version(agent: Caller, topic_id: str, value: object, **members: Any) -> Any:
    fields = [{"name": "cores", "value": value, **members}]
    return agent.post("/v1/ingest", {"placement": "version_field", "topic_id": topic_id, "fields": fields})


def current(agent: Caller, topic_id: str) -> tuple[str, str]:
    (field,) = agent.topic(topic_id)["fields"]
    return field["field_type"], field["current"]["value"]


@pytest.fixture
def machine(agent: Caller) -> str:
    fields = [{"name": "cores", "value": 8, "field_type": "int"}]
    topic_id: str = agent.ingest(title="The machine", fields=fields)["topic_id"]
    return topic_id


@pytest.mark.parametrize("value", [16, "16"])
def test_a_value_without_a_type_keeps_the_type(agent: Caller, machine: str, value: object):
    version(agent, machine, value).ok()
    assert current(agent, machine) == ("int", "16")


def test_the_schema_names_no_type_for_a_value_without_one():
    members = api.get_openapi_schema(path_prefix="/v1/")["components"]["schemas"]["IngestField"]["properties"]
    assert "default" not in members["field_type"]


def test_a_value_that_does_not_fit_changes_nothing(agent: Caller, machine: str):
    before = store_rows()
    answer = version(agent, machine, "many")
    assert (answer.status, answer.code) == (422, "invalid-member")
    assert store_rows() == before


def test_a_type_that_is_named_changes_it(agent: Caller, machine: str):
    version(agent, machine, "many", field_type="string").ok()
    assert current(agent, machine) == ("string", "many")


def test_within_a_batch_each_item_sees_the_type_before_it(agent: Caller, machine: str):
    def item(value: object, **members: Any) -> dict[str, Any]:
        fields = [{"name": "cores", "value": value, **members}]
        return {"placement": "extend_topic", "topic_id": machine, "fields": fields}

    reply = agent.post("/v1/ingest/batch", [item("many"), item("few", field_type="string"), item("many"), item(3)])
    assert [result["status"] for result in reply.ok()["results"]] == [422, 200, 200, 422]
    assert current(agent, machine) == ("string", "many")


def test_a_new_field_without_a_type_takes_text_alone(agent: Caller, machine: str):
    fields = [{"name": "disks", "value": 4}]
    answer = agent.post("/v1/ingest", {"placement": "extend_topic", "topic_id": machine, "fields": fields})
    assert (answer.status, answer.code) == (422, "invalid-member")


def test_a_foreign_topic_answers_like_an_unknown_one(alice: Caller, machine: str):
    answers = [version(alice, topic_id, 5) for topic_id in (machine, "00000000-0000-4000-8000-000000000001")]
    assert [answer.status for answer in answers] == [404, 404]
