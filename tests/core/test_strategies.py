"""The published examples of the four strategies, value by value."""

import math

import pytest

from memory.core.policy_values import NO_DECAY_SECONDS, STRATEGIES, Knobs
from memory.formulas.salience import SECONDS_PER_DAY
from memory.formulas.strategies import (
    KIND_WEIGHTS,
    TopicUsage,
    active_boost,
    active_factor,
    active_raw,
    archive_due,
    ranking_factor,
    relevance,
    score,
)

MONTH = 30 * SECONDS_PER_DAY
HALF_YEAR = 180 * SECONDS_PER_DAY
NOW = 2_000_000_000.0


def unused(
    *, days: float, salience: float = 1.0, retrievals: int = 0, kind: str = "", age: float | None = None
) -> TopicUsage:
    """A topic that was created ``age`` days ago and last retrieved, if ever, ``days`` ago."""
    then = NOW - days * SECONDS_PER_DAY
    created = then if age is None else NOW - age * SECONDS_PER_DAY
    return TopicUsage(salience, then, created, then if retrievals else None, retrievals, kind)


def judged(presence: TopicUsage, strategy: str, *, now: float = NOW, **numbers: float) -> float:
    return score(presence, strategy=strategy, now=now, **{"half_life": MONTH, "active_half_life": HALF_YEAR, **numbers})


def due(presence: TopicUsage, strategy: str, *, theta: float, prune_after_days: float = 0) -> bool:
    return archive_due(
        presence,
        strategy=strategy,
        theta=theta,
        prune_after=prune_after_days * SECONDS_PER_DAY,
        half_life=MONTH,
        active_half_life=HALF_YEAR,
        now=NOW,
    )


# half_life


@pytest.mark.parametrize(
    ("days", "expected"), [(0, 1.0), (15, 0.5**0.5), (30, 0.5), (60, 0.25), (90, 0.125), (300, 0.5**10)]
)
def test_a_half_life_of_thirty_days_halves_every_thirty_days(days: float, expected: float) -> None:
    assert judged(unused(days=days), "half_life") == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("days", "archived"), [(29, False), (30, True), (31, True)])
def test_half_life_archives_below_the_threshold_after_thirty_days_without_use(days: float, archived: bool) -> None:
    # So faint that only the days count.
    assert due(unused(days=days, salience=0.01), "half_life", theta=0.05, prune_after_days=30) == archived


def test_half_life_archives_nothing_above_the_threshold_however_long_it_was_unused() -> None:
    # 1.0 passes 0.05 after 30 * log2(20) = 129.7 days.
    assert not due(unused(days=129), "half_life", theta=0.05, prune_after_days=30)
    assert due(unused(days=130), "half_life", theta=0.05, prune_after_days=30)


# static


@pytest.mark.parametrize("days", [0, 1, 3650])
def test_static_never_decays_and_archives_by_the_stored_salience_alone(days: float) -> None:
    assert judged(unused(days=days, salience=0.04), "static") == 0.04
    assert due(unused(days=days, salience=0.04), "static", theta=0.05)
    assert not due(unused(days=days, salience=0.05), "static", theta=0.05)


# active_forgetting


@pytest.mark.parametrize(("retrievals", "boost"), [(0, 0.0), (1, 0.0693), (5, 0.1792), (10, 0.2398), (19, 0.2996)])
def test_the_boost_grows_with_the_logarithm_of_use(retrievals: int, boost: float) -> None:
    assert active_boost(retrievals) == pytest.approx(boost, abs=5e-5)


@pytest.mark.parametrize("retrievals", [20, 100, 2**31 - 1])
def test_the_boost_is_at_most_three_tenths(retrievals: int) -> None:
    assert active_boost(retrievals) == 0.3


def test_five_retrievals_give_a_boost_of_about_eighteen_hundredths() -> None:
    assert round(active_boost(5), 2) == 0.18


@pytest.mark.parametrize(
    ("half_life_days", "days", "factor"),
    [
        (180, 0, 1.0),
        (180, 90, 0.75),
        (180, 180, 0.5),
        (180, 324, 0.1),
        (180, 3600, 0.1),
        (90, 45, 0.75),
        (90, 90, 0.5),
        (90, 180, 0.1),
        (365, 365, 0.5),
        (365, 657, 0.1),
    ],
)
def test_the_factor_falls_to_one_half_after_a_half_life_and_to_a_tenth_at_last(
    half_life_days: float, days: float, factor: float
) -> None:
    found = active_factor(unused(days=days), active_half_life=half_life_days * SECONDS_PER_DAY, now=NOW)
    assert found == pytest.approx(factor, rel=1e-9)


def test_the_factor_is_at_most_one_and_use_lifts_the_floor() -> None:
    assert active_factor(unused(days=1, retrievals=50), active_half_life=HALF_YEAR, now=NOW) == 1.0
    assert active_factor(unused(days=9999, retrievals=5), active_half_life=HALF_YEAR, now=NOW) == pytest.approx(
        0.1 + 0.1 * math.log(6)
    )


def test_the_score_has_no_floor_so_that_the_threshold_of_a_tenth_can_be_passed() -> None:
    old = unused(days=360)
    assert active_factor(old, active_half_life=HALF_YEAR, now=NOW) == 0.1
    assert active_raw(old, active_half_life=HALF_YEAR, now=NOW) == pytest.approx(0.0, abs=1e-12)
    assert due(old, "active_forgetting", theta=0.1)
    # 1 - 323/360 is above a tenth, 1 - 325/360 is not.
    assert not due(unused(days=323), "active_forgetting", theta=0.1)
    assert due(unused(days=325), "active_forgetting", theta=0.1)


