"""Each strategy exists as Python and as SQL; here they are compared, many generated topics per statement."""

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from memory.core.policy_values import STRATEGIES
from memory.formulas.salience import SECONDS_PER_DAY
from memory.formulas.strategies import (
    KIND_WEIGHTS,
    TopicUsage,
    active_boost,
    active_factor,
    archive_due,
    archive_gate,
    idle_seconds,
    ranking_factor,
    score,
)
from memory.models.formulas_sql import (
    active_boost_sql,
    active_factor_sql,
    archive_gate_sql,
    idle_sql,
    ranking_factor_sql,
    score_sql,
)
from tests.generated import examples

pytestmark = pytest.mark.django_db

ROUNDS = examples(40)

saliences = st.one_of(
    st.just(0.0), st.just(10.0), st.floats(0, 1000), st.floats(0, 1e-300), st.floats(1e-25, 1e-15), st.floats(0.01, 10)
)
half_lives = st.one_of(st.floats(86.4, 3.2e9), st.sampled_from([30.0, 90.0, 180.0, 365.0]).map(lambda d: d * 86_400))
# From the year 1 to the year 9999, around now, and so close to each other that gates are met exactly.
moments = st.builds(
    lambda microseconds: dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=microseconds),
    st.one_of(
        st.integers(-62_135_500_000_000_000, 253_402_200_000_000_000),
        st.integers(1_735_000_000_000_000, 1_799_000_000_000_000),
        st.integers(20_000, 20_200).map(lambda days: days * 86_400_000_000),
    ),
)
kinds = st.one_of(
    st.sampled_from([*KIND_WEIGHTS, "", "identity", "active_decision", "Decision", "o'clock"]),
    st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=10),
)
counts = st.one_of(st.integers(0, 30), st.integers(0, 2**31 - 1))
# salience, reinforced_at, created_at, last_retrieved_at, retrieval_count, kind, pinned, now
topics = st.lists(
    st.tuples(saliences, moments, moments, st.one_of(st.none(), moments), counts, kinds, st.booleans(), moments),
    min_size=1,
    max_size=50,
)
Row = tuple[float, dt.datetime, dt.datetime, dt.datetime | None, int, str, bool, dt.datetime]

_FROM = """
FROM unnest(%s::float8[], %s::timestamptz[], %s::timestamptz[], %s::timestamptz[], %s::int[], %s::text[], %s::bool[],
            %s::timestamptz[])
     WITH ORDINALITY AS v (salience, reinforced_at, created_at, last_retrieved_at, retrieval_count, kind, pinned, now,
                           place)
ORDER BY place
"""


