"""The arrays of the replay against the plain Python of the domain, topic by topic."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from memory.core.policy_values import STRATEGIES, STRATEGY_DEFAULTS, Knobs
from memory.formulas.ladder import ARCHIVED, rung_target
from memory.formulas.salience import Reinforcement, salience_reinforced
from memory.formulas.strategies import KIND_WEIGHT_ELSE, KIND_WEIGHTS, TopicUsage, archive_due, score
from memory.simulate.replay import REINFORCED, SALIENCE_SET, SHOWN, Ruling, Topics, World

DAY = 86_400.0
KINDS = ("decision", "tool_output", "observation", "made_up")
CAP = 3.0


def knobs_of(strategy: str) -> Knobs:
    values: dict[str, Any] = {"half_life_days": 5.0, "active_half_life_days": 12.0, "prune_after_days": 4.0}
    values["topic_count_soft_limit"] = 0
    if strategy == "relevance":
        # High enough that forty days reach every rung.
        values |= {"theta_summary": 0.6, "theta_detach": 0.5, "forget_salience_threshold": 0.4}
    return Knobs(strategy=strategy, **({**STRATEGY_DEFAULTS[strategy], **values, "field_salience_max": CAP}))


def world_make(kinds: list[str], salience: list[float], strategy: str) -> World:
    count = len(kinds)
    off = np.zeros(count, dtype=np.bool_)
    topics = Topics(
        created=np.arange(count, dtype=np.float64) * DAY / 7,
        salience=np.array(salience),
        used=np.arange(count, dtype=np.float64) * DAY / 7,
        kind_weight=np.array([KIND_WEIGHTS.get(kind, KIND_WEIGHT_ELSE) for kind in kinds]),
        pinned=off.copy(),
        excluded=off.copy(),
        exempt=off.copy(),
        partition=np.zeros(count, dtype=np.int64),
    )
    return World(topics, [Ruling(knobs_of(strategy))])


def events(count: int, rng: random.Random) -> Iterator[tuple[int, float, int, float]]:
    for _ in range(count * 12):
        # Some lie before the topic was made, as in a log that was written late.
        at = rng.uniform(-1, 40) * DAY
        yield rng.randrange(count), at, rng.choice((REINFORCED, REINFORCED, SHOWN, SALIENCE_SET)), rng.uniform(0, 1.5)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_use_and_runs_do_to_arrays_what_the_domain_does_to_one_topic(strategy: str):
    rng = random.Random(7)
    count = 40
    kinds = [rng.choice(KINDS) for _ in range(count)]
    world = world_make(kinds, [rng.choice((0.0, 0.04, 0.3, 1.0, 2.5)) for _ in range(count)], strategy)
    knobs = knobs_of(strategy)
    alone = [TopicUsage(world.salience[at], at * DAY / 7, at * DAY / 7, None, 0, kinds[at]) for at in range(count)]
    rungs = [0] * count
    log = sorted(events(count, rng), key=lambda event: event[1])
    seen = set()
    for day in range(45):
        now = day * DAY
        part = [event for event in log if now - DAY <= event[1] < now]
        if part:
            columns = [np.array(column) for column in zip(*part, strict=True)]
            world.events_apply(columns[0], columns[1], columns[2], columns[3])
        for place, at, what, value in part:
            if rungs[place] != ARCHIVED:
                alone[place] = used(alone[place], at, what, value, knobs)
        world.run(now, most=1000)
        for place, topic in enumerate(alone):
            if topic.created_at > now or rungs[place] == ARCHIVED:
                continue
            there = score(
                topic, strategy=strategy, half_life=knobs.half_life, active_half_life=knobs.active_half_life, now=now
            )
            due = archive_due(
                topic,
                strategy=strategy,
                theta=knobs.forget_salience_threshold,
                prune_after=knobs.prune_after,
                half_life=knobs.half_life,
                active_half_life=knobs.active_half_life,
                now=now,
            )
            rungs[place] = rung_target(
                rungs[place], there, archive_due=due, theta_summary=knobs.theta_summary, theta_detach=knobs.theta_detach
            )
        np.testing.assert_allclose(world.salience, [topic.salience for topic in alone], rtol=1e-9)
        assert world.rung.tolist() == rungs, day
        seen |= set(rungs)
    # Every rung was reached, or the comparison would say little.
    assert seen == {0, 1, 2, 3}


def used(topic: TopicUsage, at: float, what: int, value: float, knobs: Knobs) -> TopicUsage:
    if what == SHOWN:
        return topic
    if what == SALIENCE_SET:
        return TopicUsage(value, at, topic.created_at, topic.last_retrieved_at, topic.retrieval_count, topic.kind)
    salience, since = salience_reinforced(
        topic.salience,
        reinforced_at=topic.reinforced_at,
        half_life=knobs.half_life,
        cap=CAP,
        reinforcements=[Reinforcement(at, value)],
    )
    last = at if topic.last_retrieved_at is None else max(at, topic.last_retrieved_at)
    return TopicUsage(salience, since, topic.created_at, last, topic.retrieval_count + 1, topic.kind)


def test_a_run_takes_the_lowest_scores_first_when_it_may_not_take_all():
    world = world_make(["x"] * 10, [1.0] * 10, "half_life")
    world.salience[:] = np.linspace(0.01, 0.04, 10)
    world.reinforced[:] = 0
    assert world.run(10 * DAY, most=3).forgotten.tolist() == [0, 1, 2]
    assert world.run(10 * DAY, most=3).forgotten.tolist() == [3, 4, 5]


def test_nothing_happens_to_topics_that_do_not_exist_yet():
    world = world_make(["x"] * 10, [0.0] * 10, "static")
    assert world.run(0.5 * DAY, most=100).forgotten.tolist() == []
    assert world.run(5 * DAY, most=100).forgotten.tolist() == [at for at in range(10) if at / 7 <= 1]
