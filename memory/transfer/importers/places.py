"""Scopes of what other systems know by the ids of users, agents and runs."""

import re
from urllib.parse import quote

# What a segment of a scope cannot hold, and the sign of the spelling itself, without which it could not be read back.
_ODD = re.compile(r"[/%\s\x00-\x1f\x7f]")


def segment_made(name: str) -> str:
    """Return ``name`` as one segment of a scope: odd characters are written as in addresses, ``%20`` for a blank."""
    if name in (".", ".."):
        return name.replace(".", "%2E")
    return _ODD.sub(lambda found: quote(found[0], safe=""), name)