def ask(expression: str, rows: Sequence[Row]) -> list[Any]:
    """Return the value of ``expression``, made for the alias ``v``, for each row."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {expression} {_FROM}", [list(column) for column in zip(*rows, strict=True)])
        return [row[0] for row in cursor.fetchall()]


def presence(row: Row) -> TopicUsage:
    salience, reinforced_at, created_at, last_retrieved_at, count, kind, _pinned, _now = row
    return TopicUsage(
        salience=salience,
        reinforced_at=reinforced_at.timestamp(),
        created_at=created_at.timestamp(),
        last_retrieved_at=None if last_retrieved_at is None else last_retrieved_at.timestamp(),
        retrieval_count=count,
        kind=kind,
    )


def same(one: float, other: float, *, scale: float = 0.0) -> bool:
    """Equal but for the last digits; ``scale`` is the size of what was added up on the way."""
    return one == other or math.isclose(one, other, rel_tol=1e-12, abs_tol=max(1e-300, 1e-14 * scale))


@pytest.mark.parametrize("strategy", STRATEGIES)
@ROUNDS
@given(topics, half_lives, half_lives)
def test_the_score_is_the_same_in_both(strategy: str, rows: list[Row], half_life: float, active: float) -> None:
    found = ask(score_sql(strategy, row="v", now="v.now", half_life=half_life, active_half_life=active), rows)
    for row, there in zip(rows, found, strict=True):
        now = row[-1].timestamp()
        here = score(presence(row), strategy=strategy, half_life=half_life, active_half_life=active, now=now)
        assert same(here, there, scale=1 if strategy == "active_forgetting" else 0), (row, here, there)


def test_a_score_that_only_differs_in_size_is_reported_apart() -> None:
    # What the comparison above would let through: nothing that is a hair away.
    assert not same(0.05, 0.05 * (1 + 1e-11))
    assert not same(1e-13, 2e-13)


@pytest.mark.parametrize("strategy", STRATEGIES)
@ROUNDS
@given(topics, st.one_of(st.just(0.0), st.sampled_from([1.0, 30.0, 90.0]).map(lambda d: d * 86_400), half_lives))
def test_the_gate_before_archiving_is_the_same_in_both(strategy: str, rows: list[Row], prune_after: float) -> None:
    # Beside what was drawn, topics that are used exactly so long ago, and a microsecond more or less.
    exact = [
        (row[0], at, at, None, *row[4:7], now)
        for row in rows
        for at in [dt.datetime(2026, 1, 1, tzinfo=dt.UTC)]
        for now in [at + dt.timedelta(seconds=prune_after, microseconds=off) for off in (-1, 0, 1)]
    ]
    found = ask(archive_gate_sql(strategy, row="v", now="v.now", prune_after=prune_after), [*rows, *exact])
    for row, there in zip([*rows, *exact], found, strict=True):
        now = row[-1].timestamp()
        assert archive_gate(presence(row), strategy=strategy, prune_after=prune_after, now=now) == there, row


@ROUNDS
@given(topics, half_lives)
def test_idleness_and_the_factor_of_active_forgetting_are_the_same_in_both(rows: list[Row], active: float) -> None:
    factors = ask(active_factor_sql("v", now="v.now", active_half_life=active), rows)
    for row, idle, boost, factor in zip(
        rows, ask(idle_sql("v", "v.now"), rows), ask(active_boost_sql("v"), rows), factors, strict=True
    ):
        now = row[-1].timestamp()
        assert idle_seconds(presence(row), now=now) == idle >= 0
        assert same(active_boost(row[4]), boost)
        here = active_factor(presence(row), active_half_life=active, now=now)
        assert same(here, factor), row
        assert 0.1 <= here <= 1


@pytest.mark.parametrize("decay", ["off", "active_forgetting", "half_life"])
@ROUNDS
@given(topics, half_lives, half_lives)
def test_the_decay_of_ranks_is_the_same_in_both(decay: str, rows: list[Row], half_life: float, active: float) -> None:
    found = ask(ranking_factor_sql(decay, row="v", now="v.now", half_life=half_life, active_half_life=active), rows)
    for row, there in zip(rows, found, strict=True):
        here = ranking_factor(
            presence(row),
            ranking_decay=decay,
            half_life=half_life,
            active_half_life=active,
            pinned=row[6],
            now=row[-1].timestamp(),
        )
        assert same(here, there), row
        assert 0.1 <= here <= 1
        assert here == 1 or not row[6]


@ROUNDS
@given(topics, half_lives, half_lives, st.floats(0, 1000), half_lives)
def test_what_is_due_is_below_the_threshold_and_past_the_gate(
    rows: list[Row], half_life: float, active: float, theta: float, prune_after: float
) -> None:
    for row in rows:
        now = row[-1].timestamp()
        for strategy in STRATEGIES:
            numbers: dict[str, Any] = {"half_life": half_life, "active_half_life": active, "now": now}
            due = archive_due(presence(row), strategy=strategy, theta=theta, prune_after=prune_after, **numbers)
            below = score(presence(row), strategy=strategy, **numbers) < theta
            assert due == (below and archive_gate(presence(row), strategy=strategy, prune_after=prune_after, now=now))


def test_the_half_life_a_row_was_written_with_plays_no_part() -> None:
    # A draft is tried on rows that carry the half-life of the policy in force.
    written = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    row: Row = (1.0, written, written, None, 0, "", False, written + dt.timedelta(days=10))
    expression = score_sql(
        "half_life", row="v", now="v.now", half_life=10 * SECONDS_PER_DAY, active_half_life=SECONDS_PER_DAY
    )
    assert ask(expression, [row]) == [pytest.approx(0.5, rel=1e-12)]
    assert "v.half_life" not in expression
