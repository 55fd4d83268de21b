"""The Idempotency-Key: sent again, a request has its effect once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from memory.jobs import tasks
from memory.models import IdempotencyRecord, Topic
from tests.cast import Answer, Caller, Cast, Clock, store_rows

ITEM = {"placement": "new_topic", "title": "Once", "fields": [{"name": "a", "value": "b"}]}


def send(caller: Caller, body: Any, key: str, path: str = "/v1/ingest") -> Answer:
    return caller.post(path, body, headers={"Idempotency-Key": key})


def test_the_same_request_replays_the_reply(agent: Caller):
    first = send(agent, ITEM, "k1")
    rows = store_rows()
    second = send(agent, ITEM, "k1")
    assert first.ok() == second.ok()
    assert store_rows() == rows
    assert Topic.objects.count() == 1


def test_the_order_of_members_makes_no_other_request(agent: Caller):
    reply = send(agent, ITEM, "k1").ok()
    assert send(agent, dict(reversed(ITEM.items())), "k1").ok() == reply


def test_another_body_is_refused(agent: Caller):
    send(agent, ITEM, "k1").ok()
    rows = store_rows()
    answer = send(agent, {**ITEM, "title": "Other"}, "k1")
    assert answer.status == 422
    assert answer.code == "idempotency-key-reused"
    assert store_rows() == rows


def test_without_a_key_each_request_has_its_effect(agent: Caller):
    agent.post("/v1/ingest", ITEM).ok()
    agent.post("/v1/ingest", ITEM).ok()
    assert Topic.objects.count() == 2


def test_a_key_on_another_route_is_another_request(agent: Caller):
    send(agent, ITEM, "k1").ok()
    assert send(agent, [ITEM], "k1", "/v1/ingest/batch").status == 422


def test_each_caller_has_keys_of_its_own(agent: Caller, alice: Caller):
    ours = send(agent, ITEM, "k1").ok()
    theirs = send(alice, ITEM, "k1").ok()
    assert ours["topic_id"] != theirs["topic_id"]


def test_a_batch_replays_its_refusals_too(agent: Caller):
    items = [ITEM, {"placement": "extend_topic"}]
    first = send(agent, items, "k1", "/v1/ingest/batch").ok()
    assert (first["accepted"], first["refused"]) == (1, 1)
    assert send(agent, items, "k1", "/v1/ingest/batch").ok() == first
    assert Topic.objects.count() == 1


def test_a_refused_request_leaves_its_key_free(agent: Caller):
    assert send(agent, {"placement": "extend_topic"}, "k1").status == 400
    assert IdempotencyRecord.objects.count() == 0
    send(agent, ITEM, "k1").ok()


@pytest.mark.parametrize("key", ["x" * 201, ""])
def test_a_key_of_a_length_out_of_bounds_is_refused(agent: Caller, key: str):
    rows = store_rows()
    answer = send(agent, ITEM, key)
    assert answer.status == 422
    assert answer.about == {"invalid-member", "header.Idempotency-Key"}
    assert store_rows() == rows


def test_a_key_of_200_characters_is_taken(agent: Caller):
    assert send(agent, ITEM, "x" * 200).ok() == send(agent, ITEM, "x" * 200).ok()


def test_a_key_is_forgotten_after_a_week(agent: Caller, clock: Clock):
    clock.stop()
    send(agent, ITEM, "k1").ok()
    clock.forward(days=6)
    assert tasks.tidy() == 0
    clock.forward(days=2)
    assert tasks.tidy() == 1
    send(agent, ITEM, "k1").ok()
    assert Topic.objects.count() == 2
    assert IdempotencyRecord.objects.get().created_at == clock.now
    assert timedelta(days=8) == clock.now - Topic.objects.earliest("created_at").created_at


def test_sixteen_clients_at_once_have_one_effect_and_equal_replies(http_cast: Cast):
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _n: send(http_cast.agent, ITEM, "k1"), range(16)))
    assert [answer.status for answer in answers] == [200] * 16
    assert len({answer.body for answer in answers}) == 1
    assert Topic.objects.count() == 1
