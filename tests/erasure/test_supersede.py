"""Supersede over the API: the addressed fact is replaced, its history stays, and nothing beside it goes."""

from typing import Any

import pytest

from memory.models import AuditEvent
from tests.cast import Caller
from tests.erasure.test_forget import found, remember

pytestmark = pytest.mark.meaning


def test_the_fact_that_is_meant_is_replaced_in_place_and_its_history_stays(agent: Caller) -> None:
    topic = remember(agent, "Maria lives in Madrid.")
    remember(agent, "Pedro lives in Madrid.")

    done = agent.post(
        "/v1/supersede", {"old_query": "where Maria lives", "new_text": "Maria lives in Lugo.", "reason": "moved"}
    ).ok()

    assert done["topic_id"] == topic
    (entry,) = done["superseded"]
    assert (entry["topic_id"], entry["mode"]) == (topic, "whole")
    assert (entry["before"], entry["after"]) == ("Maria lives in Madrid.", "Maria lives in Lugo.")
    assert (entry["by"], 0 < entry["confidence"] <= 1) == ("meaning", True)
    assert found(agent, "Maria lives in Madrid.") == {"Maria lives in Lugo.", "Pedro lives in Madrid."}
    history = agent.get(f"/v1/topics/{topic}/fields/fact/history").ok()["items"]
    assert [entry["value"] for entry in history] == ["Maria lives in Lugo.", "Maria lives in Madrid."]
    assert history[0]["why_changed"] == "moved"
    assert AuditEvent.objects.get(action="superseded").reason == "moved"


def test_of_two_facts_in_a_sentence_only_the_addressed_one_goes(agent: Caller) -> None:
    topic = remember(agent, "Nils lives in Bergen and works as a glazier.")

    done = agent.post("/v1/supersede", {"old_query": "Nils lives in Bergen", "new_text": "Nils lives in Oslo."}).ok()

    (entry,) = done["superseded"]
    assert (entry["topic_id"], entry["mode"], entry["after"]) == (topic, "part", "Nils works as a glazier.")
    assert found(agent, "Nils") == {"Nils works as a glazier.", "Nils lives in Oslo."}
    links = agent.post("/v1/query", {"q": "Nils lives in Oslo."}).ok()["candidates"][0]["neighbors"]
    assert {link["kind"] for link in links} == {"supersedes"}


def test_one_field_of_a_topic_is_replaced_and_the_others_stay(agent: Caller) -> None:
    item = {
        "placement": "new_topic",
        "title": "Maria Lopez",
        "fields": [{"name": "city", "value": "Madrid"}, {"name": "phone", "value": "+34 600 000 111"}],
    }
    topic = agent.post("/v1/ingest", item).ok()["topic_id"]

    done = agent.post(
        "/v1/supersede", {"old_query": "Maria Lopez's city", "new_text": "Maria Lopez lives in Lugo."}
    ).ok()

    assert done["topic_id"] == topic
    fields = agent.get(f"/v1/topics/{topic}").ok()["fields"]
    assert {field["name"]: field["current"]["value"] for field in fields} == {
        "city": "Lugo",
        "phone": "+34 600 000 111",
    }


def test_facts_that_fit_equally_well_are_named_and_nothing_is_done(agent: Caller) -> None:
    remember(agent, "Anna Berg's phone number is 0444 120 555.")
    remember(agent, "Anna Holm's phone number is 0444 987 222.")

    refused = agent.post(
        "/v1/supersede", {"old_query": "Anna's phone number", "new_text": "Anna's phone number is 0444 333 111."}
    )

    assert refused.status == 409
    assert len(refused.json["candidates"]) == 2
    assert len(found(agent, "Anna's phone number")) == 2


def test_a_new_truth_is_remembered_even_if_nothing_said_the_old(agent: Caller) -> None:
    remember(agent, "Pedro lives in Madrid.")

    done = agent.post("/v1/supersede", {"old_query": "Maria lives in Rome", "new_text": "Maria lives in Lugo."}).ok()

    assert done["superseded"] == []
    assert found(agent, "Maria lives") == {"Maria lives in Lugo.", "Pedro lives in Madrid."}


