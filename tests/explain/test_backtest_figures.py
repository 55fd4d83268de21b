"""POST /v1/policies/backtest: its figures on a past that can be counted by hand, and what it refuses."""

import datetime as dt
from typing import Any

import pytest

from memory.models import ForgetRun
from tests.cast import Caller, Cast, Clock, store_rows
from tests.explain.past import BEGIN, folded, policy_set

pytestmark = pytest.mark.django_db
FREE = {"topic_count_soft_limit": 0}


def got(caller: Caller, *, start: float, end: float, **members: Any) -> Any:
    """Backtest from one day after ``BEGIN`` to another."""
    window = {name: (BEGIN + dt.timedelta(days=day)).isoformat() for name, day in (("start", start), ("end", end))}
    return caller.post("/v1/policies/backtest", {**window, **members}).ok()


@pytest.fixture
def past(cast: Cast, clock: Clock) -> dict[str, str]:
    """Ten topics of the first day; nothing is archived, and on day 50 a query returns two of them, on day 60 one is
    looked up, on day 70 one is restored, which is undone."""
    clock.set(BEGIN)
    topics = {name: cast.agent.remember(name) for name in "abcdefghij"}
    clock.set(BEGIN + dt.timedelta(days=50))
    assert set(cast.agent.found("", topic_ids=[topics["a"], topics["b"]], stages=["structural"])) == {
        topics["a"],
        topics["b"],
    }
    folded(clock.now)
    clock.set(BEGIN + dt.timedelta(days=60))
    cast.reader.topic(topics["c"])
    clock.set(BEGIN + dt.timedelta(days=70))
    for verb in ("archive", "restore"):
        clock.forward(minutes=1)
        cast.operator.post(f"/v1/topics/{topics['d']}/{verb}", {"reason": "a slip"}).ok()
    for run in ForgetRun.objects.order_by("-created_at"):
        cast.operator.post(f"/v1/runs/{run.pk}/undo", {"reason": "a slip"}).ok()
    clock.set(BEGIN + dt.timedelta(days=100))
    return topics


def test_the_figures_are_those_counted_by_hand(cast: Cast, past: dict[str, str]):
    # Salience 1 falls below 0.5 after the half-life of ten days; runs are on whole days, so on day 11.
    draft = {
        **FREE,
        "half_life_days": 10,
        "forget_salience_threshold": 0.5,
        "theta_summary": 0.5,
        "theta_detach": 0.5,
        "prune_after_days": 0,
    }
    before = store_rows()
    found = got(cast.operator, start=0, end=100, values=draft)
    assert store_rows() == before
    assert (found["topics"], found["runs"], found["retrievals"]) == (10, 100, 1)
    assert found["draft"] == {
        "archived": 10,
        "used_afterwards": 3,
        "missed_retrievals": 1,
        "saved": pytest.approx(89 / 100),
    }
    assert found["no_forgetting"] == {"archived": 0, "used_afterwards": 0, "missed_retrievals": 0, "saved": 0}
    # All are archived on one day, so the lot can only take the same.
    assert found["by_lot"] == found["draft"]
    assert found["archived_share"] == 1
    needed = {each["topic_id"]: (each["title"], each["uses"], each["query"], each["at"]) for each in found["needed"]}
    asked, looked_up = ((BEGIN + dt.timedelta(days=day)).isoformat() for day in (50, 60))
    assert needed == {
        past["a"]: ("a", 1, "", asked),
        past["b"]: ("b", 1, "", asked),
        past["c"]: ("c", 1, "", looked_up),
    }
    assert [day["archived"] for day in found["days"]] == [0] * 11 + [10] * 89
    assert [at for at, day in enumerate(found["days"]) if day["missed"]] == [50]
    assert found["sentence"].startswith(
        "Of 10 memories it would have archived 10 (100%), of which 3 were used afterwards; 1 of 1 recalls"
    )


