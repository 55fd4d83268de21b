"""The histogram of the Salience page as a figure: bars by rung, and the thresholds as lines that can be dragged.

Scores are put on a plain axis by ``place_of``, so that a line has the same unit as a bar on either scale; the browser
turns a place back into a score with the same three numbers (static/console/salience.js).
"""

import itertools
import math
from typing import Any
from urllib.parse import quote

from django.urls import reverse

from memory.core.policy_values import Knobs
from memory.insight.replies import BacktestReply
from memory.insight.whatif import LEAST_SHOWN, Histogram
from memory.models import Rung

# Words are to the right of their line. Once the highest line is beyond the first share of the axis, those of lines
# beyond the second share are to the left.
TURNS_AT = 0.68
LEFT_FROM = 0.3
# The share of the height that a row of words takes.
ROW = 0.08
# From the lowest.
LINES = (
    ("forget_salience_threshold", "archive", "--rung-archived"),
    ("theta_detach", "detach", "--rung-detached"),
    ("theta_summary", "summarize", "--rung-summarized"),
)
_TICKS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


def place_of(score: float, *, scale: str) -> float:
    """Return the position of a score on the axis; a logarithmic axis shows all scores below its minimum there."""
    return score if scale == "linear" else math.log10(max(score, LEAST_SHOWN))


def bin_query(low: float, high: float, *, is_last: bool) -> str:
    """Return the words of a lookup for the topics of one bin."""
    least = f"salience:>={low:.9f}"
    return least if is_last else f"{least} salience:<{high:.9f}"


def lookup_address(*words: str) -> str:
    """Return the address of a lookup."""
    return f"{reverse('console:lookup')}?q={quote(' '.join(filter(None, words)))}"


def salience_figure(histogram: Histogram, knobs: Knobs, *, scale: str, lookup: str = "") -> dict[str, Any]:
    """Return ``{data, layout, config, scale}`` for the chart. ``lookup`` is the address that a bar leads to with the
    words of its bin, empty for none."""
    edges = [place_of(edge, scale=scale) for edge in histogram.edges]
    if scale == "log":
        # All that is less than the least shown is one bin as wide as the others.
        edges[0] = edges[1] - (edges[2] - edges[1])
    spans = [f"{low:.3g} to {high:.3g}" for low, high in itertools.pairwise(histogram.edges)]
    spans[-1] = f"{histogram.edges[-2]:.3g} and more"
    thresholds = {name: float(getattr(knobs, name)) for name, _word, _colour in LINES}
    ends = [edges[0], _right_end(histogram, edges, thresholds, scale=scale)]
    lines = _lines(thresholds, ends, scale=scale)
    return {
        "data": [_bars(rung.label, histogram.rungs[rung.label], edges, spans) for rung in Rung],
        "layout": {
            "barmode": "stack",
            "bargap": 0.06,
            "hovermode": "closest",
            "showlegend": False,
            "margin": {"l": 48, "r": 16, "t": 8, "b": 40},
            "xaxis": {
                "title": {"text": "score"},
                "range": ends,
                "fixedrange": True,
                **(_ticks(edges) if scale == "log" else {}),
            },
            "yaxis": {"title": {"text": "topics"}, "fixedrange": True, "range": [0, _top(histogram)]},
            "shapes": [line for line, _words in lines],
            "annotations": [words for _line, words in lines],
        },
        "config": {"edits": {"shapePosition": True}},
        "scale": scale,
        "least": LEAST_SHOWN,
        "turns": TURNS_AT,
        "left": LEFT_FROM,
        "row": ROW,
        "lookup": lookup,
        "bins": [
            bin_query(low, high, is_last=high == histogram.edges[-1])
            for low, high in itertools.pairwise(histogram.edges)
        ]
        if lookup
        else [],
        "lines": [{"name": name, "word": word, "value": thresholds[name]} for name, word, _colour in LINES],
    }


