"""Identifies a file by the SHA-256 of its bytes, and detects changes while it is read."""

import hashlib
import os
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple


class Digest(NamedTuple):
    """The SHA-256 of a file, and its size in bytes."""

    sha256: str
    size: int


def file_digest(path: Path) -> Digest:
    """Return the digest of a file. Reads the file only if it has changed since the last call. Raises ``OSError``."""
    found = os.stat(path)
    # The change time (ctime) is compared too, because programs can set the time of a write (mtime).
    stamp = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return Digest(_sha256(path, stamp), found.st_size)


# Cached, so that an import of many steps hashes its file once per process.
@lru_cache(maxsize=16)
def _sha256(path: Path, _stamp: tuple[int, ...]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
