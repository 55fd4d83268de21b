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
# Loaded at import, because the function below runs between fork and exec, where loading a library could hang.
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None


def dies_with_parent(number: signal.Signals, *, parent: int | None = None) -> Callable[[], None] | None:
    """Return a function that a child calls before it starts its program. The child then gets the signal when its parent
    ends, even if the parent is killed. Call ``dies_with_parent`` in the parent, or in the child with the process id of
    its parent as ``parent``. Returns None on systems other than Linux."""
    if _LIBC is None:
        return None
    expected = os.getpid() if parent is None else parent
    value = int(number)

    def ask() -> None:
        assert _LIBC is not None
        _LIBC.prctl(_PR_SET_PDEATHSIG, value, 0, 0, 0)
        if os.getppid() != expected:
            # The parent died before the call, so there will be no signal.
            os._exit(1)

    return ask


class FolderLock:
    """A lock on a file, held until it is released or the process ends. The file names the process that has the lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Take the lock unless another process has it."""
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
        """Return a description of the process that has the lock, for a sentence."""
        try:
            number = self.path.read_text(encoding="utf-8").strip()
        except OSError:
            number = ""
        return f"process {number}" if number else "another process"


class SharedUse:
    """The use of a folder's database server by one command. Each command holds a shared lock. The command that stops
    the server waits until the others have closed theirs."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def alone(self) -> bool:
        """Return whether no other command uses the server. If the result is True, new commands wait until this lock is
        closed."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        os.close(self._descriptor)


def process_group_kill(leader: int, number: signal.Signals) -> None:
    """Send a signal to every process of a group, if the group still exists."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return


def wait_until(condition: Callable[[], bool], seconds: float, *, step: float = 0.05) -> bool:
    """Poll until the condition is true. Return False if it is still false after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(step)
    return True