def test_use_before_the_start_counts_as_use(cast: Cast, past: dict[str, str]):
    draft = {
        **FREE,
        "half_life_days": 30,
        "forget_salience_threshold": 0.3,
        "theta_summary": 0.3,
        "theta_detach": 0.3,
        "prune_after_days": 0,
    }
    # At day 55 the two that were retrieved stand at 0.36 and the others at 0.28.
    assert got(cast.operator, start=55, end=56, values=draft)["draft"]["archived"] == 8


def test_the_policy_in_force_is_replayed_when_nothing_is_drafted(cast: Cast, past: dict[str, str]):
    window = {"start": 0, "end": 100}
    assert got(cast.operator, **window)["draft"]["archived"] == 0
    policy_set(**FREE, prune_after_days=0, half_life_days=5)
    in_force = got(cast.operator, **window)
    assert in_force["draft"]["archived"] == 10
    drafted = got(cast.operator, **window, values={**FREE, "prune_after_days": 0, "half_life_days": 5})
    assert drafted == in_force
    assert got(cast.operator, **window, preset="memstate")["draft"]["archived"] == 0


def test_the_lot_misses_more_than_a_policy_that_spares_what_is_used(cast: Cast, clock: Clock):
    clock.set(BEGIN)
    used, *_others = (cast.agent.remember(f"topic {number}") for number in range(20))
    for day in range(1, 60):
        clock.set(BEGIN + dt.timedelta(days=day, hours=12))
        cast.agent.query("", topic_ids=[used], stages=["structural"])
        folded(clock.now)
    draft = {**FREE, "half_life_days": 5, "prune_after_days": 0}
    found = got(cast.operator, start=0, end=59, values=draft)
    assert (found["draft"]["archived"], found["draft"]["missed_retrievals"]) == (19, 0)
    assert found["by_lot"]["archived"] == 19
    # Of the five draws nearly all take the one that is used.
    assert found["by_lot"]["used_afterwards"] > 0.5
    assert found == got(cast.operator, start=0, end=59, values=draft)
    assert sum(day["missed_by_lot"] for day in found["days"]) == pytest.approx(found["by_lot"]["missed_retrievals"])


def test_an_end_that_lies_ahead_is_now(cast: Cast, clock: Clock, past: dict[str, str]):
    found = got(cast.operator, start=90, end=500)
    assert dt.datetime.fromisoformat(found["end"]) == clock.now
    assert found["runs"] == 10


def test_an_empty_store_has_an_empty_backtest(cast: Cast, clock: Clock):
    clock.set(BEGIN + dt.timedelta(days=10))
    found = got(cast.operator, start=0, end=10)
    assert (found["topics"], found["draft"]["saved"]) == (0, 0)
    assert found["sentence"] == "This scope had no memories in this period."


@pytest.mark.parametrize(
    ("members", "what"),
    [
        ({"end": "2025-12-31T00:00:00Z"}, "invalid-period"),
        ({"start": "2030-01-01T00:00:00Z", "end": "2030-02-01T00:00:00Z"}, "invalid-period"),
        ({"step_days": 0.01}, "invalid-period"),
        ({"values": {"half_life_days": -1}}, "invalid-policy"),
        ({"values": {"theta_summary": 0.01, "theta_detach": 0.02}}, "invalid-policy"),
        ({"preset": "none of them"}, "invalid-policy"),
        ({"start": "2026-01-01T00:00:00"}, "start"),
    ],
)
def test_what_makes_no_sense_is_refused(cast: Cast, clock: Clock, members: dict[str, Any], what: str):
    clock.set(BEGIN + dt.timedelta(days=100))
    before = store_rows()
    window = {"start": BEGIN.isoformat(), "end": clock.now.isoformat()}
    answer = cast.operator.post("/v1/policies/backtest", {**window, **members})
    assert answer.status == 422
    assert what in answer.about
    assert store_rows() == before


def test_scopes_outside_the_keys_are_not_there(cast: Cast):
    window = {"start": "2020-01-01T00:00:00Z", "end": "2020-02-01T00:00:00Z"}
    answer = cast.reader.post("/v1/policies/backtest", window)
    assert answer.status == 403
    assert cast.operator.post("/v1/policies/backtest", {**window, "scope": "nowhere/.."}).status == 422
