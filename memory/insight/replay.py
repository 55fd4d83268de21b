"""Replay: simulates uses and runs on arrays of topics. No database, nothing is written.

A backtest simulates hundreds of runs over all topics of a store, so the formulas work on arrays.
``tests/insight/test_backtest_agrees.py`` compares the results with real runs. Times are epochs in seconds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from memory.core.policy_values import Knobs
from memory.core.rules import PIN_ACTIONS, RELEASED, RULE_RUNG, RUNG_ACTIONS, Rule
from memory.core.scopes import ROOT
from memory.formulas.ladder import ARCHIVED, DETACHED, SUMMARIZED, rung_target
from memory.formulas.partition_time import EVERY_DAY, PartitionTime
from memory.formulas.salience import Numbers, decayed, reinforced
from memory.formulas.strategies import TopicUsage, archive_gate, score
from memory.insight.evaluation import predicate_holds, value_compare
from memory.predicates.rule_json import condition_parse
from memory.predicates.tree import Comparison, comparisons, value_words

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# The types of events.
REINFORCED, SHOWN, LOOKED_UP, SALIENCE_SET = range(4)

# Fields of conditions whose values change during a replay.
_MOVING_FIELDS = ("age", "idle", "retrievals", "score", "salience", "rung", "pinned")


def comparisons_fixed(rules: Sequence[Rule]) -> Iterator[Comparison]:
    """Yield the comparisons of the rules with fields that a replay does not change: kind, scope, texts and others."""
    for rule in rules:
        for comparison, _negated in comparisons(condition_parse(rule.condition)):
            if comparison.field not in _MOVING_FIELDS:
                yield comparison


@dataclass(slots=True)
class Topics:
    """What a replay does not change, one entry per topic. Runs never consider ``spared`` topics.

    ``used`` is the time of the first use of each topic: its arrival.
    """

    created: Floats
    salience: Floats
    used: Floats
    kind_weight: Floats
    pinned: Bools
    spared: Bools
    exempt: Bools
    partition: Ints
    fixed: dict[Comparison, Bools] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ruling:
    """The knobs of one partition, its rules for scheduled runs, the scope of its soft limit, and its time."""

    knobs: Knobs
    rules: tuple[Rule, ...] = ()
    limit_scope: str = ROOT
    time: PartitionTime = EVERY_DAY


@dataclass(slots=True)
class RunEffect:
    """What one simulated run did: the indexes of the topics that left retrieval, and the numbers of other changes."""

    gone: Ints
    released: int = 0
    summarized: int = 0
    detached: int = 0
    restored: int = 0


class World:
    """The state of all topics during a replay. ``use`` and ``run`` must be called in order of time."""

    def __init__(self, topics: Topics, rulings: Sequence[Ruling]) -> None:
        self.topics, self.rulings = topics, rulings
        count = len(topics.created)
        self.salience = topics.salience.copy()
        self.reinforced = topics.used.copy()
        self.used = topics.used.copy()
        self.idle_before = self._idle(np.arange(count), topics.used)
        self.retrievals = np.zeros(count, dtype=np.int64)
        self.rung = np.zeros(count, dtype=np.int8)
        self.pinned = topics.pinned.copy()
        self.gone = np.zeros(count, dtype=np.bool_)
        self.added: dict[str, Bools] = {}
        half_lives = np.array([ruling.knobs.half_life for ruling in rulings], dtype=np.float64)
        self.half_life = half_lives[topics.partition] if count else np.zeros(0)
        caps = np.array([ruling.knobs.field_salience_max for ruling in rulings], dtype=np.float64)
        self.cap = caps[topics.partition] if count else np.zeros(0)

    def use(self, places: Ints, at: Floats, what: Ints, value: Floats) -> None:
        """Apply events to topics, in order of time; ``value`` is the bump, or the salience that was set.

        Topics that have left retrieval stay unchanged. The result equals that of ``salience_reinforced``.
        """
        reached = ~self.gone[places] & ((what == REINFORCED) | (what == SALIENCE_SET))
        places, at, what, value = places[reached], at[reached], what[reached], value[reached]
        for part in _one_by_one(places, at):
            self._use_once(places[part], at[part], what[part] == SALIENCE_SET, value[part])

    def _idle(self, places: Ints, at: Floats) -> Floats:
        """Return the seconds before ``at`` that do not count for each topic."""
        found = np.zeros(len(places))
        for number, ruling in enumerate(self.rulings):
            if not ruling.time.wall:
                here = self.topics.partition[places] == number
                found[here] = ruling.time.idle(at[here])
        return found

    def _use_once(self, places: Ints, at: Floats, is_set: Bools, value: Floats) -> None:
        idle, before = self._idle(places, at), self.reinforced[places]
        salience, _since = reinforced(
            self.salience[places],
            reinforced_at=before - self.idle_before[places],
            half_life=self.half_life[places],
            ceiling=np.maximum(self.cap[places], self.salience[places]),
            at=at - idle,
            bump=value,
        )
        self.salience[places] = np.where(is_set, value, salience)
        self.reinforced[places] = np.where(is_set, at, np.maximum(at, before))
        self.idle_before[places] = np.where(is_set | (at > before), idle, self.idle_before[places])
        self.retrievals[places] += ~is_set
        self.used[places] = np.where(
            is_set, self.used[places], np.where(self.retrievals[places] == 1, at, np.maximum(self.used[places], at))
        )

    def presence(self, ids: Ints) -> TopicUsage:
        """Return the input of the strategies for many topics at once."""
        return TopicUsage(
            self.salience[ids],
            self.reinforced[ids],
            self.topics.created[ids],
            self.used[ids],
            self.retrievals[ids],
            kind_weight=self.topics.kind_weight[ids],
            idle_before=self.idle_before[ids],
        )

    def there(self, now: float) -> Bools:
        """Return which topics existed by ``now``, whether or not they have left retrieval since."""
        there: Bools = self.topics.created <= now
        return there

    def run(self, now: float, *, most: int) -> RunEffect:
        """Judge every topic as a scheduled run does and move it; at most ``most``, lowest score first.

        Partitions below their soft limit are left alone; of a limit that is set above the replayed scope, only the
        topics of that scope are counted.
        """
        live = np.bincount(self.topics.partition[self.there(now) & ~self.gone], minlength=len(self.rulings))
        counts: dict[str, int] = {}
        for ruling, count in zip(self.rulings, live, strict=True):
            counts[ruling.limit_scope] = counts.get(ruling.limit_scope, 0) + int(count)
        parts = [
            self._judge(number, ruling, now)
            for number, ruling in enumerate(self.rulings)
            if counts[ruling.limit_scope] >= ruling.knobs.topic_count_soft_limit
        ]
        if not parts:
            return RunEffect(np.zeros(0, dtype=np.int64))
        ids, scores, targets, released, pins = (np.concatenate(column) for column in zip(*parts, strict=True))
        if len(ids) > most:
            first = np.argsort(scores, kind="stable")[:most]
            ids, targets, released, pins = ids[first], targets[first], released[first], pins[first]
        before = self.rung[ids]
        archived = (targets == ARCHIVED) & (before < ARCHIVED)
        acted = RunEffect(
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
        """Return the topics that a run would change: indexes, scores, target rungs, released or not, pinned or not."""
        topics = self.topics
        ids = np.flatnonzero((topics.partition == number) & ~self.gone & ~topics.spared & (topics.created <= now))
        presence, knobs = self.presence(ids), ruling.knobs
        skipped = ruling.time.skipped(presence.idle_before, now)
        scores = score(
            presence,
            strategy=knobs.strategy,
            half_life=knobs.half_life,
            active_half_life=knobs.active_half_life,
            now=now,
            skipped=skipped,
        )
        rung, pinned = self.rung[ids], self.pinned[ids].copy()
        standing = np.zeros(len(ids), dtype=np.int8)
        pin_seen = np.zeros(len(ids), dtype=np.bool_)
        categorized = np.zeros(len(ids), dtype=np.bool_)
        for rule in ruling.rules:
            holds = self._holds(rule, ids, scores, skipped, now)
            if rule.action in RUNG_ACTIONS:
                standing = np.where(holds & (standing == 0), np.int8(RULE_RUNG[rule.action]), standing)
            elif rule.action in PIN_ACTIONS:
                pinned = np.where(holds & ~pin_seen, rule.action == "pin", pinned)
                pin_seen |= holds
            elif rule.category:
                added = self.added.setdefault(rule.category, np.zeros(len(self.gone), dtype=np.bool_))
                categorized |= holds & ~added[ids]
                added[ids[holds]] = True
        protected = pinned | topics.exempt[ids]
        released = (standing == RELEASED) & ~protected
        unused = archive_gate(
            presence, strategy=knobs.strategy, prune_after=knobs.prune_after, now=now, skipped=skipped
        )
        ladder = rung_target(
            rung,
            scores,
            archive_due=(scores < knobs.forget_salience_threshold) & unused,
            theta_summary=knobs.summarize_below,
            theta_detach=knobs.detach_below,
        )
        targets = np.maximum(ladder, np.where(released, 0, standing))
        targets = np.where(protected | released, rung, targets).astype(np.int8)
        acts = (targets != rung) | released | (pinned != self.pinned[ids]) | categorized
        return ids[acts], scores[acts], targets[acts], released[acts], pinned[acts]

    def _holds(self, rule: Rule, ids: Ints, scores: Floats, skipped: Numbers, now: float) -> Bools:
        held: Bools = predicate_holds(
            condition_parse(rule.condition), lambda comparison: self._compare(comparison, ids, scores, skipped, now)
        )
        return held

    def _compare(self, comparison: Comparison, ids: Ints, scores: Floats, skipped: Numbers, now: float) -> Bools:
        match comparison.field:
            case "age":
                found: Any = now - self.topics.created[ids]
            case "idle":
                found = now - self.used[ids] - skipped
            case "retrievals":
                found = self.retrievals[ids]
            case "score":
                found = scores
            case "salience":
                seconds = now - self.reinforced[ids] - skipped
                found = decayed(self.salience[ids], seconds=seconds, half_life=self.half_life[ids])
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
