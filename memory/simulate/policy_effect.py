"""The effect of a policy change before it is saved: its diff, the new values in force, and the topics it would move."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from memory.core.scopes import scope_normalize
from memory.policy.draft import policies_drafted
from memory.policy.effective import policies_current
from memory.policy.read import draft_diff, effective_diff
from memory.policy.save import version_find
from memory.policy.snapshot import Policies
from memory.simulate.whatif import STEPS, Trial, whatif


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a change. ``diff`` compares the draft with the present policy of the scope. ``in_force`` compares
    the values that are in force before and after the change. ``moments`` are the counts today, in 30 days and in 90
    days. ``archived_more`` is how many more topics a run today would archive after the change. ``held_because``: see
    ``WhatIf``."""

    base_version: int
    diff: list[dict[str, Any]]
    in_force: list[dict[str, Any]]
    active: int
    moments: list[dict[str, Any]]
    archived_more: int
    mode: str
    held_because: str

    @property
    def archived_fewer(self) -> int:
        """How many fewer topics a run today would archive after the change."""
        return -self.archived_more


def policy_effect(scope: str, *, present: Policies, draft: Policies, now: dt.datetime) -> Effect:
    """Return the effect of saving ``draft`` at ``scope``, a canonical path. One SQL statement."""
    found = whatif(Trial(scope, present, draft, now))
    return Effect(
        base_version=present.numbers.get(scope, 0),
        diff=draft_diff(present, draft, scope=scope),
        in_force=effective_diff(present, draft, scope=scope),
        active=found.active,
        moments=[
            {
                "days": (each.at - now).days,
                "rungs": [{"rung": rung.label, "counts": each.steps[name]} for name, rung in STEPS.items()],
            }
            for each in (found.today, *found.projections)
        ],
        archived_more=found.today.steps["archive"].difference,
        mode=draft.knobs(scope).mode,
        held_because=found.held_because,
    )


def rollback_effect(scope: str, *, to: int, now: dt.datetime) -> Effect:
    """Return the effect of rolling back to version ``to``. Three SQL statements. Raises ``ValueRefused`` if the
    rollback would be refused."""
    scope = scope_normalize(scope)
    present, target = policies_current(), version_find(scope, number=to)
    draft = policies_drafted(present, scope, preset=target.preset, values=target.values, rules=target.rules)
    return policy_effect(scope, present=present, draft=draft, now=now)