@pytest.mark.parametrize("old_query", ["Anna lives in Oslo", "my shoe size is 43", "he prefers tabs"])
def test_what_speaks_of_something_else_is_never_replaced(agent: Caller, old_query: str) -> None:
    texts = ["The van needs new tyres.", "The kettle is in the kitchen cupboard.", "The printer is out of toner."]
    ids = [remember(agent, text) for text in texts]
    done = agent.post("/v1/supersede", {"old_query": old_query, "new_text": f"{old_query}, no more"}).ok()
    assert done["superseded"] == []
    assert [agent.topic(topic_id)["label"] for topic_id in ids] == texts


def test_there_and_back_again_ends_where_it_began(agent: Caller) -> None:
    remember(agent, "Maria lives in Madrid.")
    for old, new in (("Madrid", "Lugo"), ("Lugo", "Madrid"), ("Madrid", "Lugo"), ("Lugo", "Madrid")):
        agent.post("/v1/supersede", {"old_query": f"Maria lives in {old}.", "new_text": f"Maria lives in {new}."}).ok()

    assert found(agent, "Maria lives in Lugo.") == {"Maria lives in Madrid."}


def test_a_key_changes_nothing_outside_its_scope(alice: Caller, agent: Caller, reader: Caller) -> None:
    remember(agent, "Maria lives in Madrid.", scope="/user/bob")
    body = {"old_query": "Maria lives in Madrid.", "new_text": "Maria lives in Lugo."}

    assert reader.post("/v1/supersede", body).status == 403
    assert alice.post("/v1/supersede", body | {"scope": "/user/bob"}).status == 404
    assert alice.post("/v1/supersede", body).ok()["superseded"] == []
    assert "Maria lives in Madrid." in found(agent, "Maria lives in Madrid.")


@pytest.mark.parametrize(
    "body", [{"old_query": "", "new_text": "x"}, {"old_query": "x", "new_text": "  "}, {"old_query": "x"}]
)
def test_an_empty_half_is_refused(agent: Caller, body: dict[str, str]) -> None:
    assert agent.post("/v1/supersede", body).status == 422


def test_a_title_that_asks_what_its_field_answers_stays(agent: Caller) -> None:
    topic = agent.remember("Where Mara lives", values={"city": "Lisbon"})
    agent.remember("Car", summary="Mara drives an old blue Volvo.")

    done = agent.post("/v1/supersede", {"old_query": "where Mara lives", "new_text": "Mara lives in Porto."}).ok()

    (entry,) = done["superseded"]
    assert (entry["topic_id"], entry["mode"], entry["before"]) == (topic, "whole", "Lisbon")
    assert entry["after"] == "Porto"
    got = agent.topic(topic)
    assert got["title"] == "Where Mara lives"
    assert [field["current"]["value"] for field in got["fields"]] == ["Porto"]


def test_the_new_text_is_kept_where_the_old_is_said_once_more_in_other_surroundings(agent: Caller) -> None:
    item = {
        "placement": "new_topic",
        "title": "Glaziers",
        "summary": "Everybody in the guild says that Nils lives in Bergen for good.",
        "fields": [{"name": "fact", "value": "Nils lives in Bergen and works as a glazier."}],
    }
    agent.post("/v1/ingest", item).ok()

    done = agent.post("/v1/supersede", {"old_query": "Nils lives in Bergen", "new_text": "Nils lives in Oslo."}).ok()

    stands = agent.get(f"/v1/topics/{done['topic_id']}").ok()
    assert "Nils lives in Oslo." in [stands["label"], *(field["current"]["value"] for field in stands["fields"])]
    assert {entry["mode"] for entry in done["superseded"]} == {"part"}


def test_a_new_text_that_is_stored_already_is_not_stored_twice(agent: Caller, operator: Caller) -> None:
    old = remember(agent, "Maria lives in Madrid.")
    stored = remember(agent, "Maria lives in Lugo.")

    done = agent.post("/v1/supersede", {"old_query": "where Maria lives", "new_text": "Maria lives in Lugo."}).ok()

    assert done["topic_id"] == stored
    assert [entry["topic_id"] for entry in done["superseded"]] == [old]
    assert found(agent, "Maria lives") == {"Maria lives in Lugo."}
    # What went is released, and an operator may bring it back.
    operator.post(f"/v1/topics/{old}/restore", {"reason": "a mistake"}).ok()
    assert found(agent, "Maria lives") == {"Maria lives in Lugo.", "Maria lives in Madrid."}


