"""Replay: topics as arrays, and what use and a run do to all of them at once. No database, nothing is written.

The third form of the formulas, beside ``memory.domain`` and SQL: a backtest makes hundreds of runs over each topic of a
store. ``tests/hindsight/test_backtest_formulas.py`` proves it equal to the Python of the domain, and
``test_backtest_agrees.py`` to the runs of the engine. Moments are epochs in seconds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from memory.domain.knobs import Knobs
from memory.domain.ladder import ACTIVE, ARCHIVED, CLIMB_MARGIN, DETACHED, SUMMARIZED
from memory.domain.rules import PIN_ACTIONS, RELEASED, RULE_RUNG, STANDING_ACTIONS, Rule
from memory.domain.salience import LEAST_SALIENCE, MAX_HALVINGS, SECONDS_PER_DAY
from memory.domain.strategies import (
    BOOST_MAX,
    BOOST_STEP,
    RELEVANCE_AGE,
    RELEVANCE_AGE_DAYS,
    RELEVANCE_FULL_USE,
    RELEVANCE_IDLE,
    RELEVANCE_IDLE_DAYS,
    RELEVANCE_KIND,
    RELEVANCE_USE,
)
from memory.hindsight.evaluation import predicate_holds, value_compare
from memory.predicates.rule_json import condition_parse
from memory.predicates.tree import Comparison, comparisons, value_words

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# What an event of the log does to a topic.
REINFORCED, SHOWN, LOOKED_UP, SALIENCE_SET = range(4)

# Beyond the last rung: a rule lets go of it altogether.
_MOVING_FIELDS = ("age", "idle", "retrievals", "score", "salience", "rung", "pinned")


def comparisons_fixed(rules: Sequence[Rule]) -> Iterator[Comparison]:
    """Return what the rules ask about a topic that no use changes: kind, scope, category, provenance, texts."""
    for rule in rules:
        for comparison, _negated in comparisons(condition_parse(rule.condition)):
            if comparison.field not in _MOVING_FIELDS:
                yield comparison


@dataclass(slots=True)
class Topics:
    """What stays as it is during a replay, one entry per topic. ``spared`` never comes before a run at all."""

    created: Floats
    salience: Floats
    kind_weight: Floats
    pinned: Bools
    spared: Bools
    exempt: Bools
    ground: Ints
    fixed: dict[Comparison, Bools] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ruling:
    """What holds on one ground: its knobs and the rules that answer the schedule."""

    knobs: Knobs
    rules: tuple[Rule, ...] = ()


@dataclass(slots=True)
class Acted:
    """What one run did: the places of the topics that left retrieval, and how many moved otherwise."""

    gone: Ints
    released: int = 0
    summarized: int = 0
    detached: int = 0
    restored: int = 0


class World:
    """All topics at a moment of the replay. Time goes forward by ``use`` and ``run``."""

    def __init__(self, topics: Topics, rulings: Sequence[Ruling]) -> None:
        self.topics, self.rulings = topics, rulings
        count = len(topics.created)
        self.salience = topics.salience.copy()
        self.reinforced = topics.created.copy()
        self.used = topics.created.copy()
        self.retrievals = np.zeros(count, dtype=np.int64)
        self.rung = np.zeros(count, dtype=np.int8)
        self.pinned = topics.pinned.copy()
        self.gone = np.zeros(count, dtype=np.bool_)
        self.added: dict[str, Bools] = {}
        half_lives = np.array([ruling.knobs.half_life for ruling in rulings], dtype=np.float64)
        self.half_life = half_lives[topics.ground] if count else np.zeros(0)
        caps = np.array([ruling.knobs.field_salience_max for ruling in rulings], dtype=np.float64)
        self.cap = caps[topics.ground] if count else np.zeros(0)

    def use(self, places: Ints, at: Floats, what: Ints, value: Floats) -> None:
        """Let events happen to topics, in the order of time; ``value`` is the bump, or the salience that was set.

        Topics that have left retrieval are not reached. The same as ``salience_reinforced`` of the domain.
        """
        reached = ~self.gone[places] & ((what == REINFORCED) | (what == SALIENCE_SET))
        places, at, what, value = places[reached], at[reached], what[reached], value[reached]
        for part in _one_by_one(places, at):
            self._use_once(places[part], at[part], what[part] == SALIENCE_SET, value[part])

    def _use_once(self, places: Ints, at: Floats, is_set: Bools, value: Floats) -> None:
        salience, since, half_life = self.salience[places], self.reinforced[places], self.half_life[places]
        ceiling = np.maximum(self.cap[places], salience)
        late = at < since
        raised = np.where(
            late,
            salience + decayed(value, seconds=since - at, half_life=half_life),
            decayed(salience, seconds=at - since, half_life=half_life) + value,
        )
        self.salience[places] = np.where(is_set, value, np.minimum(ceiling, raised))
        self.reinforced[places] = np.where(is_set, at, np.maximum(at, since))
        self.retrievals[places] += ~is_set
        self.used[places] = np.where(
            is_set, self.used[places], np.where(self.retrievals[places] == 1, at, np.maximum(self.used[places], at))
        )

    def score(self, ids: Ints, knobs: Knobs, *, now: float) -> Floats:
        """Return the scores of topics, as ``memory.domain.strategies.score``."""
        match knobs.strategy:
            case "static":
                return self.salience[ids]
            case "half_life":
                return decayed(self.salience[ids], seconds=now - self.reinforced[ids], half_life=knobs.half_life)
            case "active_forgetting":
                boost = np.minimum(BOOST_MAX, BOOST_STEP * np.log(1.0 + self.retrievals[ids]))
                raw: Floats = np.minimum(1.0, 1.0 - self._idle(ids, now) / (2.0 * knobs.active_half_life) + boost)
                return raw
        age = np.maximum(0.0, now - self.topics.created[ids]) / SECONDS_PER_DAY
        idle = self._idle(ids, now) / SECONDS_PER_DAY
        relevance: Floats = (
            RELEVANCE_AGE / (1.0 + age / RELEVANCE_AGE_DAYS)
            + RELEVANCE_USE * np.minimum(self.retrievals[ids] / RELEVANCE_FULL_USE, 1.0)
            + RELEVANCE_IDLE / (1.0 + idle / RELEVANCE_IDLE_DAYS)
            + RELEVANCE_KIND * self.topics.kind_weight[ids]
        )
        return relevance

    def _idle(self, ids: Ints, now: float) -> Floats:
        idle: Floats = np.maximum(0.0, now - self.used[ids])
        return idle

    def there(self, now: float) -> Bools:
        """Return which topics existed by ``now``, whether or not they have left retrieval since."""
        there: Bools = self.topics.created <= now
        return there

    def run(self, now: float, *, most: int) -> Acted:
        """Judge every topic as a scheduled run does and move it; at most ``most``, lowest score first."""
        parts = [self._judge(number, ruling, now) for number, ruling in enumerate(self.rulings)]
        ids, scores, targets, released, pins = (np.concatenate(column) for column in zip(*parts, strict=True))
        if len(ids) > most:
            first = np.argsort(scores, kind="stable")[:most]
            ids, targets, released, pins = ids[first], targets[first], released[first], pins[first]
        before = self.rung[ids]
        archived = (targets == ARCHIVED) & (before < ARCHIVED)
        acted = Acted(
            gone=ids[archived | released],
            released=int(released.sum()),
            summarized=int(((targets == SUMMARIZED) & (before < SUMMARIZED)).sum()),
            detached=int(((targets == DETACHED) & (before < DETACHED)).sum()),
            restored=int((targets < before).sum()),
        )
        self.rung[ids], self.pinned[ids] = targets, pins
        self.gone[acted.gone] = True
        return acted

    def _judge(self, number: int, ruling: Ruling, now: float) -> tuple[Any, ...]:
        """Return what a run would act on: ids, scores, target rungs, whether released, whether pinned."""
        topics = self.topics
        ids = np.flatnonzero((topics.ground == number) & ~self.gone & ~topics.spared & (topics.created <= now))
        scores, rung, pinned = self.score(ids, ruling.knobs, now=now), self.rung[ids], self.pinned[ids].copy()
        standing = np.zeros(len(ids), dtype=np.int8)
        pin_seen = np.zeros(len(ids), dtype=np.bool_)
        categorized = np.zeros(len(ids), dtype=np.bool_)
        for rule in ruling.rules:
            holds = self._holds(rule, ids, scores, now)
            if rule.action in STANDING_ACTIONS:
                standing = np.where(holds & (standing == 0), np.int8(RULE_RUNG[rule.action]), standing)
            elif rule.action in PIN_ACTIONS:
                pinned = np.where(holds & ~pin_seen, rule.action == "pin", pinned)
                pin_seen |= holds
            else:
                added = self.added.setdefault(rule.category, np.zeros(len(self.gone), dtype=np.bool_))
                categorized |= holds & ~added[ids]
                added[ids[holds]] = True
        protected = pinned | topics.exempt[ids]
        released = (standing == RELEASED) & ~protected
        targets = np.maximum(self._ladder(ids, rung, scores, ruling.knobs, now), np.where(released, 0, standing))
        targets = np.where(protected | released, rung, targets).astype(np.int8)
        acts = (targets != rung) | released | (pinned != self.pinned[ids]) | categorized
        return ids[acts], scores[acts], targets[acts], released[acts], pinned[acts]

    def _ladder(self, ids: Ints, rung: Any, scores: Floats, knobs: Knobs, now: float) -> Any:
        if knobs.strategy == "relevance":
            unused = self._idle(ids, now) > knobs.prune_after
        else:
            unused = np.maximum(0.0, now - self.reinforced[ids]) >= knobs.prune_after
        summary, detach = knobs.summarize_below, knobs.detach_below
        rises = np.where(scores > summary * CLIMB_MARGIN, ACTIVE, SUMMARIZED)
        attached = np.where(scores > detach * CLIMB_MARGIN, rises, DETACHED)
        upper = np.where(rung == SUMMARIZED, rises, np.where(scores < summary, SUMMARIZED, ACTIVE))
        stays = np.where(rung == DETACHED, attached, np.where(scores < detach, DETACHED, upper))
        return np.where((scores < knobs.forget_salience_threshold) & unused, ARCHIVED, stays)

    def _holds(self, rule: Rule, ids: Ints, scores: Floats, now: float) -> Bools:
        held: Bools = predicate_holds(
            condition_parse(rule.condition), lambda comparison: self._compare(comparison, ids, scores, now)
        )
        return held

    def _compare(self, comparison: Comparison, ids: Ints, scores: Floats, now: float) -> Bools:
        match comparison.field:
            case "age":
                found: Any = now - self.topics.created[ids]
            case "idle":
                found = now - self.used[ids]
            case "retrievals":
                found = self.retrievals[ids]
            case "score":
                found = scores
            case "salience":
                found = decayed(self.salience[ids], seconds=now - self.reinforced[ids], half_life=self.half_life[ids])
            case "pinned":
                found = self.pinned[ids]
            case "rung":
                found = self.rung[ids]
            case _:
                return self._fixed(comparison, ids)
        compared: Bools = value_compare(comparison, found)
        return compared

    def _fixed(self, comparison: Comparison, ids: Ints) -> Bools:
        holds = self.topics.fixed[comparison][ids]
        if comparison.field == "category":
            for category in value_words(comparison):
                if category in self.added:
                    holds = holds | self.added[category][ids]
        return holds


def decayed(value: Floats, *, seconds: Floats, half_life: Floats | float) -> Floats:
    """Return what is left of values after so many seconds, as ``memory.domain.salience.decayed``."""
    left: Floats = value * 2.0 ** -np.minimum(np.maximum(0.0, seconds) / half_life, MAX_HALVINGS)
    return np.where(value < LEAST_SALIENCE, 0.0, left)


def _one_by_one(places: Ints, at: Floats) -> Iterator[Ints]:
    """Yield the indexes of the first event of each place, then of the second, and so on."""
    if not len(places):
        return
    order = np.lexsort((at, places))
    ordered = places[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    turn = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.r_[starts, len(ordered)]))
    by_turn = order[np.argsort(turn, kind="stable")]
    yield from np.split(by_turn, np.cumsum(np.bincount(turn))[:-1])
