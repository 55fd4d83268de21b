"""Archived, released and merged topics appear on no default read path: here every read path is walked."""

import datetime as dt
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from memory.models import Topic, TopicDocument, TopicVector, Vitality
from tests.cast import Caller, Cast, cast_make, in_process, worker_turn
from tests.waits import turns_until_done

pytestmark = pytest.mark.django_db

WORDS = "harbor lighthouse keeper"
STAGES = ("semantic", "structural", "temporal")
SUBSETS = [list(chosen) for size in range(4) for chosen in itertools.combinations(STAGES, size)]


@dataclass(frozen=True)
class Store:
    """Topics that all answer the same question: some live, some gone."""

    cast: Cast
    live: list[str]
    archived: list[str]
    released: list[str]
    merged: list[str]

    @property
    def gone(self) -> list[str]:
        return [*self.archived, *self.released, *self.merged]


def mark(topic_ids: list[str], **markers: Any) -> None:
    """Set the markers of release and merge as the routes for them will: together with every copy of ``live``."""
    Topic.objects.filter(pk__in=topic_ids).update(**markers)
    for model in (Vitality, TopicVector):
        model.objects.filter(topic_id__in=topic_ids).update(live=False)
    TopicDocument.objects.filter(topic_id__in=topic_ids).update(live=False, uncounted=True)


@pytest.fixture(scope="module")
def cast(lasting: None) -> Cast:
    return cast_make(in_process)


# Before the others, since it asks without a scope, and their store lasts.
def test_as_of_a_moment_before_it_was_released_does_not_bring_it_back(cast: Cast, clock: Any) -> None:
    clock.stop()
    topic_id = cast.agent.remember(WORDS)
    moment = clock.forward(days=1).isoformat()
    assert cast.agent.found(WORDS, as_of=moment) == [topic_id]
    clock.forward(days=1)
    cast.operator.post(
        "/v1/forget", {"verb": "release", "filter": {"ids": [topic_id]}, "dry_run": False, "reason": "test"}
    ).ok()
    assert cast.agent.found(WORDS, as_of=moment) == []
    assert cast.agent.found("", stages=[], topic_ids=[topic_id], as_of=moment) == []


@pytest.fixture(scope="module", params=[2000, 0], ids=["a small scope", "a large scope"])
def store(request: pytest.FixtureRequest, cast: Cast) -> Iterator[Store]:
    with override_settings(MEMSTATE_KNOBS={"recall_exact_below": request.param}), transaction.atomic():
        yield store_make(cast)
        transaction.set_rollback(True)


def store_make(cast: Cast) -> Store:
    agent = cast.agent
    groups: dict[str, list[str]] = {}
    for state in ("live", "archived", "released", "merged"):
        for number in range(3):
            topic_id = agent.remember(
                f"{WORDS} {state} {number}" if state == "live" else f"{WORDS} gone-{state} {number}",
                summary=WORDS,
                topic_kind="finding",
                categories=["sea"],
                scope=["/", "/user/alice", "/team"][number],
                values={"place": WORDS, "note": f"zanzibar of {state}" if state != "live" else "none"},
            )
            groups.setdefault(state, []).append(topic_id)
    # Chains in which each live topic has gone ones as neighbours, and reaches another live one only through them.
    for state in ("archived", "released", "merged"):
        for place, other in enumerate(groups[state]):
            here, there = groups["live"][place], groups["live"][(place + 1) % 3]
            agent.ingest("extend_topic", topic_id=here, edges=[{"to_topic_id": other, "kind": "near"}])
            agent.ingest("extend_topic", topic_id=other, edges=[{"to_topic_id": there, "kind": "near"}])
    for topic_id in groups["archived"]:
        cast.operator.post(f"/v1/topics/{topic_id}/archive", {"reason": "test"}).ok()
    mark(groups["released"], released_at=timezone.now())
    mark(groups["merged"], merged_into=groups["live"][0])
    turns_until_done(worker_turn, "counted")
    return Store(cast, **groups)


def default_reads(caller: Caller) -> Iterator[tuple[str, Any]]:
    """Every way to read topics without asking for forgotten ones."""
    filters: list[dict[str, Any]] = [
        {},
        {"kinds": ["finding"]},
        {"categories": ["sea"]},
        {"scope": "/user"},
        {"scope": "/user/alice"},
        {"field_names": ["place"]},
        {"token_budget": 100_000},
        {"as_of": timezone.now().isoformat()},
        {"as_of": (timezone.now() + dt.timedelta(days=1)).isoformat(), "kinds": ["finding"], "categories": ["sea"]},
    ]
    questions = [WORDS, f"{WORDS} gone-archived 0\n{WORDS}\n{WORDS}\nzanzibar of archived", "zanzibar"]
    for stages, more, explain, depth in itertools.product(SUBSETS, filters, (False, True), (1, 2, 3)):
        if depth > 1 and "structural" not in stages:
            continue
        question = questions[depth - 1]
        asked = {"stages": stages, "explain": explain, "depth": depth, "top_k": 50, "include_cold": True, **more}
        yield f"query {asked}", caller.query(question, **asked)
    for path in ("", "kind=finding", "scope=/user", "pinned=false", f"text={WORDS.replace(' ', '+')}", "rung=active"):
        yield f"topics?{path}", caller.get(f"/v1/topics?limit=100&{path}").ok()


