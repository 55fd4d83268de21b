"""Compares the word order of two texts, to decide whether the same words have the same roles. Dates and words after a
preposition may move if no other word has the same role. All other words must keep their order, with two exceptions: the
members of a list may have any order, and one block of words may move."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from memory.text.likeness_tokens import Token

# Words of these kinds must keep their order even if a block of words moves.
_FIRM = ("name", "number", "identifier", "date")


def order_differs(
    left: Sequence[Token], right: Sequence[Token], pairs: Mapping[int, int]
) -> tuple[Token, Token] | None:
    """Return the first two words with different roles, one of each text; None if all roles are the same. ``pairs`` maps
    the indexes of words in ``left`` to indexes in ``right``."""
    partners = {left[one].key: right[other].key for one, other in pairs.items()}
    at_left, at_right = _first(left, pairs.keys()), _first(right, pairs.values())
    prepositions_right = {right[place].key: right[place].preposition for place in at_right}
    for place in at_left:
        token = left[place]
        partner = partners[token.key]
        if partner in prepositions_right and _role(token.preposition) != _role(prepositions_right[partner]):
            return token, next(right[other] for other in at_right if right[other].key == partner)
    free_left, free_right = _movable(left, at_left), _movable(right, at_right)
    # A word whose position is fixed in one text is fixed in both.
    fixed = {partners[left[place].key] for place in at_left if place not in free_left}
    fixed |= {right[place].key for place in at_right if place not in free_right}
    at_left = [place for place in at_left if partners[left[place].key] in fixed]
    at_right = [place for place in at_right if right[place].key in fixed]
    order_left = [partners[key] for key in _sequence(left, at_left, partners)]
    order_right = _sequence(right, at_right, {})
    if order_left == order_right:
        return None
    firm = {right[place].key for place in at_right if right[place].kind in _FIRM}
    at = next((at for at, (a, b) in enumerate(zip(order_left, order_right, strict=False)) if a != b), 0)
    shifted = left[at_left[min(at, len(at_left) - 1)]], right[at_right[min(at, len(at_right) - 1)]]
    if [key for key in order_left if key in firm] != [key for key in order_right if key in firm]:
        return shifted
    return None if _equal_after_one_move(order_left, order_right) else shifted


def _first(tokens: Sequence[Token], places: Collection[int]) -> list[int]:
    seen: set[str] = set()
    kept = []
    for place in sorted(places):
        if tokens[place].key not in seen:
            seen.add(tokens[place].key)
            kept.append(place)
    return kept


def _role(preposition: str) -> str:
    """Return the role that a preposition gives to a word; empty for prepositions of place and time."""
    return "" if preposition == "in" else preposition


def _movable(tokens: Sequence[Token], places: Sequence[int]) -> set[int]:
    """Return the places of words that may move: dates and words after a preposition, if no other such word has the same
    role and kind."""
    ways = {}
    for place in places:
        token = tokens[place]
        if token.preposition or token.kind == "date":
            # A time of day and a day are different kinds, so that both may move.
            kind = "clock" if token.kind == "date" and ":" in token.key else token.kind
            ways[place] = (_role(token.preposition), "name" if token.capital else kind)
    # The words of one name count once.
    starts = [
        place
        for place in ways
        if ways.get(place - 1) != ways[place] or not (tokens[place].capital and tokens[place - 1].capital)
    ]
    times = Counter(ways[place] for place in starts)
    return {place for place, way in ways.items() if times[way] == 1}


def _sequence(tokens: Sequence[Token], places: Sequence[int], partners: Mapping[str, str]) -> list[str]:
    """Return the keys of the words in order. The members of a list are sorted, because their order does not count."""
    groups: list[list[str]] = []
    known = set(places)
    for place in places:
        token = tokens[place]
        if groups and token.listed and place - 1 in known:
            groups[-1].append(token.key)
        else:
            groups.append([token.key])
    return [key for group in groups for key in sorted(group, key=lambda key: partners.get(key, key))]


def _equal_after_one_move(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether moving one block of a sequence turns it into the other."""
    if len(one) != len(other):
        return False
    start = next((at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b), len(one))
    end = next((at for at, (a, b) in enumerate(zip(reversed(one), reversed(other), strict=True)) if a != b), 0)
    inner, wanted = list(one[start : len(one) - end]), list(other[start : len(other) - end])
    if not inner:
        return True
    cut = inner.index(wanted[0]) if wanted[0] in inner else 0
    return inner[cut:] + inner[:cut] == wanted
