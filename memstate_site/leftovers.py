"""Ends processes that a killed supervisor has left running. The supervisor writes their process groups to a file, which
is called the notes."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil

from memstate_site.folder import private_file_read, private_file_replace
from memstate_site.processes import wait_until

NOTES_FILE = "processes.json"
# This variable names the run in the environment of each of its processes. Process numbers alone do not identify the
# processes, because numbers are reused.
RUN_VARIABLE = "MEMSTATE_RUN"


def notes_write(folder: Path, run: str, groups: list[int]) -> None:
    """Write the process groups of this run to the notes."""
    private_file_replace(folder / NOTES_FILE, json.dumps({"run": run, "groups": groups}))


def notes_remove(folder: Path) -> None:
    """Delete the notes after all processes have ended."""
    (folder / NOTES_FILE).unlink(missing_ok=True)


def leftovers_end(folder: Path, say: Callable[[str], None]) -> bool:
    """End the processes that the last run left behind, and return whether it left notes. The caller must hold the lock
    of the folder, which proves that the supervisor that wrote the notes has ended."""
    text = private_file_read(folder / NOTES_FILE)
    if text is None:
        return False
    try:
        notes = json.loads(text)
        run, groups = str(notes["run"]), {int(group) for group in notes["groups"]}
    except (ValueError, KeyError, TypeError):
        return True
    # On Linux, the processes end shortly after their supervisor. On other systems, they continue.
    if not wait_until(lambda: not _members(run, groups), 1):
        say("Processes of the last run are still running; stopping them first.")
        for number, seconds in ((signal.SIGTERM, 3), (signal.SIGKILL, 3)):
            for pid in _members(run, groups):
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue
            if wait_until(lambda: not _members(run, groups), seconds):
                break
    notes_remove(folder)
    return True


def _members(run: str, groups: set[int]) -> list[int]:
    members = []
    for process in psutil.process_iter():
        try:
            if (
                os.getpgid(process.pid) in groups
                and process.status() != psutil.STATUS_ZOMBIE
                and process.environ().get(RUN_VARIABLE) == run
            ):
                members.append(process.pid)
        except (psutil.Error, ProcessLookupError, PermissionError):
            continue
    return members