def assert_nothing_gone(store: Store, where: str, reply: Any) -> None:
    text = json.dumps(reply)
    assert not [topic_id for topic_id in store.gone if topic_id in text], where
    assert "gone-" not in text.replace(json.dumps(reply.get("query", ""))[1:-1], ""), where


def test_no_default_read_path_shows_what_is_gone(store: Store) -> None:
    paths = 0
    with_live = 0
    for where, reply in default_reads(store.cast.agent):
        assert_nothing_gone(store, where, reply)
        paths += 1
        with_live += any(topic_id in json.dumps(reply) for topic_id in store.live)
    assert paths > 200
    # All but queries that neither search nor name topics find what is live.
    assert with_live > paths / 2


def test_naming_a_gone_topic_without_the_semantic_stage_does_not_show_it(store: Store) -> None:
    for stages in SUBSETS:
        for depth in (0, 1, 2, 3):
            for past in ({}, {"as_of": timezone.now().isoformat()}):
                reply = store.cast.agent.query(
                    WORDS, stages=stages, depth=depth, topic_ids=[*store.gone, *store.live], top_k=50, **past
                )
                assert_nothing_gone(store, str(stages), reply)
                assert {found["topic_id"] for found in reply["candidates"]} == set(store.live)


def test_what_is_gone_lends_no_words_to_its_neighbours(store: Store) -> None:
    for candidate in store.cast.agent.query("zanzibar", top_k=50, explain=True)["candidates"]:
        assert candidate["score_parts"]["own_words"] == 0
        assert candidate["score_parts"]["neighbor_words"] == 0


def test_neighbours_are_not_reached_through_what_is_gone(store: Store) -> None:
    # The live topics are linked over gone ones only.
    reply = store.cast.agent.query(WORDS, top_k=50, depth=3)
    assert {found["topic_id"] for found in reply["candidates"]} == set(store.live)
    assert [found["neighbors"] for found in reply["candidates"]] == [[], [], []]


def test_ingest_suggests_nothing_that_is_gone(store: Store) -> None:
    for number, scope in enumerate(["/", "/user/alice", "/team"]):
        for state in ("archived", "released", "merged"):
            # The very same text and title, hence the same vector.
            reply = store.cast.agent.ingest(
                title=f"{WORDS} gone-{state} {number}",
                summary=WORDS,
                scope=scope,
                suggest_similar=True,
                fields=[{"name": "place", "value": WORDS}, {"name": "note", "value": f"zanzibar of {state}"}],
            )
            assert not set(reply["similar_topic_ids"]) & set(store.gone)
    live = store.cast.agent.ingest(title=f"{WORDS} live 0", suggest_similar=True)
    assert live["similar_topic_ids"] == [store.live[0]]


def test_the_callers_of_narrower_scopes_see_nothing_gone_either(store: Store) -> None:
    for caller in (store.cast.alice, store.cast.auditor, store.cast.reader):
        reply = caller.query(WORDS, top_k=50, depth=3)
        assert_nothing_gone(store, "query", reply)
        assert reply["candidates"]
        assert_nothing_gone(store, "topics", caller.get("/v1/topics?limit=100").ok())


def test_what_is_archived_is_found_by_those_who_ask_for_it(store: Store) -> None:
    agent = store.cast.agent
    both = {*store.live, *store.archived}
    for stages in SUBSETS:
        found = agent.found(WORDS, stages=stages, include_archived=True, top_k=50, topic_ids=[*store.gone, *store.live])
        assert set(found) == both, stages
    assert set(agent.found(WORDS, include_archived=True, top_k=50)) == both
    assert set(agent.found("zanzibar", include_archived=True, top_k=50)) == both

    def listed(query: str) -> set[str]:
        return {row["topic_id"] for row in agent.get(f"/v1/topics?limit=100&{query}").ok()["items"]}

    assert listed("rung=archived") == set(store.archived)
    assert listed("rung=any") == both
    assert listed("rung=archived&text=zanzibar") == set(store.archived)
    for topic_id in store.gone:
        # By its id everything is found, at whatever rung.
        assert agent.topic(topic_id)["topic_id"] == topic_id
        assert agent.get(f"/v1/topics/{topic_id}/fields/place/history").ok()["items"][0]["value"] == WORDS


def test_a_search_for_archived_ones_weighs_their_words(store: Store) -> None:
    reply = store.cast.agent.query("zanzibar", include_archived=True, top_k=50, explain=True)
    by_own_words = {found["topic_id"] for found in reply["candidates"] if found["score_parts"]["own_words"] > 0}
    assert by_own_words == set(store.archived)


def test_what_is_restored_is_back_on_every_path(store: Store) -> None:
    topic_id = store.archived[0]
    store.cast.operator.post(f"/v1/topics/{topic_id}/restore", {}).ok()
    worker_turn()
    agent = store.cast.agent
    assert topic_id in agent.found(WORDS, top_k=50)
    assert topic_id in agent.found("zanzibar", top_k=50)
    assert topic_id in agent.found("", stages=[], topic_ids=[topic_id])
    neighbors = agent.query(WORDS, stages=["structural"], topic_ids=[store.live[0]])["candidates"][0]["neighbors"]
    assert [neighbor["topic_id"] for neighbor in neighbors] == [topic_id]
    assert topic_id in {row["topic_id"] for row in agent.get("/v1/topics?limit=100").ok()["items"]}
