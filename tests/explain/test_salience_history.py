"""Salience over time: the curve goes through what the store held at each moment, and ends with what it holds."""

import datetime as dt
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from memory.core.errors import NotVisible
from memory.explain.accesses import accesses_of
from memory.explain.salience_history import salience_history
from memory.explain.salience_replay import CountedUse, SalienceEvent, State, salience_replay
from memory.forgetting.undo import run_revert
from memory.formulas.salience import Reinforcement, salience_reinforced
from memory.models import AccessLog, Vitality
from memory.recall.lookup import topic_get
from tests.cast import Cast, Clock, principal_like
from tests.explain.past import BEGIN, days_live, folded, policy_set, run_now

DAY = 86_400.0
HALF_LIFE, CAP = 30 * DAY, 10.0


def history(topic_id: str, now: dt.datetime) -> dict[str, Any]:
    return salience_history(uuid.UUID(topic_id), principal=principal_like("reader"), now=now)


def held(topic_id: str, now: dt.datetime) -> float:
    """Return the effective salience as the store has it."""
    return topic_get(uuid.UUID(topic_id), principal=principal_like("reader"), now=now)["salience"]


def worth(got: dict[str, Any], at: dt.datetime) -> float:
    """Return what the curve says at a moment between two of its points; between them fading is a straight line of
    logarithms."""
    points = got["points"]
    before = [point for point in points if point[0] <= at][-1]
    after = next(point for point in points if point[0] >= at)
    span = (after[0] - before[0]).total_seconds()
    share = (at - before[0]).total_seconds() / span if span else 0.0
    return float(before[1] ** (1 - share) * after[1] ** share)


EVENTS = st.lists(
    st.tuples(
        st.floats(0.01, 20),
        st.sampled_from(["use", "use", "use", "fold", "set", "archive", "restore"]),
        st.floats(0, 3),
    ),
    max_size=25,
)


@given(EVENTS, st.booleans())
def test_a_replay_arrives_where_the_store_did(events: list[tuple[float, str, float]], got: bool):
    """The store folds late, and archives and restores meanwhile; journals tell what stood there, or do not."""
    now, state = 0.0, State(1.0, 0.0)
    waiting: list[tuple[float, float]] = []
    uses: list[CountedUse] = []
    turns: list[SalienceEvent] = []

    def fold(at: float) -> None:
        nonlocal state
        for used, bump in waiting:
            salience, since = salience_reinforced(
                state.salience,
                reinforced_at=state.since,
                half_life=HALF_LIFE,
                cap=CAP,
                reinforcements=[Reinforcement(used, bump)],
            )
            state = State(salience, since)
            uses.append(CountedUse(used, at, bump))
        waiting.clear()

    for days, what, number in events:
        now += days * DAY
        before = state
        if what == "use":
            waiting.append((now, number / 10))
        elif what == "fold":
            fold(now)
        elif what == "set":
            state = State(number, now)
            turns.append(SalienceEvent(now, "set", after=state))
        elif what == "archive":
            state = State(state.salience * 0.5, state.since)
            turns.append(SalienceEvent(now, "archived", before=before if got else None, factor=0.5))
        else:
            state = State(max(state.at(now, HALF_LIFE) / 0.5, 1.0), now)
            turns.append(SalienceEvent(now, "restored", before=before if got else None, factor=0.5, least=1.0))
    now += DAY
    fold(now)
    replay = salience_replay(
        SalienceEvent(0.0, "created", after=State(1.0, 0.0)),
        turns,
        uses,
        stored=state,
        half_life=HALF_LIFE,
        cap=CAP,
        now=now,
    )
    assert replay.step_at(now).state.at(now, HALF_LIFE) == pytest.approx(state.at(now, HALF_LIFE), rel=1e-6, abs=1e-6)
    assert replay.exact_since == 0.0


