"""Partitions divide the topics at and below a scope by their policy and by the record of active days of their scope."""

from dataclasses import dataclass

from memory.core.scopes import scope_within
from memory.policy.snapshot import EffectivePolicy, Policies
from memory.predicates.binding import Bind, scope_sql


@dataclass(frozen=True, slots=True)
class PolicyPartition:
    """The topics at and below ``path``, except those at and below ``excluded`` scopes. One ``policy`` governs all
    of them."""

    path: str
    excluded: tuple[str, ...]
    policy: EffectivePolicy

    def within_sql(self, column: str, bind: Bind) -> str:
        """Return the condition that ``column``, a scope's id, belongs to this partition."""
        return scope_sql(column, self.path, bind, excluded=self.excluded)


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
    """Return the partitions of ``scope``: its own, and one for each lower scope that has or once had a policy. If
    ``forgetting`` is true, leave out what a run over ``scope`` skips: partitions for which ``partition_is_skipped`` is
    true, exempt scopes and the scopes in ``paused``."""
    nodes = policies.parts(scope)
    found = []
    for node in nodes:
        below = {other.scope for other in nodes if other.scope != node.scope and scope_within(other.scope, node.scope)}
        if forgetting:
            exempt = (*node.knobs.exempt_scopes, *paused)
            if partition_is_skipped(node, scope) or any(scope_within(node.scope, path) for path in paused):
                continue
            below |= {path for path in exempt if scope_within(path, node.scope)}
        # A scope below another such scope need not be named.
        excluded = tuple(
            sorted(path for path in below if not any(path != other and scope_within(path, other) for other in below))
        )
        found.append(PolicyPartition(node.scope, excluded, node))
    return found


def partition_is_skipped(policy: EffectivePolicy, scope: str) -> bool:
    """Return whether a run over ``scope`` skips everything that ``policy`` governs. This is so if the policy is off or
    exempt, or if it lies below ``scope`` and requires a review. Partitions that require a review have their own
    runs."""
    reviewed_separately = policy.knobs.mode == "review" and policy.at != scope and scope_within(policy.at, scope)
    exempt = any(scope_within(policy.scope, path) for path in policy.knobs.exempt_scopes)
    return policy.knobs.mode == "off" or reviewed_separately or exempt