def _bars(rung: str, counts: list[int], edges: list[float], spans: list[str]) -> dict[str, Any]:
    return {
        "type": "bar",
        "name": rung,
        "x": [round((low + high) / 2, 6) for low, high in itertools.pairwise(edges)],
        "width": [round((high - low) * 0.92, 6) for low, high in itertools.pairwise(edges)],
        "y": counts,
        "customdata": spans,
        "hovertemplate": f"%{{y:,}} {rung}<br>%{{customdata}}<extra></extra>",
        "marker": {"color": f"--rung-{rung}"},
    }


def _ticks(edges: list[float]) -> dict[str, Any]:
    shown = [tick for tick in _TICKS if edges[1] < math.log10(tick) <= edges[-1] + 1e-9]
    return {
        "tickvals": [(edges[0] + edges[1]) / 2, *(math.log10(tick) for tick in shown)],
        "ticktext": ["~0", *(f"{tick:g}" for tick in shown)],
    }


def _right_end(histogram: Histogram, edges: list[float], thresholds: dict[str, float], *, scale: str) -> float:
    """Return the end of the axis: what lies beyond the last topic and the highest line is left out."""
    filled = [at for counts in histogram.rungs.values() for at, count in enumerate(counts, start=1) if count]
    last = edges[max(filled)] if filled else edges[-1]
    highest = max(thresholds.values())
    beyond = place_of(highest * (1.4 if scale == "linear" else 3), scale=scale)
    room = (last - edges[0]) * 0.02
    return max(last + room, beyond)


def _top(histogram: Histogram) -> float:
    """Return the height of the chart: that of the highest bar, and room above it for the words of the lines."""
    return max(map(sum, zip(*histogram.rungs.values(), strict=True)), default=0) * 1.35 or 1


def _lines(thresholds: dict[str, float], ends: list[float], *, scale: str) -> list[tuple[dict[str, Any], ...]]:
    """Return each line with its words, as the browser places them too when a line is moved.

    Words have a row of their own, where their line ends. They pass above the lines beside it: if they look to the
    right, the lowest line is the tallest, and if they look to the left, the highest line.
    """
    places = [place_of(thresholds[name], scale=scale) for name, _word, _colour in LINES]
    shares = [(place - ends[0]) / (ends[1] - ends[0]) for place in places]
    left = [max(shares) > TURNS_AT and share > LEFT_FROM for share in shares]
    rows = sorted(range(len(LINES)), key=lambda at: (not left[at], -at if left[at] else at))
    return [
        (
            {
                "type": "line",
                "x0": places[at],
                "x1": places[at],
                "y0": 0,
                "y1": 1 - ROW * rows.index(at),
                "yref": "paper",
                "line": {"color": colour, "width": 3},
            },
            {
                "x": places[at],
                "y": 1 - ROW * rows.index(at),
                "yref": "paper",
                "yanchor": "top",
                "xanchor": "right" if left[at] else "left",
                "xshift": -3 if left[at] else 3,
                "text": f"{word} {thresholds[name]:.3g}",
                "showarrow": False,
                "bgcolor": "--surface",
                "borderpad": 1,
                "font": {"color": colour, "size": 12},
            },
        )
        for at, (name, word, colour) in enumerate(LINES)
    ]


def backtest_figure(*found: BacktestReply) -> dict[str, Any]:
    """Return the figure of how many topics each would have archived by each day, as lines: the draft, if there is one,
    and the policy in force."""
    lines = (("draft", "--accent", "solid"), ("in force", "--line-strong", "dot"))
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": [day["at"].isoformat() for day in each["days"]],
                "y": [day["archived"] for day in each["days"]],
                "line": {"color": colour, "width": 2, "dash": dash},
            }
            for each, (name, colour, dash) in zip(found, lines[-len(found) :], strict=True)
        ],
        "layout": {
            "margin": {"l": 48, "r": 12, "t": 28, "b": 32},
            "yaxis": {"title": {"text": "archived so far"}, "fixedrange": True},
            "xaxis": {"fixedrange": True},
        },
    }
