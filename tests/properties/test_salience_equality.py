"""Each formula of salience exists as Python and as SQL; here they are compared, many generated cases per statement."""

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import given
from hypothesis import strategies as st

from memory.formulas.partition_time import PartitionTime
from memory.formulas.salience import (
    FADE_FLOOR_LAG,
    MAX_HALVINGS,
    SECONDS_PER_DAY,
    fade_before,
    fade_floor_after,
    fade_key,
    salience_effective,
)
from memory.models import Scope
from memory.models.formulas_sql import (
    decay_sql,
    epoch_sql,
    fade_floor_sql,
    fade_key_sql,
    partition_idle_sql,
    salience_effective_sql,
)
from memory.policy.activity import activity_note
from memory.policy.effective import policies_current
from tests.generated import examples

pytestmark = pytest.mark.django_db

ROUNDS = examples(40)

CAP = 10.0
saliences = st.one_of(
    st.just(0.0),
    st.just(CAP),
    st.floats(0, 1000),
    # Everything a double can be, the smallest included: a client may ask for any of it.
    st.floats(0, 1e-300),
    st.floats(1e-25, 1e-15),
    st.floats(0.01, CAP),
)
half_lives = st.one_of(st.floats(86.4, 3.2e9), st.just(30 * SECONDS_PER_DAY), st.floats(86.4, 1000))
moments = st.builds(
    lambda microseconds: dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=microseconds),
    st.one_of(
        # From the year 1 to the year 9999, and around now.
        st.integers(-62_135_500_000_000_000, 253_402_200_000_000_000),
        st.integers(1_735_000_000_000_000, 1_799_000_000_000_000),
    ),
)
cases = st.lists(st.tuples(saliences, moments, half_lives, moments), min_size=1, max_size=50)


