"""Waits that end: no test waits for ever, also not for a process that is stuck."""

import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

# What takes longer than this is stuck, also on a busy machine.
SECONDS = 45.0
# More turns than any test has work for.
TURNS = 1000


def eventually(condition: Callable[[], object], seconds: float = SECONDS) -> None:
    """Wait until the condition is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this should have happened by now"
        time.sleep(0.05)


def line_of(process: subprocess.Popen[Any], seconds: float = SECONDS) -> Any:
    """Return the next line that a process writes. A process that writes none in time is killed."""
    assert process.stdout is not None
    lines: list[Any] = []
    reader = threading.Thread(target=lambda: lines.append(process.stdout.readline()), daemon=True)  # type: ignore[union-attr]
    reader.start()
    reader.join(seconds)
    if not lines:
        process.kill()
        raise TimeoutError(f"the process wrote nothing for {seconds:.0f} seconds")
    return lines[0]


def turns_until_done(turn: Callable[[], Mapping[str, Any]], part: str = "") -> None:
    """Take turns of the worker until one has nothing to do, or nothing of one ``part``."""
    for _turn in range(TURNS):
        done = turn()
        if not (done[part] if part else any(done.values())):
            return
    raise AssertionError(f"the worker found work in each of {TURNS} turns")
