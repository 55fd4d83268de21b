"""The histogram of the Salience page as a figure: bars by rung, and the thresholds as lines that can be dragged.

``place_of`` converts a score to a position on the axis. The axis of plotly.js is linear even if the scale is
logarithmic, so lines and bars always have the same unit. The browser converts a position back to a score
(static/console/salience.js). The page also contains the figure as an SVG picture, which is visible before plotly.js has
loaded.
"""

import itertools
import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from django.urls import reverse

from memory.core.policy_values import Knobs
from memory.models import Rung
from memory.simulate.replies import BacktestReply
from memory.simulate.whatif import LEAST_SHOWN, Histogram

# The label of a line is to its right. If the rightmost line is beyond the share ``TURNS_AT`` of the axis, the labels of
# all lines beyond the share ``LEFT_FROM`` are to the left.
TURNS_AT = 0.68
LEFT_FROM = 0.3
# The height of a row of labels, as a share of the plot.
ROW = 0.08
# The threshold, label and colour of each line, from the lowest threshold.
LINES = (
    ("forget_salience_threshold", "archive", "--rung-archived"),
    ("theta_detach", "detach", "--rung-detached"),
    ("theta_summary", "summarize", "--rung-summarized"),
)
_TICKS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


def place_of(score: float, *, scale: str) -> float:
    """Return the position of a score on the axis. A logarithmic axis begins at ``LEAST_SHOWN``."""
    return score if scale == "linear" else math.log10(max(score, LEAST_SHOWN))


def bin_query(low: float, high: float, *, is_last: bool) -> str:
    """Return the search that finds the topics of one bin."""
    least = f"salience:>={low:.9f}"
    return least if is_last else f"{least} salience:<{high:.9f}"


def lookup_address(*words: str) -> str:
    """Return the URL of a lookup with these words."""
    return f"{reverse('console:lookup')}?q={quote(' '.join(filter(None, words)))}"