def test_what_no_one_reported_is_an_estimate_up_to_what_is_stored():
    replay = salience_replay(
        SalienceEvent(0.0, "created", after=State(1.0, 0.0)),
        [],
        [],
        stored=State(5.0, 10 * DAY),
        half_life=HALF_LIFE,
        cap=CAP,
        now=20 * DAY,
    )
    assert replay.exact_since == 10 * DAY
    assert replay.step_at(20 * DAY).state.at(20 * DAY, HALF_LIFE) == State(5.0, 10 * DAY).at(20 * DAY, HALF_LIFE)
    assert replay.step_at(5 * DAY).state.at(5 * DAY, HALF_LIFE) == State(1.0, 0.0).at(5 * DAY, HALF_LIFE)


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["wall", "active"])
def test_the_curve_goes_through_everything_that_happened(cast: Cast, clock: Clock, kind: str):
    policy_set(topic_count_soft_limit=0, max_archive_share=1.0, half_life_days=5, clock=kind)
    clock.set(BEGIN)
    topic = cast.agent.remember("Tea in the morning", salience=0.9, values={"how": "black"})
    seen: list[tuple[dt.datetime, float]] = []

    def look() -> None:
        clock.forward(hours=1)
        seen.append((clock.now, held(topic, clock.now)))
        clock.forward(hours=1)

    def ask(days: float) -> None:
        clock.forward(days=days)
        cast.agent.query("Tea in the morning")

    for days in (1, 5, 0.2):
        ask(days)
        folded(clock.now)
        look()
    # A retrieval that is folded in only after someone has archived the topic.
    ask(3)
    clock.forward(seconds=1)
    cast.operator.post(f"/v1/topics/{topic}/archive", {"reason": "noise"}).ok()
    clock.forward(seconds=1)
    folded(clock.now)
    look()
    cast.operator.post(f"/v1/topics/{topic}/restore", {"reason": "not noise"}).ok()
    look()
    clock.forward(days=2)
    cast.operator.patch(f"/v1/topics/{topic}", {"salience": 2.5}).ok()
    look()
    cast.operator.post(f"/v1/topics/{topic}/pin", {}).ok()
    cast.operator.post(f"/v1/topics/{topic}/unpin", {}).ok()
    cast.agent.ingest("version_field", topic_id=topic, fields=[{"name": "how", "value": "green"}])
    look()
    for _day in range(45):
        clock.forward(days=1)
        cast.agent.query("anything", as_of=BEGIN.isoformat())
    run = run_now(clock)
    assert cast.reader.topic(topic)["rung"] == "archived"
    look()
    run_revert(run.pk, actor="test:operator", now=clock.now)
    look()
    ask(1)
    folded(clock.now)
    look()

    got = history(topic, clock.now)
    assert got["points"][-1][0] == clock.now
    assert got["points"][-1][1] == pytest.approx(held(topic, clock.now))
    assert got["exact_since"] is None
    assert got["uses"] == 5
    assert got["uses_unknown"] == 0
    for at, value in seen:
        assert worth(got, at) == pytest.approx(value, rel=1e-5), at
    # Before it was made, nothing is reported; the curve begins with what it was given.
    assert got["points"][0][:2] == (BEGIN, 0.9)


@pytest.mark.django_db
def test_after_months_of_runs_every_curve_ends_with_what_is_stored(cast: Cast, clock: Clock):
    policy_set(topic_count_soft_limit=0, max_archive_share=1.0, half_life_days=6, prune_after_days=3)
    topics = days_live(cast, clock, days=25, runs_from=8)
    assert any(cast.reader.topic(topic)["archived"] for topic in topics)
    for topic in topics:
        got = history(topic, clock.now)
        assert got["points"][-1][1] == pytest.approx(held(topic, clock.now), rel=1e-6)
        assert got["exact_since"] is None, (topic, got["turns"])


@pytest.mark.django_db
def test_a_salience_that_no_journal_explains_is_said_to_be_an_estimate_before(cast: Cast, clock: Clock):
    clock.set(BEGIN)
    topic = cast.agent.remember("Tea")
    clock.forward(days=5)
    Vitality.objects.filter(pk=topic).update(salience=4.0, reinforced_at=clock.now)
    clock.forward(days=5)
    got = history(topic, clock.now)
    assert got["exact_since"] == BEGIN + dt.timedelta(days=5)
    assert got["points"][-1][1] == held(topic, clock.now)


@pytest.mark.django_db
@pytest.mark.parametrize("strategy", ["half_life", "static", "active_forgetting", "relevance"])
def test_the_forecast_goes_on_from_now_and_marks_what_the_card_says(cast: Cast, clock: Clock, strategy: str):
    policy_set(strategy=strategy)
    clock.set(BEGIN)
    topic = cast.agent.remember("Tea", salience=0.9)
    clock.forward(days=1)
    cast.agent.query("Tea")
    folded(clock.now)
    clock.forward(days=2)
    got = history(topic, clock.now)
    card = cast.reader.get(f"/v1/topics/{topic}/why").ok()

    assert got["ahead"][0] == got["points"][-1]
    assert got["score"] == pytest.approx(card["standing"]["score"])
    assert got["score_differs"] == (strategy != "half_life")
    steps = {step["rung"]: dt.datetime.fromisoformat(step["at"]) for step in card["next"]["steps"] if step["at"]}
    assert {mark["rung"]: mark["at"] for mark in got["marks"]} == pytest.approx(steps, abs=dt.timedelta(seconds=1))
    for mark in got["marks"]:
        if mark["theta"] is not None and strategy in ("half_life", "relevance"):
            # It was above the threshold the day before.
            assert mark["theta"] * 0.97 < mark["score"] < mark["theta"] or mark["rung"] == "archived"


