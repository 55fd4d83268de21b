"""The policies under which a run was planned, read from their versions."""

from collections.abc import Mapping

from django.db.models import Q

from memory.models import PolicyVersion
from memory.policy.effective import policy_stored
from memory.policy.snapshot import Policies


def policies_of_run(versions: Mapping[str, int], *, present: Policies) -> Policies:
    """Return the policies in the versions that a run stores. ``versions`` maps the path of each policy to a version
    number. The defaults and the idle days are those of ``present``, because a run does not store them. At most one
    query."""
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
