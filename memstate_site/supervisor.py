"""`manage.py up`: starts the database, the web server and the job cluster, and stops the database last. A child that
ends is restarted after a pause. If this process is killed, its children end with it."""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType

from memstate_site import leftovers
from memstate_site.child import Child, Patience, how_it_ended
from memstate_site.env import SettingError, envstr
from memstate_site.folder import INSTALLED, data_folder_ensure
from memstate_site.listening import listening_socket, shown_address, status_of
from memstate_site.postgres.errors import PostgresError
from memstate_site.postgres.server import EmbeddedServer
from memstate_site.processes import FolderLock

LOCK_FILE = "up.lock"
WEB_GRACE_SECONDS = 8.0
JOBS_GRACE_SECONDS = 10.0
READY_WITHIN_SECONDS = 45.0
# Only the preparation needs these variables. They are removed from the environment of the servers.
FIRST_STEP_SECRETS = ("MEMSTATE_ADMIN_PASSWORD", "MEMSTATE_API_KEY", "MEMSTATE_ADMIN_KEY")


class StopRequest(BaseException):
    """Ctrl-C or SIGTERM during a start. Like KeyboardInterrupt, it must not be caught by `except Exception`."""


class StartError(Exception):
    """The preparation failed and has already reported the reason."""


def show(line: str, *, end: str = "\n") -> None:
    """Write a line; a closed output is ignored."""
    with contextlib.suppress(BrokenPipeError, OSError):
        print(line, end=end, flush=True)


def run() -> int:
    """Run everything until a stop signal; return the exit status."""
    # Importing the settings checks them, before any process is started.
    from memstate_site import settings

    folder = data_folder_ensure()
    lock = FolderLock(folder / LOCK_FILE)
    if not lock.acquire():
        raise SettingError(
            f"MemState already runs on the data folder {folder} ({lock.holder()}). Stop it first, "
            "or set MEMSTATE_DATA_DIR and MEMSTATE_API_PORT for a second one beside it."
        )
    # A wildcard or an entry with a leading dot matches many hosts, so it cannot be the host of a request.
    hosts = [host for host in settings.ALLOWED_HOSTS if host.strip("*.") == host] or ["localhost"]
    supervisor = Supervisor(folder, settings.MEMSTATE_API_HOST, settings.MEMSTATE_API_PORT, asks_as=hosts[0])
    try:
        return supervisor.run()
    finally:
        lock.release()


