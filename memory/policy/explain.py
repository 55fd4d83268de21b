"""Policies as the console shows them: versions with their diffs, rules in words, and the next scheduled run."""

import datetime as dt
import functools
import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Q

from memory.core.errors import NotVisible
from memory.core.policy_values import KNOB_LABELS, KNOBS
from memory.core.scopes import scope_normalize, scope_within
from memory.models import PolicyVersion
from memory.policy.diff import diff_lines
from memory.policy.effective import policies_current
from memory.policy.read import diff_rows, number_words, policy_versions, rule_in_force, version_as_json
from memory.policy.rekey import rekeying_progress
from memory.policy.replies import PolicyVersionOut
from memory.policy.save import version_content, version_find, version_present
from memory.policy.schedules import schedule_as_json
from memory.policy.snapshot import EffectivePolicy, Policies

# The titles of the groups of knobs.
GROUPS = {
    "ladder": "Strategy and stages",
    "runs": "Runs",
    "salience": "Salience",
    "duplicates": "Duplicates",
    "tokens": "Token budgets",
    "regret": "Missed memories",
    "recall": "Recall",
}
# A page lists at most this many policies below a scope. The tree lists all of them.
MAX_BELOW = 20
# A page lists at most this many policy versions of a run.
MAX_BEHIND = 12


def policy_sheet(scope: str, *, now: dt.datetime) -> dict[str, Any]:
    """Return the next scheduled run in ``scope``, the scopes below it that have a policy, the exempt scope that
    contains ``scope``, and the unfinished re-keyings. At most two SQL statements, plus those of ``policies_current``.
    Raises ``ValueRefused``."""
    scope = scope_normalize(scope)
    policies = policies_current()
    effective = policies.effective(scope)
    below = [node.scope for node in policies.nodes(scope)[1:]]
    return {
        "below": below[:MAX_BELOW],
        "below_more": max(0, len(below) - MAX_BELOW),
        "is_exempt": next((path for path in effective.knobs.exempt_scopes if scope_within(scope, path)), None),
        "schedule": schedule_as_json(effective.at, cron=effective.knobs.cron, mode=effective.knobs.mode, now=now),
        "rekeying": rekeying_progress(scope) if policies.rekeying_touches(scope) else [],
    }


def policy_history(scope: str, *, before: int | None, limit: int) -> tuple[list[dict[str, Any]], int | None]:
    """Return the versions of ``policy_versions``, each with its diff in words. One query."""
    versions, following = policy_versions(scope, before=before, limit=limit)
    return [_with_diff(version) for version in versions], following


def _with_diff(version: PolicyVersionOut) -> dict[str, Any]:
    return {**version, "diff_rows": diff_rows(version["diff"], scope=version["scope"])}


def policy_version_show(scope: str, *, number: int) -> dict[str, Any]:
    """Return one version of the policy of ``scope`` with its diff, and the numbers of the versions before and after it.
    Two SQL statements. Raises ``NotVisible`` and ``ValueRefused``."""
    scope = scope_normalize(scope)
    version = PolicyVersion.objects.filter(scope=scope, number=number).first()
    if version is None:
        raise NotVisible(f"The policy of {scope} has no version {number}.")
    newest = policies_current().numbers.get(scope, number)
    return {
        **_with_diff(version_as_json(version)),
        "newest": newest,
        "is_present": number == newest,
        "before": number - 1 or None,
        "after": number + 1 if number < newest else None,
        "value_rows": [
            {
                "name": name,
                "label": KNOB_LABELS.get(name, ""),
                "meaning": KNOBS[name].meaning if name in KNOBS else "",
                "words": number_words(value),
            }
            for name, value in version.values.items()
        ],
    }


def versions_behind(versions: Mapping[str, int], *, before: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return at most ``MAX_BEHIND`` of the policy versions that a run used, each with its diff. ``versions`` and
    ``before`` map the path of a policy to its version in this run and in the previous run. ``is_present`` marks the
    newest version, and ``is_new`` a version that differs from ``before``. Two SQL statements."""
    wanted = dict(itertools.islice(versions.items(), MAX_BEHIND))
    if not wanted:
        return []
    exact = functools.reduce(operator.or_, (Q(scope=path, number=number) for path, number in wanted.items()))
    found = {version.scope: version for version in PolicyVersion.objects.filter(exact)}
    newest = policies_current().numbers
    return [
        {
            **_with_diff(version_as_json(found[path])),
            "is_present": newest.get(path) == number,
            "before": number - 1 or None,
            "is_new": before.get(path) != number,
        }
        for path, number in wanted.items()
        if path in found
    ]


def versions_since(scopes: Sequence[str], *, since: dt.datetime, limit: int) -> list[dict[str, Any]]:
    """Return the last ``limit`` policy versions that were saved for ``scopes`` since ``since``, earliest first. One
    query."""
    found = PolicyVersion.objects.filter(scope__in=scopes, created_at__gte=since).order_by("-created_at")
    rows = found.values("scope", "number", "created_at", "reason")[:limit]
    return [dict(row) for row in reversed(rows)]


def policy_newer(scope: str, *, than: int) -> dict[str, Any] | None:
    """Return the newest version of a policy with its differences from version ``than``, or None if ``than`` is the
    newest. Two queries."""
    present = version_present(scope)
    if present.number == than:
        return None
    base = version_find(scope, number=than)
    return {
        **version_as_json(present),
        "diff_rows": diff_rows(diff_lines(version_content(base), version_content(present)), scope=scope),
    }


def rules_as_json(policies: Policies, effective: EffectivePolicy) -> list[dict[str, Any]]:
    """Return the rules in force, in the order in which they apply, each in words and as JSON."""
    return [
        {
            "preset": "",
            **rule_in_force(rule, policies),
            "source": rule.scope,
            "here": rule.scope == effective.scope,
            "json": rule.as_json(),
        }
        for rule in effective.rules.rules
    ]
