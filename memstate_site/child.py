"""One process that the supervisor runs: start, watch, stop, and restart with increasing delays."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from memstate_site.folder import CHECKOUT
from memstate_site.processes import dies_with_parent, process_group_kill

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
# After a process has run this long, its next failure counts as the first one again.
PROVEN_SECONDS = 60.0


@dataclass
class Patience:
    """The backoff before the next attempt, which grows with every failure in a row."""

    pause: float = FIRST_PAUSE
    not_before: float = 0.0

    def failed(self, ran_for: float) -> float:
        """Count a failure and return the seconds until the next attempt."""
        if ran_for >= PROVEN_SECONDS:
            self.pause = FIRST_PAUSE
        wait = self.pause
        self.not_before = time.monotonic() + wait
        self.pause = min(self.pause * 2, LONGEST_PAUSE)
        return wait

    @property
    def due(self) -> bool:
        return time.monotonic() >= self.not_before


@dataclass
class Child:
    """A process group led by the process that this object started."""

    # The name in sentences such as "the web server has ended".
    title: str
    # The prefix of its output lines.
    mark: str
    command: list[str]
    environment: dict[str, str]
    show: Callable[[str], None]
    pass_fds: tuple[int, ...] = ()
    # Some output, such as the secrets of a first start, is shown without a prefix.
    plain: bool = False
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    patience: Patience = field(default_factory=Patience)
    _unread: bytes = b""

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def ran_for(self) -> float:
        return time.monotonic() - self.started_at

    def start(self) -> None:
        self.started_at = time.monotonic()
        self._unread = b""
        self.process = subprocess.Popen(
            self.command,
            # Python and gunicorn search for the project in the working folder first.
            cwd=CHECKOUT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=self.pass_fds,
            # Ctrl-C at the terminal must reach only the supervisor, which stops its children in order.
            start_new_session=True,
            preexec_fn=dies_with_parent(signal.SIGKILL),  # noqa: PLW1509 - one thread, and it only makes a system call
        )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)

    @property
    def output(self) -> int | None:
        """The file descriptor of the output of the process."""
        if self.process is None or self.process.stdout is None or self.process.stdout.closed:
            return None
        return self.process.stdout.fileno()

    def pump(self) -> None:
        """Show the available lines without waiting."""
        output = self.output
        while output is not None:
            try:
                piece = os.read(output, 65536)
            except BlockingIOError:
                return
            if not piece:
                return
            *lines, self._unread = (self._unread + piece).split(b"\n")
            for line in lines:
                text = line.decode("utf-8", "replace")
                self.show(text if self.plain else f"{self.mark:<8} | {text}")

    def ended(self) -> int | None:
        """Return the exit status once, and end the rest of the group. None while the process runs or if it never
        ran."""
        if self.process is None or self.process.poll() is None:
            return None
        status = self.process.returncode
        process_group_kill(self.process.pid, signal.SIGKILL)
        self._close()
        return status

    def signal(self, number: signal.Signals) -> None:
        if self.running:
            assert self.process is not None
            self.process.send_signal(number)

    def kill(self) -> None:
        """End the whole group at once."""
        if self.process is not None:
            process_group_kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self._close()

    def _close(self) -> None:
        self.pump()
        assert self.process is not None
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None


def how_it_ended(status: int) -> str:
    """Return the exit status of a process as text."""
    if status < 0:
        try:
            return f"was killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"was killed by signal {-status}"
    return f"ended with status {status}"
