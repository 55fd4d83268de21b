"""Parses the policy draft of a request, and checks the values and rules that the draft would put in force."""

import itertools
from collections.abc import Mapping, Sequence

from django.conf import settings

from memory.core.errors import ValueRefused
from memory.core.policy_presets import PRESETS
from memory.core.policy_values import KNOB_ALIASES, KNOBS, THRESHOLDS, KnobValue, knob_parse, knob_unknown
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import scope_normalize
from memory.policy.cron import cron_check
from memory.policy.rule_parsing import rules_ordered, rules_parse
from memory.policy.shipped_rule_sets import preset_check, rule_set_get
from memory.policy.snapshot import DEFAULT, ENVIRONMENT, EffectivePolicy, Policies, SetPolicy

# The dimension of all vectors of the store. Replies list it among the effective values, but no policy can set it.
DIMENSION = "embedding_dimension"


def draft_parse(
    policies: Policies,
    scope: str,
    *,
    preset: str | None,
    values: Mapping[str, object],
    rules: Sequence[object] | None,
    number: int = 0,
) -> SetPolicy:
    """Return the policy that would be set at ``scope``, a canonical path. Raises ``ValueRefused``."""
    preset_check(preset or "")
    return SetPolicy(
        scope=scope,
        number=number,
        preset=preset or "",
        values=values_parse(values),
        rules=policies.set_at(scope).rules if rules is None else rules_parse(_sets_expanded(rules), scope=scope),
    )


def values_parse(values: Mapping[str, object]) -> dict[str, KnobValue]:
    """Return the parsed values, keyed by canonical name and sorted by it. A value of None means inherited and is left
    out. Raises ``ValueRefused`` for an unknown name, a name given twice, and an invalid value."""
    parsed: dict[str, KnobValue] = {}
    for given, value in values.items():
        name = KNOB_ALIASES.get(given, given)
        if name == DIMENSION:
            _dimension_check(value)
            continue
        if name != given and name in values:
            raise ValueRefused(
                f"{given} is another name of {name}; send one of the two.",
                code=ProblemCode.CONTRADICTORY_REQUEST,
                member=given,
            )
        if value is None:
            # An unknown name is an error even without a value.
            knob_name(name)
        else:
            parsed[name] = knob_parse(name, value)
    return dict(sorted(parsed.items()))


def knob_name(name: str) -> str:
    """Return the canonical name of a policy value. Raises ``ValueRefused`` for an unknown name."""
    name = KNOB_ALIASES.get(name, name)
    if name not in KNOBS:
        raise knob_unknown(name)
    return name


def policies_drafted(
    policies: Policies,
    scope: str,
    *,
    preset: str | None = None,
    values: Mapping[str, object],
    rules: Sequence[object] | None = None,
) -> Policies:
    """Return a snapshot in which the policy at ``scope`` consists of ``preset``, ``values`` and ``rules``. No query. If
    ``rules`` is None, the present rules stay. Raises ``ValueRefused`` for an invalid draft."""
    policy = draft_parse(policies, scope_normalize(scope), preset=preset, values=values, rules=rules)
    drafted = policies.with_policy(policy)
    draft_check(drafted, policy.scope)
    return drafted


def draft_check(policies: Policies, scope: str) -> None:
    """Raise ``ValueRefused`` if values or rules in force at or below ``scope`` contradict each other, or if a cron line
    there is invalid."""
    if scope in policies.policies:
        _thresholds_check(policies.policies[scope])
    for effective in policies.nodes(scope):
        # The rules of each scope are in order, but rules of two scopes may depend on each other's categories.
        rules_ordered(effective.rules.rules)
        try:
            cron_check(effective.knobs.cron)
        except ValueRefused as problem:
            source = effective.sources["cron"].source
            if source == scope:
                raise
            raise ValueRefused(
                f"{problem.sentence} It comes {_from(effective, 'cron')}.", code=problem.code, member="cron"
            ) from None


def _thresholds_check(policy: SetPolicy) -> None:
    """Raise ``ValueRefused`` if thresholds that one scope sets contradict each other. Thresholds of different scopes
    may contradict each other; ``_thresholds_ordered`` in ``snapshot`` resolves this."""
    if wrong := thresholds_wrong(policy):
        (upper, above), (lower, below) = wrong
        raise ValueRefused(
            f"{upper} must be at least {lower}, but {upper} is {above:g}{_by_preset(policy, upper)} and "
            f"{lower} is {below:g}{_by_preset(policy, lower)}.",
            code=ProblemCode.INVALID_POLICY,
            member=upper,
        )


def thresholds_wrong(policy: SetPolicy) -> tuple[tuple[str, float], tuple[str, float]] | None:
    """Return the first two thresholds of a policy that contradict each other, the upper one first, or None."""
    preset = PRESETS[policy.preset].values if policy.preset else {}
    values = {**preset, **policy.values}
    here = [(name, float(str(values[name]))) for name in THRESHOLDS if name in values]
    return next((pair for pair in itertools.pairwise(here) if pair[0][1] < pair[1][1]), None)


def _by_preset(policy: SetPolicy, name: str) -> str:
    return "" if name in policy.values else f" (by preset {policy.preset})"


def _from(effective: EffectivePolicy, name: str) -> str:
    source = effective.sources[name]
    if source.source == DEFAULT:
        return f"the default of {effective.knobs.strategy}"
    if source.source == ENVIRONMENT:
        return f"from MEMSTATE_{name.upper()} in the environment"
    return f"from {source.source}" + (f" by preset {source.preset}" if source.preset else "")


def _sets_expanded(rules: Sequence[object]) -> list[object]:
    """Return ``rules`` with each name of a shipped rule set replaced by the rules of the set."""
    expanded: list[object] = []
    for entry in rules:
        expanded += [rule.as_json() for rule in rule_set_get(entry)] if isinstance(entry, str) else [entry]
    return expanded


def _dimension_check(value: object) -> None:
    present = settings.MEMSTATE_EMBEDDING_DIMENSION
    if value is not None and str(value) != str(present):
        raise ValueRefused(
            f"{DIMENSION} is {present} and belongs to the whole store, so no policy can set it to {value!r}: set "
            f"MEMSTATE_EMBEDDING_DIMENSION and the embedder in the environment, and run manage.py reembed.",
            code=ProblemCode.INVALID_POLICY,
            member=DIMENSION,
        )