class Supervisor:
    """The running installation on one data folder."""

    def __init__(self, folder: Path, host: str, port: int, *, asks_as: str) -> None:
        self.folder = folder
        self.host = host
        self.port = port
        self.asks_as = asks_as
        self.run_name = secrets.token_hex(8)
        self.database: EmbeddedServer | None = None
        self.database_patience = Patience()
        self.web: Child | None = None
        self.jobs: Child | None = None
        self.ready = False
        self.ready_deadline = 0.0
        self.next_question = 0.0
        self.stop_requests = 0
        self.interruptible = False

    def run(self) -> int:
        with self._signals():
            try:
                with self._interruptible():
                    listening = self._start()
            except StopRequest:
                self._stop()
                show("MemState has stopped.")
                return 0
            except StartError:
                self._stop()
                return 1
            except BaseException:
                self._stop()
                raise
            try:
                while not self.stop_requests:
                    self._wait(0.2)
                    self._watch()
            finally:
                show("Stopping.")
                listening.close()
                self._stop()
        show("MemState has stopped.")
        return 0

    # --- Starting ---

    def _start(self) -> socket.socket:
        if INSTALLED:
            show(f"The data is in {self.folder}")
        unclean = leftovers.leftovers_end(self.folder, show)
        # The socket is opened before the database is started, because the address may be in use.
        listening = listening_socket(self.host, self.port, patience=5.0 if unclean else 0.0)
        # Port 0 asks the system for a free port.
        self.port = listening.getsockname()[1]
        environment = self._environment()
        if not envstr("DATABASE_URL"):
            self.database = EmbeddedServer(self.folder, say=show)
            self.database.on_line = lambda line: show(f"database | {line}")
            environment["DATABASE_URL"] = self.database.start()
        self._first_step(environment)
        for name in FIRST_STEP_SECRETS:
            environment.pop(name, None)
            environment.pop(f"{name}_FILE", None)
        self.web = Child(
            title="The web server",
            mark="web",
            command=[
                *(sys.executable, "-m", "gunicorn", "-c", "python:memstate_site.gunicorn_conf"),
                "memstate_site.wsgi:application",
            ],
            environment={**environment, "MEMSTATE_PROCESS": "web", "MEMSTATE_LISTEN_FD": str(listening.fileno())},
            pass_fds=(listening.fileno(),),
            show=show,
        )
        self.jobs = Child(
            title="The job cluster",
            mark="jobs",
            command=[sys.executable, "-m", "memstate_site", "qcluster"],
            environment={**environment, "MEMSTATE_PROCESS": "worker"},
            show=show,
        )
        for child in (self.web, self.jobs):
            child.start()
        self._notes_write()
        self.ready_deadline = time.monotonic() + READY_WITHIN_SECONDS
        return listening

    def _environment(self) -> dict[str, str]:
        # The working folder of the children is the checkout, so relative paths are made absolute.
        files = {
            name: os.path.abspath(value)
            for name, value in os.environ.items()
            if name.startswith("MEMSTATE_") and name.endswith("_FILE") and value
        }
        return {
            **os.environ,
            **files,
            "DJANGO_SETTINGS_MODULE": "memstate_site.settings",
            "MEMSTATE_DATA_DIR": str(self.folder),
            "MEMSTATE_API_PORT": str(self.port),
            "PYTHONUNBUFFERED": "1",
            leftovers.RUN_VARIABLE: self.run_name,
        }

    def _first_step(self, environment: dict[str, str]) -> None:
        """Migrate and create the first credentials. The output is shown unchanged."""
        step = Child(
            title="The preparation",
            mark="",
            command=[sys.executable, "-m", "memstate_site.prepare"],
            # Secrets may be shown only on a terminal, and the preparation writes to a pipe.
            environment={"MEMSTATE_SHOW_SECRETS": "yes" if sys.stdout.isatty() else "no", **environment},
            show=partial(show, end=""),
            plain=True,
        )
        step.start()
        try:
            while (status := step.ended()) is None:
                if self.database is not None and not self.database.alive:
                    raise PostgresError("The database ended while it was being prepared; start again.")
                self._wait(0.05, step)
        finally:
            step.kill()
        if status != 0:
            show("MemState was not started, because the database could not be prepared.")
            raise StartError

    # --- Watching ---

    def _watch(self) -> None:
        """Check all children once. Called several times a second."""
        if not self._database_is_up():
            return
        for child in self._children():
            status = child.ended()
            if status is not None:
                wait = child.patience.failed(child.ran_for)
                show(f"{child.title} {how_it_ended(status)}; it is started again in {wait:g} seconds.")
            elif child.process is None and child.patience.due:
                child.start()
                self._notes_write()
        if not self.ready and time.monotonic() >= self.next_question:
            self._ask_whether_ready()

    def _database_is_up(self) -> bool:
        database = self.database
        if database is None:
            return True
        database.pump()
        if database.alive:
            return True
        if database.process is not None:
            status = database.process.returncode
            database.process = None
            wait = self.database_patience.failed(time.monotonic() - self.database_patience.not_before)
            show(f"The database {how_it_ended(status)}; it is started again in {wait:g} seconds.")
            if self.jobs is not None:
                # Without a database, the cluster only logs errors, so it is restarted together with the database.
                self.jobs.kill()
        if not self.database_patience.due:
            return False
        try:
            with self._interruptible():
                database.restart()
        except (PostgresError, SettingError) as problem:
            database.process = None
            wait = self.database_patience.failed(0)
            show(f"{problem}\nThe next attempt is in {wait:g} seconds.")
            return False
        except StopRequest:
            return False
        show("The database runs again.")
        return True

    def _ask_whether_ready(self) -> None:
        answer = status_of(self.host, self.port, "/readyz", asks_as=self.asks_as)
        if answer is not None and answer < 500:
            self.ready = True
            show(f"MemState is ready at {shown_address(self.host, self.port)}")
            return
        self.next_question = time.monotonic() + 0.1
        if time.monotonic() > self.ready_deadline:
            self.ready_deadline = float("inf")
            state = "does not answer" if answer is None else f"answers that it is not ready (status {answer})"
            show(f"MemState {state} after {READY_WITHIN_SECONDS:g} seconds; run `manage.py doctor` for the cause.")

    # --- Stopping ---

    def _stop(self) -> None:
        """Stop all children in order. A second signal ends the wait."""
        for child, seconds in ((self.web, WEB_GRACE_SECONDS), (self.jobs, JOBS_GRACE_SECONDS)):
            if child is None or child.process is None:
                continue
            child.signal(signal.SIGTERM)
            deadline = time.monotonic() + seconds
            while child.running and time.monotonic() < deadline and self.stop_requests < 2:
                self._wait(0.05)
            if child.running:
                show(f"{child.title} did not stop in time; ending it. Unfinished jobs run again at the next start.")
            child.kill()
        if self.database is not None:
            self.database.stop()
        leftovers.notes_remove(self.folder)

    # --- Common ---

    def _children(self) -> list[Child]:
        return [child for child in (self.web, self.jobs) if child is not None]

    def _notes_write(self) -> None:
        groups = [child.process.pid for child in self._children() if child.process is not None]
        try:
            leftovers.notes_write(self.folder, self.run_name, groups)
        except SettingError as problem:
            # The children continue without the notes, which are only needed for a start after a kill.
            show(str(problem))

    def _wait(self, seconds: float, *others: Child) -> None:
        """Wait for output or a signal for at most ``seconds``, and show the output."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._wakeup, selectors.EVENT_READ)
            sources = [child for child in (*self._children(), *others) if child.output is not None]
            for child in sources:
                assert child.output is not None
                selector.register(child.output, selectors.EVENT_READ, child)
            ready = selector.select(seconds)
        for key, _events in ready:
            if key.data is not None:
                key.data.pump()
            else:
                with contextlib.suppress(BlockingIOError):
                    self._wakeup.recv(64)
        if any(key.data is not None and not key.data.running for key, _events in ready):
            # A pipe without a writer is always ready, so sleep until the exit status is available.
            time.sleep(0.02)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        self._wakeup, writer = socket.socketpair()
        self._wakeup.setblocking(False)
        writer.setblocking(False)
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            # Closing the terminal stops MemState, except under nohup.
            numbers.append(signal.SIGHUP)
        before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}
        for number in numbers:
            before[number] = signal.signal(number, self._on_signal)
        earlier = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(earlier)
            for number, handler in before.items():
                signal.signal(number, handler)
            writer.close()
            self._wakeup.close()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.stop_requests += 1
        if self.interruptible:
            self.interruptible = False
            raise StopRequest

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Within this context, a signal raises ``StopRequest`` immediately. Elsewhere, it is handled at the next
        check."""
        self.interruptible = True
        try:
            if self.stop_requests:
                raise StopRequest
            yield
        finally:
            self.interruptible = False
