"""Salience: the weight of a topic or field, how it fades, and how use raises it.

Every formula also exists as a database expression (``memory/models/formulas_sql.py`` and the SQL of
``memory/recall/access_fold.py``); ``tests/properties`` checks that both are equal. The definitions are those of the
published importance-decay design: exponential decay with a half-life, renewed by access.

Units: salience is a plain number, 0 to 10 by default. Half-lives and epochs are in seconds; epochs count from 1970 UTC.
``Numbers`` are floats, or arrays of floats with one entry per topic.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

Numbers = Any

SECONDS_PER_DAY = 86_400.0

# The limit of the exponent, in Python and in SQL. 2**-1000 is still a normal double, but 2**-1100 is not: PostgreSQL
# raises an error on underflow, and Python returns 0.0.
MAX_HALVINGS = 1000.0
# A smaller salience is treated as 0, because its product with 2**-1000 would be too small for a double.
LEAST_SALIENCE = 1e-20

# The fade floor may be below the fade key by at most this share of a half-life: see ``fade_floor_after``.
FADE_FLOOR_LAG = 0.25


def reinforcement_share(relevance: Numbers, *, min_relevance: Numbers) -> Numbers:
    """Return the share of the bump (the salience that a retrieval adds) that a topic of this ``relevance`` gets.

    The share is the relevance, or 0 if the relevance is below ``min_relevance``. It is 1 if ``min_relevance`` is 0 or
    if the relevance is unknown (NaN). With a share of 0, the retrieval does not restart the decay.
    """
    share = np.where(np.isnan(relevance), 1.0, np.where(relevance < min_relevance, 0.0, relevance))
    return np.where(np.equal(min_relevance, 0.0), 1.0, share)[()]


def decayed(value: Numbers, *, seconds: Numbers, half_life: Numbers) -> Numbers:
    """Return ``value`` after a decay of ``seconds``: ``value * 2**(-seconds / H)``. Negative ``seconds`` count as 0."""
    left = value * 2.0 ** -np.minimum(np.maximum(0.0, seconds) / half_life, MAX_HALVINGS)
    return np.where(value < LEAST_SALIENCE, 0.0, left)[()]


def salience_effective(
    salience: Numbers, *, reinforced_at: Numbers, half_life: Numbers, now: Numbers, skipped: Numbers = 0.0
) -> Numbers:
    """Return the salience at ``now``: ``s * 2**(-(now - t0 - skipped) / H)``.

    ``reinforced_at`` and ``now`` are epochs in seconds; ``half_life`` is in seconds and positive. ``skipped`` are the
    idle seconds between these two times (``PartitionTime``). A ``now`` before ``reinforced_at`` counts as
    ``reinforced_at``, so the result never exceeds ``salience``.
    """
    return decayed(salience, seconds=now - reinforced_at - skipped, half_life=half_life)


def fade_key(salience: float, *, reinforced_at: float, half_life: float) -> float:
    """Return the epoch at which the salience is 1: ``t0 + H * log2(s)``; minus infinity for a salience of 0.

    ``reinforced_at`` and all times that are compared with the key must come from the same clock: either all in wall
    time, or all without idle time (``PartitionTime.counted``). The salience falls to a threshold ``theta`` at ``fade -
    H * log2(theta)``. So, for any threshold and any time, the topics below the threshold are one range of this key (see
    docs/decisions.md).
    """
    if salience <= 0.0:
        return -math.inf
    return reinforced_at + half_life * math.log2(salience)


def fade_floor_after(floor: float, *, fade: float, half_life: float) -> float:
    """Return the fade floor, the indexed lower bound of the fade key, after the key has become ``fade``.

    The floor stays the same while it is at most ``FADE_FLOOR_LAG`` half-lives below the key. So most reinforcements
    change no indexed column, and PostgreSQL can update the row in place (HOT). The floor never exceeds the key.
    Therefore a range scan over the floor finds every row that a range scan over the key would find. It also finds a few
    others, which the query drops.
    """
    if floor <= fade and fade - floor <= FADE_FLOOR_LAG * half_life:
        return floor
    return fade


def fade_before(theta: float, *, half_life: float, now: float) -> float:
    """Return the fade key of a topic whose salience is ``theta`` at ``now``. A smaller key means a smaller salience."""
    if theta <= 0.0:
        return -math.inf
    return now + half_life * math.log2(theta)


@dataclass(frozen=True, slots=True)
class Reinforcement:
    """One counted access: its time (epoch in seconds), and by how much it raises the salience."""

    at: float
    bump: float


def salience_reinforced(
    salience: float, *, reinforced_at: float, half_life: float, cap: float, reinforcements: Iterable[Reinforcement]
) -> tuple[float, float]:
    """Apply accesses to a salience. Return (salience, reinforced_at) after the last access.

    An access at ``t`` sets the salience to ``min(cap, effective(t) + bump)`` and ``reinforced_at`` to ``t``. If an
    access was logged late and is older than ``reinforced_at``, it adds what is left of its bump at ``reinforced_at``.
    Accesses do not reduce a salience that an operator has set above the cap. All times must come from the same clock:
    see ``fade_key``.
    """
    ceiling = max(cap, salience)
    for access in sorted(reinforcements, key=lambda access: access.at):
        salience, reinforced_at = reinforced(
            salience, reinforced_at=reinforced_at, half_life=half_life, ceiling=ceiling, at=access.at, bump=access.bump
        )
    return float(salience), float(reinforced_at)


def reinforced(
    salience: Numbers, *, reinforced_at: Numbers, half_life: Numbers, ceiling: Numbers, at: Numbers, bump: Numbers
) -> tuple[Numbers, Numbers]:
    """Return (salience, reinforced_at) after one access: see ``salience_reinforced``. Also works on arrays."""
    raised = np.where(
        at < reinforced_at,
        salience + decayed(bump, seconds=reinforced_at - at, half_life=half_life),
        decayed(salience, seconds=at - reinforced_at, half_life=half_life) + bump,
    )
    return np.minimum(ceiling, raised), np.maximum(at, reinforced_at)
