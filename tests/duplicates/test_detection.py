"""Detection: what is offered, what is not, and what is merged without anybody."""

import uuid
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from memory.access.principal import SYSTEM
from memory.duplicates.detect import near_duplicates
from memory.duplicates.pairs import PairFilter, duplicate_settings, waiting_count
from memory.models import DuplicateLook, DuplicatePair, ForgetRun
from tests.cast import Caller, worker_turn
from tests.duplicates.shop import look, only_pair, pairs, twins
from tests.forgetting.shop import policy_put


def facts(agent: Caller, *texts: str, **members: Any) -> list[str]:
    return [agent.remember(text, **members) for text in texts]


def test_the_worker_finds_what_was_written_and_looks_at_it_once(agent: Caller):
    twins(agent)
    assert waiting_count("/", at_most=10) == 2
    assert worker_turn()["duplicates"] == 1
    assert waiting_count("/", at_most=10) == 0
    assert worker_turn()["duplicates"] == 0
    assert only_pair()["state"] == "open"


@pytest.mark.parametrize("members", [{"scope": "/elsewhere"}, {"topic_kind": "recipe"}])
def test_another_scope_or_kind_is_no_duplicate(agent: Caller, members: dict[str, str]):
    agent.remember("The harbor")
    agent.remember("The harbor", **members)
    assert look() == 0


def test_topics_without_a_title_have_no_title_in_common(agent: Caller):
    for value in ("one", "two"):
        agent.remember("", fields=[{"name": "text", "value": value}])
    assert look() == 0


SERIES = [
    "Mara's weight on {d} May 2026 was {n} kg.",
    "Am {d}. Mai 2026 kostete der Einkauf {n} Euro.",
    "{d} мая 2026 года расход воды составил {n} литров.",
    "2026年5月{d}日的体重是{n}公斤。",
    "2026年5月{d}日の支出は{n}円だった。",
    "في {d} مايو 2026 كان الوزن {n} كيلوغراما.",
]


@pytest.mark.meaning
@pytest.mark.parametrize("record", SERIES, ids=[each[:12] for each in SERIES])
def test_records_of_a_series_are_no_pairs(agent: Caller, record: str):
    facts(agent, *(record.format(d=day, n=60 + day) for day in (3, 4)))
    look()
    # Two are an old and a new value as well.
    assert len(pairs(PairFilter(state="open"))) <= 1
    for days in (range(5, 6), range(6, 24)):
        facts(agent, *(record.format(d=day, n=60 + day) for day in days))
        look()
        assert pairs(PairFilter(state="open")) == []


def test_a_heading_that_many_share_names_nothing(agent: Caller):
    for number in range(9):
        agent.remember("note", fields=[{"name": "text", "value": f"thing {number}"}])
    assert look() == 0


def test_no_more_than_fifty_pairs_are_stored_at_a_time(agent: Caller, operator: Caller):
    items = [{"placement": "new_topic", "title": f"harbor {place // 2}"} for place in range(400)]
    operator.post("/v1/ingest/batch", items).ok()
    assert [look() for _turn in range(5)] == [50, 50, 50, 50, 0]
    assert DuplicatePair.objects.count() == 200
    assert not DuplicateLook.objects.filter(waiting=True).exists()


def test_a_scope_in_which_much_is_written_does_not_hold_up_another(agent: Caller, operator: Caller):
    items = [{"placement": "new_topic", "title": f"harbor {place // 2}", "scope": "/noisy"} for place in range(400)]
    operator.post("/v1/ingest/batch", items).ok()
    facts(agent, "The boat", "The boat", scope="/quiet")
    look()
    assert waiting_count("/noisy", at_most=1) == 1
    assert "/quiet" in {pair["scope"] for pair in pairs()}