def test_a_typed_field_keeps_its_type_and_gets_a_value(agent: Caller) -> None:
    item = {
        "placement": "new_topic",
        "title": "Olga",
        "fields": [{"name": "age", "value": 41, "field_type": "int"}, {"name": "city", "value": "Riga"}],
    }
    topic = agent.post("/v1/ingest", item).ok()["topic_id"]

    agent.post("/v1/supersede", {"old_query": "Olga's age", "new_text": "Olga is 42 years old."}).ok()

    got = {field["name"]: (field["current"]["value"], field["field_type"]) for field in agent.topic(topic)["fields"]}
    assert got == {"age": ("42", "int"), "city": ("Riga", "string")}


@pytest.mark.parametrize(
    ("field", "new", "value"),
    [
        ({"name": "city", "value": "Riga"}, "Olga lives in Porto.", "Porto"),
        ({"name": "city", "value": "Riga"}, "She lives in Porto now.", "Porto"),
        ({"name": "city", "value": "Riga"}, "Olga's city is Porto.", "Porto"),
        ({"name": "job", "value": "nurse"}, "Olga works as a pilot.", "pilot"),
        ({"name": "car", "value": "an old Saab"}, "Olga drives a new Volvo.", "a new Volvo"),
        ({"name": "rent", "value": 1100, "field_type": "int"}, "Olga's rent is 1,200 euros.", "1200"),
        ({"name": "langs", "value": ["de"], "field_type": "list"}, '["de", "nl"]', '["de", "nl"]'),
        ({"name": "birthday", "value": "1984-03-01", "field_type": "date"}, "Born on 2 March 1984.", "1984-03-02"),
        ({"name": "vegan", "value": True, "field_type": "bool"}, "Olga is not vegan.", "false"),
    ],
)
def test_a_field_gets_the_value_that_the_sentence_gives(
    agent: Caller, field: dict[str, Any], new: str, value: str
) -> None:
    other = {"name": "shoes", "value": "size 39"}
    topic = agent.ingest(title="Olga", fields=[field, other])["topic_id"]
    agent.post("/v1/supersede", {"old_query": f"Olga's {field['name']}", "new_text": new}).ok()
    got = {each["name"]: (each["current"]["value"], each["field_type"]) for each in agent.topic(topic)["fields"]}
    assert got == {field["name"]: (value, field.get("field_type", "string")), "shoes": ("size 39", "string")}


def test_the_token_of_a_candidate_says_which_fact_is_meant(agent: Caller, alice: Caller) -> None:
    remember(agent, "Anna Berg's phone number is 0444 120 555.")
    remember(agent, "Anna Holm's phone number is 0444 987 222.")
    asked = {"old_query": "Anna's phone number", "new_text": "Anna's phone number is 0444 333 111."}
    candidates = agent.post("/v1/supersede", asked).json["candidates"]
    (holm,) = [one for one in candidates if "Holm" in one["text"]]

    assert agent.post("/v1/supersede", asked | {"token": holm["token"] + "x"}).status == 422
    assert alice.post("/v1/supersede", asked | {"token": holm["token"]}).status == 409
    done = agent.post("/v1/supersede", asked | {"token": holm["token"]}).ok()

    assert [entry["before"] for entry in done["superseded"]] == [holm["text"]]
    assert "Anna Berg's phone number is 0444 120 555." in found(agent, "Anna's phone number")
    # A token names a fact that is gone now.
    assert agent.post("/v1/supersede", asked | {"token": holm["token"]}).status == 409


def test_a_typed_field_that_cannot_hold_the_new_text_is_emptied_and_the_text_becomes_a_topic(agent: Caller) -> None:
    topic = agent.ingest(title="Olga", fields=[{"name": "age", "value": 41, "field_type": "int"}])["topic_id"]

    done = agent.post("/v1/supersede", {"old_query": "Olga's age", "new_text": "Olga does not tell her age."}).ok()

    assert done["topic_id"] != topic
    assert [entry["topic_id"] for entry in done["superseded"]] == [topic]
    assert [(field["current"]["value"], field["field_type"]) for field in agent.topic(topic)["fields"]] == [("", "int")]
    assert agent.topic(done["topic_id"])["label"] == "Olga does not tell her age."
    # The type still holds: a number fits without naming it, and nothing else does.
    item = {"placement": "version_field", "topic_id": topic, "fields": [{"name": "age", "value": "young"}]}
    assert agent.post("/v1/ingest", item).status == 422
    agent.post("/v1/ingest", item | {"fields": [{"name": "age", "value": 42}]}).ok()


