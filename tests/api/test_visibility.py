"""Nothing outside a key's scope is visible or writable: not as a candidate, a neighbour, a reference or a count."""

from typing import Any

import pytest

from tests.cast import Cast, store_rows


@pytest.fixture
def world(cast: Cast) -> dict[str, str]:
    """One topic of Alice's and one of Bob's, linked and referring to each other, and one of no one's in particular."""
    bob = cast.stranger.remember("Xylophone of Bob", values={"place": "attic"})
    shared = cast.agent.remember("Xylophones in general")
    alice = cast.alice.remember("Xylophone of Alice", values={"place": "cellar"})
    cast.agent.ingest(
        "extend_topic",
        topic_id=alice,
        fields=[{"name": "rival", "value": "Bob", "ref_topic_id": bob}],
        edges=[{"to_topic_id": bob, "kind": "rivals"}, {"to_topic_id": shared, "kind": "about"}],
    )
    cast.agent.ingest("extend_topic", topic_id=bob, edges=[{"to_topic_id": alice, "kind": "rivals"}])
    return {"alice": alice, "bob": bob, "shared": shared}


def test_a_new_topic_lands_in_the_scope_of_the_key(cast: Cast, world: dict[str, str]):
    assert cast.alice.topic(world["alice"])["scope"] == "/user/alice"
    below = cast.alice.remember("Deeper", scope="/user/alice/notes")
    assert cast.alice.topic(below)["scope"] == "/user/alice/notes"


def test_the_caller_with_the_root_sees_all(cast: Cast, world: dict[str, str]):
    assert set(cast.reader.found("xylophone")) == set(world.values())
    assert {each["topic_id"] for each in cast.reader.topic(world["alice"])["neighbors"]} == {
        world["bob"],
        world["shared"],
    }


def test_other_scopes_are_no_candidates(cast: Cast, world: dict[str, str]):
    assert cast.alice.found("xylophone attic Bob") == [world["alice"]]
    assert cast.stranger.found("xylophone cellar Alice") == [world["bob"]]
    assert set(cast.auditor.found("xylophone")) == {world["alice"], world["bob"]}
    assert cast.alice.found("?", stages=["structural"], topic_ids=list(world.values())) == [world["alice"]]
    assert cast.alice.found("xylophone", topic_ids=[world["bob"]], include_archived=True) == []


def test_other_scopes_are_no_neighbours(cast: Cast, world: dict[str, str]):
    for asked in ({"depth": 1}, {"depth": 3}, {"stages": ["structural"], "topic_ids": [world["alice"]], "depth": 3}):
        (bundle,) = cast.alice.query("xylophone", **asked)["candidates"]
        assert bundle["neighbors"] == []
    assert cast.alice.topic(world["alice"])["neighbors"] == []


def test_a_path_over_another_scope_leads_nowhere(cast: Cast, world: dict[str, str]):
    hidden = cast.alice.remember("Reached over Bob only")
    cast.agent.ingest("extend_topic", topic_id=world["bob"], edges=[{"to_topic_id": hidden, "kind": "x"}])
    (bundle,) = cast.alice.query("?", stages=["structural"], topic_ids=[world["alice"]], depth=3)["candidates"]
    assert bundle["neighbors"] == []


def test_words_of_other_scopes_are_not_lent(cast: Cast, world: dict[str, str]):
    (bundle,) = cast.alice.query("attic", explain=True)["candidates"]
    assert bundle["score_parts"]["neighbor_words"] == 0


def test_the_text_of_an_answer_holds_nothing_of_other_scopes(cast: Cast, world: dict[str, str]):
    answer = cast.alice.post("/v1/query", {"q": "xylophone", "depth": 3, "explain": True})
    assert answer.status == 200
    assert "attic" not in answer.text
    assert "of Bob" not in answer.text


def test_a_reference_to_another_scope_is_not_reported_by_a_query(cast: Cast, world: dict[str, str]):
    answer = cast.alice.post("/v1/query", {"q": "xylophone", "depth": 3, "explain": True})
    assert answer.status == 200
    assert world["bob"] not in answer.text


def test_a_reference_to_another_scope_is_not_reported(cast: Cast, world: dict[str, str]):
    for answer in (
        cast.alice.get(f"/v1/topics/{world['alice']}"),
        cast.alice.get(f"/v1/topics/{world['alice']}/fields/rival/history"),
    ):
        assert answer.status == 200
        assert world["bob"] not in answer.text
    (bundle,) = cast.agent.query("xylophone", topic_ids=[world["alice"]])["candidates"]
    assert {entry["name"]: entry["ref_topic_id"] for entry in bundle["fields"]} == {
        "place": None,
        "rival": world["bob"],
    }


