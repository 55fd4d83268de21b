"""The known name that is nearest to a mistyped one."""

import difflib
from collections.abc import Collection

# Most names that are listed if none is near.
_MOST_KNOWN = 20
# The least ratio of difflib for a near name: `topk` and `top_k` have 0.89, `items` and `title` 0.6.
_CUTOFF = 0.7


def nearest_hint(name: str, known: Collection[str], *, noun: str) -> str:
    """Return which of ``known`` is nearest to ``name``, which is not among them; all if none is near.

    Of many it says only that none is near. Reads as the end of a sentence. ``noun`` is what they are, in the plural.
    """
    folded = {each.casefold(): each for each in known}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=_CUTOFF)
    if near:
        return f"the nearest is {folded[near[0]]}"
    if len(known) > _MOST_KNOWN:
        return f"none of the {len(known)} {noun} has a similar name"
    return f"{noun} are {', '.join(known)}" if known else f"there are no {noun}"
