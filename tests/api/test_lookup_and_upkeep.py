"""Explicit lookup, lists and their pages, histories, edits, pins, statistics."""

import datetime as dt
from typing import Any

import pytest

from memory.models import AccessLog, AuditEvent, Field, Topic, Vitality
from tests.cast import Caller, Clock, store_rows, worker_turn


def ids(page: Any) -> list[str]:
    return [item["topic_id"] for item in page["items"]]


def pages(caller: Caller, address: str) -> list[Any]:
    """Follow ``next`` to the end."""
    found, cursor = [], ""
    while True:
        page = caller.get(f"{address}{'&' if '?' in address else '?'}cursor={cursor}" if cursor else address).ok()
        found.append(page)
        if page["next"] is None:
            return found
        cursor = page["next"]


# --- Lists -----------------------------------------------------------------------------------------------------------


def test_a_list_is_newest_first_and_tells_about_each_topic(agent: Caller, clock: Clock):
    clock.set(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    first = agent.remember("First", summary="s", topic_kind="k", categories=["c"], scope="/a", salience=2)
    clock.forward(days=30)
    second = agent.remember("Second")
    page = agent.get("/v1/topics").ok()
    assert ids(page) == [second, first]
    assert page["next"] is None
    got = page["items"][1]
    assert (got["title"], got["summary"], got["topic_kind"], got["categories"]) == ("First", "s", "k", ["c"])
    assert (got["scope"], got["rung"], got["archived"], got["pinned"]) == ("/a", "active", False, False)
    # Half of it is left after a half-life.
    assert got["salience"] == pytest.approx(1.0)
    assert dt.datetime.fromisoformat(got["created_at"]) == dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def test_pages_cover_all_topics_once_while_others_are_added(agent: Caller, operator: Caller):
    items = [{"placement": "new_topic", "title": f"Topic {number}"} for number in range(25)]
    # One moment for all of them: the order within it has to be settled too.
    reply = agent.post("/v1/ingest/batch", items).ok()
    there = {result["topic_id"] for result in reply["results"]}
    seen: list[str] = []
    cursor = ""
    for turn in range(100):
        page = agent.get(f"/v1/topics?limit=4{cursor}").ok()
        seen += ids(page)
        agent.remember(f"Newer {turn}")
        operator.remember(f"Older, and yet added later {turn}", created_at="2020-01-01T00:00:00Z")
        if page["next"] is None or there <= set(seen):
            break
        cursor = f"&cursor={page['next']}"
    assert there <= set(seen)
    assert len(seen) == len(set(seen))
    assert len([one for one in seen if one in there]) == 25


def test_the_last_page_says_so(agent: Caller):
    for number in range(4):
        agent.remember(f"Topic {number}")
    assert [len(page["items"]) for page in pages(agent, "/v1/topics?limit=2")] == [2, 2]
    assert [len(page["items"]) for page in pages(agent, "/v1/topics?limit=3")] == [3, 1]
    assert [len(page["items"]) for page in pages(agent, "/v1/topics")] == [4]


def test_filters_of_a_list(agent: Caller, operator: Caller):
    a = agent.remember("Green tea", topic_kind="drink", scope="/a")
    b = agent.remember("Black tea", topic_kind="drink", scope="/a/b", pinned=True)
    c = agent.remember("Xylophone", scope="/c")
    d = agent.remember("Old tea", topic_kind="drink")
    operator.post(f"/v1/topics/{d}/archive").ok()

    def listed(query: str) -> list[str]:
        return ids(agent.get(f"/v1/topics?{query}").ok())

    assert listed("") == [c, b, a]
    assert listed("scope=/a") == [b, a]
    assert listed("scope=/a/b") == [b]
    assert listed("kind=drink") == [b, a]
    assert listed("kind=") == [c]
    assert listed("pinned=true") == [b]
    assert listed("pinned=false") == [c, a]
    assert listed("text=teas") == [b, a]
    assert listed("text=green+tea") == [a]
    assert listed("text=tea+-green") == [b]
    assert listed("rung=active") == [c, b, a]
    assert listed("rung=archived") == [d]
    assert listed("rung=detached") == []
    assert listed("rung=any") == [d, c, b, a]
    assert listed("rung=any&text=tea&kind=drink&scope=/&pinned=false") == [d, a]


def test_filters_hold_across_pages(agent: Caller):
    items = [
        {"placement": "new_topic", "title": f"Topic {number}", "topic_kind": ("a", "b")[number % 2]}
        for number in range(20)
    ]
    agent.post("/v1/ingest/batch", items).ok()
    found = pages(agent, "/v1/topics?kind=a&limit=3")
    assert [len(page["items"]) for page in found] == [3, 3, 3, 1]
    assert {item["topic_kind"] for page in found for item in page["items"]} == {"a"}


# --- One topic -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rung", [0, 1, 2, 3])
def test_a_topic_is_looked_up_at_any_rung(agent: Caller, rung: int):
    topic_id = agent.remember("Mara", values={"city": "Berlin"})
    Topic.objects.filter(pk=topic_id).update(rung=rung)
    Vitality.objects.filter(pk=topic_id).update(rung=rung, live=rung < 3)
    Field.objects.filter(topic_id=topic_id).update(detached=rung >= 2)
    got = agent.topic(topic_id)
    assert got["rung"] == ("active", "summarized", "detached", "archived")[rung]
    assert got["archived"] is (rung == 3)
    assert [(entry["name"], entry["detached"]) for entry in got["fields"]] == [("city", rung >= 2)]


def test_an_id_in_capitals_is_the_same_id(agent: Caller):
    topic_id = agent.remember("Mara", values={"city": "Berlin"})
    assert agent.topic(topic_id.upper())["topic_id"] == topic_id
    agent.get(f"/v1/topics/{topic_id.upper()}/fields/city/history").ok()


def test_a_lookup_leaves_a_trace(agent: Caller, reader: Caller):
    topic_id = agent.remember("Mara")
    reader.topic(topic_id)
    trace = AccessLog.objects.get()
    assert (trace.kind, [str(one) for one in trace.topic_ids]) == ("lookup", [topic_id])
    assert trace.folded_at is not None


def test_a_history_is_newest_first_and_comes_in_pages(agent: Caller):
    topic_id = agent.remember("Mara", values={"city": "City 0"})
    for number in range(1, 7):
        change = {"name": "city", "value": f"City {number}", "why_changed": f"Why {number}", "provenance": "chat"}
        agent.ingest("version_field", topic_id=topic_id, fields=[change])
    address = f"/v1/topics/{topic_id}/fields/city/history"
    found = pages(agent, f"{address}?limit=3")
    assert [len(page["items"]) for page in found] == [3, 3, 1]
    revisions = [revision for page in found for revision in page["items"]]
    assert [revision["seq"] for revision in revisions] == [7, 6, 5, 4, 3, 2, 1]
    assert [revision["value"] for revision in revisions] == [f"City {number}" for number in range(6, -1, -1)]
    assert (revisions[0]["why_changed"], revisions[0]["provenance"]) == ("Why 6", "chat")
    assert revisions[0]["actor"] == "key:agent"
    assert agent.get(f"{address}?limit=7").ok()["next"] is None


def test_a_history_goes_on_where_it_was_while_revisions_are_added(agent: Caller):
    topic_id = agent.remember("Mara", values={"city": "City 1"})
    address = f"/v1/topics/{topic_id}/fields/city/history?limit=2"

    def add(number: int) -> None:
        agent.ingest("version_field", topic_id=topic_id, fields=[{"name": "city", "value": f"City {number}"}])

    for number in (2, 3, 4):
        add(number)
    page = agent.get(address).ok()
    add(5)
    rest = agent.get(f"{address}&cursor={page['next']}").ok()
    assert [revision["seq"] for revision in page["items"] + rest["items"]] == [4, 3, 2, 1]


# --- Edits -----------------------------------------------------------------------------------------------------------


def test_an_edit_changes_what_is_given_and_is_found_at_once(agent: Caller):
    topic_id = agent.remember("Xylophone", summary="Loud", topic_kind="thing", categories=["music"], values={"a": "b"})
    got = agent.patch(f"/v1/topics/{topic_id}", {"title": "Marimba"}).ok()
    assert (got["title"], got["summary"], got["topic_kind"], got["categories"]) == (
        "Marimba",
        "Loud",
        "thing",
        ["music"],
    )
    agent.remember("Something else")
    assert agent.found("marimba", top_k=1) == [topic_id]
    (best, *_rest) = agent.query("Marimba\nLoud\nb")["candidates"]
    assert (best["topic_id"], best["similarity"]) == (topic_id, pytest.approx(1.0, abs=1e-5))
    assert ids(agent.get("/v1/topics?text=xylophone").ok()) == []


def test_an_edit_can_change_all_members_at_once(agent: Caller, operator: Caller):
    topic_id = agent.remember("A", summary="B", topic_kind="c", categories=["d"])
    change = {"title": "", "summary": "Only this", "topic_kind": "", "categories": ["y", "x", "y"], "salience": 5}
    got = operator.patch(f"/v1/topics/{topic_id}", change).ok()
    assert (got["title"], got["summary"], got["topic_kind"]) == ("", "Only this", "")
    assert got["categories"] == ["x", "y"]
    assert got["salience"] == pytest.approx(5, rel=1e-3)
    refused = operator.patch(f"/v1/topics/{topic_id}", {"summary": " "})
    assert (refused.status, refused.code) == (422, "missing-member")
    assert agent.topic(topic_id)["summary"] == "Only this"


def test_as_of_shows_the_old_title(agent: Caller, clock: Clock):
    clock.set(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    topic_id = agent.remember("Xylophone", summary="Loud")
    before = clock.forward(days=1)
    clock.forward(days=1)
    agent.patch(f"/v1/topics/{topic_id}", {"title": "Marimba", "summary": "Soft"}).ok()
    between = clock.forward(days=1)
    clock.forward(days=1)
    agent.patch(f"/v1/topics/{topic_id}", {"title": "Vibraphone"}).ok()

    def titled(moment: dt.datetime | None) -> tuple[str, str]:
        asked = {} if moment is None else {"as_of": moment.isoformat()}
        (bundle,) = agent.query("?", stages=[], topic_ids=[topic_id], **asked)["candidates"]
        return bundle["title"], bundle["summary"]

    assert titled(before) == ("Xylophone", "Loud")
    assert titled(between) == ("Marimba", "Soft")
    assert titled(None) == ("Vibraphone", "Soft")


def test_an_edit_is_journaled_with_its_reason(agent: Caller):
    topic_id = agent.remember("Xylophone")
    agent.patch(f"/v1/topics/{topic_id}", {"title": "Marimba", "reason": "It was one"}).ok()
    event = AuditEvent.objects.get(action="edited")
    assert (str(event.topic_id), event.actor, event.reason) == (topic_id, "key:agent", "It was one")
    assert (event.before, event.after) == ({"title": "Xylophone"}, {"title": "Marimba"})


@pytest.mark.parametrize("change", [{}, {"title": None}, {"title": "Xylophone"}, {"reason": "no change"}])
def test_an_edit_that_changes_nothing_writes_nothing(agent: Caller, change: Any):
    topic_id = agent.remember("Xylophone")
    before = store_rows()
    agent.patch(f"/v1/topics/{topic_id}", change).ok()
    assert store_rows() == before


def test_an_edit_of_an_old_version_is_refused_if_the_caller_names_the_version(agent: Caller):
    topic_id = agent.remember("Mara", values={"city": "Oslo"})
    path = f"/v1/topics/{topic_id}"
    seen = agent.get(path)
    tag, base = seen.headers["etag"], seen.ok()["updated_at"]
    edited = agent.patch(path, {"title": "Mara Lind"}, headers={"If-Match": tag})
    assert edited.ok()["title"] == "Mara Lind"
    assert edited.headers["etag"] not in ("", tag)
    for refused, status in (
        (agent.patch(path, {"title": "Nora"}, headers={"If-Match": tag}), 412),
        (agent.patch(path, {"title": "Nora"}, headers={"If-Match": '"another"'}), 412),
        (agent.patch(path, {"title": "Nora", "base_updated_at": base}), 409),
    ):
        assert (refused.status, refused.code) == (status, "changed-meanwhile")
    agent.ingest("version_field", topic_id=topic_id, fields=[{"name": "city", "value": "Bergen"}])
    assert agent.patch(path, {"title": "Nora"}, headers={"If-Match": edited.headers["etag"]}).status == 412
    assert agent.topic(topic_id)["title"] == "Mara Lind"
    assert agent.patch(path, {"title": "Nora"}, headers={"If-Match": "*"}).ok()["title"] == "Nora"


@pytest.mark.parametrize("state", ["released_at", "merged_into"])
def test_released_and_merged_topics_are_neither_edited_nor_extended(agent: Caller, state: str):
    topic_id, other = agent.remember("Xylophone"), agent.remember("Other")
    value = dt.datetime.now(dt.UTC) if state == "released_at" else other
    Topic.objects.filter(pk=topic_id).update(**{"merged_into_id" if state == "merged_into" else state: value})
    before = store_rows()
    assert agent.patch(f"/v1/topics/{topic_id}", {"title": "x"}).status == 400
    answer = agent.post("/v1/ingest", {"placement": "extend_topic", "topic_id": topic_id, "fields": [{"name": "a"}]})
    assert answer.status == 400
    assert answer.code == "topic-gone"
    assert store_rows() == before


# --- Pins ------------------------------------------------------------------------------------------------------------


def test_a_pin_is_reported_with_its_reason_and_can_be_taken_off(agent: Caller):
    topic_id = agent.remember("Xylophone")
    got = agent.post(f"/v1/topics/{topic_id}/pin", {"reason": "It is Mara's"}).ok()
    assert (got["pinned"], got["pin_reason"]) == (True, "It is Mara's")
    assert agent.query("xylophone")["candidates"][0]["pinned"] is True
    got = agent.post(f"/v1/topics/{topic_id}/pin", {"reason": "It is Ida's"}).ok()
    assert got["pin_reason"] == "It is Ida's"
    got = agent.post(f"/v1/topics/{topic_id}/unpin").ok()
    assert (got["pinned"], got["pin_reason"]) == (False, "")
    journal = AuditEvent.objects.filter(topic_id=topic_id).order_by("id")
    assert [event.action for event in journal] == ["ingest_new_topic", "pinned", "pinned", "unpinned"]
    assert [event.reason for event in journal] == ["", "It is Mara's", "It is Ida's", ""]


def test_a_topic_can_be_pinned_on_ingest(agent: Caller):
    topic_id = agent.remember("Xylophone", pinned=True)
    assert agent.topic(topic_id)["pinned"] is True
    other = agent.remember("Marimba")
    agent.ingest("extend_topic", topic_id=other, pinned=True)
    assert agent.topic(other)["pinned"] is True


def test_an_empty_body_is_no_reason(agent: Caller):
    topic_id = agent.remember("Xylophone")
    for more in ({}, {"json": {}}, {"json": None}):
        assert agent.post(f"/v1/topics/{topic_id}/pin", **more).ok()["pinned"] is True


# --- Statistics ------------------------------------------------------------------------------------------------------


def test_statistics_count_what_is_there(agent: Caller, operator: Caller, alice: Caller):
    a = agent.remember("Anchor", scope="/a", values={"x": "1", "y": "2"}, pinned=True)
    b = agent.remember("B", scope="/b", values={"x": "1"})
    agent.ingest("version_field", topic_id=a, fields=[{"name": "x", "value": "3"}])
    agent.ingest("extend_topic", topic_id=a, edges=[{"to_topic_id": b, "kind": "z"}])
    operator.post(f"/v1/topics/{b}/archive").ok()
    agent.found("Anchor", scope="/a")
    agent.post("/v1/ingest?defer=1", {"placement": "new_topic", "title": "C", "scope": "/a"}).ok()
    got = agent.get("/v1/stats").ok()
    assert got.pop("waiting")["topics"] == 1
    assert got == {
        "scope": "/",
        "topics": 3,
        "live": 2,
        "rungs": {"active": 2, "summarized": 0, "detached": 0, "archived": 1},
        "released": 0,
        "pinned": 1,
        "retrievals": 0,
        "fields": 3,
        "revisions": 4,
        "links": 1,
        "scopes": 2,
        "backlog": {"unfolded_accesses": 1, "topics_without_vector": 1, "outdated_documents": 0},
    }
    assert alice.get("/v1/stats").ok()["backlog"] == {
        "unfolded_accesses": 0,
        "topics_without_vector": 0,
        "outdated_documents": 0,
    }
    assert agent.get("/v1/stats?scope=/a").ok()["backlog"] == got["backlog"]
    worker_turn()
    got = agent.get("/v1/stats?scope=/a").ok()
    assert (got["topics"], got["retrievals"], got["fields"], got["revisions"]) == (2, 1, 2, 3)
    assert got["backlog"] == {"unfolded_accesses": 0, "topics_without_vector": 0, "outdated_documents": 0}