@pytest.mark.parametrize(
    ("value", "field_type", "new"),
    [
        (3.5, "float", "Olga's rate was abolished."),
        (True, "bool", "Olga's rate is being discussed."),
        ("2026-03-01", "date", "Olga's rate is due some time in spring."),
        ("2026-03-01T09:30:00Z", "datetime", "Olga's rate is due some time in spring."),
        (["low", "high"], "list", "Olga's rate was abolished."),
        ({"low": 1}, "json", "Olga's rate was abolished."),
    ],
)
def test_a_field_of_any_type_is_emptied_and_keeps_its_type(
    agent: Caller, operator: Caller, value: Any, field_type: str, new: str
) -> None:
    field = {"name": "rate", "value": value, "field_type": field_type}
    topic = agent.ingest(title="Olga", fields=[field])["topic_id"]
    done = agent.post("/v1/supersede", {"old_query": "Olga's rate", "new_text": new}).ok()
    assert done["topic_id"] != topic
    (got,) = agent.topic(topic)["fields"]
    assert (got["current"]["value"], got["field_type"]) == ("", field_type)
    # It can be asked about, and superseded again.
    agent.query("Olga's rate")
    agent.post("/v1/supersede", {"old_query": "Olga's rate", "new_text": "Olga has a rate."}).ok()


@pytest.mark.parametrize("new", ["Olga no longer lives in Riga.", "Olga moved from Riga to Oslo."])
def test_what_a_sentence_denies_or_says_twice_is_no_value_and_the_sentence_is_kept(agent: Caller, new: str) -> None:
    fields = [{"name": "city", "value": "Riga"}, {"name": "job", "value": "nurse"}]
    topic = agent.post("/v1/ingest", {"placement": "new_topic", "title": "Olga", "fields": fields}).ok()["topic_id"]

    agent.post("/v1/supersede", {"old_query": "Olga's city", "new_text": new}).ok()

    assert {field["name"]: field["current"]["value"] for field in agent.topic(topic)["fields"]} == {
        "city": new,
        "job": "nurse",
    }


def test_a_token_of_a_topic_that_was_archived_since_changes_nothing(agent: Caller, operator: Caller) -> None:
    berg = remember(agent, "Anna Berg's phone number is 0444 120 555.")
    remember(agent, "Anna Holm's phone number is 0444 987 222.")
    asked = {"old_query": "Anna's phone number", "new_text": "Anna's phone number is 0444 333 111."}
    candidates = agent.post("/v1/supersede", asked).json["candidates"]
    (token,) = [one["token"] for one in candidates if one["topic_id"] == berg]
    listed = operator.post("/v1/forget", {"verb": "release", "query": "Anna Berg"}).ok()
    operator.post("/v1/forget", {"verb": "release", "token": listed["token"]}).ok()

    assert agent.post("/v1/supersede", asked | {"token": token}).status == 409
    assert agent.topic(berg)["label"] == "Anna Berg's phone number is 0444 120 555."


def test_a_request_to_supersede_names_so_many_things_and_no_more(agent: Caller) -> None:
    names = " ".join(f"Anna{chr(97 + at)} Berg{chr(97 + at)}," for at in range(25))
    assert agent.post("/v1/supersede", {"old_query": names, "new_text": "Somebody else."}).status == 422


def test_a_date_is_no_identifier(agent: Caller) -> None:
    remember(agent, "3 March is Olga's birthday.")
    remember(agent, "The dentist appointment is at noon.")
    new = "The dentist appointment is on 10 March."

    done = agent.post("/v1/supersede", {"old_query": "dentist appointment on 3 March", "new_text": new}).ok()

    assert [entry["before"] for entry in done["superseded"]] == ["The dentist appointment is at noon."]
