"""Steps from one draft of a policy to the next: take a preset, add a shipped set of rules, switch a rule off. Pure."""

import dataclasses

from memory.core.errors import ValueRefused
from memory.core.policy_presets import PRESETS
from memory.core.problem_codes import ProblemCode
from memory.policy.shipped_rule_sets import SHIPPED_RULE_SETS
from memory.policy.snapshot import Policies, SetPolicy


def draft_start(policies: Policies, scope: str) -> SetPolicy:
    """Return what is set at ``scope``, a canonical path, to begin a draft with."""
    return policies.policies.get(scope) or SetPolicy(scope, 0)


def draft_with_preset(draft: SetPolicy, preset: str) -> SetPolicy:
    """Return ``draft`` under ``preset``: values that make up the design are its own, the others stay as they are set.

    Raises ``ValueRefused`` for an unknown preset; an empty one is none.
    """
    if preset and preset not in PRESETS:
        raise ValueRefused(
            f"There is no preset {preset!r}; there are {', '.join(PRESETS)}.", code=ProblemCode.UNKNOWN_PRESET
        )
    design = PRESETS[preset].values if preset else {}
    kept = {name: value for name, value in draft.values.items() if name not in design}
    return dataclasses.replace(draft, preset=preset, values=kept)


def preset_overridden(draft: SetPolicy) -> list[str]:
    """Return the names of the values that go before the preset of ``draft``, so that it is not quite the design."""
    return [name for name in draft.values if draft.preset and name in PRESETS[draft.preset].values]


def draft_with_set(draft: SetPolicy, name: str) -> SetPolicy:
    """Return ``draft`` with the rules of a shipped set after its own; one of the same name gives way to the set's.

    Raises ``ValueRefused`` for an unknown set.
    """
    if name not in SHIPPED_RULE_SETS:
        raise ValueRefused(
            f"There is no set of rules named {name[:100]!r}; there are {', '.join(SHIPPED_RULE_SETS)}.",
            code=ProblemCode.UNKNOWN_RULE_PRESET,
        )
    added = [dataclasses.replace(rule, scope=draft.scope) for rule in SHIPPED_RULE_SETS[name]]
    names = {rule.name for rule in added}
    return dataclasses.replace(draft, rules=(*(rule for rule in draft.rules if rule.name not in names), *added))


def draft_with_switched(policies: Policies, draft: SetPolicy, name: str) -> SetPolicy:
    """Return ``draft`` with the rule ``name`` switched off, or on if it is off.

    A rule from above or from a preset is switched by one of its name here, which is the nearer of the two. Raises
    ``ValueRefused`` if no such rule holds.
    """
    rules = policies.with_policy(draft).effective(draft.scope).rules.rules
    rule = next((rule for rule in rules if rule.name == name), None)
    if rule is None:
        raise ValueRefused(f"No rule named {name[:100]!r} holds in {draft.scope}.", code=ProblemCode.UNKNOWN_RULE)
    switched = dataclasses.replace(rule, enabled=not rule.enabled, scope=draft.scope)
    if any(own.name == name for own in draft.rules):
        return dataclasses.replace(draft, rules=tuple(switched if own.name == name else own for own in draft.rules))
    return dataclasses.replace(draft, rules=(*draft.rules, switched))


def draft_without_rule(draft: SetPolicy, name: str) -> SetPolicy:
    """Return ``draft`` without its own rule ``name``; one of that name from above or from a preset holds again."""
    return dataclasses.replace(draft, rules=tuple(rule for rule in draft.rules if rule.name != name))
