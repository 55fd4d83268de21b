"""Partitions: the topics of a scope and below, divided by the policy that governs them, and by their time."""

from dataclasses import dataclass

from memory.core.scopes import scope_within
from memory.policy.snapshot import EffectivePolicy, Policies
from memory.predicates.binding import Bind, scope_sql


@dataclass(frozen=True, slots=True)
class PolicyPartition:
    """The topics at ``path`` and below, except below ``without``; all of them are governed by ``policy``."""

    path: str
    without: tuple[str, ...]
    policy: EffectivePolicy

    def within_sql(self, column: str, bind: Bind) -> str:
        """Return the condition that ``column``, a scope's id, belongs to this partition.

        The scopes are looked up once per statement; the planner hashes them.
        """
        return scope_sql(column, self.path, bind, without=self.without)


@dataclass(frozen=True, slots=True)
class TopicSubset:
    """A filter on the topics of a partition, by kind and by rung; None means all."""

    kind: str | None = None
    rung: int | None = None

    def sql(self, row: str, bind: Bind) -> str:
        """Return the condition for ``row``, a row of Vitality."""
        conditions = []
        if self.kind is not None:
            conditions.append(f"{row}.kind = {bind(self.kind)}::text")
        if self.rung is not None:
            conditions.append(f"{row}.rung = {self.rung:d}")
        return " AND ".join(conditions) or "true"


ALL_TOPICS = TopicSubset()


def partitions_of(
    policies: Policies, scope: str, *, forgetting: bool = True, paused: tuple[str, ...] = ()
) -> list[PolicyPartition]:
    """Return the partitions of ``scope``: its own, and one for each policy set below it. No query.

    With ``forgetting``, exempt scopes and partitions that a run over ``scope`` skips (``partition_is_skipped``) are
    left out, and so are ``paused`` scopes. Without it, every topic of the scope belongs to exactly one partition.
    """
    nodes = policies.parts(scope)
    found = []
    for node in nodes:
        below = {other.scope for other in nodes if other.scope != node.scope and scope_within(other.scope, node.scope)}
        if forgetting:
            exempt = (*node.knobs.exempt_scopes, *paused)
            if partition_is_skipped(node, scope) or any(scope_within(node.scope, path) for path in paused):
                continue
            below |= {path for path in exempt if scope_within(path, node.scope)}
        # A scope below another excluded one is excluded with it.
        without = tuple(
            sorted(path for path in below if not any(path != other and scope_within(path, other) for other in below))
        )
        found.append(PolicyPartition(node.scope, without, node))
    return found


def partition_is_skipped(policy: EffectivePolicy, scope: str) -> bool:
    """Return whether a run over ``scope`` skips everything governed by ``policy``.

    It skips partitions whose mode is off, exempt scopes, and partitions below ``scope`` whose policy requires a review:
    those are reviewed in runs of their own, so that they do not hold up a run over a wider scope.
    """
    reviewed_separately = policy.knobs.mode == "review" and policy.at != scope and scope_within(policy.at, scope)
    exempt = any(scope_within(policy.scope, path) for path in policy.knobs.exempt_scopes)
    return policy.knobs.mode == "off" or reviewed_separately or exempt
