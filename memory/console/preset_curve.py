"""The curve of a preset, drawn on the server: the score of a new topic that is never used, and the rungs it passes."""

from functools import lru_cache
from typing import Any

import numpy as np

from memory.core.policy_presets import PRESETS
from memory.core.policy_values import Knobs
from memory.formulas.ladder import ACTIVE, rung_target
from memory.formulas.salience import SECONDS_PER_DAY
from memory.formulas.strategies import TopicUsage, archive_due, score
from memory.models import Rung

# The page stretches the picture, so only proportions matter. A day is one unit of the width.
DAYS, HEIGHT = 365, 100


@lru_cache(maxsize=len(PRESETS))
def preset_curve(name: str) -> dict[str, Any]:
    """Return the parts of the curve, one for each rung; the thresholds with their vertical positions; and the day on
    which each rung is reached.

    The values are those of the preset alone. Rules are not drawn.
    """
    values: dict[str, Any] = dict(PRESETS[name].values)
    knobs = Knobs(**values)
    unused = np.arange(DAYS + 1) * SECONDS_PER_DAY
    usage = TopicUsage(salience=np.ones(DAYS + 1), reinforced_at=-unused, created_at=-unused)
    halves = {"half_life": knobs.half_life, "active_half_life": knobs.active_half_life, "now": 0.0}
    scores = score(usage, strategy=knobs.strategy, **halves)
    due = archive_due(
        usage, strategy=knobs.strategy, theta=knobs.forget_salience_threshold, prune_after=knobs.prune_after, **halves
    )
    rungs = rung_target(
        ACTIVE, scores, archive_due=due, theta_summary=knobs.summarize_below, theta_detach=knobs.detach_below
    )
    begins = [int(day) for day in np.flatnonzero(np.diff(rungs, prepend=-1))]
    parts = [
        {"rung": Rung(int(rungs[day])).label, "path": _path(scores, day, end)}
        for day, end in zip(begins, [*begins[1:], DAYS], strict=True)
    ]
    thresholds = {
        Rung.SUMMARIZED: knobs.summarize_below,
        Rung.DETACHED: knobs.detach_below,
        Rung.ARCHIVED: knobs.forget_salience_threshold,
    }
    return {
        "parts": parts,
        "lines": [{"rung": rung.label, "y": _y(theta), "theta": theta} for rung, theta in thresholds.items() if theta],
        "reached": [{"rung": Rung(int(rungs[day])).label, "days": day} for day in begins[1:]],
    }


def _path(scores: Any, day: int, end: int) -> str:
    """Return a part of the curve as an SVG path with a point for every third day."""
    days = [*range(day, end, 3), end]
    return "M" + "L".join(f"{each},{_y(float(scores[each]))}" for each in days)


def _y(value: float) -> float:
    """Return the distance of a score from the top of the picture. A score of 1 is slightly below the top."""
    return round(HEIGHT - 2 - (HEIGHT - 6) * min(max(value, 0.0), 1.0), 1)
