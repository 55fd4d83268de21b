"""A server for the duration of one command: the running one, or one that the command starts and stops."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from memstate_site.folder import data_folder_ensure
from memstate_site.postgres.address import embedded_address
from memstate_site.postgres.errors import PostgresError
from memstate_site.postgres.server import LOCK_FILE, EmbeddedServer
from memstate_site.processes import FolderLock, SharedUse, wait_until

USE_FILE = "database.use"


@contextlib.contextmanager
def server_session(folder: Path | None = None, *, start: bool = True) -> Iterator[str]:
    """The address of the data folder's server, started for the duration if it does not run.

    Several commands may share a server. The command that started it stops it once the others are done.

    Pass ``start=False`` in long-running commands: a server they started would block ``manage.py up``, and with it the
    worker that does the forgetting. With ``start=False``, raises ``PostgresError`` if no server is running.
    """
    folder = folder or data_folder_ensure()
    address = _running_address(folder)
    if address is not None:
        use = SharedUse(folder / USE_FILE)
        try:
            yield address
        finally:
            use.close()
        return
    if not start:
        raise PostgresError(f"MemState is not running on {folder}; start it with make run (manage.py up).")

    server = EmbeddedServer(folder, say=_tell)
    with _stops_on_sigterm():
        started = server.start()
        use = SharedUse(folder / USE_FILE)
        try:
            yield started
        finally:
            try:
                if not wait_until(use.alone, 1):
                    _tell("Another command still uses the database; waiting for it.")
                    wait_until(use.alone, float("inf"), step=0.2)
            finally:
                server.stop()
                use.close()


def _running_address(folder: Path) -> str | None:
    """The address of a server that another process owns, once it answers; None if no process owns one."""
    lock = FolderLock(folder / LOCK_FILE)
    deadline = time.monotonic() + 30
    while not lock.acquire():
        address = embedded_address(folder)
        try:
            psycopg.connect(address, connect_timeout=5).close()
        except psycopg.OperationalError as problem:
            # Its owner is starting or stopping it.
            if time.monotonic() > deadline:
                raise PostgresError(
                    f"The database in {folder} is in use by {lock.holder()}, but it does not answer: {problem}"
                ) from problem
            time.sleep(0.1)
        else:
            return address
    lock.release()
    return None


@contextlib.contextmanager
def _stops_on_sigterm() -> Iterator[None]:
    """Turn SIGTERM into an ordinary exit, so that a server started here is stopped with the command."""
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(143))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _tell(sentence: str) -> None:
    print(sentence, file=sys.stderr)
