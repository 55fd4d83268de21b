"""A pytest plugin for the whole run: its database server, its time limit, and an end for everything that it started.

The plugin is loaded with ``-p``, because it must act before Django's settings are read. If DATABASE_URL is set, no
server is started.

All processes of a run have the variable ``MEMSTATE_TEST_RUN`` in their environment. A guard process
(``tests/guard.py``) ends them when the run ends, also when the run was killed, and removes the folder of the run.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, TextIO

import psutil
import pytest

from memstate_site.env import envstr
from memstate_site.postgres.errors import PostgresError
from memstate_site.postgres.server import EmbeddedServer
from tests.guard import RUN_VARIABLE

# The folder of the whole run; each process of pytest has a folder of its own in it.
FOLDER_VARIABLE = "MEMSTATE_TEST_FOLDER"
# No statement of a test needs half a minute, also on a busy machine.
STATEMENT_MS = "30000"
# What a process may need to end by itself after it was asked to.
END_SECONDS = 20.0

_server: EmbeddedServer | None = None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--minutes", type=float, default=0.0, help="end the whole run after this time; 0 is never")


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    """Set the address of the server. This hook is a wrapper, so it runs before all other plugins and before Django's
    settings are read."""
    global _server
    # A worker of xdist inherits the run.
    if "PYTEST_XDIST_WORKER" not in os.environ:
        _run_begin(early_config)
    # A test run does not use the data folder of the installation in the same checkout.
    folder = Path(tempfile.mkdtemp(prefix="data-", dir=os.environ[FOLDER_VARIABLE]))
    os.environ["MEMSTATE_DATA_DIR"] = str(folder)
    os.environ.setdefault("MEMSTATE_STATEMENT_TIMEOUT_MS", STATEMENT_MS)
    if not envstr("DATABASE_URL"):
        # No write waits for the disk, because the data of tests may be lost.
        _server = EmbeddedServer(folder, careless=True)
        early_config.add_cleanup(_server.stop)
        os.environ["DATABASE_URL"] = _server.address()
    return (yield)


def _run_begin(config: pytest.Config) -> None:
    memory = Path("/dev/shm")
    # Databases are copied often. In memory, this takes no time.
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 4 * 1024**3
    folder = tempfile.mkdtemp(prefix="memstate-test-", dir=memory if roomy else None)
    # The account of the database server must be able to enter.
    os.chmod(folder, 0o711)
    os.environ[FOLDER_VARIABLE], os.environ[RUN_VARIABLE] = folder, secrets.token_hex(8)
    guard = subprocess.Popen(
        [sys.executable, "-m", "tests.guard", os.environ[RUN_VARIABLE], folder],
        stdin=subprocess.PIPE,
        # A Ctrl-C at the terminal is for pytest.
        start_new_session=True,
        cwd=Path(__file__).parent.parent,
        env={name: value for name, value in os.environ.items() if name != RUN_VARIABLE},
    )

    def end() -> None:
        assert guard.stdin is not None
        guard.stdin.close()
        guard.wait(2 * END_SECONDS)

    config.add_cleanup(end)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Start the server before the worker processes of pytest-xdist, which inherit the environment of this process."""
    _start()


@pytest.fixture(scope="session")
def database_server() -> None:
    """Start the server, for tests that connect to DATABASE_URL themselves."""
    _start()


def _start() -> None:
    if _server is not None and not _server.alive:
        try:
            _server.start()
        except PostgresError as problem:
            raise pytest.UsageError(str(problem)) from problem


# The time limit of the run


def pytest_configure(config: pytest.Config) -> None:
    # While a test runs, pytest captures standard error.
    errors = os.fdopen(os.dup(2), "w")
    faulthandler.register(signal.SIGUSR1, file=errors, all_threads=True)
    config.add_cleanup(lambda: (faulthandler.unregister(signal.SIGUSR1), errors.close()))
    if minutes := config.getoption("--minutes"):
        config.pluginmanager.register(TimeLimit(minutes, errors))


class TimeLimit:
    """Ends the run after ``minutes``, and names the tests that are running then."""

    def __init__(self, minutes: float, errors: TextIO) -> None:
        self.minutes, self.errors = minutes, errors
        self.at_work: dict[str, float] = {}
        self.timer = threading.Timer(minutes * 60, self.strike)
        self.timer.daemon = True
        self.timer.start()
        # Without the wait: a test of the limit sends this signal.
        signal.signal(signal.SIGUSR2, lambda *_: threading.Thread(target=self.strike, daemon=True).start())
        # A shell starts processes in the background with SIGINT ignored. Then no interrupt would end the run, and
        # nothing would say which tests had failed before.
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.at_work[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.at_work.pop(nodeid, None)

    def pytest_unconfigure(self) -> None:
        self.timer.cancel()

    def strike(self) -> None:
        now = time.monotonic()
        names = [f"  {nodeid} (for {now - began:.0f} s)" for nodeid, began in list(self.at_work.items())]
        sentence = f"The run has taken {self.minutes:g} minutes and ends here. These tests are running:"
        print("", sentence, *names, "", sep="\n", file=self.errors, flush=True)
        # The workers of xdist, which read their program from standard input, and this process. They write one after the
        # other, because lines that are written at the same time would be mixed.
        for process in [*psutil.Process().children(), psutil.Process()]:
            with contextlib.suppress(psutil.Error):
                if process.pid == os.getpid() or "exec(eval(sys.stdin.readline()))" in " ".join(process.cmdline()):
                    process.send_signal(signal.SIGUSR1)
                    time.sleep(1)
        os.kill(os.getpid(), signal.SIGINT)
        # If the interrupt does not end the run, this does; the guard ends the rest.
        time.sleep(END_SECONDS)
        os._exit(3)


# The processes of a test


_started: list[subprocess.Popen[Any]] = []


@contextlib.contextmanager
def processes_that_last() -> Iterator[None]:
    """Let the processes that are started in this block outlive the test."""
    before = list(_started)
    yield
    _started[:] = before


@pytest.fixture(autouse=True, scope="session")
def _processes_are_noted() -> Iterator[None]:
    real = subprocess.Popen.__init__

    def init(self: Any, *given: Any, **named: Any) -> None:
        real(self, *given, **named)
        _started.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", init)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """Note only what the test itself starts: fixtures end their own processes."""
    _started.clear()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, None, None]:
    """End the processes that the test started and left running, also when it failed."""
    started = list(_started)
    try:
        return (yield)
    finally:
        for process in started:
            if process.returncode is None and process.poll() is None:
                _tree_kill(process)


def _tree_kill(process: subprocess.Popen[Any]) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        for each in [*psutil.Process(process.pid).children(recursive=True), process]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
    process.wait(END_SECONDS)
