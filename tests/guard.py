"""A process beside a test run. When the run ends or is killed, it ends what is left running and removes the folder.

``python -m tests.guard RUN FOLDER`` reads standard input until its end, which comes when pytest is gone.
"""

import os
import shutil
import sys
import time

import psutil

# Names the run in the environment of all its processes.
RUN_VARIABLE = "MEMSTATE_TEST_RUN"
# What processes may need to end by themselves: a database server writes its files.
GRACE_SECONDS = 5.0


def members(run: str) -> list[psutil.Process]:
    """Return the living processes of a run, except this one."""
    found = []
    for process in psutil.process_iter():
        try:
            if (
                process.pid != os.getpid()
                and process.environ().get(RUN_VARIABLE) == run
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def run_end(run: str, *, grace: float = GRACE_SECONDS) -> None:
    """End all processes of a run. First they are asked to, and after ``grace`` seconds killed."""
    for kill in (False, True):
        for process in members(run):
            try:
                process.kill() if kill else process.terminate()
            except psutil.Error:
                continue
        until = time.monotonic() + grace
        while members(run) and time.monotonic() < until:
            time.sleep(0.1)


if __name__ == "__main__":
    sys.stdin.buffer.read()
    run_end(sys.argv[1])
    shutil.rmtree(sys.argv[2], ignore_errors=True)
