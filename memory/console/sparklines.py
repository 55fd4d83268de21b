"""Pictures drawn on the server: proportions, gauges and sparklines for Home and for the pages of scopes and agents."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from memory.forgetting.soft_limit import SoftLimit

# Pages stretch the pictures, so only proportions matter.
WIDTH = 1000
HEIGHT = 40
_GAP = 4


def rung_bar(rungs: Mapping[str, int], *, share: float = 1) -> list[dict[str, Any]]:
    """Return the parts of a bar, one for each rung with topics. The width of a part is proportional to its topics, but
    a small part stays visible. The bar takes ``share`` of ``WIDTH``."""
    held = {name: count for name, count in rungs.items() if count}
    total = sum(held.values())
    if not total:
        return []
    room = max(_GAP * len(held), WIDTH * share - _GAP * (len(held) - 1))
    least = 6
    widths = {name: max(least, room * count / total) for name, count in held.items()}
    scale = room / sum(widths.values())
    pieces, x = [], 0.0
    for name, width in widths.items():
        pieces.append({"rung": name, "x": round(x), "width": max(1, round(width * scale))})
        x += width * scale + _GAP
    return pieces


def limit_gauge(limit: SoftLimit) -> dict[str, Any]:
    """Return a gauge of the live topics with a mark at the soft limit. The whole gauge is ``WIDTH`` wide."""
    scale = max(limit.live, limit.soft_limit, 1) * 1.15
    return {"limit": limit, "part": round(WIDTH * limit.live / scale), "mark": round(WIDTH * limit.soft_limit / scale)}


def spark_line(values: Sequence[float]) -> dict[str, Any]:
    """Return a line through equidistant points, and the area below it, as SVG paths. The picture is ``WIDTH`` wide and
    ``HEIGHT`` high.

    If the values are large and differ little, the axis begins above 0, so that their changes are visible.
    """
    low, high = min(values), max(values)
    floor = max(0.0, low - (high - low) * 0.6) if high > low else 0.0
    scale = (HEIGHT - 2) / ((high - floor) or 1)
    step = WIDTH / max(1, len(values) - 1)
    points = [f"{place * step:.0f},{HEIGHT - 1 - (value - floor) * scale:.1f}" for place, value in enumerate(values)]
    return {"line": "M" + "L".join(points), "area": f"M0,{HEIGHT}L{'L'.join(points)}L{WIDTH},{HEIGHT}Z"}


def spark_bars(days: Sequence[dt.date], counts: Sequence[int], noun: str) -> list[dict[str, Any]]:
    """Return a bar for each day with its position, height and words. The bar of a count above 0 is always visible."""
    most, step = max(counts, default=0) or 1, WIDTH / max(1, len(counts))
    bars = []
    for place, (day, count) in enumerate(zip(days, counts, strict=True)):
        height = max(3.0, (HEIGHT - 2) * count / most) if count else 1.0
        bars.append(
            {
                "x": round(place * step + step * 0.12, 1),
                "width": round(step * 0.76, 1),
                "y": round(HEIGHT - height, 1),
                "height": round(height, 1),
                "words": f"{day:%-d %b}: {count:,} {noun}",
                "none": not count,
            }
        )
    return bars
