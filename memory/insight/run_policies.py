"""The policies that a run was planned under, read back from their versions."""

from collections.abc import Mapping

from django.db.models import Q

from memory.models import PolicyVersion
from memory.policy.effective import policy_stored
from memory.policy.snapshot import Policies


def policies_of_run(versions: Mapping[str, int], *, present: Policies) -> Policies:
    """Return the policies in these versions, by path, as a run stores them. One query, none without versions.

    Defaults from the environment are not stored with a run, so the present ones are used; so are the idle days.
    """
    condition = Q()
    for path, number in versions.items():
        condition |= Q(scope=path, number=number)
    rows = PolicyVersion.objects.filter(condition) if versions else []
    found = [policy_stored(row.scope, row.number, row.preset, row.values, row.rules) for row in rows]
    return Policies(
        environment=present.environment,
        policies={policy.scope: policy for policy in found if not policy.is_empty},
        numbers={policy.scope: policy.number for policy in found},
        times=present.times,
    )