@pytest.mark.django_db
def test_a_pinned_topic_has_a_forecast_without_marks_and_an_archived_one_none(cast: Cast, clock: Clock):
    clock.set(BEGIN)
    topic = cast.agent.remember("Tea", pinned=True)
    clock.forward(days=1)
    got = history(topic, clock.now)
    assert (bool(got["ahead"]), got["marks"], got["protected"]) == (True, [], ["It is pinned."])
    cast.operator.post(f"/v1/topics/{topic}/archive", {}).ok()
    clock.forward(days=1)
    got = history(topic, clock.now)
    assert (got["ahead"], got["marks"], got["gone"]) == ([], [], True)


@pytest.mark.django_db
def test_its_statements_do_not_grow_with_its_uses(cast: Cast, clock: Clock):
    counts = []
    for times in (10, 200):
        clock.set(BEGIN)
        topic = cast.agent.remember(f"Tea {times}")
        AccessLog.objects.bulk_create(
            AccessLog(
                at=BEGIN + dt.timedelta(minutes=minute + 1),
                actor="key:1",
                scope="/",
                query="tea",
                bump=0.1,
                query_hash=f"{times}-{minute}",
                field_bump=0.1,
                topic_ids=[topic],
            )
            for minute in range(times)
        )
        clock.set(BEGIN + dt.timedelta(days=1))
        folded(clock.now)
        history(topic, clock.now)
        with CaptureQueriesContext(connection) as spent:
            got = history(topic, clock.now)
        assert got["uses"] == times
        with CaptureQueriesContext(connection) as listed:
            accesses_of(uuid.UUID(topic), principal=principal_like("reader"), cursor=None, limit=20, now=clock.now)
        counts.append((len(spent), len(listed)))
    assert counts[0][0] == counts[1][0] <= 6
    assert max(count for _spent, count in counts) <= 3


@pytest.mark.django_db
def test_what_the_caller_may_not_see_is_not_there(cast: Cast):
    topic = cast.alice.remember("Tea", scope="/user/alice")
    bob = principal_like("agent", "/user/bob")
    now = dt.datetime.now(dt.UTC)
    with pytest.raises(NotVisible):
        salience_history(uuid.UUID(topic), principal=bob, now=now)
    with pytest.raises(NotVisible):
        accesses_of(uuid.UUID(topic), principal=bob, cursor=None, limit=5, now=now)


@pytest.mark.django_db
def test_accesses_are_reported_newest_first_and_page_by_page(cast: Cast, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    clock.set(BEGIN)
    topic = cast.agent.remember("Tea")
    other = cast.agent.remember("Rent")
    for number in range(12):
        AccessLog.objects.create(
            at=BEGIN + dt.timedelta(hours=number + 1),
            actor="key:1",
            scope="/",
            query=f"question {number}",
            bump=0.1,
            query_hash=str(number),
            field_bump=0.1,
            topic_ids=[other, topic] if number % 3 == 0 else [other],
        )
    clock.set(BEGIN + dt.timedelta(days=1))
    cast.reader.topic(topic)
    # Little of the log is looked at for one page; the next goes on from there.
    monkeypatch.setattr("memory.explain.accesses.MAX_ROWS_READ", 5)
    found, cursor, pages = [], None, 0
    while True:
        page = accesses_of(
            uuid.UUID(topic),
            principal=principal_like("reader"),
            cursor=cursor,
            limit=2,
            now=clock.now + dt.timedelta(1),
        )
        found += page.items
        cursor, pages = page.next, pages + 1
        if cursor is None:
            break
    assert [(use["kind"], use["query"], use["place"]) for use in found] == [
        ("lookup", "", 1),
        ("query", "question 9", 2),
        ("query", "question 6", 2),
        ("query", "question 3", 2),
        ("query", "question 0", 2),
    ]
    assert pages >= 3
