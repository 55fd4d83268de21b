"""Scopes for the ids of users, agents and runs of other systems."""

import re
from urllib.parse import quote

# Characters that a segment of a scope cannot contain, and "%", which escapes them.
_ODD = re.compile(r"[/%\s\x00-\x1f\x7f]")


def scope_segment(name: str) -> str:
    """Return ``name`` as one segment of a scope, percent-encoded where necessary: ``%20`` for a space."""
    if name in (".", ".."):
        return name.replace(".", "%2E")
    return _ODD.sub(lambda found: quote(found[0], safe=""), name)
