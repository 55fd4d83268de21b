"""What a client written for the published ``/v1`` sends and reads: the basic members only, no optional ones."""

import datetime as dt
import itertools
import uuid
from typing import Any

import pytest

from tests.cast import Caller

STAGES = ("semantic", "structural", "temporal")
SUBSETS = [list(subset) for size in range(4) for subset in itertools.combinations(STAGES, size)]

# The id of no topic; the same in each process that collects these tests.
UNKNOWN = "7c9e6679-7425-40de-944b-e07fc1f90ae7"


class PublishedClient:
    """Builds every body in full, as the published client does, and knows nothing of ours."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller

    def ingest(
        self,
        placement: str,
        *,
        topic_id: str | None = None,
        title: str = "",
        summary: str | None = None,
        topic_kind: str | None = None,
        salience: float = 1.0,
        fields: Any = (),
        edges: Any = (),
        suggest_similar: bool = False,
    ) -> Any:
        body = {
            "placement": placement,
            "topic_id": topic_id,
            "title": title,
            "summary": summary,
            "topic_kind": topic_kind,
            "salience": salience,
            "fields": list(fields),
            "edges": list(edges),
            "suggest_similar": suggest_similar,
        }
        return self.caller.post("/v1/ingest", body)

    def query(self, q: str, **members: Any) -> Any:
        return self.caller.post("/v1/query", {"q": q, **members}).ok()


@pytest.fixture
def client(agent: Caller) -> PublishedClient:
    return PublishedClient(agent)


def field(name: str, value: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "value": value, "field_type": "string", "provenance": "api", **more}


@pytest.fixture
def mara(client: PublishedClient) -> dict[str, Any]:
    """A topic with a neighbour, two fields, one of them changed once and referring to the neighbour."""
    berlin = client.ingest("new_topic", title="Berlin", summary="A city").ok()["topic_id"]
    mara = client.ingest(
        "new_topic",
        title="Mara",
        summary="A translator",
        topic_kind="person",
        fields=[field("city", "Leipzig"), field("tea", "green")],
        edges=[{"to_topic_id": berlin, "kind": "lives_in"}],
    ).ok()
    changed = client.ingest(
        "version_field",
        topic_id=mara["topic_id"],
        fields=[field("city", "Berlin", ref_topic_id=berlin, why_changed="She moved", impact_expected="New address")],
    ).ok()
    return {"id": mara["topic_id"], "berlin": berlin, "first": mara["version_ids"], "changed": changed["version_ids"]}


def test_a_new_topic_is_created_with_its_fields_and_edges(client: PublishedClient):
    other = client.ingest("new_topic", title="Berlin").ok()["topic_id"]
    reply = client.ingest(
        "new_topic",
        title="Mara",
        fields=[field("city", "Berlin"), field("tea", "green")],
        edges=[{"to_topic_id": other, "kind": "lives_in"}],
    ).ok()
    topic_id = reply["topic_id"]
    assert set(reply) >= {"topic_id", "applied", "version_ids", "similar_topic_ids"}
    assert str(uuid.UUID(topic_id)) == topic_id
    assert reply["applied"] == [f"created_topic:{topic_id}", "field:city", "field:tea", f"edge:{other}"]
    assert list(reply["version_ids"]) == ["city", "tea"]
    assert len({str(uuid.UUID(version)) for version in reply["version_ids"].values()}) == 2
    assert reply["similar_topic_ids"] == []


def test_extending_a_topic_adds_fields_and_versions_those_it_has(client: PublishedClient, mara: dict[str, Any]):
    reply = client.ingest(
        "extend_topic", topic_id=mara["id"], fields=[field("city", "Hamburg"), field("coffee", "black")]
    ).ok()
    assert reply["topic_id"] == mara["id"]
    assert reply["applied"] == ["version:city", "field:coffee"]
    assert set(reply["version_ids"]) == {"city", "coffee"}


def test_versioning_a_field_makes_one_new_revision(client: PublishedClient, mara: dict[str, Any]):
    reply = client.ingest("version_field", topic_id=mara["id"], fields=[field("tea", "black")]).ok()
    assert reply["topic_id"] == mara["id"]
    assert reply["applied"] == ["version:tea"]
    assert list(reply["version_ids"]) == ["tea"]
    assert reply["version_ids"]["tea"] != mara["first"]["tea"]


def test_an_empty_title_stays_empty(client: PublishedClient, agent: Caller):
    topic_id = client.ingest("new_topic", fields=[field("note", "xylophone")]).ok()["topic_id"]
    assert agent.topic(topic_id)["title"] == ""
    assert client.query("xylophone")["candidates"][0]["title"] == ""


def test_a_given_uuid_becomes_the_id_of_a_new_topic(client: PublishedClient, agent: Caller):
    wanted = UNKNOWN
    assert client.ingest("new_topic", topic_id=wanted, title="Mara").ok()["topic_id"] == wanted
    assert agent.topic(wanted)["title"] == "Mara"


def test_an_existing_id_is_not_created_again(client: PublishedClient, mara: dict[str, Any], agent: Caller):
    answer = client.ingest("new_topic", topic_id=mara["id"], title="Somebody else")
    assert answer.status == 409
    assert mara["id"] in answer.detail
    assert agent.topic(mara["id"])["title"] == "Mara"


def current_ref(client: PublishedClient, topic_id: str, name: str) -> Any:
    bundle = client.query("?", stages=[], topic_ids=[topic_id])["candidates"][0]
    return next(entry["ref_topic_id"] for entry in bundle["fields"] if entry["name"] == name)


def test_leaving_the_reference_out_keeps_it_and_null_clears_it(client: PublishedClient, mara: dict[str, Any]):
    assert current_ref(client, mara["id"], "city") == mara["berlin"]
    client.ingest("version_field", topic_id=mara["id"], fields=[field("city", "Berlin-Mitte")]).ok()
    assert current_ref(client, mara["id"], "city") == mara["berlin"]
    client.ingest("version_field", topic_id=mara["id"], fields=[field("city", "Hamburg", ref_topic_id=None)]).ok()
    assert current_ref(client, mara["id"], "city") is None


@pytest.mark.parametrize("placement", ["extend_topic", "version_field"])
def test_a_placement_on_a_stored_topic_needs_its_id(client: PublishedClient, mara: dict[str, Any], placement: str):
    answer = client.ingest(placement, fields=[field("city", "Rome")])
    assert answer.status == 400
    assert answer.code == "missing-member"


@pytest.mark.parametrize("placement", ["extend_topic", "version_field"])
@pytest.mark.parametrize("unknown", [UNKNOWN, "not-a-uuid", "00000000-0000-0000-0000-000000000000"])
def test_an_unknown_topic_is_refused(client: PublishedClient, placement: str, unknown: str):
    answer = client.ingest(placement, topic_id=unknown, fields=[field("city", "Rome")])
    assert answer.status == 400
    assert answer.code == "not-found"


def test_what_is_no_uuid_is_never_the_topic_of_zeros(client: PublishedClient):
    zeros = str(uuid.UUID(int=0))
    client.ingest("new_topic", topic_id=zeros, title="Zeros").ok()
    assert client.ingest("extend_topic", topic_id="nonsense", fields=[field("a", "b")]).status == 400


def test_unknown_targets_of_edges_and_references_are_refused(client: PublishedClient, mara: dict[str, Any]):
    unknown = UNKNOWN
    assert client.ingest("new_topic", edges=[{"to_topic_id": unknown, "kind": "knows"}]).status == 400
    assert client.ingest("new_topic", fields=[field("friend", "Ida", ref_topic_id=unknown)]).status == 400


@pytest.mark.parametrize("fields", [[], [field("city", "Rome"), field("tea", "none")]])
def test_version_field_takes_exactly_one_field(client: PublishedClient, mara: dict[str, Any], fields: Any):
    answer = client.ingest("version_field", topic_id=mara["id"], fields=fields)
    assert answer.status == 400
    assert answer.code == "contradictory-request"


@pytest.mark.parametrize(
    ("field_type", "good", "bad"),
    [
        ("int", "42", "4.2"),
        ("int", "+7", "٤٢"),
        ("int", "-7", "seven"),
        ("float", "3.5", "inf"),
        ("float", "1e3", "NaN"),
        ("float", "2", "1e999"),
        ("float", "-.5", " 1"),
        ("float", "0", "1_0"),
        ("bool", "true", "yes"),
        ("date", "2026-03-01", "2026-02-30"),
        ("date", "2024-02-29", "2026-W01-1"),
        ("date", "0001-01-01", "20260301"),
        ("datetime", "2026-03-01T09:30:00Z", "tomorrow"),
        ("list", '["a", 1]', '{"a": 1}'),
        ("json", '{"a": [1, null]}', "{a: 1}"),
        ("json", "[1e300]", "[1e999]"),
        ("json", '"text"', "[NaN]"),
    ],
)
def test_a_value_must_fit_its_type(client: PublishedClient, agent: Caller, field_type: str, good: str, bad: str):
    reply = client.ingest("new_topic", fields=[field("value", good, field_type=field_type)]).ok()
    stored = agent.topic(reply["topic_id"])["fields"][0]
    assert (stored["field_type"], stored["current"]["value"]) == (field_type, good)
    answer = client.ingest("new_topic", title="Bad", fields=[field("value", bad, field_type=field_type)])
    assert answer.status == 422
    assert field_type in answer.detail
    assert len(agent.get("/v1/topics").ok()["items"]) == 1


def test_an_unknown_type_is_refused(client: PublishedClient):
    assert client.ingest("new_topic", fields=[field("value", "x", field_type="colour")]).status == 422


def test_similar_topics_are_suggested_when_asked_for(client: PublishedClient, mara: dict[str, Any]):
    assert client.ingest("new_topic", title="MARA", suggest_similar=True).ok()["similar_topic_ids"] == [mara["id"]]


# --- Query -----------------------------------------------------------------------------------------------------------

MEMBERS = {
    "topic_id": str,
    "title": str,
    "summary": str,
    "topic_kind": str,
    "salience": float,
    "failed_salience": float,
    "neighbors": list,
    "fields": list,
}
REVISION = {"id": str, "value": str, "valid_from": str, "provenance": str, "why_changed": str, "impact_expected": str}


def check_types(value: dict[str, Any], members: dict[str, type]) -> None:
    for name, kind in members.items():
        assert isinstance(value[name], kind), (name, value.get(name))


def check_revision(revision: dict[str, Any]) -> None:
    check_types(revision, REVISION)
    assert dt.datetime.fromisoformat(revision["valid_from"]).tzinfo is not None


@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize("stages", SUBSETS, ids="+".join)
def test_every_subset_of_stages_answers_in_the_documented_shape(
    client: PublishedClient, mara: dict[str, Any], stages: list[str], explain: bool
):
    asked: dict[str, Any] = {"stages": stages, "explain": explain, "top_k": 1}
    if "semantic" not in stages:
        asked["topic_ids"] = [mara["id"]]
    reply = client.query("Mara translator tea", **asked)
    assert reply["query"] == "Mara translator tea"
    assert isinstance(reply["summary_text"], str)
    assert "Mara" in reply["summary_text"]
    (candidate,) = reply["candidates"]
    check_types(candidate, MEMBERS)
    assert candidate["topic_id"] == mara["id"]
    assert (candidate["title"], candidate["summary"], candidate["topic_kind"]) == ("Mara", "A translator", "person")
    assert candidate["failed_salience"] == 0
    assert 0.9 < candidate["salience"] <= 1

    city, tea = candidate["fields"]
    assert (city["name"], city["field_type"], city["ref_topic_id"]) == ("city", "string", mara["berlin"])
    assert (tea["name"], tea["field_type"], tea["ref_topic_id"]) == ("tea", "string", None)
    check_revision(city["current"])
    assert city["current"]["id"] == mara["changed"]["city"]
    assert city["current"]["value"] == "Berlin"
    assert (city["current"]["why_changed"], city["current"]["impact_expected"]) == ("She moved", "New address")
    assert city["current"]["provenance"] == "api"

    if "temporal" in stages and explain:
        for revision in city["history"]:
            check_revision(revision)
        assert [revision["value"] for revision in city["history"]] == ["Leipzig", "Berlin"]
        assert [revision["id"] for revision in city["history"]] == [mara["first"]["city"], mara["changed"]["city"]]
    else:
        assert city["history"] == [city["current"]]

    if "structural" in stages:
        (neighbor,) = candidate["neighbors"]
        assert (neighbor["topic_id"], neighbor["kind"], neighbor["title"]) == (mara["berlin"], "lives_in", "Berlin")
    else:
        assert candidate["neighbors"] == []

    if "semantic" in stages:
        assert -1.0001 <= candidate["similarity"] <= 1.0001


def test_all_stages_without_explain_are_the_default(client: PublishedClient, mara: dict[str, Any]):
    plain = client.query("Mara")
    candidate = next(found for found in plain["candidates"] if found["topic_id"] == mara["id"])
    assert candidate["neighbors"]
    assert "similarity" in candidate
    assert all(entry["history"] == [entry["current"]] for entry in candidate["fields"])


def test_eight_candidates_are_the_default(client: PublishedClient):
    for number in range(10):
        client.ingest("new_topic", title=f"Teapot {number}").ok()
    assert len(client.query("teapot")["candidates"]) == 8
    assert len(client.query("teapot", top_k=9)["candidates"]) == 9
    assert len(client.query("teapot", top_k=1)["candidates"]) == 1


def test_without_the_semantic_stage_topic_ids_choose_in_their_order(client: PublishedClient):
    ids = [client.ingest("new_topic", title=f"Teapot {number}").ok()["topic_id"] for number in range(4)]
    wanted = [ids[2], ids[0], ids[3]]
    for stages in ([], ["structural"], ["temporal"], ["structural", "temporal"]):
        found = client.query("anything", stages=stages, topic_ids=wanted)["candidates"]
        assert [candidate["topic_id"] for candidate in found] == wanted
    assert client.query("anything", stages=["structural"])["candidates"] == []


def test_topic_ids_that_do_not_exist_are_passed_over(client: PublishedClient, mara: dict[str, Any]):
    found = client.query("anything", stages=[], topic_ids=[UNKNOWN, mara["id"]])["candidates"]
    assert [candidate["topic_id"] for candidate in found] == [mara["id"]]


def test_field_names_choose_the_fields_of_bundles(client: PublishedClient, mara: dict[str, Any]):
    (candidate, *_others) = client.query("Mara", field_names=["tea", "no such field"])["candidates"]
    assert [entry["name"] for entry in candidate["fields"]] == ["tea"]
