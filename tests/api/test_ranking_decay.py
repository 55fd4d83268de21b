"""Ranking decay: of two topics that answer a question equally well, the one that is used comes first."""

import datetime as dt
import math
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.models import Vitality
from tests.cast import Caller, Clock, worker_turn

# Where scores are equal the lower id comes first, so that is the old one.
OLD, NEW, OTHER = (f"00000000-0000-7000-8000-00000000000{number}" for number in (1, 2, 3))
DECAYS = ["active_forgetting", "half_life"]


@pytest.fixture(autouse=True)
def store(operator: Caller, clock: Clock) -> None:
    """Two topics of the same text, one a year old and one of now, and something else of last year."""
    now = clock.stop()
    year_ago = (now - dt.timedelta(days=365)).isoformat()
    operator.remember("The xylophone stands in the attic", topic_id=OLD, created_at=year_ago, last_used_at=year_ago)
    operator.remember("Tea at five", topic_id=OTHER, created_at=year_ago, last_used_at=year_ago)
    operator.remember("The xylophone stands in the attic", topic_id=NEW)


def turn(settings: Any, **knobs: Any) -> None:
    settings.MEMSTATE_KNOBS = {**settings.MEMSTATE_KNOBS, **knobs}


def ask(agent: Caller, **asked: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = agent.query("xylophone attic", explain=True, **asked)["candidates"]
    for candidate in found:
        parts = dict(candidate["score_parts"])
        decay = parts.pop("decay")
        assert 0.1 <= decay <= 1
        assert candidate["score"] == pytest.approx(sum(parts.values()) * decay)
    return found


def order(agent: Caller, **asked: Any) -> list[str]:
    """The order of both topics that say the same; the second of them comes after all others."""
    return [candidate["topic_id"] for candidate in ask(agent, **asked) if candidate["topic_id"] != OTHER]


def decay_of(agent: Caller, topic_id: str) -> float:
    (decay,) = [each["score_parts"]["decay"] for each in ask(agent) if each["topic_id"] == topic_id]
    assert isinstance(decay, float)
    return decay


def test_by_default_age_makes_no_difference(agent: Caller) -> None:
    found = ask(agent)
    assert [each["topic_id"] for each in found] == [OLD, OTHER, NEW]
    assert found[0]["also"] == [NEW]
    assert found[0]["score"] == found[2]["score"]
    assert [each["score_parts"]["decay"] for each in found] == [1.0] * 3


@pytest.mark.parametrize("exact_below", [2000, 0])
@pytest.mark.parametrize("decay", DECAYS)
def test_what_was_not_used_for_a_year_comes_after_what_was(
    agent: Caller, settings: Any, decay: str, exact_below: int
) -> None:
    worker_turn()
    turn(settings, ranking_decay=decay, recall_exact_below=exact_below)
    for asked in ({}, {"scope": "/"}, {"kinds": [""]}, {"include_archived": True}):
        assert order(agent, **asked)[:2] == [NEW, OLD]
    assert order(agent, top_k=1) == [NEW]
    assert decay_of(agent, NEW) == 1.0


@pytest.mark.parametrize(
    ("decay", "days", "factor"),
    [
        ("half_life", 30, 0.5),
        ("half_life", 60, 0.25),
        ("half_life", 300, 0.1),
        ("active_forgetting", 90, 0.75),
        ("active_forgetting", 180, 0.5),
        ("active_forgetting", 3000, 0.1),
    ],
)
def test_the_factor_is_that_of_the_chosen_curve(
    agent: Caller, settings: Any, clock: Clock, decay: str, days: float, factor: float
) -> None:
    turn(settings, ranking_decay=decay)
    clock.forward(days=days)
    assert decay_of(agent, NEW) == pytest.approx(factor)


def test_a_half_life_of_its_own_counts(agent: Caller, settings: Any, clock: Clock) -> None:
    clock.forward(days=10)
    turn(settings, ranking_decay="half_life", half_life_days=10)
    assert decay_of(agent, NEW) == pytest.approx(0.5)
    turn(settings, ranking_decay="active_forgetting", active_half_life_days=10)
    assert decay_of(agent, NEW) == pytest.approx(0.5)


def test_under_a_static_policy_ranks_may_decay_although_salience_does_not(
    agent: Caller, settings: Any, clock: Clock
) -> None:
    turn(settings, ranking_decay="half_life", strategy="static")
    clock.forward(days=30)
    assert decay_of(agent, NEW) == pytest.approx(0.5)


@pytest.mark.parametrize("decay", DECAYS)
def test_a_pinned_topic_is_not_moved_down(agent: Caller, settings: Any, clock: Clock, decay: str) -> None:
    agent.post(f"/v1/topics/{OLD}/pin", {}).ok()
    turn(settings, ranking_decay=decay)
    assert order(agent)[:2] == [OLD, NEW]
    assert decay_of(agent, OLD) == 1.0
    clock.forward(days=3000)
    assert decay_of(agent, OLD) == 1.0
    assert decay_of(agent, NEW) == 0.1


@pytest.mark.parametrize("decay", DECAYS)
def test_a_retrieval_makes_it_young_again(agent: Caller, settings: Any, decay: str) -> None:
    turn(settings, ranking_decay=decay)
    assert decay_of(agent, OLD) == 0.1
    worker_turn()
    assert Vitality.objects.get(pk=OLD).retrieval_count == 1
    assert decay_of(agent, OLD) == 1.0
    assert order(agent)[:2] == [OLD, NEW]


def test_use_alone_lifts_the_floor_of_active_forgetting(agent: Caller, settings: Any, clock: Clock) -> None:
    turn(settings, ranking_decay="active_forgetting")
    ask(agent)
    worker_turn()
    clock.forward(days=3650)
    assert decay_of(agent, OLD) == pytest.approx(0.1 + 0.1 * math.log(2))


def test_decay_takes_no_further_statement(agent: Caller, settings: Any) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as caught:
            agent.query("xylophone attic")
        return len(caught)

    statements()
    without = statements()
    turn(settings, ranking_decay="half_life")
    assert statements() == without
