"""What a file is known by: the SHA-256 of its bytes, and whether it is still the file that was read."""

import hashlib
import os
import time
from pathlib import Path
from typing import NamedTuple

_BLOCK = 1024 * 1024
# A file system tells the moment of a change as coarsely as this. What was changed later before it was read may have
# been changed once more since, in the same moment.
_SETTLED_NS = 2_000_000_000
_MOST_KNOWN = 16


class Digest(NamedTuple):
    """The SHA-256 of a file, its size in bytes, and by what the file system tells that nobody has touched it since."""

    sha256: str
    size: int
    stamp: tuple[int, ...]


# By path, of this process: an import of many turns reads its file once for this.
_known: dict[Path, Digest] = {}


def file_digest(path: Path) -> Digest:
    """Return what a file is known by. Reads all of it, but not again while it lies there untouched. Raises
    ``OSError``."""
    known = _known.get(path)
    if known is not None and _stamp(os.stat(path)) == known.stamp:
        return known
    began = time.time_ns()
    digest = hashlib.sha256()
    with path.open("rb") as file:
        before = os.fstat(file.fileno())
        while block := file.read(_BLOCK):
            digest.update(block)
        after = os.fstat(file.fileno())
    found = Digest(digest.hexdigest(), after.st_size, _stamp(before))
    if _stamp(after) == found.stamp and began - before.st_ctime_ns > _SETTLED_NS:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[path] = found
    return found


def file_is(path: Path, seen: Digest) -> bool:
    """Tell whether a file holds what it held when it was ``seen``. Reads it only if somebody has touched it. Raises
    ``OSError``."""
    return _stamp(os.stat(path)) == seen.stamp or file_digest(path).sha256 == seen.sha256


def _stamp(found: os.stat_result) -> tuple[int, ...]:
    # Nobody can set the moment of a change (ctime), while that of a write can be set back.
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
