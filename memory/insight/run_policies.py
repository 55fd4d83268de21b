"""The policies that a run was planned under, read back from their versions."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Q

from memory.core.knobs import KNOBS, KnobValue
from memory.core.presets import PRESETS
from memory.models import PolicyVersion
from memory.policy.effective import rules_stored
from memory.policy.snapshot import Policies, SetPolicy


def policies_of_run(versions: Mapping[str, int], *, environment: Mapping[str, KnobValue]) -> Policies:
    """Return the snapshot made of these versions by path, as a run keeps them. One query, none for no versions.

    Defaults from the environment are kept nowhere: those of today are taken.
    """
    wanted = Q()
    for path, number in versions.items():
        wanted |= Q(scope=path, number=number)
    rows = PolicyVersion.objects.filter(wanted) if versions else []
    found = [
        SetPolicy(
            scope=row.scope,
            number=row.number,
            preset=row.preset if row.preset in PRESETS else "",
            values=_values(row.values),
            rules=rules_stored(row.rules, row.scope),
        )
        for row in rows
    ]
    return Policies(
        environment=environment,
        policies={policy.scope: policy for policy in found if not policy.is_empty},
        numbers={policy.scope: policy.number for policy in found},
    )


def _values(stored: dict[str, Any]) -> dict[str, KnobValue]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items() if name in KNOBS}
