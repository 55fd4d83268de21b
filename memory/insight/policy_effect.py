"""The effect of a policy change before it is saved: its diff, the new values in force, and the topics it would move."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.core.scopes import scope_normalize
from memory.insight.whatif import STEPS, WhatIf, whatif
from memory.models import Rung
from memory.policy.draft import policies_drafted
from memory.policy.effective import policies_current
from memory.policy.explain import rules_as_json
from memory.policy.read import diff_rows, draft_diff, effective_as_json
from memory.policy.save import version_find
from memory.policy.snapshot import Policies


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a change. ``diff`` is the diff of the next version, ``in_force`` that of the values in force.

    ``moments`` are today, in 30 days and in 90 days, each with a line for every rung to which a run moves topics.
    ``archived_more`` is how many more topics a run today would archive because of the change; negative for fewer.
    """

    scope: str
    base_version: int
    diff: list[dict[str, Any]]
    in_force: list[dict[str, Any]]
    rules: list[dict[str, Any]]
    active: int
    moments: list[dict[str, Any]]
    archived_more: int
    mode: str


def policy_effect(
    scope: str, *, preset: str | None, values: Mapping[str, object], rules: Sequence[object] | None, now: dt.datetime
) -> Effect:
    """Return the effect of saving this policy at ``scope``. One statement, and those of ``whatif``.

    Raises ``ValueRefused`` as a save would.
    """
    scope = scope_normalize(scope)
    present = policies_current()
    draft = policies_drafted(present, scope, preset=preset, values=values, rules=rules)
    return _effect(present, draft, scope, now)


def rollback_effect(scope: str, *, to: int, now: dt.datetime) -> Effect:
    """Return the effect of rolling back to version ``to``, as ``policy_effect`` does. One additional statement."""
    scope = scope_normalize(scope)
    target = version_find(scope, number=to)
    return policy_effect(scope, preset=target.preset, values=target.values, rules=target.rules, now=now)


def _effect(present: Policies, draft: Policies, scope: str, now: dt.datetime) -> Effect:
    found = whatif(scope, present=present, draft=draft, now=now)
    effective = draft.effective(scope)
    values_before, values_after = (effective_as_json(policies.effective(scope)) for policies in (present, draft))
    in_force = [
        {"name": name, "before": value["value"], "after": values_after[name]["value"]}
        for name, value in values_before.items()
        if value["value"] != values_after[name]["value"]
    ]
    return Effect(
        scope=scope,
        base_version=present.numbers.get(scope, 0),
        diff=draft_diff(present, draft, scope=scope),
        in_force=diff_rows(in_force, scope=scope),
        rules=rules_as_json(draft, effective),
        active=found.active,
        archived_more=found.steps["archive"].draft - found.steps["archive"].now,
        moments=_moments(found, now),
        mode=effective.knobs.mode,
    )


def _moments(found: WhatIf, now: dt.datetime) -> list[dict[str, Any]]:
    today = {name: (step.now, step.draft) for name, step in found.steps.items()}
    counts = [(0, today)]
    counts += [
        ((each.at - now).days, {name: (each.now[name], each.draft[name]) for name in STEPS})
        for each in found.projections
    ]
    return [
        {
            "days": days,
            "rungs": [
                {
                    "rung": Rung(rung).label,
                    "now": steps[name][0],
                    "draft": steps[name][1],
                    "difference": steps[name][1] - steps[name][0],
                }
                for name, rung in STEPS.items()
            ],
        }
        for days, steps in counts
    ]