def salience_figure(histogram: Histogram, knobs: Knobs, *, scale: str, lookup: str = "") -> dict[str, Any]:
    """Return the figure for the chart. ``lookup`` is the URL of a search. For each bar, the page appends conditions
    that select its topics, and links the bar to this URL. If ``lookup`` is empty, bars have no links."""
    edges = [place_of(edge, scale=scale) for edge in histogram.edges]
    if scale == "log":
        # The first bin contains the scores below ``LEAST_SHOWN``. It is drawn as wide as the second bin.
        edges[0] = edges[1] - (edges[2] - edges[1])
    spans = [f"{low:.3g} to {high:.3g}" for low, high in itertools.pairwise(histogram.edges)]
    spans[-1] = f"{histogram.edges[-2]:.3g} and more"
    thresholds = {name: float(getattr(knobs, name)) for name, _word, _colour in LINES}
    top = _top(histogram)
    ends = [edges[0], _right_end(histogram, edges, thresholds, scale=scale)]
    lines = _lines(thresholds, ends, scale=scale)
    return {
        "data": [_bars(rung.label, histogram.rungs[rung.label], edges, spans) for rung in Rung],
        "layout": {
            "barmode": "stack",
            "bargap": 0.06,
            "hovermode": "closest",
            "showlegend": False,
            # Equal to the margins of the SVG picture in console.css.
            "margin": {"l": 56, "r": 16, "t": 8, "b": 48},
            "xaxis": {
                "title": {"text": "score"},
                "range": ends,
                "fixedrange": True,
                "automargin": False,
                **(_score_ticks(edges) if scale == "log" else _ticks(ends[1])),
            },
            "yaxis": {
                "title": {"text": "memories"},
                "range": [0, top],
                "fixedrange": True,
                "automargin": False,
                **_ticks(top, least=1),
            },
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


def salience_picture(figure: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of the SVG picture of a figure. Positions and lengths are in percent of the plot."""
    layout = figure["layout"]
    (low, high), (_zero, top) = layout["xaxis"]["range"], layout["yaxis"]["range"]
    floors = [0.0] * len(figure["data"][0]["y"])
    bars = []
    for each in figure["data"]:
        for at, (x, width, count) in enumerate(zip(each["x"], each["width"], each["y"], strict=True)):
            if not count:
                continue
            floors[at] += count
            bars.append(
                {
                    "rung": each["name"],
                    "x": _percent((x - width / 2 - low) / (high - low)),
                    "y": _percent(1 - floors[at] / top),
                    "width": _percent(width / (high - low)),
                    "height": _percent(count / top),
                }
            )
    return {
        "bars": bars,
        "lines": [
            {
                "rung": line["line"]["color"].removeprefix("--rung-"),
                "x": _percent((word["x"] - low) / (high - low)),
                "y": _percent(1 - word["y"]),
                "text": word["text"],
                "anchor": "end" if word["xanchor"] == "right" else "start",
                "shift": word["xshift"],
            }
            for line, word in zip(layout["shapes"], layout["annotations"], strict=True)
        ],
        "score_ticks": [
            {"at": _percent((place - low) / (high - low)), "text": text}
            for place, text in zip(layout["xaxis"]["tickvals"], layout["xaxis"]["ticktext"], strict=True)
        ],
        "count_ticks": [
            {"at": _percent(1 - place / top), "text": text}
            for place, text in zip(layout["yaxis"]["tickvals"], layout["yaxis"]["ticktext"], strict=True)
        ],
    }


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


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


def _ticks(end: float, *, least: float = 0) -> dict[str, Any]:
    """Return at most six ticks from 0 to ``end``. Their distance is 1, 2 or 5 times a power of ten, and at least
    ``least``."""
    wanted = max(end / 5, least)
    power = 10 ** math.floor(math.log10(wanted))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= wanted * (1 - 1e-9))
    values = [round(at * step, 9) for at in range(int(end / step + 1e-9) + 1)]
    return {"tickvals": values, "ticktext": [f"{value:,g}" for value in values]}


def _score_ticks(edges: list[float]) -> dict[str, Any]:
    shown = [tick for tick in _TICKS if edges[1] < math.log10(tick) <= edges[-1] + 1e-9]
    return {
        "tickvals": [(edges[0] + edges[1]) / 2, *(math.log10(tick) for tick in shown)],
        "ticktext": ["~0", *(f"{tick:g}" for tick in shown)],
    }


def _right_end(histogram: Histogram, edges: list[float], thresholds: dict[str, float], *, scale: str) -> float:
    """Return the right end of the axis, which is slightly beyond the last topic and the highest line."""
    filled = [at for counts in histogram.rungs.values() for at, count in enumerate(counts, start=1) if count]
    last = edges[max(filled)] if filled else edges[-1]
    highest = max(thresholds.values())
    beyond = place_of(highest * (1.4 if scale == "linear" else 3), scale=scale)
    room = (last - edges[0]) * 0.02
    return max(last + room, beyond)


def _top(histogram: Histogram) -> float:
    return max(map(sum, zip(*histogram.rungs.values(), strict=True)), default=0) * 1.35 or 1


def _lines(thresholds: dict[str, float], ends: list[float], *, scale: str) -> list[tuple[dict[str, Any], ...]]:
    """Return each line with its label. The browser applies the same rules when a line is moved.

    Each line ends in its own row, which contains its label. No line may cross the label of another line. So with labels
    to the right, the lowest threshold has the tallest line; with labels to the left, the highest threshold has the
    tallest line.
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
                "font": {"color": "--ink", "size": 12},
            },
        )
        for at, (name, word, colour) in enumerate(LINES)
    ]


def backtest_figure(*found: BacktestReply) -> dict[str, Any]:
    """Return the figure of a backtest: how many topics each policy would have archived by each day. ``found`` are the
    results of the draft, if there is one, and of the policy in force."""
    lines = (("draft", "--measure", "solid"), ("in force", "--line-strong", "dot"))
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
