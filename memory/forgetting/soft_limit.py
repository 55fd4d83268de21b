"""The soft limit: while there are fewer live topics than this limit, events and schedules forget nothing.

A limit counts the topics at and below the scope that sets it. Lower scopes with their own limit are left out. Rules for
a fixed period, a time to live, do not depend on the number of topics and act below the limit, too.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from memory.core.rules import GATED_EVENTS, RUNG_ACTIONS, Rule
from memory.core.scopes import ROOT, scope_within
from memory.models.statements import rows_read
from memory.policy.partition import PolicyPartition, partitions_of
from memory.policy.snapshot import EffectivePolicy, Policies
from memory.predicates.binding import Bound, scope_sql
from memory.predicates.rule_conditions import condition_parse
from memory.predicates.tree import has_fixed_period

# How a sentence names the runs for each event.
_RUNS = {"cron": "a scheduled run", "ingest_complete": "a run after writes", "query_complete": "a run after recalls"}
# A sentence names at most this many scopes.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class SoftLimit:
    """A soft limit, the scope that sets it, the mode of this scope, and the number of live topics counted."""

    scope: str
    live: int
    soft_limit: int
    mode: str

    @property
    def open(self) -> bool:
        """Whether there are enough topics for events and schedules to forget."""
        return self.live >= self.soft_limit


@dataclass(frozen=True, slots=True)
class Gate:
    """What a run skips: the partitions whose path is in ``excluded``, and the scopes in ``paused``. In the partitions
    in ``by_age``, only rules for a fixed period act. ``sentence`` gives the reason. ``closed`` means that the run skips
    everything."""

    excluded: frozenset[str] = frozenset()
    by_age: frozenset[str] = frozenset()
    paused: tuple[str, ...] = ()
    sentence: str = ""
    closed: bool = False


OPEN = Gate()


def limit_scope(policy: EffectivePolicy) -> str:
    """Return the scope that sets the soft limit of ``policy``; the root if the limit is the default."""
    source = policy.sources["topic_count_soft_limit"].source
    return source if source.startswith(ROOT) else ROOT


def limit_scopes(policies: Policies) -> list[str]:
    """Return every scope that sets a soft limit, the root first. No query."""
    return [ROOT, *(node.scope for node in policies.nodes(ROOT) if limit_scope(node) == node.scope != ROOT)]


def soft_limits(policies: Policies, scopes: list[str], *, exact: bool = True) -> list[SoftLimit]:
    """Return the limits that ``scopes`` set. At most one query. If ``exact`` is false, counting stops at the limit."""
    if not scopes:
        return []
    limits = [policies.knobs(scope).topic_count_soft_limit for scope in scopes]
    setters = limit_scopes(policies)
    bound = Bound()
    counts = []
    for index, (scope, limit) in enumerate(zip(scopes, limits, strict=True)):
        below = tuple(other for other in setters if other != scope and scope_within(other, scope))
        within = scope_sql("v.scope_id", scope, bound.bind, excluded=below)
        most = "" if exact else f" LIMIT {limit:d}"
        counts.append(
            f"SELECT {index}, count(*) FROM (SELECT 1 FROM memory_vitality v WHERE v.live AND {within}{most}) x"
        )
    live: dict[int, int] = dict(rows_read(" UNION ALL ".join(counts), bound.values))
    return [
        SoftLimit(scope, live[index], limits[index], policies.knobs(scope).mode) for index, scope in enumerate(scopes)
    ]


def gate_of(policies: Policies, scope: str, *, event: str, paused: tuple[str, ...] = ()) -> Gate:
    """Return what a run over ``scope`` for ``event`` skips: partitions below their soft limit, and the ``paused``
    scopes. One query if the soft limit applies to the event, otherwise none."""
    if not partitions_of(policies, scope):
        return Gate(closed=True, sentence=f"Nothing is forgotten in {scope}: {_why_none(policies, scope)}")
    paused = tuple(path for path in paused if scope_within(path, scope) or scope_within(scope, path))
    partitions = partitions_of(policies, scope, paused=paused)
    pauses = f"Forgetting is paused in {', '.join(paused)}." if paused else ""
    limits = _below_limit(policies, scope, event, partitions) if partitions else OPEN
    return Gate(
        limits.excluded,
        limits.by_age,
        paused,
        " ".join(filter(None, (pauses, limits.sentence))),
        closed=len(limits.excluded) == len(partitions),
    )


def _below_limit(policies: Policies, scope: str, event: str, partitions: list[PolicyPartition]) -> Gate:
    if event not in GATED_EVENTS:
        return OPEN
    gated = {p.path: limit_scope(p.policy) for p in partitions if p.policy.knobs.topic_count_soft_limit}
    limits = soft_limits(policies, sorted(set(gated.values())), exact=False)
    below = {limit.scope: limit for limit in limits if not limit.open}
    limited = frozenset(path for path, setter in gated.items() if setter in below)
    if not limited:
        return OPEN
    by_age = frozenset(p.path for p in partitions if p.path in limited and rules_by_age(p.policy.rules.on(event)))
    # The reader may lack permission for scopes above the run. For these scopes, the limit is shown without the count.
    named = [
        f"{path} has {limit.live:,} live {'memory' if limit.live == 1 else 'memories'}, fewer than its soft limit of "
        f"{limit.soft_limit:,}"
        if scope_within(path, scope)
        else f"the live memories of {path} are fewer than its soft limit of {limit.soft_limit:,}"
        for path, limit in list(below.items())[:_NAMED]
    ]
    if len(below) > _NAMED:
        named.append(f"{len(below) - _NAMED:,} more scopes are below theirs")
    sentence = "; ".join(named)
    effect = "forgets only by rules for a fixed period" if by_age else "forgets nothing"
    return Gate(
        limited - by_age,
        by_age,
        sentence=f"{sentence[0].upper()}{sentence[1:]}. Below the limit, {_RUNS[event]} {effect}.",
    )


def rules_by_age(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules that forget after a fixed period, which the soft limit does not hold back."""
    return tuple(
        rule for rule in rules if rule.action in RUNG_ACTIONS and has_fixed_period(condition_parse(rule.condition))
    )


def _why_none(policies: Policies, scope: str) -> str:
    policy = policies.effective(scope)
    if any(scope_within(scope, path) for path in policy.knobs.exempt_scopes):
        return "it lies in an exempt scope."
    return "its mode is off." if policy.knobs.mode == "off" else "every policy in it is off or exempt."
