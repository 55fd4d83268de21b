"""The chart of regret over time, drawn on the server, with the versions of the policy as marks."""

import datetime as dt
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from memory.core.days import day_begin
from memory.explain.regret import RegretDay

# The regret rate of a day covers this number of days, the last of which is that day. The archivings of a single day
# are too few for a rate.
WINDOW = 7
HEIGHT = 100
_TOPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
# The names of neighbouring marks are in different rows, so that they do not overlap. This is the number of rows.
_ROWS = 3


def regret_picture(
    days: Sequence[RegretDay], versions: Sequence[Mapping[str, Any]], *, scope: str, now: dt.datetime
) -> dict[str, Any]:
    """Return the parts of an SVG: the line of the regret rate, a bar for the archivings of each day, and a mark for
    each of ``versions``. One day is one unit wide, and the picture is ``HEIGHT`` units high. The ``x`` of a mark is in
    percent of the width. ``rate``, ``last_archived`` and ``last_regretted`` cover the last ``WINDOW`` days."""
    rates = [_rate(days[max(0, at - WINDOW + 1) : at + 1]) for at in range(len(days))]
    known = [rate for rate in rates if rate is not None]
    top = next(each for each in _TOPS if each >= max(known, default=0))
    most = max(day.archived for day in days) or 1
    points = ["" if rate is None else f"{at + 0.5:g},{HEIGHT * (1 - rate / top):.1f}" for at, rate in enumerate(rates)]
    pieces = [list(piece) for drawn, piece in itertools.groupby(points, key=bool) if drawn]
    start, span = day_begin(days[0].day), (now - day_begin(days[0].day)) / len(days)
    last = days[-WINDOW:]
    return {
        "width": len(days),
        "height": HEIGHT,
        "top": top,
        "line": "".join("M" + "L".join(piece if len(piece) > 1 else piece * 2) for piece in pieces),
        "bars": [
            {
                "x": at + 0.15,
                "y": round(HEIGHT * (1 - day.archived / most * 0.9), 1),
                "height": round(HEIGHT * day.archived / most * 0.9, 1),
                "words": f"{day.day:%-d %b}: {day.archived:,} archived, {day.regretted:,} regretted",
            }
            for at, day in enumerate(days)
            if day.archived
        ],
        "marks": [
            {
                **version,
                "x": round(max(0.0, (version["created_at"] - start) / span) / len(days) * 100, 2),
                "name": f"v{version['number']}"
                if version["scope"] == scope
                else f"{version['scope']} v{version['number']}",
                "row": 12 + 13 * (place % _ROWS),
            }
            for place, version in enumerate(versions)
        ],
        "since": days[0].day,
        "archived": sum(day.archived for day in days),
        "days": WINDOW,
        "last_archived": sum(day.archived for day in last),
        "last_regretted": sum(day.regretted for day in last),
        "rate": rates[-1],
    }


def _rate(days: Sequence[RegretDay]) -> float | None:
    archived = sum(day.archived for day in days)
    return sum(day.regretted for day in days) / archived if archived else None
