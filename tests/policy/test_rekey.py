"""A change of half-life reaches every row below its scope: all of them, only them, and from where it stopped."""

import datetime as dt
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.core.policy_values import NO_DECAY_SECONDS
from memory.formulas.salience import fade_before, fade_key, salience_effective
from memory.models import Field, Rekeying, Vitality
from memory.models.formulas_sql import salience_effective_sql
from memory.policy import rekey
from memory.policy.effective import policies_current
from memory.policy.rekey import half_lives_rekey, half_lives_stray_check
from tests.cast import Caller
from tests.policy.shop import NOW, saved

pytestmark = pytest.mark.django_db
DAY = 86_400.0


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rekey, "TOPICS_PER_BATCH", 3)


def rekeyed() -> int:
    return half_lives_rekey(now=NOW, budget_seconds=60)


def rows(model: Any) -> dict[Any, dict[str, Any]]:
    return {row.pop("scope_id" if model is Field else "topic_id"): row for row in model.objects.values()}


def half_lives(of: Any = Vitality) -> dict[str, set[float]]:
    path = "scope__path" if of is Vitality else "topic__scope__path"
    found: dict[str, set[float]] = {}
    for scope, half_life in of.objects.values_list(path, "half_life"):
        found.setdefault(scope, set()).add(half_life / DAY)
    return found


@pytest.fixture
def topics(agent: Caller, operator: Caller) -> dict[str, list[str]]:
    made = {
        scope: [agent.remember(f"T {n}", scope=scope, values={"a": "1", "b": "2"}, salience=n + 0.5) for n in range(4)]
        for scope in ("/user/alice", "/user/bob", "/project")
    }
    operator.post(f"/v1/topics/{made['/user/alice'][0]}/archive").ok()
    operator.post(f"/v1/topics/{made['/user/alice'][1]}/pin").ok()
    return made


def assert_formula() -> None:
    """Each row has the half-life in force and the fade key of it, to the last bit that the formula has."""
    policies = policies_current()
    for model, scope in ((Vitality, lambda row: row.scope.path), (Field, lambda row: row.topic.scope.path)):
        for row in model.objects.all():
            wanted = policies.knobs(scope(row)).half_life
            fade = fade_key(row.salience, reinforced_at=row.reinforced_at.timestamp(), half_life=wanted)
            assert row.half_life == wanted
            assert row.fade == row.fade_floor
            assert row.fade == fade or math.isclose(row.fade, fade, rel_tol=1e-12, abs_tol=1e-3)


def test_every_row_below_the_scope_gets_the_half_life_in_force_whatever_its_rung(topics: dict[str, list[str]]):
    kept = list(
        Vitality.objects.order_by("pk").values("salience", "reinforced_at", "retrieval_count", "rung", "pinned")
    )
    project = list(Vitality.objects.filter(scope__path="/project").order_by("pk").values())
    saved("/user", half_life_days=10)
    saved("/user/bob", half_life_days=5)
    assert rekeyed() == 4 + 4 + 4
    for model in (Vitality, Field):
        assert half_lives(model) == {"/user/alice": {10}, "/user/bob": {5}, "/project": {30}}
    assert_formula()
    assert kept == list(
        Vitality.objects.order_by("pk").values("salience", "reinforced_at", "retrieval_count", "rung", "pinned")
    )
    assert project == list(Vitality.objects.filter(scope__path="/project").order_by("pk").values())
    assert rekeyed() == 0
    assert not policies_current().rekeying


def test_progress_is_reported_and_a_turn_that_ends_early_is_taken_up_where_it_stopped(topics: dict[str, list[str]]):
    saved(half_life_days=10)
    seen = []
    while half_lives_rekey(now=NOW, budget_seconds=0):
        work = Rekeying.objects.get()
        seen.append((work.done, work.total, work.finished_at is not None))
        touched = Vitality.objects.filter(half_life=10 * DAY).count()
        assert touched == work.done
    # The twelve topics fill four batches; the fifth finds that there is no more.
    assert seen == [(3, 12, False), (6, 12, False), (9, 12, False), (12, 12, False)]
    assert Rekeying.objects.get().finished_at == NOW
    assert_formula()


def test_a_kill_in_the_middle_of_a_batch_leaves_that_batch_to_the_next_turn(
    topics: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
):
    saved(half_life_days=10)
    assert half_lives_rekey(now=NOW, budget_seconds=0) == 3

    class Killed(BaseException):
        pass

    def kill(*_args: Any, **_named: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Rekeying, "save", kill)
        with pytest.raises(Killed):
            half_lives_rekey(now=NOW, budget_seconds=60)
    assert Vitality.objects.filter(half_life=10 * DAY).count() == 3
    assert Rekeying.objects.get().done == 3
    assert rekeyed() == 9
    assert_formula()


