"""Identifies a file by the SHA-256 of its bytes, and detects changes while it is read."""

import hashlib
import os
import time
from pathlib import Path
from typing import NamedTuple

# The coarsest resolution of times in file systems, in nanoseconds. A file that changed within this time before it was
# read may change again and keep its time. Its digest is therefore not cached.
_SETTLED_NS = 2_000_000_000
_MAX_KNOWN = 16


class Digest(NamedTuple):
    """The SHA-256 of a file, its size in bytes, and file system metadata that every write changes (``stamp``)."""

    sha256: str
    size: int
    stamp: tuple[int, ...]


# Cached by path, so that an import of many steps hashes its file once per process.
_known: dict[Path, Digest] = {}


def file_digest(path: Path) -> Digest:
    """Return the digest of a file. Reads the file only if it has changed since the last call. Raises ``OSError``."""
    known = _known.get(path)
    if known is not None and _stamp(os.stat(path)) == known.stamp:
        return known
    began = time.time_ns()
    with path.open("rb") as file:
        before = os.fstat(file.fileno())
        digest = hashlib.file_digest(file, "sha256")
        after = os.fstat(file.fileno())
    found = Digest(digest.hexdigest(), after.st_size, _stamp(before))
    if _stamp(after) == found.stamp and began - before.st_ctime_ns > _SETTLED_NS:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[path] = found
    return found


def file_is(path: Path, seen: Digest) -> bool:
    """Return whether a file still has the content of ``seen``. Reads the file only if the file system reports a change.
    Raises ``OSError``."""
    return _stamp(os.stat(path)) == seen.stamp or file_digest(path).sha256 == seen.sha256


def _stamp(found: os.stat_result) -> tuple[int, ...]:
    # The change time (ctime) is compared too, because programs can set the time of a write (mtime).
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
