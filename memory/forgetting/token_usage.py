"""Token gauges: how many tokens each tier of a scope would take in the context of a model, and the tier's budget."""

from dataclasses import dataclass

from django.db import connection

from memory.models import Rung
from memory.policy.snapshot import Policies
from memory.predicates.binding import Bound, scope_sql

# English prose has about four tokens per three words. An estimate is enough, because agents use models with different
# tokenizers.
TOKENS_PER_WORD = 4 / 3


@dataclass(frozen=True, slots=True)
class Gauge:
    """The estimated tokens of one tier, and its budget or None."""

    tier: str
    tokens: int
    budget: int | None

    @property
    def exceeded(self) -> bool:
        """Whether the tier has more tokens than its budget."""
        return self.budget is not None and self.tokens > self.budget


_TIER = f"""
CASE WHEN v.kind = 'identity' THEN 'identity'
     WHEN v.pinned THEN 'critical'
     WHEN v.rung = {Rung.ACTIVE:d} THEN 'active'
     WHEN v.rung < {Rung.ARCHIVED:d} THEN 'historical'
     ELSE 'archive' END
"""
TIERS = ("identity", "critical", "active", "historical", "archive")


def token_gauges(policies: Policies, scope: str) -> list[Gauge]:
    """Return the gauges of ``scope``, one per tier. One query, which reads the whole scope.

    Pinned topics are critical; summarized and detached topics are historical. Released and merged topics are in no
    tier.
    """
    bound = Bound()
    within = scope_sql("v.scope_id", scope, bound.bind)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_TIER}, sum(d.length) FROM memory_vitality v "
            "JOIN memory_topicdocument d ON d.topic_id = v.topic_id "
            f"WHERE (v.live OR v.rung = {Rung.ARCHIVED:d}) AND {within} GROUP BY 1",
            bound.values,
        )
        words = {tier: int(length or 0) for tier, length in cursor.fetchall()}
    knobs = policies.knobs(scope)
    budgets = {
        "identity": knobs.token_budget_identity,
        "critical": knobs.token_budget_critical,
        "active": knobs.token_budget_active,
        "historical": knobs.token_budget_historical,
    }
    return [
        Gauge(tier, round(words.get(tier, 0) * TOKENS_PER_WORD), budgets.get(tier) if knobs.token_budgets else None)
        for tier in TIERS
    ]


def pressure_due(policies: Policies, scope: str) -> bool:
    """Return whether the active tier exceeds its budget. No query unless the policy has budgets."""
    if not policies.knobs(scope).token_budgets:
        return False
    return any(gauge.exceeded for gauge in token_gauges(policies, scope) if gauge.tier == "active")
