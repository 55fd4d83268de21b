"""Changes of a draft: choose a preset, add a shipped rule set, change the rules. Pure functions."""

import dataclasses

from memory.core.errors import ValueRefused
from memory.core.policy_presets import PRESETS
from memory.core.problem_codes import ProblemCode
from memory.core.rules import Rule
from memory.policy.shipped_rule_sets import preset_check, rule_set_get
from memory.policy.snapshot import Policies, SetPolicy


def draft_with_preset(draft: SetPolicy, preset: str) -> SetPolicy:
    """Return ``draft`` with ``preset``, and without those of its own values that ``preset`` sets. Raises
    ``ValueRefused``."""
    preset_check(preset)
    design = PRESETS[preset].values if preset else {}
    kept = {name: value for name, value in draft.values.items() if name not in design}
    return dataclasses.replace(draft, preset=preset, values=kept)


def preset_overridden(draft: SetPolicy) -> list[str]:
    """Return the names of the values of ``draft`` that override its preset."""
    return [name for name in draft.values if draft.preset and name in PRESETS[draft.preset].values]


def draft_with_set(draft: SetPolicy, name: str) -> SetPolicy:
    """Return ``draft`` with the rules of a shipped set at the end, and without its own rules of the same names. Raises
    ``ValueRefused``."""
    added = [dataclasses.replace(rule, scope=draft.scope) for rule in rule_set_get(name)]
    names = {rule.name for rule in added}
    return dataclasses.replace(draft, rules=(*(rule for rule in draft.rules if rule.name not in names), *added))


def draft_with_switched(policies: Policies, draft: SetPolicy, name: str) -> SetPolicy:
    """Return ``draft`` with the rule ``name`` switched off, or on if it is off. An inherited rule is overridden by
    adding a rule of the same name. Raises ``ValueRefused`` if no such rule is in force."""
    rules = policies.with_policy(draft).effective(draft.scope).rules.rules
    rule = next((rule for rule in rules if rule.name == name), None)
    if rule is None:
        raise ValueRefused(f"No rule named {name[:100]!r} is in force in {draft.scope}.", code=ProblemCode.NOT_FOUND)
    switched = dataclasses.replace(rule, enabled=not rule.enabled, scope=draft.scope)
    if any(own.name == name for own in draft.rules):
        return dataclasses.replace(draft, rules=tuple(switched if own.name == name else own for own in draft.rules))
    return dataclasses.replace(draft, rules=(*draft.rules, switched))


def draft_without_rule(draft: SetPolicy, name: str) -> SetPolicy:
    """Return ``draft`` without its own rule ``name``. An inherited or preset rule of this name applies again."""
    return dataclasses.replace(draft, rules=tuple(rule for rule in draft.rules if rule.name != name))


def draft_with_rule(draft: SetPolicy, rule: Rule, *, replaced: str) -> SetPolicy:
    """Return ``draft`` with ``rule`` instead of its rule named ``replaced``, or at the end if it has no such rule."""
    at = next((at for at, own in enumerate(draft.rules) if own.name == replaced), len(draft.rules))
    return dataclasses.replace(draft, rules=(*draft.rules[:at], rule, *draft.rules[at + 1 :]))


def draft_with_moved(draft: SetPolicy, name: str, *, by: int) -> SetPolicy:
    """Return ``draft`` with its own rule ``name`` moved down by ``by`` positions, or up if ``by`` is negative."""
    rules = list(draft.rules)
    at = next((at for at, own in enumerate(rules) if own.name == name), None)
    if at is not None:
        rule = rules.pop(at)
        rules.insert(max(0, at + by), rule)
    return dataclasses.replace(draft, rules=tuple(rules))
