"""Ground: which topics stand under which policy, for a scope and everything below it."""

from dataclasses import dataclass

from django.db.models import Q

from memory.core.scopes import ROOT, scope_within
from memory.policy.snapshot import EffectivePolicy, Policies
from memory.predicates.binding import Bind, scope_sql


@dataclass(frozen=True, slots=True)
class Ground:
    """The topics at ``path`` and below, except below ``without``; all of them stand under ``policy``."""

    path: str
    without: tuple[str, ...]
    policy: EffectivePolicy

    def within_sql(self, column: str, bind: Bind) -> str:
        """Return the condition that ``column``, a scope's id, belongs to this ground.

        The scopes are looked up once per statement, and the planner hashes them.
        """
        return scope_sql(column, self.path, bind, without=self.without)


@dataclass(frozen=True, slots=True)
class Only:
    """Which topics of a ground are asked about: those of one kind, of one rung, or all."""

    kind: str | None = None
    rung: int | None = None

    def sql(self, row: str, bind: Bind) -> str:
        """Return the condition for ``row``, one of Vitality."""
        conditions = []
        if self.kind is not None:
            conditions.append(f"{row}.kind = {bind(self.kind)}::text")
        if self.rung is not None:
            conditions.append(f"{row}.rung = {self.rung:d}")
        return " AND ".join(conditions) or "true"


EVERYTHING = Only()


def grounds_of(policies: Policies, scope: str, *, forgetting: bool = True) -> list[Ground]:
    """Return the grounds of ``scope``: its own, and one for each policy set below it. No query.

    With ``forgetting``, places that a run over ``scope`` leaves alone are left out (``ground_rests``), exempt scopes
    too. Without it, every topic of the scope lies on exactly one ground.
    """
    nodes = policies.nodes(scope)
    found = []
    for node in nodes:
        below = {other.scope for other in nodes if other.scope != node.scope and scope_within(other.scope, node.scope)}
        if forgetting:
            exempt = node.knobs.exempt_scopes
            if ground_rests(node, scope):
                continue
            below |= {path for path in exempt if scope_within(path, node.scope)}
        # What lies below another exception needs no mention of its own.
        without = tuple(
            sorted(path for path in below if not any(path != other and scope_within(path, other) for other in below))
        )
        found.append(Ground(node.scope, without, node))
    return found


def ground_rests(policy: EffectivePolicy, scope: str) -> bool:
    """Tell whether a run over ``scope`` leaves everything under ``policy`` alone.

    So it is where the mode is off and in exempt scopes; and below ``scope``, where a policy asks for a review of every
    run: one that is made for that place alone is held there, instead of holding up everything around it.
    """
    reviewed_apart = policy.knobs.mode == "review" and policy.at != scope and scope_within(policy.at, scope)
    exempt = any(scope_within(policy.scope, path) for path in policy.knobs.exempt_scopes)
    return policy.knobs.mode == "off" or reviewed_apart or exempt


def path_q(path: str) -> Q:
    """Return the same for a table with a column ``scope`` that holds paths, as a filter of Django's."""
    return Q() if path == ROOT else Q(scope=path) | Q(scope__startswith=f"{path}/")
