"""Replay: simulates uses and runs of all topics at once, on arrays, without the database. Times are epochs in seconds.

``tests/explain/test_backtest_agrees.py`` compares the results with real runs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from memory.core.policy_values import Knobs
from memory.core.rules import PIN_ACTIONS, RELEASED, RULE_RUNG, RUNG_ACTIONS, Rule
from memory.core.scopes import ROOT
from memory.forgetting.soft_limit import rules_by_age
from memory.formulas.ladder import ARCHIVED, DETACHED, SUMMARIZED, rung_target
from memory.formulas.partition_time import EVERY_DAY, PartitionTime
from memory.formulas.salience import Numbers, decayed, reinforced
from memory.formulas.strategies import TopicUsage, archive_gate, score
from memory.predicates.rule_conditions import condition_parse
from memory.predicates.tree import Comparison, comparisons, value_words
from memory.simulate.evaluation import predicate_holds, value_compare

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# The types of events: a use that reinforces, a use that does not, a lookup by id, and a salience set by a person.
REINFORCED, SHOWN, LOOKED_UP, SALIENCE_SET = range(4)

# Fields of conditions whose values change during a replay.
_MOVING_FIELDS = ("age", "idle", "retrievals", "score", "salience", "rung", "pinned")


def comparisons_fixed(rules: Sequence[Rule]) -> Iterator[Comparison]:
    """Yield the comparisons in rules that refer to fields that a replay does not change, such as kind and scope."""
    for rule in rules:
        for comparison, _negated in comparisons(condition_parse(rule.condition)):
            if comparison.field not in _MOVING_FIELDS:
                yield comparison


@dataclass(slots=True)
class Topics:
    """The properties that a replay does not change, as arrays with one entry per topic. Runs never read ``excluded``
    topics and never move ``exempt`` topics. ``used`` is the time from which the salience fades. ``fixed`` are the
    results of ``comparisons_fixed``."""

    created: Floats
    salience: Floats
    used: Floats
    kind_weight: Floats
    pinned: Bools
    excluded: Bools
    exempt: Bools
    partition: Ints
    fixed: dict[Comparison, Bools] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ruling:
    """The policy of one partition. ``rules`` are the rules for scheduled runs."""

    knobs: Knobs
    rules: tuple[Rule, ...] = ()
    limit_scope: str = ROOT
    time: PartitionTime = EVERY_DAY


@dataclass(slots=True)
class RunEffect:
    """The effect of a run. ``forgotten`` has the indexes of the topics that the run archived or released. The other
    attributes are counts."""

    forgotten: Ints
    released: int = 0
    summarized: int = 0
    detached: int = 0
    restored: int = 0


class World:
    """The state of all topics during a replay. ``events_apply`` and ``run`` must be called in order of time."""

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
        # Which topics are archived or released.
        self.forgotten = np.zeros(count, dtype=np.bool_)
        self.added: dict[str, Bools] = {}
        half_lives = np.array([ruling.knobs.half_life for ruling in rulings], dtype=np.float64)
        self.half_life = half_lives[topics.partition] if count else np.zeros(0)
        caps = np.array([ruling.knobs.field_salience_max for ruling in rulings], dtype=np.float64)
        self.cap = caps[topics.partition] if count else np.zeros(0)

    def events_apply(self, ids: Ints, at: Floats, what: Ints, value: Floats) -> None:
        """Apply the events of a period by the formula of ``salience_reinforced``. ``value`` is the bump of a use, or
        the salience that was set. Archived and released topics stay unchanged."""
        reached = ~self.forgotten[ids] & ((what == REINFORCED) | (what == SALIENCE_SET))
        ids, at, what, value = ids[reached], at[reached], what[reached], value[reached]
        for part in _one_per_topic(ids, at):
            self._events_apply_distinct(ids[part], at[part], what[part] == SALIENCE_SET, value[part])

    def _idle(self, ids: Ints, at: Floats) -> Floats:
        """Return, for each topic, the idle seconds before ``at``."""
        found = np.zeros(len(ids))
        for number, ruling in enumerate(self.rulings):
            if not ruling.time.wall:
                here = self.topics.partition[ids] == number
                found[here] = ruling.time.idle(at[here])
        return found

    def _events_apply_distinct(self, ids: Ints, at: Floats, is_set: Bools, value: Floats) -> None:
        """Apply events of distinct topics."""
        idle, before = self._idle(ids, at), self.reinforced[ids]
        salience, _since = reinforced(
            self.salience[ids],
            reinforced_at=before - self.idle_before[ids],
            half_life=self.half_life[ids],
            ceiling=np.maximum(self.cap[ids], self.salience[ids]),
            at=at - idle,
            bump=value,
        )
        self.salience[ids] = np.where(is_set, value, salience)
        self.reinforced[ids] = np.where(is_set, at, np.maximum(at, before))
        self.idle_before[ids] = np.where(is_set | (at > before), idle, self.idle_before[ids])
        self.retrievals[ids] += ~is_set
        self.used[ids] = np.where(
            is_set, self.used[ids], np.where(self.retrievals[ids] == 1, at, np.maximum(self.used[ids], at))
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

    def created_by(self, now: float) -> Bools:
        """Return which topics had been created by ``now``, including archived and released ones."""
        created: Bools = self.topics.created <= now
        return created

    def run(self, now: float, *, most: int) -> RunEffect:
        """Simulate a scheduled run at ``now``, which moves at most ``most`` topics, lowest scores first. A soft limit
        of a scope above the replayed scope counts only the topics of the replayed scope."""
        live = np.bincount(self.topics.partition[self.created_by(now) & ~self.forgotten], minlength=len(self.rulings))
        counts: dict[str, int] = {}
        for ruling, count in zip(self.rulings, live, strict=True):
            counts[ruling.limit_scope] = counts.get(ruling.limit_scope, 0) + int(count)
        parts = []
        for number, ruling in enumerate(self.rulings):
            if counts[ruling.limit_scope] >= ruling.knobs.topic_count_soft_limit:
                parts.append(self._judge(number, ruling, now))
            elif by_age := rules_by_age(ruling.rules):
                parts.append(self._judge(number, replace(ruling, rules=by_age), now, only_rules=True))
        if not parts:
            return RunEffect(np.zeros(0, dtype=np.int64))
        ids, scores, targets, released, pins = (np.concatenate(column) for column in zip(*parts, strict=True))
        if len(ids) > most:
            first = np.argsort(scores, kind="stable")[:most]
            ids, targets, released, pins = ids[first], targets[first], released[first], pins[first]
        before = self.rung[ids]
        archived = (targets == ARCHIVED) & (before < ARCHIVED)
        effect = RunEffect(
            forgotten=ids[archived | released],
            released=int(released.sum()),
            summarized=int(((targets == SUMMARIZED) & (before < SUMMARIZED)).sum()),
            detached=int(((targets == DETACHED) & (before < DETACHED)).sum()),
            restored=int((targets < before).sum()),
        )
        self.rung[ids], self.pinned[ids] = targets, pins
        self.forgotten[effect.forgotten] = True
        return effect

    def _judge(self, number: int, ruling: Ruling, now: float, *, only_rules: bool = False) -> tuple[Any, ...]:
        """Return the topics of one partition that a run would change, as arrays: indexes, scores, target rungs, whether
        each is released, and whether each is pinned afterwards. With ``only_rules``, the thresholds move nothing."""
        topics = self.topics
        ids = np.flatnonzero(
            (topics.partition == number) & ~self.forgotten & ~topics.excluded & (topics.created <= now)
        )
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
        rule_rung = np.zeros(len(ids), dtype=np.int8)
        pin_seen = np.zeros(len(ids), dtype=np.bool_)
        categorized = np.zeros(len(ids), dtype=np.bool_)
        for rule in ruling.rules:
            answer = partial(self._compare, ids=ids, scores=scores, skipped=skipped, now=now)
            holds: Bools = predicate_holds(condition_parse(rule.condition), answer)
            if rule.action in RUNG_ACTIONS:
                rule_rung = np.where(holds & (rule_rung == 0), np.int8(RULE_RUNG[rule.action]), rule_rung)
            elif rule.action in PIN_ACTIONS:
                pinned = np.where(holds & ~pin_seen, rule.action == "pin", pinned)
                pin_seen |= holds
            elif rule.category:
                added = self.added.setdefault(rule.category, np.zeros(len(self.forgotten), dtype=np.bool_))
                categorized |= holds & ~added[ids]
                added[ids[holds]] = True
        protected = pinned | topics.exempt[ids]
        released = (rule_rung == RELEASED) & ~protected
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
        targets = np.maximum(rung if only_rules else ladder, np.where(released, 0, rule_rung))
        targets = np.where(protected | released, rung, targets).astype(np.int8)
        acts = (targets != rung) | released | (pinned != self.pinned[ids]) | categorized
        return ids[acts], scores[acts], targets[acts], released[acts], pinned[acts]

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
                holds = self.topics.fixed[comparison][ids]
                for category in value_words(comparison) if comparison.field == "category" else ():
                    if category in self.added:
                        holds = holds | self.added[category][ids]
                return holds
        compared: Bools = value_compare(comparison, found)
        return compared


def _one_per_topic(ids: Ints, at: Floats) -> Iterator[Ints]:
    """Yield the indexes of the first event of each topic, then of the second event of each topic, and so on."""
    if not len(ids):
        return
    order = np.lexsort((at, ids))
    ordered = ids[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    number = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.r_[starts, len(ordered)]))
    by_number = order[np.argsort(number, kind="stable")]
    yield from np.split(by_number, np.cumsum(np.bincount(number))[:-1])
