"""The presets and shipped rule sets that an operator can choose, each with its effect at a scope."""

from typing import Any

from memory.core.policy_presets import PRESETS
from memory.core.scopes import scope_normalize
from memory.policy.draft_steps import draft_with_preset
from memory.policy.effective import policies_current
from memory.policy.read import effective_diff, rule_sentence
from memory.policy.shipped_rule_sets import RULE_SET_LABELS, SHIPPED_RULE_SETS


def presets_offered(scope: str) -> list[dict[str, Any]]:
    """Return every preset with what it would change at ``scope``. Usually one SQL statement. Raises
    ``ValueRefused``."""
    scope = scope_normalize(scope)
    policies = policies_current()
    here = policies.set_at(scope)
    present = policies.effective(scope)
    offered = []
    for name, preset in PRESETS.items():
        drafted = policies.with_policy(draft_with_preset(here, name))
        draft = drafted.effective(scope)
        offered.append(
            {
                "name": name,
                "meaning": preset.meaning,
                "chosen": here.preset == name,
                "changes": effective_diff(policies, drafted, scope=scope),
                "rules_begin": [rule_sentence(rule) for rule in draft.rules.rules if rule not in present.rules.rules],
                "rules_cease": [rule_sentence(rule) for rule in present.rules.rules if rule not in draft.rules.rules],
            }
        )
    return offered


def rule_sets_offered(scope: str) -> list[dict[str, Any]]:
    """Return every shipped rule set with the number of its rules that are in force. Usually one SQL statement. Raises
    ``ValueRefused``."""
    effective = policies_current().effective(scope_normalize(scope))
    in_force = {rule.name for rule in effective.rules.rules if rule.enabled}
    return [
        {
            "name": name,
            "label": RULE_SET_LABELS[name],
            "rules": [{"name": rule.name, "words": rule_sentence(rule), "json": rule.as_json()} for rule in rules],
            "holding": sum(rule.name in in_force for rule in rules),
        }
        for name, rules in SHIPPED_RULE_SETS.items()
    ]
