"""The embedded server as one object: start, watch and stop."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import psycopg

from memstate_site.folder import FULL, secret_ensure
from memstate_site.postgres.account import Account, server_account
from memstate_site.postgres.address import PASSWORD_FILE, socket_address
from memstate_site.postgres.binaries import Binaries, binaries_for
from memstate_site.postgres.datadir import cluster_ensure, environment
from memstate_site.postgres.errors import PostgresError, StillAttachedError, explain, full_disk
from memstate_site.postgres.pidfile import traces
from memstate_site.postgres.place import DataPlace, socket_folder_ensure, socket_folder_remove
from memstate_site.processes import FolderLock, dies_with_parent, wait_until

LOCK_FILE = "database.lock"
LOG_FILE = "postgres.log"
# The log is truncated at this size, so that it cannot fill the disk.
LOG_BYTES = 20 * 1024 * 1024
# Seconds for each way of stopping, before the next one is tried.
FAST_SHUTDOWN_SECONDS = 15.0
IMMEDIATE_SHUTDOWN_SECONDS = 5.0
# Seconds for processes of a killed server to end.
DETACH_SECONDS = 20.0
# Lines that are shown even if the server works.
NOTABLE = ("FATAL:", "PANIC:", "was terminated by signal", "No space left on device")
# Refused connections during start and stop are expected.
EXPECTED = (
    "the database system is starting up",
    "the database system is shutting down",
    "not yet accepting",
    "terminating connection due to administrator command",
)


def _silent(_line: str) -> None:
    return


class EmbeddedServer:
    """The server of one data folder, owned by this process. No method starts a thread, because the server ends when the
    thread that started it ends. `pump` reads the output and may be called at any time."""

    def __init__(self, folder: Path, *, say: Callable[[str], None] = _silent, careless: bool = False) -> None:
        self.folder = folder
        self.say = say
        self.careless = careless
        self.lock = FolderLock(folder / LOCK_FILE)
        self.process: subprocess.Popen[bytes] | None = None
        self.recent: deque[str] = deque(maxlen=100)
        self.on_line: Callable[[str], None] = _silent
        self._account: Account | None = None
        self._binaries: Binaries | None = None
        self._log: int | None = None
        self._unread = b""

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def address(self) -> str:
        """Return the connection address. It is known before the start, and stays the same after a restart."""
        self._account = self._account or server_account()
        return socket_address(
            socket_folder_ensure(self.folder, self._account), secret_ensure(self.folder / PASSWORD_FILE)
        )

    def start(self) -> str:
        """Start the server, wait until it answers, and return its address. Raises `PostgresError`."""
        if not self.lock.acquire():
            raise PostgresError(
                f"The database in {self.folder} is in use by {self.lock.holder()}. Stop that first, "
                "or set MEMSTATE_DATA_DIR to another folder."
            )
        try:
            self.restart()
        except BaseException:
            self.stop()
            raise
        return self.address()

    def restart(self) -> None:
        """Start the server, or start it again after it died. This process must hold the lock."""
        self.process = None
        try:
            self._account = self._account or server_account()
            self._binaries = binaries_for(self._account)
            path = self.folder / "postgres"
            if path.exists():
                self._clear_traces(path)
            elif self.say is not _silent:
                self.say("Creating a new database; this happens once and takes a few seconds.")
            place = cluster_ensure(self.folder, self._account, self._binaries, careless=self.careless)
            self._launch_until_attached(place)
        except OSError as problem:
            raise self._sentence(problem) from problem

    def stop(self) -> None:
        """Stop the server by a fast shutdown. If it does not end in time, request an immediate shutdown, and finally
        kill it."""
        process = self.process
        if process is not None:
            for number, seconds in (
                (signal.SIGINT, FAST_SHUTDOWN_SECONDS),
                (signal.SIGQUIT, IMMEDIATE_SHUTDOWN_SECONDS),
                (signal.SIGKILL, IMMEDIATE_SHUTDOWN_SECONDS),
            ):
                if process.poll() is not None:
                    break
                process.send_signal(number)
                wait_until(lambda: self._ended(process), seconds)
            self.process = None
        if self._log is not None:
            self.pump()
            os.close(self._log)
            self._log = None
        if self._account is not None and self.lock.acquired:
            socket_folder_remove(self.folder, self._account)
        self.lock.release()

    def pump(self) -> None:
        """Read the lines since the last call and pass on the important ones."""
        if self._log is None:
            return
        while piece := os.read(self._log, 65536):
            *lines, self._unread = (self._unread + piece).split(b"\n")
            for line in lines:
                text = line.decode("utf-8", "replace")
                self.recent.append(text)
                if any(word in text for word in NOTABLE) and not any(word in text for word in EXPECTED):
                    self.on_line(text)
        if os.fstat(self._log).st_size > LOG_BYTES:
            # The server opened the file for appending, so it continues at the beginning of the truncated file.
            os.ftruncate(self._log, 0)
            os.lseek(self._log, 0, os.SEEK_SET)

    def _sentence(self, problem: OSError) -> PostgresError:
        if problem.errno in FULL:
            return full_disk(self.folder)
        return PostgresError(f"The database in {self.folder} cannot be used: {problem}.")

    def _ended(self, process: subprocess.Popen[bytes]) -> bool:
        self.pump()
        return process.poll() is not None

    def _clear_traces(self, path: Path) -> None:
        found = traces(path)
        if found.running is not None:
            # This process has the lock, so the process that started the server has ended, and the server may be
            # stopped.
            self.say(f"A database server (process {found.running}) is still running; stopping it first.")
            self._end_orphan(found.running, path)
            found = traces(path)
        if found.orphans:
            wait_until(lambda: not traces(path).orphans, DETACH_SECONDS)
        if found.unclean:
            self.say("The database was not shut down properly; it is recovering.")
        if found.reused and not traces(path).orphans:
            # PostgreSQL would refuse to start because of the number, although the process belongs to another program.
            (path / "postmaster.pid").unlink(missing_ok=True)
        assert self._account is not None
        for leftover in socket_folder_ensure(self.folder, self._account).glob(".s.PGSQL.*"):
            leftover.unlink(missing_ok=True)

    @staticmethod
    def _end_orphan(pid: int, path: Path) -> None:
        for number, seconds in ((signal.SIGINT, FAST_SHUTDOWN_SECONDS), (signal.SIGQUIT, IMMEDIATE_SHUTDOWN_SECONDS)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            if wait_until(lambda: traces(path).running is None, seconds):
                return
        raise PostgresError(f"A database server (process {pid}) still works on {path} and does not stop.")

    def _launch_until_attached(self, place: DataPlace) -> None:
        """Start the server. Try again for a while if processes of a killed server still use its shared memory."""
        deadline = time.monotonic() + DETACH_SECONDS
        while True:
            try:
                return self._launch(place)
            except StillAttachedError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.3)

    def _launch(self, place: DataPlace) -> None:
        assert self._account is not None
        assert self._binaries is not None
        socket_folder = socket_folder_ensure(self.folder, self._account)
        fixed = {
            # No network, and a socket that only the server's account (and root) can reach.
            "listen_addresses": "",
            "unix_socket_directories": str(socket_folder),
            "unix_socket_permissions": "0700",
            "port": "5432",
            "password_encryption": "scram-sha-256",
            "cluster_name": "memstate",
        }
        writing = self._open_log()
        try:
            self.process = subprocess.Popen(
                [
                    str(self._binaries.postgres),
                    "-D",
                    str(place.name),
                    *(f"--{name}={value}" for name, value in fixed.items()),
                ],
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                # Ctrl-C at the terminal must reach only the supervisor, which stops the server last.
                start_new_session=True,
                preexec_fn=dies_with_parent(signal.SIGINT),  # noqa: PLW1509 - one thread, and one system call
                **place.popen_options(),
            )
        except (OSError, subprocess.SubprocessError) as problem:
            raise PostgresError(f"{self._binaries.postgres} cannot be started: {problem}.") from problem
        finally:
            os.close(writing)
        self._wait_until_it_answers()

    def _open_log(self) -> int:
        """Open the log file and return the descriptor to which the server writes. Reading starts at the present end of
        the file."""
        path = self.folder / LOG_FILE
        writing = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        if self._log is None:
            self._log = os.open(path, os.O_RDWR)
        os.lseek(self._log, 0, os.SEEK_END)
        self.recent.clear()
        self._unread = b""
        return writing

    def _wait_until_it_answers(self) -> None:
        address = self.address()
        started = time.monotonic()
        announced = False
        while True:
            self.pump()
            if not self.alive:
                self.pump()
                if shutil.disk_usage(self.folder).free < 1024 * 1024:
                    # The disk is so full that the server could not write a log line.
                    raise full_disk(self.folder)
                raise explain(list(self.recent), self.folder / "postgres")
            try:
                return psycopg.connect(address, connect_timeout=5).close()
            except psycopg.OperationalError as problem:
                if "password authentication failed" in str(problem):
                    raise PostgresError(
                        f"The database in {self.folder} does not accept the password in {self.folder / PASSWORD_FILE}. "
                        "Put the right file back, or remove it: a new password is made at the next start."
                    ) from problem
            if not announced and time.monotonic() - started > 5:
                # After a crash, changes since the last checkpoint are applied again, which can take a while.
                self.say("The database is still recovering; waiting for it.")
                announced = True
            time.sleep(0.02)
