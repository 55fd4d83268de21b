"""The links of a topic as a small picture: the positions of its boxes and lines. The template draws it as SVG.

Topics that link to the topic are on the left, and topics to which it links are on the right. So the direction is
visible without following an arrow. Lengths are units of the picture, which the page scales.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.console.titles import titled
from memory.core.truncate import line_cut

MAX_PER_SIDE = 8
WIDTH, BOX, CENTRE = 1000, 270, 220
ROW, BOX_HEIGHT, MARGIN = 52, 38, 12
# The approximate numbers of letters that fit into a box, into the middle box, and into the gap between them.
BOX_LETTERS, CENTRE_LETTERS, LABEL_LETTERS = 33, 23, 14
_RUNGS = ("active", "summarized", "detached", "archived")


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A neighbour: its box, the line to it, and the label of the line."""

    topic_id: str
    title: str
    short: str
    rung: str
    kind: str
    kind_short: str
    incoming: bool
    x: int
    y: int
    text_x: int
    text_y: int
    line: str
    label_x: int
    label_y: int


@dataclass(frozen=True, slots=True)
class TopicGraph:
    """The whole picture. ``more`` is the number of neighbours that it omits."""

    nodes: list[GraphNode]
    more: int
    left: int
    width: int
    height: int
    box: int
    box_height: int
    centre_width: int
    centre_x: int
    centre_y: int
    middle: int
    text_y: int
    short: str


def graph_place(title: str, neighbours: Sequence[Mapping[str, Any]]) -> TopicGraph:
    """Return the positions of a topic and of at most ``MAX_PER_SIDE`` neighbours on each side, ordered by rung.

    A side without neighbours is cut off.
    """
    ordered = sorted(neighbours, key=lambda each: _RUNGS.index(each["rung"]))
    sides = {way: [each for each in ordered if each["direction"] == way] for way in ("in", "out")}
    rows = max(1, *(min(len(side), MAX_PER_SIDE) for side in sides.values()))
    height = 2 * MARGIN + rows * ROW
    middle = height // 2
    beside = (WIDTH - CENTRE) // 2 - 2
    left, right = (0 if sides["in"] else beside), (0 if sides["out"] else beside)
    nodes = [
        _node(each, place, min(len(side), MAX_PER_SIDE), height, incoming=way == "in")
        for way, side in sides.items()
        for place, each in enumerate(side[:MAX_PER_SIDE])
    ]
    return TopicGraph(
        nodes=nodes,
        more=len(neighbours) - len(nodes),
        left=left,
        width=WIDTH - left - right,
        height=height,
        box=BOX,
        box_height=BOX_HEIGHT,
        centre_width=CENTRE,
        centre_x=(WIDTH - CENTRE) // 2,
        centre_y=middle - BOX_HEIGHT // 2,
        middle=WIDTH // 2,
        text_y=middle + 5,
        short=line_cut(titled(title), CENTRE_LETTERS),
    )


def _node(each: Mapping[str, Any], place: int, rows: int, height: int, *, incoming: bool) -> GraphNode:
    y = height // 2 + round((place - (rows - 1) / 2) * ROW)
    near, far = (WIDTH - CENTRE) // 2, BOX
    if not incoming:
        near, far = WIDTH - near, WIDTH - BOX
    bend = (near + far) // 2
    # Each line runs in the direction of its link.
    start, end = ((far, y), (near, height // 2)) if incoming else ((near, height // 2), (far, y))
    x = 0 if incoming else WIDTH - BOX
    return GraphNode(
        topic_id=each["topic_id"],
        title=titled(each["title"]),
        short=line_cut(titled(each["title"]), BOX_LETTERS),
        rung=each["rung"],
        kind=each["kind"],
        kind_short=line_cut(each["kind"].replace("_", " "), LABEL_LETTERS),
        incoming=incoming,
        x=x,
        y=y - BOX_HEIGHT // 2,
        text_x=x + 14,
        text_y=y + 5,
        line=f"M{start[0]} {start[1]} C{bend} {start[1]} {bend} {end[1]} {end[0]} {end[1]}",
        label_x=far + (8 if incoming else -8),
        label_y=y + 17 if y > height // 2 else y - 7,
    )