def test_topics_with_more_pairs_than_a_look_stores_go_on_waiting(agent: Caller, operator: Caller):
    # Seven with one title are 21 pairs, and 63 of them fit into one step: 189 pairs.
    items = [{"placement": "new_topic", "title": f"harbor {place // 7}"} for place in range(63)]
    operator.post("/v1/ingest/batch", items).ok()
    assert look() == DuplicatePair.objects.count() == 50
    assert 0 < DuplicateLook.objects.filter(waiting=True).count() < 63
    assert [look() for _turn in range(4)] == [50, 50, 39, 0]
    assert DuplicatePair.objects.filter(state="open").count() == 189
    assert not DuplicateLook.objects.filter(waiting=True).exists()


def test_what_the_database_quotes_of_a_row_is_not_in_the_log(
    agent: Caller, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    def broken(*_args: Any, **_more: Any) -> Any:
        raise OperationalError("deadlock in row (The harbor of Oslo)")

    twins(agent)
    monkeypatch.setattr("memory.duplicates.detect.topics_near", broken)
    assert look() == 0
    logged = caplog.text + "".join(capfd.readouterr())
    assert "duplicates_step_failed" in logged
    assert "OperationalError" in logged
    assert "Oslo" not in logged


def test_archived_and_released_topics_are_passed_by(agent: Caller, operator: Caller):
    older, _newer = twins(agent)
    operator.post(f"/v1/topics/{older}/archive", {}).ok()
    assert look() == 0
    assert not DuplicateLook.objects.filter(waiting=True).exists()


def test_what_comes_back_is_compared_with_what_was_written_meanwhile(agent: Caller, operator: Caller):
    older = agent.remember("The harbor")
    look()
    operator.post(f"/v1/topics/{older}/archive", {}).ok()
    look("/")
    agent.remember("The harbor")
    assert look() == 0
    operator.post(f"/v1/topics/{older}/restore", {}).ok()
    assert look("/") == 1


def test_no_one_looks_where_the_mode_is_off_until_someone_does(agent: Caller, operator: Caller):
    policy_put(operator, duplicates_mode="off")
    twins(agent)
    assert look() == 0
    assert look("/") == 0
    policy_put(operator, duplicates_mode="review")
    assert look() == 0
    assert look("/") == 1


def test_a_changed_text_takes_a_pair_off_the_list(agent: Caller):
    older, _newer = twins(agent)
    look()
    agent.patch(f"/v1/topics/{older}", {"title": "A recipe for bread"}).ok()
    look()
    assert only_pair()["state"] == "lapsed"


def test_the_automatic_mode_merges_what_says_the_same(agent: Caller, operator: Caller):
    policy_put(operator, duplicates_mode="auto")
    older, newer = twins(agent, fields=[{"name": "depth", "value": "3 m"}])
    look()
    assert only_pair()["state"] == "merged"
    assert operator.topic(older)["merged_into"] == newer
    run = ForgetRun.objects.get()
    assert (run.event, run.actor, run.counts) == ("revise", "system", {"merged": 1})
    assert operator.post(f"/v1/runs/{run.pk}/undo", {"reason": "no"}).ok()["restored"] == 2
    # Someone took it apart, so it stays apart.
    look("/")
    assert operator.topic(older)["merged_into"] is None


def test_the_automatic_mode_leaves_alone_what_differs(agent: Caller, operator: Caller):
    policy_put(operator, duplicates_mode="auto")
    for value in ("Monday", "Tuesday"):
        agent.remember("Dentist", fields=[{"name": "day", "value": value}])
    assert look() == 1
    assert (only_pair()["state"], only_pair()["held"]) == ("open", True)


def test_an_unusual_threshold_is_accepted_and_said(agent: Caller, operator: Caller):
    assert duplicate_settings("/")["warning"] == ""
    policy_put(operator, duplicate_threshold=0.8)
    assert "0.8" in duplicate_settings("/")["warning"]
    policy_put(operator, duplicate_threshold=0.97)
    assert "0.97" in duplicate_settings("/")["warning"]


def test_the_number_of_statements_does_not_grow_with_the_topics(agent: Caller, operator: Caller):
    counts = []
    for number in (5, 30):
        items = [{"placement": "new_topic", "title": f"quay {number} {place // 2}"} for place in range(2 * number)]
        operator.post("/v1/ingest/batch", items).ok()
        with CaptureQueriesContext(connection) as seen:
            assert look() == number
        counts.append(len(seen))
    assert counts[0] == counts[1]


@pytest.mark.meaning
def test_near_duplicates_are_offered_and_look_alikes_held(agent: Caller, operator: Caller):
    policy_put(operator, duplicates_mode="auto")
    facts(
        agent,
        "Anna prefers oat milk in her coffee",
        "Anna prefers oat-milk in her coffee!",
        "anna prefers oat milk in her coffee.",
        "The dentist appointment is on Monday at 9 am",
        "The dentist appointment is on Tuesday at 9 am",
        "Bob does not eat fish",
        "Bob eats fish",
        "The harbor opens at six",
    )
    look()
    merged = pairs(PairFilter(state="merged"))
    assert [{each["newer"]["title"], each["older"]["title"]} for each in merged] == [
        {"Anna prefers oat milk in her coffee", "anna prefers oat milk in her coffee."}
    ]
    assert all(each["held"] for each in pairs(PairFilter(state="open")))
    assert {"date", "negation"} <= {row["sort"] for each in DuplicatePair.objects.all() for row in each.differences}


@pytest.mark.meaning
def test_one_subject_with_another_value_may_supersede(agent: Caller):
    facts(
        agent,
        "We use MySQL for the orders service",
        "The orders service now runs on PostgreSQL 17",
        "Cats sleep for most of the day",
        "Anna lives in Oslo",
        "Anna prefers oat milk",
        "Anna moved to Bergen",
    )
    look()
    found = pairs(PairFilter(verdict="supersedes"))
    assert all(each["held"] for each in found)
    assert {(each["older"]["title"], each["newer"]["title"]) for each in found} == {
        ("We use MySQL for the orders service", "The orders service now runs on PostgreSQL 17"),
        ("Anna lives in Oslo", "Anna moved to Bergen"),
    }


@pytest.mark.meaning
def test_entries_of_one_log_are_two_events(agent: Caller):
    for place, number, hour in (("Oslo", 14, 8), ("Bergen", 3, 17), ("Rome", 25, 12)):
        agent.remember(
            f"Weather report from {place}: {number} degrees, {number * 3} percent humidity at {hour} o'clock"
        )
    look()
    assert pairs() == []


@pytest.mark.meaning
def test_new_texts_are_reported_from_what_is_known(agent: Caller):
    (coffee,) = facts(agent, "Anna prefers oat milk in her coffee", scope="/user/alice")
    agent.remember("Fact", scope="/user/alice", fields=[{"name": "fact", "value": "The harbor opens at 6 am"}])
    got = near_duplicates(
        ["anna prefers oat milk in her coffee!", "Anna prefers soy milk in her coffee", "The harbor opens at 7 am"],
        scope="/user/alice",
        kind="",
        principal=SYSTEM,
    )
    assert got == [uuid.UUID(coffee), None, None]
    assert near_duplicates(["x"], scope="/nowhere", kind="", principal=SYSTEM) == [None]


def test_the_warning_is_reported_where_a_policy_is_saved_and_shown(operator: Caller):
    got = policy_put(operator, duplicate_threshold=0.8)
    assert "0.8" in got["warnings"][0]
    assert operator.get("/v1/policies/").ok()["warnings"] == got["warnings"]
    assert policy_put(operator, duplicate_threshold=0.8, duplicates_mode="off")["warnings"] == []
    assert operator.put("/v1/policies/", {"values": {"duplicate_threshold": 0.2}, "reason": "x"}).status == 422
