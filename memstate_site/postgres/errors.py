"""Errors of the embedded server, as sentences that state what to do."""

from __future__ import annotations

import re
from pathlib import Path


class PostgresError(Exception):
    """The embedded server cannot be used. The message is shown to the user."""


class StillAttachedError(PostgresError):
    """Processes of a killed server have not ended yet; a retry shortly after will succeed."""


FULL_DISK = re.compile(r"No space left on device|Disk quota exceeded")
SHARED_MEMORY = re.compile(
    r"could not (?:resize|create|open) shared memory segment|could not map anonymous shared memory"
)
ATTACHED = re.compile(r"pre-existing shared memory block|lock file \"[^\"]*\" (?:already exists|is empty)")
INCOMPATIBLE = re.compile(r"database files are incompatible with server")


def full_disk(folder: Path) -> PostgresError:
    return PostgresError(
        f"The disk that holds {folder} is full. Make room there and start again; "
        f"the database recovers by itself and nothing that was acknowledged is lost."
    )


def explain(output: list[str], folder: Path) -> PostgresError:
    """Return the error message for a server (or `initdb`) that ended with these lines of output."""
    text = "\n".join(output)
    # Shared memory is checked first, because its error contains the text of a full disk.
    if SHARED_MEMORY.search(text):
        return PostgresError(
            "PostgreSQL could not get the shared memory it needs. In a container, give it more with --shm-size=512m; "
            f"elsewhere, set a smaller shared_buffers in {folder / 'local.conf'}."
        )
    if FULL_DISK.search(text):
        return full_disk(folder)
    if ATTACHED.search(text):
        return StillAttachedError(
            f"Processes of an earlier server still use {folder}. Wait a few seconds and start again."
        )
    if INCOMPATIBLE.search(text):
        return PostgresError(
            f"The database in {folder} was written by a build of PostgreSQL that does not fit the packaged one. "
            "Start it with the version of MemState that wrote it."
        )
    # The last lines contain the reason of a failed start.
    tail = "\n".join(f"  {line}" for line in output[-8:]) or "  (no output)"
    return PostgresError(f"PostgreSQL did not start in {folder}. The end of its output:\n{tail}")
