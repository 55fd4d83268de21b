"""Charts of the overview: proportions, gauges, and the figure of the last days for plotly.js."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from memory.forgetting.gate import SoftLimit
from memory.insight.activity import ActivityDay

# Width of the pictures, which are stretched; only proportions matter.
WIDTH = 1000
_GAP = 4

# Of each number of a day: its name, its colour, the list it leads to and the filter beside the day.
_LISTS = {
    "ingested": ("Ingested", "--rung-active", "console:audit", {"action": "ingest_*"}),
    "queries": ("Queries", "--focus", "console:recalls", {}),
    "archived": ("Archived", "--rung-archived", "console:archived", {}),
    "restored": ("Restored", "--warn", "console:audit", {"action": "restored"}),
}


def rung_bar(rungs: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the parts of a bar with the share of topics per rung; small shares have a visible minimum."""
    held = {name: count for name, count in rungs.items() if count}
    total = sum(held.values())
    if not total:
        return []
    room = WIDTH - _GAP * (len(held) - 1)
    least = 6
    widths = {name: max(least, room * count / total) for name, count in held.items()}
    scale = room / sum(widths.values())
    pieces, x = [], 0.0
    for name, width in widths.items():
        pieces.append({"rung": name, "x": round(x), "width": max(1, round(width * scale))})
        x += width * scale + _GAP
    return pieces


def limit_gauge(limit: SoftLimit) -> dict[str, Any]:
    """Return a gauge of live topics with a mark at the soft limit, as parts of ``WIDTH``."""
    scale = max(limit.live, limit.soft_limit, 1) * 1.15
    return {"limit": limit, "part": round(WIDTH * limit.live / scale), "mark": round(WIDTH * limit.soft_limit / scale)}


def day_links(day: ActivityDay) -> list[dict[str, Any]]:
    """Return the four numbers of a day, each with the address of its list."""
    return [{"count": getattr(day, name), "url": _url(name, day.day)} for name in _LISTS]


def activity_figure(days: Sequence[ActivityDay]) -> dict[str, Any]:
    """Return data and layout: what came in and was asked above, what went to the archive and came back below. Each
    bar carries the address of its list."""
    data = []
    for name, (label, colour, _view, _filter) in _LISTS.items():
        lower = name in ("archived", "restored")
        data.append(
            {
                "type": "bar",
                "name": label,
                "marker": {"color": colour},
                "yaxis": "y2" if lower else "y",
                "x": [day.day.isoformat() for day in days],
                "y": [getattr(day, name) for day in days],
                "customdata": [_url(name, day.day) for day in days],
                "hovertemplate": "%{y:,}",
            }
        )
    counts = {"rangemode": "tozero", "nticks": 4, "tickformat": ",d", "gridcolor": "--chart-grid"}
    layout = {
        "barmode": "group",
        "bargap": 0.25,
        "xaxis": {
            "type": "date",
            "tickformat": "%-d %b",
            "hoverformat": "%A, %-d %B",
            "showgrid": False,
            "anchor": "y2",
        },
        "yaxis": {**counts, "domain": [0.48, 1]},
        "yaxis2": {**counts, "domain": [0, 0.38]},
    }
    return {"data": data, "layout": layout}


def _url(name: str, day: dt.date) -> str:
    _label, _colour, view, filters = _LISTS[name]
    return f"{reverse(view)}?{urlencode({**filters, 'since': day.isoformat(), 'until': day.isoformat()})}"
