"""Token gauges: how many tokens the topics of each tier would take in the context of a model, and the tier's budget."""

from dataclasses import dataclass

from memory.models import Rung
from memory.models.statements import rows_read
from memory.policy.snapshot import Policies
from memory.predicates.binding import Bound, scope_sql

# English prose has about four tokens per three words. An estimate is enough, because tokenizers differ.
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
    """Return the gauges of ``scope``, one per tier. One query, which reads the whole scope. Pinned topics are critical;
    summarized and detached topics are historical."""
    bound = Bound()
    within = scope_sql("v.scope_id", scope, bound.bind)
    sql = f"""
        SELECT {_TIER}, coalesce(sum(d.length), 0)::int8 FROM memory_vitality v
        JOIN memory_topicdocument d ON d.topic_id = v.topic_id
        WHERE (v.live OR v.rung = {Rung.ARCHIVED:d}) AND {within} GROUP BY 1"""
    words: dict[str, int] = dict(rows_read(sql, bound.values))
    knobs = policies.knobs(scope)
    return [
        Gauge(
            tier,
            round(words.get(tier, 0) * TOKENS_PER_WORD),
            # The archive has no budget.
            getattr(knobs, f"token_budget_{tier}", None) if knobs.token_budgets else None,
        )
        for tier in TIERS
    ]


def pressure_due(policies: Policies, scope: str) -> bool:
    """Return whether the active tier exceeds its budget. One query; none if the policy has no budgets."""
    if not policies.knobs(scope).token_budgets:
        return False
    return any(gauge.exceeded for gauge in token_gauges(policies, scope) if gauge.tier == "active")
