"""The figure of a topic's salience over time, for plotly.js. Colours are names of CSS custom properties."""

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from typing import Any

# Smaller values are indistinguishable from 0 and do not fit a logarithmic axis.
LEAST_SHOWN = 1e-3
_TICKS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]

Point = tuple[dt.datetime, float, float]


def salience_figure(history: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data and the layout: the estimated past, the known past, the forecast, and the thresholds.

    The axis is logarithmic for salience and for scores of the strategy ``half_life``, so that steady fading is a
    straight line. It is linear for scores of other strategies, which may be negative.
    """
    logarithmic = not history["score_differs"] or history["strategy"] == "half_life"
    past: list[Point] = history["points"]
    ahead: list[Point] = history["ahead"]
    exact = history["exact_since"]
    known = past if exact is None else [point for point in past if point[0] >= exact]
    guessed = [] if exact is None else [point for point in past if point[0] < exact] + known[:1]
    data = []
    if history["score_differs"]:
        data += _lines("salience", guessed, known, ahead, "--ink-faint", logarithmic, width=1.5)
        data += _lines("score", guessed, known, ahead, "--measure", logarithmic, width=2.5, scored=True)
    else:
        data += _lines("salience", guessed, known, ahead, "--measure", logarithmic, width=2.5)
    which = "score" if history["score_differs"] else "salience"
    marks = [mark for mark in history["marks"] if not mark["due"] and ahead and mark["at"] <= ahead[-1][0]]
    if marks:
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "would be moved",
                "showlegend": False,
                "x": [mark["at"].isoformat() for mark in marks],
                "y": [_shown(mark[which], logarithmic) for mark in marks],
                "text": [f"would be {mark['rung']}" for mark in marks],
                "hovertemplate": "%{text}<extra></extra>",
                "marker": {
                    "size": 10,
                    "color": [f"--rung-{_tone(mark['rung'])}" for mark in marks],
                    "line": {"width": 2, "color": "--surface"},
                },
            }
        )
    turns = [
        turn
        for turn in history["turns"]
        if turn["what"] != "created" and not math.isclose(turn["before"], turn["after"], rel_tol=1e-3)
    ]
    if turns and not history["score_differs"]:
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "written by hand or by a run",
                "showlegend": False,
                "x": [turn["at"].isoformat() for turn in turns],
                "y": [_shown(turn["after"], logarithmic) for turn in turns],
                "text": [turn["note"] or turn["what"] for turn in turns],
                "hovertemplate": "%{text}<extra></extra>",
                "marker": {
                    "size": 9,
                    "symbol": "diamond",
                    "color": "--ink",
                    "line": {"width": 1.5, "color": "--surface"},
                },
            }
        )
    return {"data": data, "layout": _layout(history, past, ahead, logarithmic)}


def _lines(
    name: str,
    guessed: Sequence[Point],
    known: Sequence[Point],
    ahead: Sequence[Point],
    colour: str,
    logarithmic: bool,
    *,
    width: float,
    scored: bool = False,
) -> list[dict[str, Any]]:
    parts = (
        (f"{name}, estimated", guessed, "dot", "--ink-faint", width),
        (name, known, "solid", colour, width),
        (f"{name} if nothing uses it", ahead, "dash", colour, width),
    )
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": said,
            "line": {"color": tone, "width": thick, "dash": dash},
            "x": [point[0].isoformat() for point in points],
            "y": [_shown(point[2] if scored else point[1], logarithmic) for point in points],
            "hovertemplate": "%{y:.3g}",
        }
        for said, points, dash, tone, thick in parts
        if points
    ]


def _layout(
    history: Mapping[str, Any], past: Sequence[Point], ahead: Sequence[Point], logarithmic: bool
) -> dict[str, Any]:
    first, last = past[0][0], (ahead or past)[-1][0]
    # Margin, so that a mark at the end is not cut off.
    moments = [first.isoformat(), (last + (last - first) / 60).isoformat()]
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for threshold in history["thresholds"]:
        theta, tone = threshold["theta"], f"--rung-{threshold['rung']}"
        if logarithmic and theta <= 0:
            continue
        shapes.append(
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": theta,
                "y1": theta,
                "line": {"color": tone, "width": 1, "dash": "dot"},
            }
        )
        notes.append(
            {
                "xref": "paper",
                "x": 0 if ahead else 1,
                "xanchor": "left" if ahead else "right",
                "y": _on_axis(theta, logarithmic),
                "yanchor": "bottom",
                "showarrow": False,
                "text": f"{threshold['rung']} below {theta:g}",
                "font": {"color": "--ink", "size": 11},
                "bgcolor": "--surface",
                "borderpad": 1,
            }
        )
    if ahead:
        now = past[-1][0].isoformat()
        # For a new topic, the word "now" is on the other side of the line, so that it does not cover the axis.
        is_new = (past[-1][0] - first) * 10 < last - first
        shapes.append(
            {
                "type": "line",
                "yref": "paper",
                "x0": now,
                "x1": now,
                "y0": 0,
                "y1": 1,
                "line": {"color": "--line-strong", "width": 1},
            }
        )
        notes.append(
            {
                "x": now,
                "yref": "paper",
                "y": 1,
                "yanchor": "top",
                "xanchor": "left" if is_new else "right",
                "xshift": 4 if is_new else -4,
                "showarrow": False,
                "text": "now",
                "font": {"size": 11},
            }
        )
    axis: dict[str, Any] = {"title": {"text": "score" if history["score_differs"] else "salience"}, "zeroline": False}
    if logarithmic:
        values = [point[1] for point in (*past, *ahead) if point[1] > 0]
        values += [threshold["theta"] for threshold in history["thresholds"] if threshold["theta"] > 0]
        low, high = max(min(values, default=0.01) * 0.7, LEAST_SHOWN), max([*values, 0.5]) * 1.5
        axis |= {
            "type": "log",
            "range": [_on_axis(low, True), _on_axis(high, True)],
            "tickvals": _TICKS,
            "ticktext": [f"{tick:g}" for tick in _TICKS],
        }
    else:
        axis |= {"rangemode": "normal"}
    return {
        "shapes": shapes,
        "annotations": notes,
        "xaxis": {"type": "date", "range": moments},
        "yaxis": axis,
        "showlegend": True,
        "hovermode": "x",
    }


def _tone(rung: str) -> str:
    return "archived" if rung == "released" else rung


def _shown(value: float, logarithmic: bool) -> float | None:
    return None if logarithmic and value <= 0 else value


def _on_axis(value: float, logarithmic: bool) -> float:
    return math.log10(value) if logarithmic else value
