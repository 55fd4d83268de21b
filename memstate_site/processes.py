"""Helpers for processes: end a child with its parent, locks on files, signals to process groups."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

_PR_SET_PDEATHSIG = 1
# Loaded once at import: the function below runs between fork and exec, where loading anything could hang.
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None


def dies_with_parent(number: signal.Signals, *, parent: int | None = None) -> Callable[[], None] | None:
    """Return the function that a child calls before it starts its program, to get the signal when its parent ends.

    It is created in the parent, or in the child with the parent's number. So even a killed parent leaves no processes.
    Only Linux supports this; elsewhere the next start ends them (see `memstate_site.leftovers`).
    """
    if _LIBC is None:
        return None
    expected = os.getpid() if parent is None else parent
    value = int(number)

    def ask() -> None:
        assert _LIBC is not None
        _LIBC.prctl(_PR_SET_PDEATHSIG, value, 0, 0, 0)
        if os.getppid() != expected:
            # The parent died before the call; no signal will come any more.
            os._exit(1)

    return ask


class FolderLock:
    """A lock on a file, held as long as the process lives; the file says which process holds it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Take the lock unless another process holds it."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor
        return True

    @property
    def acquired(self) -> bool:
        return self._descriptor is not None

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def holder(self) -> str:
        """Return a description of the process that holds the lock, for a sentence."""
        try:
            number = self.path.read_text(encoding="utf-8").strip()
        except OSError:
            number = ""
        return f"process {number}" if number else "another process"


class SharedUse:
    """Counts the commands that use the server of a folder: each holds a shared lock, and the one that stops it waits
    for the others."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def alone(self) -> bool:
        """Whether no other command uses the server; if so, a new one has to wait until this one is closed."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        os.close(self._descriptor)


def process_group_kill(leader: int, number: signal.Signals) -> None:
    """Send a signal to every process of a group, if there still is one."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return


def wait_until(condition: Callable[[], bool], seconds: float, *, step: float = 0.05) -> bool:
    """Poll until the condition holds; return False if it does not hold in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(step)
    return True