def test_a_second_change_while_the_first_is_under_way_takes_its_place(topics: dict[str, list[str]]):
    saved(half_life_days=10)
    half_lives_rekey(now=NOW, budget_seconds=0)
    saved(half_life_days=20)
    assert policies_current().rekeying == ("/", "/")
    rekeyed()
    assert not Rekeying.objects.filter(finished_at=None).exists()
    assert set().union(*half_lives().values()) == {20}
    assert_formula()


def test_rows_that_have_the_half_life_already_are_not_written_again(topics: dict[str, list[str]]):
    before = list(Vitality.objects.order_by("pk").values_list("pk", "fade_floor"))
    Vitality.objects.update(fade_floor=-1.0)
    Rekeying.objects.create(scope="/", started_at=NOW)
    assert rekeyed() == 12
    assert set(Vitality.objects.values_list("fade_floor", flat=True)) == {-1.0}
    assert len(before) == 12


def test_static_never_decays_and_going_back_finds_every_topic_as_it_would_have_been(topics: dict[str, list[str]]):
    before = {model: list(model.objects.order_by("pk").values()) for model in (Vitality, Field)}
    saved(strategy="static")
    rekeyed()
    assert set(Vitality.objects.values_list("half_life", flat=True)) == {NO_DECAY_SECONDS}
    later = NOW + dt.timedelta(days=365 * 200)
    stored = dict(Vitality.objects.values_list("pk", "salience"))
    for row in Vitality.objects.extra(
        select={"then": salience_effective_sql("memory_vitality", f"'{later}'::timestamptz", skipped="0")}
    ):
        assert row.then == pytest.approx(stored[row.pk], rel=1e-6)
        assert math.isfinite(row.fade)
    assert_formula()
    saved(strategy="half_life")
    rekeyed()
    assert before == {model: list(model.objects.order_by("pk").values()) for model in (Vitality, Field)}


@settings(max_examples=200, deadline=None)
@given(salience=st.floats(1e-12, 1000), theta=st.floats(1e-6, 10), idle=st.floats(0, 3e9))
def test_without_decay_the_fade_key_is_finite_and_compares_as_the_salience_does(
    salience: float, theta: float, idle: float
):
    now = 4e9
    half_life = NO_DECAY_SECONDS
    fade = fade_key(salience, reinforced_at=now - idle, half_life=half_life)
    assert math.isfinite(fade)
    left = salience_effective(salience, reinforced_at=now - idle, half_life=half_life, now=now)
    assert left == pytest.approx(salience, rel=1e-8)
    if abs(math.log2(salience / theta)) > 1e-8:
        assert (fade < fade_before(theta, half_life=half_life, now=now)) == (salience < theta)


def test_a_change_of_anything_else_makes_no_work(topics: dict[str, list[str]]):
    saved(theta_summary=0.5, mode="review", active_half_life_days=90)
    saved(theta_summary=0.5, strategy="relevance")
    # The same half-life, from somewhere else.
    saved("/user", half_life_days=30)
    assert not Rekeying.objects.exists()
    assert rekeyed() == 0


def test_a_scope_that_hides_the_change_from_those_above_it_is_work_all_the_same(topics: dict[str, list[str]]):
    saved("/user/alice", half_life_days=10)
    rekeyed()
    saved(half_life_days=20)
    assert Rekeying.objects.filter(finished_at=None).get().scope == "/"
    rekeyed()
    assert half_lives() == {"/user/alice": {10}, "/user/bob": {20}, "/project": {20}}


def test_the_scopes_that_are_being_rekeyed_are_known_above_and_below(topics: dict[str, list[str]]):
    saved("/user", half_life_days=10)
    policies = policies_current()
    assert policies.rekeying == ("/user",)
    assert [policies.rekeying_touches(path) for path in ("/", "/user", "/user/alice", "/users", "/project")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_a_writer_that_commits_with_an_old_half_life_is_found_and_put_right(topics: dict[str, list[str]]):
    saved(half_life_days=10)
    rekeyed()
    assert half_lives_stray_check(now=NOW) == 0
    late = topics["/user/bob"][:2]
    Vitality.objects.filter(pk__in=late).update(half_life=30 * DAY)
    assert half_lives_stray_check(now=NOW) == 1
    assert policies_current().rekeying == ("/user/bob",)
    assert half_lives_stray_check(now=NOW) == 0
    rekeyed()
    assert_formula()


def test_strays_all_over_the_store_are_one_piece_of_work(topics: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rekey, "MAX_STRAY_SCOPES", 2)
    Vitality.objects.filter(pinned=False).update(half_life=7.0)
    assert half_lives_stray_check(now=NOW) == 1
    assert policies_current().rekeying == ("/",)
    rekeyed()
    assert_formula()
