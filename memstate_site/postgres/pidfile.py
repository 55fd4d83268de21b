"""Reads a server's pid file, and finds out whether it is valid."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True)
class Traces:
    """The state of an earlier server, from its pid file and processes."""

    # The process of the running server of the folder, if there is one.
    running: int | None
    # Whether there is a pid file without a running server, because the last server was killed.
    unclean: bool
    # Whether the number in the pid file now belongs to another program.
    reused: bool
    # Processes of a killed server that have not ended yet.
    orphans: tuple[int, ...]


def traces(path: Path) -> Traces:
    """Read the pid file, and examine the processes whose working folder is the data folder. A process number alone is
    not sufficient, because numbers are reused, especially in containers."""
    number = _number(path)
    if number is None:
        return Traces(None, unclean=False, reused=False, orphans=())
    if number > 0 and _is_server_of(number, path):
        return Traces(number, unclean=False, reused=False, orphans=())
    orphans = tuple(pid for pid in psutil.pids() if pid != number and _is_server_of(pid, path))
    return Traces(None, unclean=True, reused=number > 0 and psutil.pid_exists(number), orphans=orphans)


def _number(path: Path) -> int | None:
    try:
        lines = (path / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return None
    try:
        return int(lines[0])
    except (IndexError, ValueError):
        # The file may be empty because the disk was full.
        return 0


def _is_server_of(pid: int, path: Path) -> bool:
    """Return whether a process is a PostgreSQL process whose working folder is the data folder."""
    try:
        process = psutil.Process(pid)
        if "postgres" not in process.name() or process.status() == psutil.STATUS_ZOMBIE:
            return False
        return os.path.samefile(process.cwd(), path)
    except (psutil.Error, OSError):
        return False
