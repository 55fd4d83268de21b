"""The four strategies: how each scores a topic, and when it archives the topic. Also the decay of ranks in recalls.

Every formula also exists as SQL (``memory/models/formulas_sql.py``); ``tests/properties`` checks that both are equal.
Sources: ``half_life`` is the published importance-decay design. ``active_forgetting`` and ``relevance`` are the
published designs of these names, with one correction, described at ``active_raw``.

Units: epochs and half-lives are in seconds; epochs count from 1970 UTC. Scores are plain numbers. A negative span of
time counts as 0. ``Numbers`` are floats, or arrays of floats with one entry per topic.
"""

from dataclasses import dataclass

import numpy as np

from memory.formulas.salience import SECONDS_PER_DAY, Numbers, decayed, salience_effective

# The smallest factor by which decay multiplies a rank.
FACTOR_FLOOR = 0.1

BOOST_STEP = 0.1
BOOST_MAX = 0.3

# The weight of each kind of topic under ``relevance``.
KIND_WEIGHTS = {
    "decision": 1.0,
    "gotcha": 0.9,
    "preference": 0.8,
    "finding": 0.7,
    "observation": 0.5,
    "tool_output": 0.3,
}
KIND_WEIGHT_ELSE = 0.5

# The weights of the four parts of relevance: age, number of uses, time since the last use, and kind. Their sum is 1.
RELEVANCE_AGE, RELEVANCE_USE, RELEVANCE_IDLE, RELEVANCE_KIND = 0.3, 0.3, 0.2, 0.2
RELEVANCE_AGE_DAYS, RELEVANCE_FULL_USE, RELEVANCE_IDLE_DAYS = 30.0, 10.0, 7.0


@dataclass(frozen=True, slots=True)
class TopicUsage:
    """The input of the strategies. ``salience`` is the stored value, at ``reinforced_at``. ``idle_before`` are the idle
    seconds of the partition before ``reinforced_at``. For arrays of topics, ``kind_weight`` replaces ``kind``."""

    salience: Numbers
    reinforced_at: Numbers
    created_at: Numbers
    last_retrieved_at: Numbers | None = None
    retrieval_count: Numbers = 0
    kind: str = ""
    kind_weight: Numbers | None = None
    idle_before: Numbers = 0.0


def idle_seconds(usage: TopicUsage, *, now: float, skipped: Numbers = 0.0) -> Numbers:
    """Return the seconds since the last retrieval, or since creation if there was none, minus ``skipped``.

    In this module, ``skipped`` are the idle seconds since ``reinforced_at`` (``PartitionTime``).
    """
    since = usage.created_at if usage.last_retrieved_at is None else usage.last_retrieved_at
    return np.maximum(0.0, now - since - skipped)


def active_boost(retrieval_count: Numbers) -> Numbers:
    """Return the boost by use in active forgetting: ``min(0.3, 0.1 * ln(1 + n))``; 5 retrievals give about 0.18."""
    return np.minimum(BOOST_MAX, BOOST_STEP * np.log(1.0 + retrieval_count))


def active_raw(usage: TopicUsage, *, active_half_life: float, now: float, skipped: Numbers = 0.0) -> Numbers:
    """Return ``min(1, 1 - idle / 2H + boost)``. The result is negative after a long time.

    The published design limits ``1 - idle / 2H`` to at least 0.1 and archives topics below 0.1, so it would never
    archive a topic. This score therefore has no such minimum; ``active_factor`` has it.
    """
    age_part = 1.0 - idle_seconds(usage, now=now, skipped=skipped) / (2.0 * active_half_life)
    return np.minimum(1.0, age_part + active_boost(usage.retrieval_count))


def active_factor(usage: TopicUsage, *, active_half_life: float, now: float, skipped: Numbers = 0.0) -> Numbers:
    """Return ``min(1, max(0.1, 1 - idle / 2H) + boost)``, as published. The result is between 0.1 and 1."""
    age_part = 1.0 - idle_seconds(usage, now=now, skipped=skipped) / (2.0 * active_half_life)
    return np.minimum(1.0, np.maximum(FACTOR_FLOOR, age_part) + active_boost(usage.retrieval_count))


