"""The tree of policies: the scopes that have a policy, how they are nested, and a short description of each."""

from typing import Any

from memory.core.cursors import cursor_make, cursor_parse
from memory.core.scopes import ROOT
from memory.models import PolicyVersion
from memory.models.statements import rows_read
from memory.policy.effective import policies_current
from memory.policy.rekey import rekeying_progress
from memory.policy.replies import RekeyingOut
from memory.policy.snapshot import Policies

# Topics are counted by the id of the scope first, so that each path is looked up only once.
_TOPICS_SQL = """
SELECT s.path, c.live
FROM (SELECT scope_id, count(*) AS live FROM memory_vitality WHERE live GROUP BY scope_id) c
JOIN memory_scope s ON s.id = c.scope_id
"""


def policies_tree(*, cursor: str | None, limit: int, counted: bool = False) -> tuple[list[dict[str, Any]], str | None]:
    """Return the root and the scopes with a policy, each after its parent, and the cursor of the next page. At most two
    SQL statements, plus those of ``policies_current``. ``counted`` adds the numbers of live topics, with one more SQL
    statement that reads Vitality. Raises ``ValueRefused``."""
    policies = policies_current()
    # Sorted by segments, so that scopes below /a come before /a-b.
    paths = sorted({ROOT, *policies.policies}, key=_segments)
    if cursor is not None:
        (after,) = cursor_parse(cursor, str)
        paths = [path for path in paths if _segments(path) > _segments(after)]
    page = paths[:limit]
    following = cursor_make(page[-1]) if len(paths) > limit else None
    saved = _versions_newest(page)
    working: dict[str, RekeyingOut] = {}
    if policies.rekeying:
        working = {work["scope"]: work for work in rekeying_progress(ROOT)}
    topics = _topics(policies) if counted else {}
    nodes = [
        _node_as_dict(policies, path, saved.get(path), working.get(path))
        | {"topics": topics.get(path, 0) if counted else None}
        for path in page
    ]
    return nodes, following


def policies_emptied(*, limit: int) -> list[str]:
    """Return the scopes that had a policy and have none now: the first ``limit``, sorted by path. Usually one SQL
    statement."""
    policies = policies_current()
    return sorted(path for path in policies.numbers if path != ROOT and path not in policies.policies)[:limit]


def _topics(policies: Policies) -> dict[str, int]:
    found: dict[str, int] = {}
    for path, live in rows_read(_TOPICS_SQL):
        node = policies.node_of(path)
        found[node] = found.get(node, 0) + live
    return found


def _segments(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment]


def _versions_newest(paths: list[str]) -> dict[str, PolicyVersion]:
    rows = PolicyVersion.objects.filter(scope__in=paths).order_by("scope", "-number").distinct("scope")
    return {row.scope: row for row in rows.only("scope", "number", "author", "reason", "created_at")}


def _node_as_dict(
    policies: Policies, path: str, saved: PolicyVersion | None, working: RekeyingOut | None
) -> dict[str, Any]:
    here = policies.set_at(path)
    segments = _segments(path)
    above = ["/" + "/".join(segments[:count]) for count in range(1, len(segments))]
    inside = [parent for parent in above if parent in policies.policies]
    effective = policies.effective(path)
    return {
        "scope": path,
        "depth": 0 if path == ROOT else len(inside) + 1,
        # The nearest scope above that has a policy.
        "within": inside[-1] if inside else ROOT,
        "is_set": not here.is_empty,
        "preset": here.preset,
        "values": len(here.values),
        "rules": len(here.rules),
        "mode": effective.knobs.mode,
        "strategy": effective.knobs.strategy,
        "version": saved.number if saved else 0,
        "author": saved.author if saved else None,
        "saved_at": saved.created_at if saved else None,
        "reason": saved.reason if saved else "",
        "rekeying": working,
    }