def ask(sql: str, *columns: Sequence[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, [list(column) for column in columns])
        return [row[0] for row in cursor.fetchall()]


def same(one: float, other: float, *, scale: float = 0.0) -> bool:
    """Equal but for the last digits; ``scale`` is the size of what was added up on the way."""
    return one == other or math.isclose(one, other, rel_tol=1e-12, abs_tol=max(1e-300, 1e-13 * scale))


@ROUNDS
@given(cases)
def test_the_effective_salience_is_the_same_in_both(rows: list[tuple[float, dt.datetime, float, dt.datetime]]) -> None:
    found = ask(
        f"""SELECT {salience_effective_sql("v", "v.now", skipped="0")}
            FROM unnest(%s::float8[], %s::timestamptz[], %s::float8[], %s::timestamptz[])
                 WITH ORDINALITY AS v (salience, reinforced_at, half_life, now, place) ORDER BY place""",
        *zip(*rows, strict=True),
    )
    for (salience, at, half_life, now), there in zip(rows, found, strict=True):
        here = salience_effective(salience, reinforced_at=at.timestamp(), half_life=half_life, now=now.timestamp())
        assert same(here, there), (salience, at, half_life, now)
        assert 0 <= here <= salience


@ROUNDS
@given(st.lists(st.tuples(st.integers(-(10**18), 10**18).map(lambda n: n / 1e6), half_lives), min_size=1, max_size=50))
def test_decay_is_the_same_in_both(rows: list[tuple[float, float]]) -> None:
    found = ask(
        f"""SELECT {decay_sql("v.seconds", "v.half_life")} FROM unnest(%s::float8[], %s::float8[])
            WITH ORDINALITY AS v (seconds, half_life, place) ORDER BY place""",
        *zip(*rows, strict=True),
    )
    for (seconds, half_life), there in zip(rows, found, strict=True):
        assert same(salience_effective(1.0, reinforced_at=0, half_life=half_life, now=seconds), there)
        assert 2**-MAX_HALVINGS <= there <= 1


@ROUNDS
@given(cases)
def test_the_fade_key_is_the_same_in_both(rows: list[tuple[float, dt.datetime, float, dt.datetime]]) -> None:
    found = ask(
        f"""SELECT {fade_key_sql("v.salience", counted=epoch_sql("v.reinforced_at"), half_life="v.half_life")}
            FROM unnest(%s::float8[], %s::timestamptz[], %s::float8[], %s::timestamptz[])
                 WITH ORDINALITY AS v (salience, reinforced_at, half_life, now, place) ORDER BY place""",
        *zip(*rows, strict=True),
    )
    for (salience, at, half_life, _now), there in zip(rows, found, strict=True):
        here = fade_key(salience, reinforced_at=at.timestamp(), half_life=half_life)
        assert same(here, there, scale=abs(at.timestamp()) + 1100 * half_life), (salience, at, half_life)


fades = st.one_of(st.just(-math.inf), st.floats(-1e11, 1e11), st.floats(1.7e9, 1.8e9))


@ROUNDS
@given(st.lists(st.tuples(fades, fades, half_lives), min_size=1, max_size=50))
def test_the_fade_floor_is_the_same_in_both_and_lags_a_quarter_of_a_half_life_at_most(
    rows: list[tuple[float, float, float]],
) -> None:
    # Beside what was drawn, floors that lie about as far behind as they may.
    rows = rows + [
        (fade - share * half_life, fade, half_life) for _f, fade, half_life in rows for share in (0.1, 0.249, 0.26)
    ]
    found = ask(
        f"""SELECT {fade_floor_sql("v.floor", fade="v.fade", half_life="v.half_life")}
            FROM unnest(%s::float8[], %s::float8[], %s::float8[])
                 WITH ORDINALITY AS v (floor, fade, half_life, place) ORDER BY place""",
        *zip(*rows, strict=True),
    )
    for (floor, fade, half_life), there in zip(rows, found, strict=True):
        assert fade_floor_after(floor, fade=fade, half_life=half_life) == there, (floor, fade, half_life)
        assert there <= fade
        assert there == fade or fade - there <= FADE_FLOOR_LAG * half_life * (1 + 1e-9)
        assert there in (floor, fade)


@ROUNDS
@given(
    st.lists(
        st.tuples(saliences, moments, half_lives, st.floats(0, 1000), st.floats(1e-6, 1000)), min_size=1, max_size=50
    )
)
def test_a_range_of_the_fade_key_is_what_is_below_a_threshold(
    rows: list[tuple[float, dt.datetime, float, float, float]],
) -> None:
    for salience, at, half_life, halvings, theta in rows:
        then = at.timestamp()
        now = then + halvings * half_life
        effective = salience_effective(salience, reinforced_at=then, half_life=half_life, now=now)
        fade = fade_key(salience, reinforced_at=then, half_life=half_life)
        bound = fade_before(theta, half_life=half_life, now=now)
        # At the boundary itself both are right: the epochs there are known to a fraction of a microsecond.
        blurred = math.isfinite(fade) and abs(fade - bound) <= 1e-12 * (abs(then) + abs(now) + 1100 * half_life)
        assert blurred or (effective < theta) == (fade < bound), (salience, at, half_life, halvings, theta)


@ROUNDS
@given(saliences, moments, half_lives, moments, st.floats(1e-6, 1000))
def test_a_clock_that_runs_behind_makes_nothing_fade_sooner(
    salience: float, at: dt.datetime, half_life: float, now: dt.datetime, theta: float
) -> None:
    then, moment = sorted([at.timestamp(), now.timestamp()], reverse=True)
    assert salience_effective(salience, reinforced_at=then, half_life=half_life, now=moment) == salience_effective(
        salience, reinforced_at=then, half_life=half_life, now=then
    )
    if fade_key(salience, reinforced_at=then, half_life=half_life) < fade_before(
        theta, half_life=half_life, now=moment
    ):
        assert salience < theta * (1 + 1e-6)


@ROUNDS
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 86_399_999_999)), min_size=1, max_size=40), moments)
def test_idle_days_are_those_between_notes_in_python_and_in_the_database(
    visits: list[tuple[bool, int]], asked: dt.datetime
) -> None:
    """Each day has a visit or none; what is noted day by day is what the days without one add up to."""
    first = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    with transaction.atomic():
        scope, _made = Scope.objects.get_or_create(path="/user/mara")
        time, seen = PartitionTime(), []
        for day, (comes, at) in enumerate([(True, 0), *visits]):
            if comes:
                now = first + dt.timedelta(days=day, microseconds=at)
                activity_note(policies_current(), ["/user/mara"], now=now)
                time = time.active_at(now)
                seen.append(day)
        assert policies_current().times == {"/": time}
        known = (asked, first + dt.timedelta(days=len(visits) / 2), first + dt.timedelta(days=len(visits) + 9))
        for moment in known:
            passed = (moment - first).total_seconds() / SECONDS_PER_DAY
            full = sum(min(1.0, passed - day) for day in range(math.ceil(max(0.0, min(passed, 60)))) if day not in seen)
            idle = full + max(0.0, passed - 60)
            assert time.idle(moment.timestamp()) / SECONDS_PER_DAY == pytest.approx(idle, rel=1e-9, abs=1e-6)
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT {partition_idle_sql(str(scope.pk), '%s::timestamptz')}", [moment] * 2)
                assert cursor.fetchone()[0] == pytest.approx(time.idle(moment.timestamp()), rel=1e-12, abs=1e-4)
        transaction.set_rollback(True)


def test_a_half_life_of_thirty_days_halves_after_thirty_days() -> None:
    month = 30 * SECONDS_PER_DAY
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    ages = [0, 15, 30, 60, 90, 300]
    expected = [1.0, 0.5**0.5, 0.5, 0.25, 0.125, 0.5**10]
    found = ask(
        f"""SELECT {salience_effective_sql("v", "v.now", skipped="0")}
            FROM unnest(%s::float8[], %s::timestamptz[], %s::float8[], %s::timestamptz[])
                 WITH ORDINALITY AS v (salience, reinforced_at, half_life, now, place) ORDER BY place""",
        [1.0] * len(ages),
        [start] * len(ages),
        [month] * len(ages),
        [start + dt.timedelta(days=age) for age in ages],
    )
    assert found == pytest.approx(expected, rel=1e-12)
    assert [
        salience_effective(1.0, reinforced_at=0, half_life=month, now=age * SECONDS_PER_DAY) for age in ages
    ] == pytest.approx(expected, rel=1e-12)


def test_a_new_topic_passes_the_default_thresholds_when_its_key_says_so() -> None:
    month = 30 * SECONDS_PER_DAY
    fade = fade_key(1.0, reinforced_at=0.0, half_life=month)
    for theta, days in ((0.25, 60), (0.12, 30 * math.log2(1 / 0.12)), (0.05, 30 * math.log2(20))):
        moment = days * SECONDS_PER_DAY
        assert not fade < fade_before(theta, half_life=month, now=moment - 1)
        assert fade < fade_before(theta, half_life=month, now=moment + 1)