def relevance(usage: TopicUsage, *, now: float, skipped: Numbers = 0.0) -> Numbers:
    """Return ``0.3/(1+age/30) + 0.3*min(n/10,1) + 0.2/(1+idle/7) + 0.2*w(kind)``, with age and idle in days. The result
    is between 0.06 and 1."""
    weight = usage.kind_weight
    if weight is None:
        weight = KIND_WEIGHTS.get(usage.kind, KIND_WEIGHT_ELSE)
    age = np.maximum(0.0, now - usage.created_at) / SECONDS_PER_DAY
    idle = idle_seconds(usage, now=now, skipped=skipped) / SECONDS_PER_DAY
    return (
        RELEVANCE_AGE / (1.0 + age / RELEVANCE_AGE_DAYS)
        + RELEVANCE_USE * np.minimum(usage.retrieval_count / RELEVANCE_FULL_USE, 1.0)
        + RELEVANCE_IDLE / (1.0 + idle / RELEVANCE_IDLE_DAYS)
        + RELEVANCE_KIND * weight
    )


def score(
    usage: TopicUsage, *, strategy: str, half_life: float, active_half_life: float, now: float, skipped: Numbers = 0.0
) -> Numbers:
    """Return the score that is compared with the thresholds. Raises ``ValueError`` for an unknown strategy.

    ``half_life`` is the half-life of the policy or of its draft, not the half-life in the stored row.
    """
    match strategy:
        case "static":
            return usage.salience
        case "half_life":
            return salience_effective(
                usage.salience, reinforced_at=usage.reinforced_at, half_life=half_life, now=now, skipped=skipped
            )
        case "active_forgetting":
            return active_raw(usage, active_half_life=active_half_life, now=now, skipped=skipped)
        case "relevance":
            return relevance(usage, now=now, skipped=skipped)
    raise ValueError(f"Strategy {strategy!r} does not exist.")


def archive_gate(
    usage: TopicUsage, *, strategy: str, prune_after: float, now: float, skipped: Numbers = 0.0
) -> Numbers:
    """Return whether a topic has been unused for long enough to be archived. The score is not considered.

    Under ``relevance``, more than ``prune_after`` seconds must have passed since the last retrieval, or since creation
    if there was none, as published. Under the other strategies, at least ``prune_after`` seconds must have passed since
    the salience was last written. Raises ``ValueError`` for an unknown strategy.
    """
    match strategy:
        case "static" | "half_life" | "active_forgetting":
            return np.maximum(0.0, now - usage.reinforced_at - skipped) >= prune_after
        case "relevance":
            return idle_seconds(usage, now=now, skipped=skipped) > prune_after
    raise ValueError(f"Strategy {strategy!r} does not exist.")


def archive_due(
    usage: TopicUsage,
    *,
    strategy: str,
    theta: float,
    prune_after: float,
    half_life: float,
    active_half_life: float,
    now: float,
    skipped: Numbers = 0.0,
) -> Numbers:
    """Return whether the strategy archives a topic: its score is below ``theta``, and it was unused for long enough.

    Pins and exemptions are not considered. Raises ``ValueError`` for an unknown strategy.
    """
    value = score(
        usage, strategy=strategy, half_life=half_life, active_half_life=active_half_life, now=now, skipped=skipped
    )
    return (value < theta) & archive_gate(usage, strategy=strategy, prune_after=prune_after, now=now, skipped=skipped)


def ranking_factor(
    usage: TopicUsage,
    *,
    ranking_decay: str,
    half_life: float,
    active_half_life: float,
    now: float,
    pinned: bool = False,
    skipped: Numbers = 0.0,
) -> Numbers:
    """Return the factor for the rank of a candidate, between 0.1 and 1; always 1 for a pinned topic.

    If ``ranking_decay`` is ``half_life``, the factor is ``max(0.1, 0.5 ** (idle_seconds / half_life))``. Raises
    ``ValueError`` for an unknown ``ranking_decay``.
    """
    if pinned or ranking_decay == "off":
        return 1.0
    if ranking_decay == "active_forgetting":
        return active_factor(usage, active_half_life=active_half_life, now=now, skipped=skipped)
    if ranking_decay == "half_life":
        return np.maximum(
            FACTOR_FLOOR, decayed(1.0, seconds=idle_seconds(usage, now=now, skipped=skipped), half_life=half_life)
        )
    raise ValueError(f"Ranking decay {ranking_decay!r} does not exist.")
