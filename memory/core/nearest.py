"""Finds the known name that is most similar to a mistyped name."""

import difflib
from collections.abc import Collection

# The most names that are listed if none is similar.
_MOST_KNOWN = 20
# The least ratio of difflib for a similar name: `topk` and `top_k` have 0.89, `items` and `title` 0.6.
_CUTOFF = 0.7


def nearest_hint(name: str, known: Collection[str], *, noun: str) -> str:
    """Return the end of a sentence about ``name``, which is not among the ``known`` names.

    It states the most similar name. If no name is similar, it lists all names or, if there are many, says that none is
    similar. ``noun`` says what the names are, in the plural.
    """
    by_folded = {each.casefold(): each for each in known}
    similar = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=_CUTOFF)
    if similar:
        return f"the nearest is {by_folded[similar[0]]}"
    if len(known) > _MOST_KNOWN:
        return f"none of the {len(known)} {noun} has a similar name"
    return f"{noun} are {', '.join(known)}" if known else f"there are no {noun}"
