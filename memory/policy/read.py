"""The policy of a scope for the API: what is set, what is in force with the sources, and the history."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

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
from memory.policy.replies import DiffLine, EffectiveValue, PolicyOut, PolicyVersionOut, RuleInForce
from memory.policy.snapshot import DEFAULT, ENVIRONMENT, EffectivePolicy, Policies
from memory.predicates.words import rule_describe

# The default dimension of the vectors.
_DIMENSION_DEFAULT = 384


def policy_show(scope: str, *, caller: str = ROOT) -> PolicyOut:
    """Return what is set and what is in force at ``scope``. At most one SQL statement, plus those of
    ``policies_current``. Raises ``ValueRefused``.

    ``rules`` are the rules set at this scope, ``rules_in_words`` are all rules in force. ``rekeying`` contains only
    what a caller with the scope ``caller`` may see.
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
        "rules_in_words": [rule_in_force(rule, policies) for rule in effective.rules.rules],
        "effective": effective_as_json(effective),
        "warnings": policies.warnings(scope),
        "rekeying": rekeying_progress(scope, caller=caller) if policies.rekeying_touches(scope) else [],
    }


def effective_as_json(effective: EffectivePolicy) -> dict[str, EffectiveValue]:
    """Return every value in force with its source, keyed by name."""
    items: dict[str, EffectiveValue] = {}
    for name in KNOBS:
        source = effective.sources[name]
        items[name] = {"value": _plain(getattr(effective.knobs, name)), "from": source.source}
        if source.preset:
            items[name]["preset"] = source.preset
        if name in effective.raised:
            items[name]["raised_from"] = effective.raised[name]
    width = settings.MEMSTATE_EMBEDDING_DIMENSION
    items[DIMENSION] = {"value": width, "from": DEFAULT if width == _DIMENSION_DEFAULT else ENVIRONMENT}
    return items


def policy_versions(
    scope: str, *, before: int | None = None, limit: int = 50
) -> tuple[list[PolicyVersionOut], int | None]:
    """Return the versions of the policy of ``scope`` below ``before``, newest first, and the value of ``before`` for
    the next page. One query."""
    scope = scope_normalize(scope)
    found = PolicyVersion.objects.filter(scope=scope).order_by("-number")
    if before is not None:
        found = found.filter(number__lt=before)
    rows = list(found[: limit + 1])
    return [version_as_json(row) for row in rows[:limit]], rows[limit - 1].number if len(rows) > limit else None


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
        "diff": [cast("DiffLine", {**line, "in_words": _line_words(line, version.scope)}) for line in version.diff],
    }


def draft_diff(present: Policies, draft: Policies, *, scope: str) -> list[dict[str, Any]]:
    """Return the difference between the policies set at ``scope`` in two snapshots, as rows of ``diff_rows``."""
    before, after = (policies.set_at(scope).as_stored() for policies in (present, draft))
    return diff_rows(diff_lines(before, after), scope=scope)


def effective_diff(before: Policies, after: Policies, *, scope: str) -> list[dict[str, Any]]:
    """Return the difference between the values in force at ``scope`` in two snapshots, as rows of ``diff_rows``."""
    old, new = (effective_as_json(policies.effective(scope)) for policies in (before, after))
    changed = [
        {"name": name, "before": value["value"], "after": new[name]["value"]}
        for name, value in old.items()
        if value["value"] != new[name]["value"]
    ]
    return diff_rows(changed, scope=scope)


def diff_rows(diff: Sequence[Mapping[str, Any]], *, scope: str) -> list[dict[str, Any]]:
    """Return the lines of a diff for the console: ``name``, ``kind`` (added, removed or changed), and the values before
    and after in words. None means an inherited value or a missing rule."""
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
    """Return a value in words (``value_words``), with commas in large whole numbers."""
    large = isinstance(value, (int, float)) and abs(value) >= 1000 and value == int(value)
    return f"{int(value):,}" if large else value_words(value)


def rule_sentence(rule: Rule) -> str:
    """Return a rule as a sentence, or its name and the problem if this release cannot parse it."""
    try:
        return rule_describe(rule)
    except MemoryProblem as problem:
        return f"Rule {rule.name!r} is no longer valid: {problem.sentence}"


def rule_in_force(rule: Rule, policies: Policies) -> RuleInForce:
    """Return a rule in words, with the scope and the preset that contain it."""
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
