"""The known name that is nearest to a mistyped one."""

import difflib
from collections.abc import Collection

# Most names that are listed if none is near.
_MOST_KNOWN = 20


def nearest_hint(name: str, known: Collection[str], *, noun: str) -> str:
    """Return which of ``known`` is nearest to ``name``, which is not among them; all if none is near and they are few.

    Reads as the end of a sentence. ``noun`` is what they are, in the plural.
    """
    cutoff = 0.5 if len(known) <= _MOST_KNOWN else 0
    folded = {each.casefold(): each for each in known}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)
    if near:
        return f"the nearest is {folded[near[0]]}"
    return f"{noun} are {', '.join(known)}" if known else f"there are no {noun}"
