"""Scopes: slash-separated paths such as ``/user/alice``. Every topic and every key has a scope."""

import re

from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode

ROOT = "/"
MAX_SCOPE_LENGTH = 500
_SEGMENT = re.compile(r"[^/\s\x00-\x1f\x7f]+")


def scope_normalize(path: str) -> str:
    """Return the canonical form of a scope path: one leading slash, none at the end, no empty segments. Raises
    ``ValueRefused`` for white space, control characters, ``.`` and ``..``, and more than ``MAX_SCOPE_LENGTH``
    characters."""
    segments = [segment for segment in path.split("/") if segment]
    length = len(ROOT + "/".join(segments))
    if length > MAX_SCOPE_LENGTH:
        raise ValueRefused(
            f"A scope has at most {MAX_SCOPE_LENGTH} characters; this one has {length}.", code=ProblemCode.INVALID_SCOPE
        )
    for segment in segments:
        if segment in (".", "..") or not _SEGMENT.fullmatch(segment):
            raise ValueRefused(
                f"The scope segment {segment!r} must not be '.', '..' or hold white space.",
                code=ProblemCode.INVALID_SCOPE,
            )
    return ROOT + "/".join(segments)


def scope_within(path: str, prefix: str) -> bool:
    """Return whether ``path`` is ``prefix`` or is below ``prefix``. Both must be canonical."""
    return prefix == ROOT or path == prefix or path.startswith(prefix + "/")


def scope_words(path: str) -> str:
    """Return a canonical scope as sentences name it: the root is the whole store."""
    return "the whole store" if path == ROOT else path


def scope_ancestors(path: str) -> list[str]:
    """Return every scope above ``path``, the root first, and then ``path`` itself, which must be canonical."""
    segments = [segment for segment in path.split("/") if segment]
    return [ROOT + "/".join(segments[:depth]) for depth in range(len(segments) + 1)]
