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
# The failure of a process that ran for at least this many seconds counts as its first failure.
PROVEN_SECONDS = 60.0


@dataclass
class Patience:
    """The pause before the next attempt, which doubles with each consecutive failure."""

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
    # If true, the output is shown as it comes, without a prefix. The preparation needs this for its progress bar and
    # the first secrets.
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
            preexec_fn=dies_with_parent(signal.SIGKILL),  # noqa: PLW1509 - one thread, and one system call
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
        """Show the available output without waiting. Unless ``plain`` is true, show only complete lines."""
        output = self.output
        while output is not None:
            try:
                piece = os.read(output, 65536)
            except BlockingIOError:
                return
            if not piece:
                return
            if self.plain:
                self.show(piece.decode("utf-8", "replace"))
                continue
            *lines, self._unread = (self._unread + piece).split(b"\n")
            for line in lines:
                self.show(f"{self.mark:<8} | {line.decode('utf-8', 'replace')}")

    def ended(self) -> int | None:
        """Return the exit status of a process that has ended, and kill the rest of its group. Return None while the
        process runs, before it is started, and after the status was returned once."""
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
        """Kill the whole process group."""
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
