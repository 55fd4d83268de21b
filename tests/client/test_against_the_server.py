"""The client against the whole application over HTTP: what is asked arrives, and replies are what their types say."""

import datetime as dt
import types
import typing
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

import pytest

from memstate import Conflict, MemState, NotAllowed, NotFound, Refused, Unavailable
from tests.cast import secret_of
from tests.client.conftest import Maker
from tests.client.proxy import Proxy, answer


def matches(value: Any, kind: Any) -> bool:
    """Return whether a value is what an annotation says, with no member that it does not know."""
    origin = get_origin(kind)
    if kind is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(matches(value, each) for each in get_args(kind))
    if origin is Literal:
        return value in get_args(kind)
    if origin is list:
        return isinstance(value, list) and all(matches(each, get_args(kind)[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(matches(each, get_args(kind)[1]) for each in value.values())
    if typing.is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        needed = {name for name, hint in hints.items() if get_origin(hint) is not NotRequired}
        plain = get_type_hints(kind)
        known = isinstance(value, dict) and needed <= value.keys() <= hints.keys()
        return known and all(matches(each, plain[name]) for name, each in value.items())
    if kind is float:
        return isinstance(value, int | float)
    return isinstance(value, type(None) if kind is type(None) else kind)


class Tour:
    """Calls methods, and holds each reply against the type that the method promises."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            reply = getattr(self.client, name)(*args, **more)
            assert matches(reply, get_type_hints(getattr(MemState, name))["return"]), (name, reply)
            self.called.add(name)
            return reply

        return call


def test_everything_an_agent_does(agent: Any, operator: Any):
    tour = Tour(agent)
    mara = tour.ingest(
        "new_topic",
        title="Mara",
        scope="/user/mara",
        topic_kind="person",
        categories=("people",),
        fields=[{"name": name, "value": "Berlin"} for name in ("city", "a/b ../ü?", "..")],
        suggest_similar=True,
    )["topic_id"]
    tour.ingest("version_field", topic_id=mara, fields=[{"name": "city", "value": "Lisbon", "why_changed": "moved"}])
    link, gears = {"to_topic_id": mara, "kind": "of"}, {"name": "gears", "field_type": "int", "value": "many"}
    batch = tour.ingest_batch(
        [
            {"placement": "new_topic", "title": "Tea", "scope": "/user/mara", "edges": [link]},
            {"placement": "new_topic", "title": "Bike", "fields": [gears]},
        ]
    )
    assert [result["status"] for result in batch["results"]] == [200, 422]
    assert (batch["accepted"], batch["refused"]) == (1, 1)
    tea = batch["results"][0]["topic_id"]

    answer = tour.query("Mara's tea", top_k=2, scope="/user/mara", explain=True)
    assert {found["topic_id"] for found in answer["candidates"]} == {mara, tea}
    before = tour.query("Mara", as_of=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
    assert before["candidates"] == []

    assert [each["value"] for each in tour.field_history(mara, "city")["items"]] == ["Lisbon", "Berlin"]
    for odd in ("a/b ../ü?", ".."):
        assert len(tour.field_history(mara, odd)["items"]) == 1
    assert [row["title"] for row in agent.topics_iter(scope="/user/mara", limit=1)] == ["Tea", "Mara"]
    assert [len(page["items"]) for page in agent.pages(agent.topics, scope="/user/mara", limit=1)] == [1, 1]
    assert tour.topics(pinned=True)["items"] == []
    assert tour.topic(mara)["title"] == "Mara"
    assert tour.topic_edit(mara, title="Mara Lind", reason="full name")["title"] == "Mara Lind"
    assert tour.topic_pin(mara)["pinned"]
    assert not tour.topic_unpin(mara, reason="enough")["pinned"]
    assert tour.stats(scope="/user/mara")["topics"] == 2

    assert tour.extract("Mara lives in Lisbon. She works at Lantern.")["stored"] == []
    job = tour.extract("Coffee is black.", store=True, scope="/coffee", background=True)["job_id"]
    assert tour.extraction(job)["status"] in ("working", "done")
    tour.supersede("where Mara lives", new_text="Mara lives in Porto.", scope="/user/mara", reason="moved")
    assert tour.health() == {"status": "ok"}
    assert tour.conversations()["items"] == []
    with pytest.raises(NotFound):
        tour.conversation("01900000-0000-7000-8000-00000000dead")

    assert operator.request("POST", f"/v1/topics/{tea}/archive", json={"reason": "old"})["archived"]
    assert not Tour(operator).topic_restore(tea)["archived"]
    assert len(tour.called) == 15


def test_routes_without_a_method_are_reached_by_request(operator: Any):
    topic = operator.ingest("new_topic", title="Tea", scope="/user/mara")["topic_id"]
    listed = operator.request("POST", "/v1/forget", json={"verb": "release", "filter": {"scope": "/user/mara"}})
    assert (listed["executed"], listed["count"]) == (False, 1)
    done = operator.request("POST", "/v1/forget", json={"verb": "release", "token": listed["token"], "dry_run": False})
    assert done["executed"]
    assert operator.request("GET", f"/v1/topics/{topic}/why")["topic_id"] == topic
    purged = operator.request("DELETE", f"/v1/topics/{topic}", json={"reason": "asked for"})
    receipt = operator.request("GET", f"/v1/receipts/{purged['receipt_id']}")
    assert receipt["topic_ids"] == [topic]


def test_pages_of_any_route_follow_their_cursor(operator: Any):
    for number in range(3):
        policy = {"values": {"half_life_days": 10 + number}, "reason": "for the test"}
        operator.request("PUT", "/v1/policies/user/mara", json=policy)
    path, one = "/v1/policies/user/mara/versions", {"limit": 1}
    pages = list(operator.pages(operator.request, "GET", path, params=one))
    assert [[each["version"] for each in page["items"]] for page in pages] == [[3], [2], [1]]
    # Here the cursor stands in the body.
    values = {"strategy": "static", "prune_after_days": 0, "topic_count_soft_limit": 0}
    draft = {"values": values, "limit": 1, "event": "manual", "scope": "/faded"}
    for title in ("Tea", "Bike"):
        operator.ingest("new_topic", title=title, salience=0.01, scope="/faded")
    pages = list(operator.pages(operator.request, "POST", "/v1/policies/preview", json=draft))
    assert {each["title"] for page in pages for each in page["affected"]} == {"Tea", "Bike"}


def test_a_store_that_is_not_ready_says_so_at_once(agent: Any, proxy: Proxy, waits: list[float]):
    proxy.does(answer(503, body={"status": "not ready", "failed": ["database"]}))
    with pytest.raises(Unavailable) as refused:
        agent.health()
    assert (refused.value.members["failed"], waits) == (["database"], [])


def test_many_items_are_sent_in_portions_and_counted_through(agent: Any, proxy: Proxy):
    items = [{"placement": "new_topic", "title": f"Nr. {number}", "scope": "/many"} for number in range(7)]
    items[4]["placement"] = "nowhere"
    replies = list(agent.ingest_all(iter(items), size=3))
    assert [result["index"] for reply in replies for result in reply["results"]] == list(range(7))
    assert [(reply["accepted"], reply["refused"]) for reply in replies] == [(3, 0), (2, 1), (1, 0)]
    assert len(set(proxy.keys)) == 3
    assert agent.stats(scope="/many")["topics"] == 6


def test_refusals_are_exceptions_with_the_servers_sentence(agent: Any, make_client: Maker, proxy: Proxy):
    missing = "01900000-0000-7000-8000-00000000dead"
    with pytest.raises(NotFound) as not_found:
        agent.topic(missing)
    assert (not_found.value.status, not_found.value.title, not_found.value.type) == (
        404,
        "Not Found",
        "urn:memstate:problem:not-found",
    )
    with pytest.raises(Refused) as refused:
        agent.query("")
    assert (refused.value.status, refused.value.type) == (422, "urn:memstate:problem:invalid-member")
    assert str(refused.value) == f"422: {refused.value.detail}"
    assert refused.value.detail == refused.value.members["detail"]
    with pytest.raises(Refused) as contradicts:
        agent.ingest("version_field", fields=[{"name": "a"}])
    assert contradicts.value.status == 400
    with pytest.raises(NotAllowed) as not_allowed:
        agent.topic_restore(missing)
    assert not_allowed.value.status == 403
    with pytest.raises(NotAllowed) as unknown:
        make_client(proxy.url, "ms_made-up").stats()
    assert unknown.value.status == 401
    known = agent.ingest("new_topic", title="Tea")["topic_id"]
    with pytest.raises(Conflict) as conflict:
        agent.ingest("new_topic", topic_id=known, title="Tea")
    assert (conflict.value.status, conflict.value.transient) == (409, False)


def test_the_scope_of_a_client_stands_in_where_none_is_said(proxy: Proxy, make_client: Maker, operator: Any):
    client = make_client(proxy.url, secret_of("agent"), scope="/user/mara")
    topic = client.ingest("new_topic", title="Tea")["topic_id"]
    deeper = client.ingest("new_topic", title="Deep", scope="/user/mara/work")["topic_id"]
    client.ingest("extend_topic", topic_id=deeper, fields=[{"name": "a", "value": "b"}])
    client.ingest_batch(
        [
            {"placement": "new_topic", "title": "Bike"},
            {"placement": "new_topic", "title": "Boat", "scope": None},
            {"placement": "extend_topic", "topic_id": deeper},
        ]
    )
    operator.ingest("new_topic", title="Tea of others", scope="/user/bob")
    assert client.topic(topic)["scope"] == "/user/mara"
    assert {row["scope"] for row in client.topics()["items"]} == {"/user/mara", "/user/mara/work"}
    assert client.stats()["topics"] == 4
    assert {found["topic_id"] for found in client.query("Tea")["candidates"]} >= {topic}
    assert client.query("others", scope="/user/bob")["candidates"] != []