def test_age_counts_from_the_last_retrieval_and_else_from_creation() -> None:
    seen_lately = unused(days=10, retrievals=1, age=1000)
    never_seen = TopicUsage(1.0, NOW, NOW - 360 * SECONDS_PER_DAY)
    assert judged(seen_lately, "active_forgetting") == 1.0
    assert judged(never_seen, "active_forgetting") == pytest.approx(0.0, abs=1e-12)


def test_more_use_keeps_a_topic_longer_before_active_forgetting_archives_it() -> None:
    assert due(unused(days=330), "active_forgetting", theta=0.1)
    assert not due(unused(days=330, retrievals=5), "active_forgetting", theta=0.1)
    # 0.3 more, the most that use can give, is 108 days at a half-life of 180.
    assert not due(unused(days=431, retrievals=10_000), "active_forgetting", theta=0.1)
    assert due(unused(days=433, retrievals=10_000), "active_forgetting", theta=0.1)


# relevance


@pytest.mark.parametrize(
    ("kind", "age", "idle", "retrievals", "expected"),
    [
        # A new decision that was never retrieved: 0.3 + 0 + 0.2 + 0.2.
        ("decision", 0, 0, 0, 0.7),
        # A month old, used five times, a week ago: 0.15 + 0.15 + 0.1 + 0.14.
        ("finding", 30, 7, 5, 0.54),
        # Used more often than counts: 0.15 + 0.3 + 0.1 + 0.2.
        ("decision", 30, 7, 25, 0.75),
        # An old output of a tool: 0.3/13 + 0 + 0.2/(1 + 360/7) + 0.06.
        ("tool_output", 360, 360, 0, 0.3 / 13 + 0.2 / (1 + 360 / 7) + 0.06),
        ("preference", 0, 0, 0, 0.66),
        ("gotcha", 0, 0, 0, 0.68),
        ("observation", 0, 0, 0, 0.6),
        ("something else", 0, 0, 0, 0.6),
        ("", 0, 0, 10, 0.9),
    ],
)
def test_relevance_adds_youth_use_recency_and_kind(
    kind: str, age: float, idle: float, retrievals: int, expected: float
) -> None:
    assert relevance(unused(days=idle, retrievals=retrievals, kind=kind, age=age), now=NOW) == pytest.approx(expected)


def test_the_weights_of_kinds_are_the_published_ones() -> None:
    assert KIND_WEIGHTS == {
        "decision": 1.0,
        "gotcha": 0.9,
        "preference": 0.8,
        "finding": 0.7,
        "observation": 0.5,
        "tool_output": 0.3,
    }


@pytest.mark.parametrize(("days", "archived"), [(89, False), (90, False), (90.001, True)])
def test_relevance_archives_after_more_than_ninety_days_idle(days: float, archived: bool) -> None:
    faint = unused(days=days, kind="tool_output")
    assert relevance(faint, now=NOW) < 0.2
    assert due(faint, "relevance", theta=0.2, prune_after_days=90) == archived


def test_relevance_keeps_a_decision_for_good() -> None:
    # Its kind alone is worth 0.2, which is not below the threshold.
    assert not due(unused(days=100_000, kind="decision"), "relevance", theta=0.2, prune_after_days=90)


# All of them


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_clock_that_runs_behind_makes_nothing_older(strategy: str) -> None:
    topic = unused(days=0)
    assert judged(topic, strategy, now=NOW - 1e6) == judged(topic, strategy, now=NOW)


def test_each_strategy_that_can_be_set_has_a_formula_and_others_are_refused() -> None:
    topic = unused(days=1)
    assert len({judged(topic, strategy) for strategy in STRATEGIES}) >= 3
    with pytest.raises(ValueError, match="Strategy 'none'"):
        judged(topic, "none")
    with pytest.raises(ValueError, match="Strategy 'none'"):
        due(unused(days=1, salience=-1), "none", theta=1)


# Ranking decay


def factor(topic: TopicUsage, decay: str, *, pinned: bool = False, half_life: float = MONTH) -> float:
    return ranking_factor(
        topic, ranking_decay=decay, half_life=half_life, active_half_life=HALF_YEAR, now=NOW, pinned=pinned
    )


def test_ranks_decay_by_the_chosen_curve_and_never_below_a_tenth() -> None:
    assert factor(unused(days=365), "off") == 1.0
    assert factor(unused(days=30), "half_life") == pytest.approx(0.5)
    assert factor(unused(days=60), "half_life") == pytest.approx(0.25)
    assert factor(unused(days=365), "half_life") == 0.1
    assert factor(unused(days=180), "active_forgetting") == pytest.approx(0.5)
    assert factor(unused(days=9999), "active_forgetting") == 0.1
    with pytest.raises(ValueError, match="Ranking decay"):
        factor(unused(days=1), "linear")


@pytest.mark.parametrize("decay", ["off", "active_forgetting", "half_life"])
def test_the_rank_of_a_pinned_topic_is_not_multiplied(decay: str) -> None:
    assert factor(unused(days=9999), decay, pinned=True) == 1.0


def test_a_static_policy_has_a_half_life_that_takes_nothing_away() -> None:
    assert Knobs(strategy="static").half_life == NO_DECAY_SECONDS
    assert judged(unused(days=36_500), "half_life", half_life=NO_DECAY_SECONDS) == pytest.approx(1.0, abs=1e-8)
