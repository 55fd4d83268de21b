"""Snapshots of all policies. A snapshot resolves the values in force for any scope without queries."""

import dataclasses
import datetime as dt
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memory.core.errors import ValueRefused
from memory.core.policy_presets import PRESETS
from memory.core.policy_values import KNOBS, STRATEGY_DEFAULTS, THRESHOLDS, Knobs, KnobValue, knobs_warnings
from memory.core.rules import Rule, RuleSet
from memory.core.scopes import ROOT, scope_within
from memory.formulas.partition_time import EVERY_DAY, PartitionTime
from memory.policy.rule_parsing import rules_ordered
from memory.policy.shipped_rule_sets import preset_rules

# What happens to a topic at each threshold.
_STEPS = dict(zip(THRESHOLDS, ("summarized", "detached", "archived"), strict=True))
# One warning names at most this many scopes.
_MAX_NAMED = 3
DEFAULT = "default"
ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class ValueSource:
    """Where an effective value comes from: a scope path (with its preset), ``default`` or ``environment``."""

    source: str
    preset: str = ""


@dataclass(frozen=True, slots=True)
class SetPolicy:
    """The policy set at one scope. ``number`` is its version, 0 for a draft."""

    scope: str
    number: int
    preset: str = ""
    values: Mapping[str, KnobValue] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is set. The policy above then applies."""
        return not (self.preset or self.values or self.rules)

    def as_stored(self) -> dict[str, Any]:
        """Return ``preset``, ``values`` and ``rules`` as a version stores them."""
        return {
            "preset": self.preset,
            "values": {name: list(value) if isinstance(value, tuple) else value for name, value in self.values.items()},
            "rules": [rule.as_json() for rule in self.rules],
        }

    def rules_here(self) -> tuple[Rule, ...]:
        """Return the rules of this scope: its own, then those rules of its preset that have other names."""
        named = {rule.name for rule in self.rules}
        return (*self.rules, *(rule for rule in preset_rules(self.preset, scope=self.scope) if rule.name not in named))


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """The values and rules in force for one scope, and for scopes below it without a policy of their own."""

    scope: str
    knobs: Knobs
    sources: dict[str, ValueSource]
    rules: RuleSet
    # Path and version of the nearest policy at or above the scope; version 0 if there is none.
    at: str = ROOT
    version: int = 0
    # The original values of thresholds that ``_thresholds_ordered`` has raised, by name.
    raised: Mapping[str, float] = field(default_factory=dict)
    time: PartitionTime = EVERY_DAY

    def projected(self, now: dt.datetime) -> "EffectivePolicy":
        """Return the same policy under the assumption that the day of ``now`` and all later days are active."""
        return dataclasses.replace(self, time=self.time.active_from(now))

    def warnings(self) -> list[str]:
        """Return a sentence for each value that is unwise or has no effect. Such values are accepted nevertheless."""
        found = knobs_warnings(self.knobs)
        for name, value in self.raised.items():
            used = getattr(self.knobs, name)
            lower = next(each for each in reversed(THRESHOLDS) if getattr(self.knobs, each) == used)
            found.append(
                f"{name} ({value:g}) is below {lower} ({used:g}), so {used:g} is used and memories are not "
                f"{_STEPS[name]} before they are {_STEPS[lower]}."
            )
        return found


@dataclass(frozen=True, slots=True)
class Policies:
    """A snapshot. ``stamp`` identifies the stored versions from which it was made. ``rekeying`` are the scopes whose
    rows are being re-keyed. ``times`` maps each scope that has or had a policy to its record of active days."""

    stamp: tuple[Any, ...] = ()
    rekeying: tuple[str, ...] = ()
    environment: Mapping[str, KnobValue] = field(default_factory=dict)
    # Keyed by path. Empty policies are left out.
    policies: Mapping[str, SetPolicy] = field(default_factory=dict)
    # The number of the newest version of every scope that ever had one.
    numbers: Mapping[str, int] = field(default_factory=dict)
    times: Mapping[str, PartitionTime] = field(default_factory=dict)
    _known: dict[str, EffectivePolicy] = field(default_factory=dict, compare=False, repr=False)

    def node_of(self, scope: str) -> str:
        """Return the path of the nearest scope at or above ``scope`` that has a policy; the root if none has."""
        return next((path for path in _upwards(scope) if path in self.policies), ROOT)

    def set_at(self, scope: str) -> SetPolicy:
        """Return the policy that is set at ``scope``, a canonical path. If none is set, return an empty policy."""
        return self.policies.get(scope) or SetPolicy(scope, 0)

    def effective(self, scope: str) -> EffectivePolicy:
        """Return what is in force at ``scope``, a canonical path."""
        node = self.node_of(scope)
        known = self._known.get(node)
        if known is None:
            # Two threads may compute the value at once, with the same result.
            known = self._known[node] = self._resolve(node)
        return known if scope == node else dataclasses.replace(known, scope=scope, time=self._time(scope, known.knobs))

    def time_path(self, scope: str) -> str:
        """Return the nearest scope at or above ``scope`` with its own record of active days, or else the root."""
        return next((path for path in _upwards(scope) if path in self.times), ROOT)

    def _time(self, scope: str, knobs: Knobs) -> PartitionTime:
        time = self.times.get(self.time_path(scope), EVERY_DAY)
        return dataclasses.replace(time, wall=knobs.clock == "wall")

    def knobs(self, scope: str) -> Knobs:
        """Return the knobs in force at ``scope``."""
        return self.effective(self.node_of(scope)).knobs

    def nodes(self, scope: str) -> list[EffectivePolicy]:
        """Return the policy in force at ``scope``, then at each scope below it that has a policy, sorted by path."""
        below = sorted(path for path in self.policies if path != scope and scope_within(path, scope))
        return [self.effective(path) for path in (scope, *below)]

    def warnings(self, scope: str) -> list[str]:
        """Return the warnings of ``scope``, then the warnings that only scopes below have, each with the paths of those
        scopes."""
        here, *below = self.nodes(scope)
        scopes: dict[str, list[str]] = {}
        for node in below:
            # A warning about an inherited value is shown only for the scope above.
            above = self.effective(max(scope, self.node_of(node.scope.rpartition("/")[0] or ROOT), key=len)).warnings()
            for sentence in node.warnings():
                if sentence not in above:
                    scopes.setdefault(sentence, []).append(node.scope)
        found = here.warnings()
        for sentence, paths in scopes.items():
            more = f" and {len(paths) - _MAX_NAMED:,} more" if len(paths) > _MAX_NAMED else ""
            found.append(f"In {', '.join(paths[:_MAX_NAMED])}{more}: {sentence}")
        return found

    def parts(self, scope: str) -> list[EffectivePolicy]:
        """Return ``nodes(scope)``, and the policy in force at each lower scope that once had a policy. Such a scope
        keeps its own record of active days."""
        had = sorted(path for path in self.times if path not in self.policies and path != scope)
        return [*self.nodes(scope), *(self.effective(path) for path in had if scope_within(path, scope))]

    def versions_touching(self, scope: str) -> dict[str, int]:
        """Return the versions of all policies at, above and below ``scope``, keyed by path."""
        return {
            path: policy.number
            for path, policy in sorted(self.policies.items())
            if scope_within(path, scope) or scope_within(scope, path)
        }

    def rekeying_touches(self, scope: str) -> bool:
        """Return whether rows at or below ``scope`` may still have a half-life or clock that is not in force."""
        return any(scope_within(path, scope) or scope_within(scope, path) for path in self.rekeying)

    def with_rekeying(self, rekeying: tuple[str, ...]) -> "Policies":
        """Return the same policies with another list of scopes whose rows are being re-keyed."""
        return self if rekeying == self.rekeying else dataclasses.replace(self, rekeying=rekeying)

    def with_times(self, times: Mapping[str, PartitionTime]) -> "Policies":
        """Return the same policies with other records of active days."""
        return self if times is self.times else dataclasses.replace(self, times=times, _known={})

    def projected(self, now: dt.datetime) -> "Policies":
        """Return the same policies under the assumption that the day of ``now`` and all later days are active."""
        return self.with_times({path: time.active_from(now) for path, time in self.times.items()})

    def with_policy(self, policy: SetPolicy) -> "Policies":
        """Return a snapshot in which ``policy`` replaces the policy of its scope. The policy is not validated."""
        policies = {**self.policies, policy.scope: policy}
        if policy.is_empty:
            del policies[policy.scope]
        numbers = {**self.numbers, policy.scope: policy.number}
        return dataclasses.replace(self, stamp=(*self.stamp, "draft"), policies=policies, numbers=numbers, _known={})

    def _resolve(self, node: str) -> EffectivePolicy:
        layers = [self.policies[path] for path in _upwards(node) if path in self.policies]
        found: dict[str, tuple[KnobValue, ValueSource]] = {}
        for policy in layers:
            for name, value in policy.values.items():
                found.setdefault(name, (value, ValueSource(policy.scope)))
            if policy.preset:
                for name, value in PRESETS[policy.preset].values.items():
                    found.setdefault(name, (value, ValueSource(policy.scope, policy.preset)))
        for name, value in self.environment.items():
            found.setdefault(name, (value, ValueSource(ENVIRONMENT)))
        strategy = str(found["strategy"][0]) if "strategy" in found else Knobs().strategy
        for name, value in STRATEGY_DEFAULTS[strategy].items():
            found.setdefault(name, (value, ValueSource(DEFAULT)))
        values: dict[str, Any] = {name: value for name, (value, _source) in found.items()}
        sources = {name: found[name][1] if name in found else ValueSource(DEFAULT) for name in KNOBS}
        knobs, raised = _thresholds_ordered(Knobs(**values), sources)
        rules: dict[str, Rule] = {}
        for policy in layers:
            for rule in policy.rules_here():
                rules.setdefault(rule.name, rule)
        version = self.policies[node].number if node in self.policies else 0
        return EffectivePolicy(
            node,
            knobs,
            sources,
            RuleSet(_ordered(tuple(rules.values()))),
            at=node,
            version=version,
            raised=raised,
            time=self._time(node, knobs),
        )


def _thresholds_ordered(knobs: Knobs, sources: dict[str, ValueSource]) -> tuple[Knobs, dict[str, float]]:
    """Return the knobs with thresholds in descending order, and the original values of raised thresholds, keyed by
    name.

    A threshold below the threshold of the next rung is raised to that value, and gets the source of that value. The
    step of the raised threshold then has no effect.
    """
    raised: dict[str, float] = {}
    for lower, upper in itertools.pairwise(reversed(THRESHOLDS)):
        floor, value = getattr(knobs, lower), getattr(knobs, upper)
        if value < floor:
            raised[upper] = value
            sources[upper] = sources[lower]
            knobs = dataclasses.replace(knobs, **{upper: floor})
    return knobs, raised


def _ordered(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Return rules in an order in which each category is added before it is used. If there is no such order, return
    them unchanged."""
    try:
        return rules_ordered(rules)
    except ValueRefused:
        # Saving refuses rules that cannot be ordered, but a preview must still work.
        return rules


def _upwards(scope: str) -> Iterator[str]:
    path = scope
    while path != ROOT:
        yield path
        path = path.rpartition("/")[0] or ROOT
    yield ROOT
