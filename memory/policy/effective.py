"""The policies in force now, and the knobs of a scope. All other code gets policies from this module."""

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings

from memory.core.policy_presets import PRESETS
from memory.core.policy_values import KNOBS, Knobs, KnobValue
from memory.core.rules import Rule
from memory.formulas.partition_time import PartitionTime
from memory.models.prepared import rows_prepared
from memory.policy.snapshot import Policies, SetPolicy
from memory.stores.current import store_current

# The stamp is the id and the time of the newest version. A new version has a new id, because versions commit in the
# order of their ids (``policy_lock``). The time detects a table that was emptied and filled again. The state of the
# small table of activity is its number of rows, the sum of their transaction ids, and the sum of their times.
_STAMP_SQL = """
SELECT (SELECT array[id::text, created_at::text] FROM memory_policyversion ORDER BY id DESC LIMIT 1),
       (SELECT coalesce(array_agg(scope::text ORDER BY scope), '{}') FROM memory_rekeying WHERE finished_at IS NULL),
       (SELECT concat_ws(' ', count(*), sum(xmin::text::bigint), sum(active_until)) FROM memory_partitionactivity)
"""

_TIMES_SQL = "SELECT scope, active_until, idle_spans FROM memory_partitionactivity"

_NEWEST_SQL = """
SELECT DISTINCT ON (scope) id::text, created_at::text, scope, number, preset, values::text, rules::text
FROM memory_policyversion ORDER BY scope DESC, number DESC
"""

# The last snapshot of each recently used store, with the state of its table of activity. A snapshot is valid until the
# stamp or this state changes.
_MAX_SNAPSHOTS = 200
_snapshots: OrderedDict[str, tuple[Policies, str]] = OrderedDict()


def policies_current() -> Policies:
    """Return the policies in force, as the running transaction sees them. One to three prepared statements.

    Use one snapshot per request: a second call may return newer policies.
    """
    store = store_current()
    newest, rekeying, activity = rows_prepared(_STAMP_SQL, ())[0]
    environment = tuple(sorted(settings.MEMSTATE_KNOBS.items()))
    stamp = (*(newest or ()), environment)
    snapshot, known_activity = _snapshots.get(store, (Policies(), ""))
    times = snapshot.times
    if snapshot.stamp != stamp:
        snapshot = _load(environment) if newest else Policies(stamp=stamp, environment=dict(environment))
    if known_activity != activity:
        times = {scope: PartitionTime(until, tuple(spans)) for scope, until, spans in rows_prepared(_TIMES_SQL, ())}
    if snapshot.times is not times:
        snapshot = snapshot.with_times(times)
    _snapshots[store] = (snapshot, activity)
    while len(_snapshots) > _MAX_SNAPSHOTS:
        _snapshots.popitem(last=False)
    return snapshot.with_rekeying(tuple(rekeying))


def knobs_effective(scope: str) -> Knobs:
    """Return the knobs in force at ``scope``. Usually one SQL statement. In a loop, call ``policies_current`` once
    instead."""
    return policies_current().knobs(scope)


def _load(environment: tuple[tuple[str, KnobValue], ...]) -> Policies:
    rows = rows_prepared(_NEWEST_SQL, ())
    # The stamp is taken from these rows, because they may include versions that were saved after ``_STAMP_SQL`` ran.
    newest = max(((row[0], row[1]) for row in rows), key=lambda stamp: int(stamp[0]))
    found = [
        policy_stored(scope, number, preset, json.loads(values), json.loads(rules))
        for _id, _at, scope, number, preset, values, rules in rows
    ]
    return Policies(
        stamp=(*newest, environment),
        environment=dict(environment),
        policies={policy.scope: policy for policy in found if not policy.is_empty},
        numbers={policy.scope: policy.number for policy in found},
    )


def policy_stored(
    scope: str, number: int, preset: str, values: Mapping[str, Any], rules: Sequence[dict[str, Any]]
) -> SetPolicy:
    """Return a stored version as a policy, without presets and values that this release does not know."""
    known = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items() if name in KNOBS
    }
    return SetPolicy(scope, number, preset if preset in PRESETS else "", known, rules_stored(rules, scope))


def rules_stored(stored: Sequence[dict[str, Any]], scope: str) -> tuple[Rule, ...]:
    """Return stored rules as ``Rule`` objects of ``scope``, without validation."""
    return tuple(
        Rule(
            name=rule["name"],
            events=tuple(rule["events"]),
            condition=rule["condition"],
            action=rule["action"],
            category=rule.get("category", ""),
            enabled=rule["enabled"],
            scope=scope,
        )
        for rule in stored
    )
