"""Word order: whether the same words have the same roles in two texts. A part of ``likeness``.

"On Monday Anna meets Bob" equals "Anna meets Bob on Monday", but "from Oslo to Bergen" does not equal "from Bergen to
Oslo". A word after a preposition may move if no other word has the same role. The other words must keep their order,
except for the members of a list and for one block of words that moved.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

# Names, numbers and similar words must keep their order.
_FIRM = ("name", "number", "identifier", "date")


def order_differs(left: Sequence[Any], right: Sequence[Any], pairs: Mapping[int, int]) -> tuple[Any, Any] | None:
    """Return the first two words with different roles, one of each text; None if all roles are the same.

    ``pairs`` maps indexes of words in ``left`` to those in ``right``; of a repeated word, the first counts.
    """
    names = {left[one].key: right[other].key for one, other in pairs.items()}
    ours, theirs = _first(left, pairs.keys()), _first(right, pairs.values())
    governed_right = {right[place].key: right[place].under for place in theirs}
    for place in ours:
        token = left[place]
        partner = names[token.key]
        if partner in governed_right and _side(token.under) != _side(governed_right[partner]):
            return token, next(right[other] for other in theirs if right[other].key == partner)
    free_left, free_right = _free(left, ours), _free(right, theirs)
    wanted = {names[left[place].key] for place in ours if place not in free_left}
    fixed = {right[place].key for place in theirs if place not in free_right}
    # A word whose position is fixed in one text is fixed in both.
    ours = [place for place in ours if names[left[place].key] in wanted | fixed]
    theirs = [place for place in theirs if right[place].key in wanted | fixed]
    order_left = [names[key] for key in _sequence(left, ours, names)]
    order_right = _sequence(right, theirs, {})
    firm = {right[place].key for place in theirs if right[place].sort in _FIRM}
    if order_left == order_right:
        return None
    at = next((at for at, (a, b) in enumerate(zip(order_left, order_right, strict=False)) if a != b), 0)
    shifted = left[ours[min(at, len(ours) - 1)]], right[theirs[min(at, len(theirs) - 1)]]
    if [key for key in order_left if key in firm] != [key for key in order_right if key in firm]:
        return shifted
    return None if _one_moved(order_left, order_right) else shifted


def _first(tokens: Sequence[Any], places: Any) -> list[int]:
    seen: set[str] = set()
    kept = []
    for place in sorted(places):
        if tokens[place].key not in seen:
            seen.add(tokens[place].key)
            kept.append(place)
    return kept


def _side(under: str) -> str:
    """Return the role that a preposition gives to a word; prepositions of place and time give none."""
    return "" if under == "in" else under


def _free(tokens: Sequence[Any], places: Sequence[int]) -> set[int]:
    """Return the words that may move: after a preposition, or dates, and the only ones of their sort and role."""
    ways = {}
    for place in places:
        token = tokens[place]
        if token.under or token.sort == "date":
            ways[place] = (_side(token.under), "name" if token.capital else _sort(token))
    # The words of one name count once.
    starts = [
        place for place in ways if not (place - 1 in ways and ways[place - 1] == ways[place] and _run(tokens, place))
    ]
    times = Counter(ways[place] for place in starts)
    return {place for place, way in ways.items() if times[way] == 1}


def _sort(token: Any) -> str:
    # A time of day and a day are different sorts, so that both may move.
    return "clock" if token.sort == "date" and ":" in token.key else str(token.sort)


def _run(tokens: Sequence[Any], place: int) -> bool:
    return bool(tokens[place].capital and tokens[place - 1].capital)


def _sequence(tokens: Sequence[Any], places: Sequence[int], names: Mapping[str, str]) -> list[str]:
    """Return the keys in order, those that make up a list by themselves."""
    groups: list[list[str]] = []
    there = set(places)
    for place in places:
        token = tokens[place]
        if groups and token.listed and place - 1 in there:
            groups[-1].append(token.key)
        else:
            groups.append([token.key])
    return [key for group in groups for key in sorted(group, key=lambda key: names.get(key, key))]


def _one_moved(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether a sequence becomes another by moving one block of it."""
    if len(one) != len(other):
        return False
    start = next((at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b), len(one))
    end = next((at for at, (a, b) in enumerate(zip(reversed(one), reversed(other), strict=True)) if a != b), 0)
    inner, wanted = list(one[start : len(one) - end]), list(other[start : len(other) - end])
    if not inner:
        return True
    cut = inner.index(wanted[0]) if wanted[0] in inner else 0
    return inner[cut:] + inner[:cut] == wanted
