"""Finds the known name that is most similar to a mistyped name."""

import difflib
from collections.abc import Collection

# The maximum number of names that are listed if none is similar.
_MAX_KNOWN = 20
# The minimum difflib ratio of a similar name: `topk` and `top_k` have 0.89, `items` and `title` 0.6.
_CUTOFF = 0.7


def nearest_hint(name: str, known: Collection[str], *, noun: str) -> str:
    """Return the end of a sentence about ``name``, which is not among the ``known`` names. This text contains the most
    similar name. If none is similar, it contains all known names, or only their number if there are many. ``noun`` is
    the plural word for the names."""
    by_folded = {each.casefold(): each for each in known}
    similar = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=_CUTOFF)
    if similar:
        return f"the nearest is {by_folded[similar[0]]}"
    if len(known) > _MAX_KNOWN:
        return f"none of the {len(known)} {noun} has a similar name"
    return f"{noun} are {', '.join(known)}" if known else f"there are no {noun}"
