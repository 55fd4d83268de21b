"""The content of a server's pid file, and whether it is valid."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True)
class Traces:
    """The state of an earlier server, from its pid file and processes."""

    # The server's process, if one works on the folder now.
    running: int | None
    # Whether there is a pid file although no server runs: the last one was not shut down.
    unclean: bool
    # Whether the number in the pid file meanwhile belongs to a program that has nothing to do with the folder.
    reused: bool
    # Processes of a killed server that have not noticed yet.
    orphans: tuple[int, ...]


def traces(path: Path) -> Traces:
    """Read the pid file and examine the processes whose working folder is the data folder.

    A process number alone proves nothing: numbers are reused, especially in containers, where each start has the same
    small numbers.
    """
    number = _number(path)
    if number is None:
        return Traces(None, unclean=False, reused=False, orphans=())
    if number > 0 and _stands_in(number, path):
        return Traces(number, unclean=False, reused=False, orphans=())
    orphans = tuple(pid for pid in psutil.pids() if pid != number and _stands_in(pid, path))
    return Traces(None, unclean=True, reused=number > 0 and psutil.pid_exists(number), orphans=orphans)


def _number(path: Path) -> int | None:
    try:
        lines = (path / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return None
    try:
        return int(lines[0])
    except (IndexError, ValueError):
        # An empty file is what a full disk leaves behind.
        return 0


def _stands_in(pid: int, path: Path) -> bool:
    """Whether a process is a PostgreSQL process of the folder: its working folder is the data folder."""
    try:
        process = psutil.Process(pid)
        if "postgres" not in process.name() or process.status() == psutil.STATUS_ZOMBIE:
            return False
        return os.path.samefile(process.cwd(), path)
    except (psutil.Error, OSError):
        return False
