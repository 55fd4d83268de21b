"""A server for one command: the running one, or one that the command starts and stops."""

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
def server_session(*, start: bool = True) -> Iterator[str]:
    """Yield the address of the data folder's server. If no server is running, start one, and stop it after this context
    and all other commands that use it have ended. With ``start=False``, as in long-running commands, raise
    ``PostgresError`` instead."""
    folder = data_folder_ensure()
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

    server = EmbeddedServer(folder, say=_say)
    with _stops_on_sigterm():
        started = server.start()
        use = SharedUse(folder / USE_FILE)
        try:
            yield started
        finally:
            try:
                if not wait_until(use.alone, 1):
                    _say("Another command still uses the database; waiting for it.")
                    wait_until(use.alone, float("inf"), step=0.2)
            finally:
                server.stop()
                use.close()


def _running_address(folder: Path) -> str | None:
    """Return the address of a server that another process runs, or None if there is none. Waits up to 30 seconds for an
    answer of the server, then raises ``PostgresError``."""
    lock = FolderLock(folder / LOCK_FILE)
    deadline = time.monotonic() + 30
    while not lock.acquire():
        address = embedded_address(folder)
        try:
            psycopg.connect(address, connect_timeout=5).close()
        except psycopg.OperationalError as problem:
            # Another process is starting or stopping the server.
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
    """Turn SIGTERM into an ordinary exit, so that the command also stops a server that it has started."""
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(143))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr)
