"""Policy presets: each published design as a named set of policy values (docs/coming-from.md). Every preset sets a
value for each name in ``_DESIGN``. Operators decide the other values: mode, schedule, circuit breaker, exempt kinds,
token budgets and recall."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from memory.core.policy_values import STRATEGY_DEFAULTS, Knobs, KnobValue

_DESIGN = (
    "strategy",
    "clock",
    "half_life_days",
    "active_half_life_days",
    "theta_summary",
    "theta_detach",
    "forget_salience_threshold",
    "prune_after_days",
    "archive_attenuation",
    "keep_recent_revisions",
    "topic_count_soft_limit",
    "max_topics_for_forget_scan",
    "query_salience_bump",
    "query_field_salience_bump",
    "reinforce_min_relevance",
    "field_salience_max",
    "reinforce_once_seconds",
    "max_field_history",
    "ranking_decay",
)


@dataclass(frozen=True, slots=True)
class Preset:
    """A named design. ``meaning`` describes it in one line. ``rules`` are names in ``SHIPPED_RULE_SETS``."""

    meaning: str
    values: Mapping[str, KnobValue] = field(default_factory=dict)
    rules: tuple[str, ...] = ()


# In the published designs, every retrieval adds the same small bump. Only the default policy considers the relevance.
_PUBLISHED_USE: dict[str, KnobValue] = {
    "query_salience_bump": 0.1,
    "query_field_salience_bump": 0.1,
    "reinforce_min_relevance": 0.0,
}


def _preset(meaning: str, values: Mapping[str, KnobValue], *, rules: tuple[str, ...] = ()) -> Preset:
    knobs = Knobs()
    defaults: dict[str, KnobValue] = {name: getattr(knobs, name) for name in _DESIGN}
    if values:
        defaults |= _PUBLISHED_USE
    of_strategy = STRATEGY_DEFAULTS[str(values.get("strategy", knobs.strategy))]
    return Preset(meaning, {**defaults, **of_strategy, **values}, rules)


def _published(meaning: str, values: Mapping[str, KnobValue], *, rules: tuple[str, ...] = ()) -> Preset:
    # In all published designs, idle days count.
    return _preset(meaning, {"clock": "wall", **values}, rules=rules)


def _archive_only(threshold: float) -> dict[str, KnobValue]:
    # Equal thresholds switch off the rungs before archiving.
    return {"theta_summary": threshold, "theta_detach": threshold, "forget_salience_threshold": threshold}


PRESETS: dict[str, Preset] = {
    "balanced": _preset(
        "the defaults: salience halves in 30 days without use, and memories go down the whole ladder", {}
    ),
    "memstate": _published(
        "topic-graph memory: salience never fades, and below 0.05 a memory is archived",
        {"strategy": "static", "reinforce_once_seconds": 0.0, **_archive_only(0.05)},
    ),
    "importance-decay": _published(
        "importance halves in 30 days without use; below 0.05 after 30 days a memory is archived, /user excepted",
        {"exempt_scopes": ("/user",), **_archive_only(0.05)},
    ),
    "active-forgetting": _published(
        "number of uses and time since the last use weight the rank of a memory; below 0.1 a memory is archived",
        {"strategy": "active_forgetting", "ranking_decay": "active_forgetting", **_archive_only(0.1)},
    ),
    "relevance": _published(
        "age, use, time since use and kind make up the score; below 0.2 and unused for 90 days a memory is archived",
        {"strategy": "relevance", **_archive_only(0.2)},
    ),
    "graduated": _published(
        "rules by age and kind decide; salience decides nothing",
        {"strategy": "static", **_archive_only(0.0)},
        rules=("graduated_retention",),
    ),
}