def test_extending_a_topic_keeps_a_reference_that_the_caller_cannot_see(cast: Cast, world: dict[str, str]):
    cast.alice.ingest("version_field", topic_id=world["alice"], fields=[{"name": "rival", "value": "Robert"}])
    got = {entry["name"]: entry["ref_topic_id"] for entry in cast.agent.topic(world["alice"])["fields"]}
    assert got["rival"] == world["bob"]


ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "/v1/topics/{bob}", None),
    ("GET", "/v1/topics/{bob}/fields/place/history", None),
    ("PATCH", "/v1/topics/{bob}", {"title": "Mine"}),
    ("POST", "/v1/topics/{bob}/pin", {}),
    ("POST", "/v1/topics/{bob}/unpin", {}),
    ("POST", "/v1/ingest", {"placement": "extend_topic", "topic_id": "{bob}", "fields": [{"name": "a", "value": "b"}]}),
    ("POST", "/v1/ingest", {"placement": "version_field", "topic_id": "{bob}", "fields": [{"name": "place"}]}),
    ("POST", "/v1/ingest", {"placement": "new_topic", "edges": [{"to_topic_id": "{bob}", "kind": "x"}]}),
    ("POST", "/v1/ingest", {"placement": "new_topic", "fields": [{"name": "a", "ref_topic_id": "{bob}"}]}),
    ("POST", "/v1/ingest", {"placement": "new_topic", "scope": "/user/bob"}),
    ("POST", "/v1/ingest", {"placement": "new_topic", "scope": "/user"}),
    ("POST", "/v1/ingest", {"placement": "new_topic", "scope": "/user/alice2"}),
    ("POST", "/v1/ingest", {"placement": "new_topic", "scope": "/"}),
    ("POST", "/v1/query", {"q": "x", "scope": "/user/bob"}),
    ("POST", "/v1/query", {"q": "x", "scope": "/"}),
    ("GET", "/v1/topics?scope=/user/bob", None),
    ("GET", "/v1/topics?scope=/", None),
    ("GET", "/v1/stats?scope=/user/bob", None),
]


def filled(template: Any, world: dict[str, str]) -> Any:
    if isinstance(template, str):
        return template.replace("{bob}", world["bob"])
    if isinstance(template, dict):
        return {name: filled(value, world) for name, value in template.items()}
    if isinstance(template, list):
        return [filled(value, world) for value in template]
    return template


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
def test_other_scopes_are_answered_as_if_they_did_not_exist(
    cast: Cast, world: dict[str, str], method: str, path: str, body: Any
):
    before = store_rows()
    more = {} if body is None else {"json": filled(body, world)}
    answer = cast.alice.request(method, filled(path, world), **more)
    assert answer.status == 404
    assert answer.code == "not-found"
    # Word for word what is said of something that never was.
    never = "00000000-0000-4000-8000-000000000000"
    other = cast.alice.request(
        method,
        filled(path, {"bob": never}).replace("/user/bob", "/never"),
        **({} if body is None else {"json": filled(body, {"bob": never})}),
    )
    if "{bob}" in str((path, body)):
        assert (other.status, other.code, other.detail) == (
            404,
            answer.code,
            answer.detail.replace(world["bob"], never),
        )
    assert store_rows() == before


def test_an_operator_bound_to_a_scope_cannot_archive_beyond_it(cast: Cast, world: dict[str, str]):
    from memory.access.keys import key_create
    from tests.cast import Caller

    key_create(name="local", role="operator", secret="ms_local-operator-in-the-tests", scope="/user/alice")
    local = Caller(cast.alice.send, "ms_local-operator-in-the-tests")
    assert local.post(f"/v1/topics/{world['bob']}/archive").status == 404
    assert local.post(f"/v1/topics/{world['alice']}/archive").ok()["rung"] == "archived"
    assert local.post(f"/v1/topics/{world['bob']}/restore").status == 404
    assert cast.agent.topic(world["bob"])["rung"] == "active"


def test_lists_and_counts_end_at_the_scope(cast: Cast, world: dict[str, str]):
    def listed(caller: Any) -> set[str]:
        return {item["topic_id"] for item in caller.get("/v1/topics?rung=any&text=xylophone").ok()["items"]}

    assert listed(cast.alice) == {world["alice"]}
    assert listed(cast.auditor) == {world["alice"], world["bob"]}
    got = cast.alice.get("/v1/stats").ok()
    assert (got["scope"], got["topics"], got["scopes"]) == ("/user/alice", 1, 1)
    assert cast.agent.get("/v1/stats").ok()["topics"] == 3
    assert cast.agent.get("/v1/stats?scope=/user").ok()["topics"] == 2


def test_similar_topics_of_other_scopes_are_not_suggested(cast: Cast, world: dict[str, str]):
    reply = cast.alice.ingest(
        title="Xylophone of Bob", fields=[{"name": "place", "value": "attic"}], suggest_similar=True
    )
    assert reply["similar_topic_ids"] == []


def test_an_id_that_is_taken_elsewhere_is_not_overwritten(cast: Cast, world: dict[str, str]):
    answer = cast.alice.post("/v1/ingest", {"placement": "new_topic", "topic_id": world["bob"], "title": "Mine"})
    assert answer.status == 409
    assert cast.agent.topic(world["bob"])["title"] == "Xylophone of Bob"


def test_a_batch_answers_the_same_about_other_scopes(cast: Cast, world: dict[str, str]):
    items = [filled(body, world) for _m, path, body in ROUTES if path == "/v1/ingest"]
    reply = cast.alice.post("/v1/ingest/batch", items).ok()
    assert {result["status"] for result in reply["results"]} == {404}
