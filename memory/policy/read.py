"""The policy of a scope for the API: what is set, what is in force with the sources, and the history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from memory.core.errors import MemoryProblem
from memory.core.policy_values import KNOB_LABELS, KNOBS
from memory.core.rules import Rule
from memory.core.scopes import ROOT, scope_normalize
from memory.models import PolicyVersion
from memory.policy.diff import RULE, diff_lines, line_words, value_words
from memory.policy.draft import DIMENSION
from memory.policy.effective import policies_current, rules_stored
from memory.policy.rekey import rekeying_progress
from memory.policy.replies import EffectiveValue, PolicyOut, PolicyVersionOut, RuleInForce
from memory.policy.snapshot import DEFAULT, ENVIRONMENT, EffectivePolicy, Policies
from memory.predicates.words import rule_describe

# The default dimension of the vectors.
_DIMENSION_DEFAULT = 384


@dataclass(frozen=True, slots=True)
class PolicyPage:
    """A page of the history. ``next`` is the value of ``before`` for the next page, None at the end."""

    items: Sequence[PolicyVersionOut]
    next: int | None = None


def policy_show(scope: str, *, caller: str = ROOT) -> PolicyOut:
    """Return what is set at ``scope`` and what is in force there. One statement, two after a policy has been saved.

    ``effective`` has every value with its source (a scope, ``default`` or ``environment``) and preset. ``rules`` are
    the rules set at this scope, ``rules_in_words`` all rules in force. ``rekeying`` is the progress of changes of a
    half-life, as far as a caller with the scope ``caller`` may see it; one more statement while there are such changes.
    Raises ``ValueRefused`` for a malformed scope.
    """
    scope = scope_normalize(scope)
    policies = policies_current()
    here = policies.set_at(scope)
    effective = policies.effective(scope)
    return {
        "scope": scope,
        "version": policies.numbers.get(scope, 0),
        "preset": here.preset or None,
        "values": {name: _plain(value) for name, value in here.values.items()},
        "rules": [rule.as_json() for rule in here.rules],
        "rules_in_words": [_rule_as_json(rule, policies) for rule in effective.rules.rules],
        "effective": effective_as_json(effective),
        "warnings": policies.warnings(scope),
        "rekeying": rekeying_progress(scope, caller=caller) if policies.rekeying_touches(scope) else [],
    }


def effective_as_json(effective: EffectivePolicy) -> dict[str, EffectiveValue]:
    """Return every value in force by name."""
    items: dict[str, EffectiveValue] = {}
    for name in KNOBS:
        source = effective.sources[name]
        items[name] = {"value": _plain(getattr(effective.knobs, name)), "from": source.source}
        if source.preset:
            items[name]["preset"] = source.preset
    width = settings.MEMSTATE_EMBEDDING_DIMENSION
    items[DIMENSION] = {"value": width, "from": DEFAULT if width == _DIMENSION_DEFAULT else ENVIRONMENT}
    return items


def policy_versions(scope: str, *, before: int | None = None, limit: int = 50) -> PolicyPage:
    """Return the versions of the policy of ``scope``, newest first, with numbers below ``before``. One query."""
    scope = scope_normalize(scope)
    found = PolicyVersion.objects.filter(scope=scope).order_by("-number")
    if before is not None:
        found = found.filter(number__lt=before)
    rows = list(found[: limit + 1])
    items = [version_as_json(row) for row in rows[:limit]]
    return PolicyPage(items, rows[limit - 1].number if len(rows) > limit else None)


def version_as_json(version: PolicyVersion) -> PolicyVersionOut:
    """Return one version of a policy, with its rules and its diff in words."""
    return {
        "scope": version.scope,
        "version": version.number,
        "author": version.author,
        "reason": version.reason,
        "created_at": version.created_at,
        "preset": version.preset or None,
        "values": version.values,
        "rules": version.rules,
        "rules_in_words": [rule_sentence(rule) for rule in rules_stored(version.rules, version.scope)],
        "rolled_back_to": version.rolled_back_to,
        "diff": [
            {
                "name": line["name"],
                "before": line["before"],
                "after": line["after"],
                "in_words": _line_words(line, version.scope),
            }
            for line in version.diff
        ],
    }


def draft_diff(present: Policies, draft: Policies, *, scope: str) -> list[dict[str, Any]]:
    """Return the difference between the policies set at ``scope`` in two snapshots, as ``diff_rows`` does."""
    before, after = (policies.set_at(scope).as_stored() for policies in (present, draft))
    return diff_rows(diff_lines(before, after), scope=scope)


def diff_rows(diff: Sequence[Mapping[str, Any]], *, scope: str) -> list[dict[str, Any]]:
    """Return the lines of a diff for the console: ``name``, ``kind`` (added, removed or changed), and the values before
    and after in words.

    A rule is described by a sentence. An inherited value or a missing rule is None.
    """
    items = []
    for line in diff:
        before, after = line["before"], line["after"]
        is_rule = line["name"].startswith(RULE)
        items.append(
            {
                "name": line["name"].removeprefix(RULE) if is_rule else line["name"],
                "is_rule": is_rule,
                "label": KNOB_LABELS.get(line["name"], ""),
                "meaning": KNOBS[line["name"]].meaning if line["name"] in KNOBS else "",
                "kind": "added" if before is None else "removed" if after is None else "changed",
                "before": _side_words(line["name"], before, scope),
                "after": _side_words(line["name"], after, scope),
            }
        )
    return items


def _side_words(name: str, value: Any, scope: str) -> str | None:
    if value is None:
        return None
    if not name.startswith(RULE):
        return number_words(value)
    (rule,) = rules_stored([value], scope)
    return rule_sentence(rule)


def number_words(value: Any) -> str:
    """Return a value as ``value_words`` does, with commas in large whole numbers."""
    large = isinstance(value, (int, float)) and abs(value) >= 1000 and value == int(value)
    return f"{int(value):,}" if large else value_words(value)


def rule_sentence(rule: Rule) -> str:
    """Return a rule as a sentence. If this release cannot parse the rule, the sentence states its name and the
    problem."""
    try:
        return rule_describe(rule)
    except MemoryProblem as problem:
        return f"Rule {rule.name!r} is no longer valid: {problem.sentence}"


def _rule_as_json(rule: Rule, policies: Policies) -> RuleInForce:
    items: RuleInForce = {"name": rule.name, "words": rule_sentence(rule), "enabled": rule.enabled, "from": rule.scope}
    at = policies.policies[rule.scope]
    if rule not in at.rules:
        items["preset"] = at.preset
    return items


def _line_words(line: Mapping[str, Any], scope: str) -> str:
    words = line_words(line)
    if not line["name"].startswith(RULE) or line["after"] is None:
        return words
    (rule,) = rules_stored([line["after"]], scope)
    return f"{words}: {rule_sentence(rule)}"


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
