"""/v1/duplicates: what a client sees and does, and who may."""

import uuid

import pytest

from memory.models import DuplicatePair
from tests.cast import Caller
from tests.duplicates.shop import look, twins


@pytest.fixture
def pair(agent: Caller, operator: Caller) -> str:
    twins(agent)
    look()
    (found,) = operator.get("/v1/duplicates").ok()["items"]
    return str(found["id"])


def test_a_pair_is_listed_with_both_topics_and_what_differs(agent: Caller, reader: Caller):
    older = agent.remember("Dentist", fields=[{"name": "when", "value": "Monday at 9:00"}])
    newer = agent.remember("Dentist", fields=[{"name": "when", "value": "Tuesday at 9:00"}])
    assert look() == 1
    (found,) = reader.get("/v1/duplicates?held=true").ok()["items"]
    assert (found["newer"]["topic_id"], found["older"]["topic_id"]) == (newer, older)
    assert (found["verdict"], found["state"], found["held"], found["same_title"]) == ("duplicate", "open", True, True)
    assert any("“Monday” and “Tuesday”" in sentence for sentence in found["held_because"])
    assert reader.get("/v1/duplicates?held=false").ok()["items"] == []
    got = reader.get(f"/v1/duplicates/{found['id']}").ok()
    assert [(each["sort"], each["older"], each["newer"]) for each in got["differences"]] == [
        ("date", "Monday", "Tuesday")
    ]


def test_pages_follow_each_other(agent: Caller, operator: Caller):
    for number in range(5):
        twins(agent, f"The harbor {number}")
    assert look() == 5
    first = operator.get("/v1/duplicates?limit=3").ok()
    rest = operator.get(f"/v1/duplicates?limit=3&cursor={first['next']}").ok()
    assert (len(first["items"]), len(rest["items"]), rest["next"]) == (3, 2, None)
    assert len({each["id"] for each in first["items"] + rest["items"]}) == 5


def test_merge_and_undo_over_the_wire(operator: Caller, pair: str):
    got = operator.post(f"/v1/duplicates/{pair}/merge", {"reason": "the same"}).ok()
    kept, went = got["pair"]["survivor"], got["pair"]["older"]["topic_id"]
    assert got["results"] == [f"merged:{went}->:{kept}"]
    assert operator.topic(kept)["also_from"][0]["topic_id"] == went
    assert operator.get(f"/v1/runs/{got['run_id']}").ok()["results"] == got["results"]
    assert operator.post(f"/v1/duplicates/{pair}/merge").status == 409
    undone = operator.post(f"/v1/duplicates/{pair}/undo").ok()
    assert (undone["restored"], undone["conflicts"], undone["pair"]["state"]) == (True, [], "open")
    assert operator.topic(kept)["also_from"] == []
    assert operator.post(f"/v1/duplicates/{pair}/undo").status == 409


def test_keep_and_supersede_over_the_wire(operator: Caller, pair: str):
    assert operator.post(f"/v1/duplicates/{pair}/keep").ok()["pair"]["state"] == "kept"
    got = operator.post(f"/v1/duplicates/{pair}/supersede", {"reason": "newer"}).ok()
    assert got["pair"]["state"] == "superseded"
    assert got["results"] == [f"superseded:{got['pair']['older']['topic_id']}"]


@pytest.mark.parametrize("verb", ["merge", "keep", "supersede", "undo"])
def test_only_operators_decide(agent: Caller, reader: Caller, operator: Caller, pair: str, verb: str):
    for caller in (agent, reader):
        assert caller.post(f"/v1/duplicates/{pair}/{verb}").status == 403
    assert operator.post(f"/v1/duplicates/{uuid.uuid4()}/{verb}").status == 404
    assert DuplicatePair.objects.get().state == "open"


def test_pairs_outside_the_scope_of_a_key_are_not_visible(agent: Caller, alice: Caller, stranger: Caller):
    twins(agent, scope="/user/alice")
    look()
    (found,) = alice.get("/v1/duplicates").ok()["items"]
    assert alice.get(f"/v1/duplicates/{found['id']}").ok()["scope"] == "/user/alice"
    assert stranger.get("/v1/duplicates").ok()["items"] == []
    assert stranger.get("/v1/duplicates?scope=/user/alice").status == 404
    assert stranger.get(f"/v1/duplicates/{found['id']}").status == 404


@pytest.mark.parametrize("query", ["state=closed", "verdict=x", "cursor=nonsense", "limit=0", "scope=a%20b//"])
def test_what_cannot_be_read_is_refused(reader: Caller, query: str):
    assert reader.get(f"/v1/duplicates?{query}").status == 422
