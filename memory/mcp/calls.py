"""Call: a piece of work in a thread that can be ended from outside, so that nobody's thread or lock waits for a client
who has gone.

Ending a call cancels the statement that runs for it and lets no further one begin; what was open is rolled back. What
was committed before stays.
"""

import contextlib
import hashlib
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Generic, TypeVar

import anyio
import anyio.to_thread
import structlog
from django.db import DEFAULT_DB_ALIAS, DatabaseError, OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import Error

logger = structlog.get_logger(__name__)

T = TypeVar("T")
# A statement may begin between two tries, so it is tried again; whoever cancels waits no longer than this for the end.
STEP_SECONDS = 0.05
PATIENCE_SECONDS = 5.0

# Calls that run in this process under a name.
_named: dict[str, set["Call[Any]"]] = {}
_named_lock = threading.Lock()

_NAME = "SELECT set_config('application_name', %s, false)"
_UNNAME = "RESET application_name"
_CANCEL = """
SELECT count(*) FILTER (WHERE pg_cancel_backend(pid)) FROM pg_stat_activity
WHERE starts_with(application_name, %s) AND datname = current_database() AND pid <> pg_backend_pid()
"""


class CallCancelled(Exception):
    """The work was ended before it was done; nothing of what was open has been written."""


class Call(Generic[T]):
    """One piece of work. ``name`` lets other processes end it too; see ``call_name``."""

    def __init__(self, work: Callable[[], T], *, name: str | None = None) -> None:
        self._work = work
        self._name = name
        self._lock = threading.Lock()
        self._database: BaseDatabaseWrapper | None = None
        self._begun = False
        self._cancelled = threading.Event()
        self._finished = threading.Event()

    def run(self) -> T:
        """Do the work in this thread. Two statements with a name, none without. Raises ``CallCancelled``."""
        database = connections[DEFAULT_DB_ALIAS]
        with self._lock:
            if self._cancelled.is_set():
                raise CallCancelled
            self._begun, self._database = True, database
        try:
            with self._registered(database), database.execute_wrapper(self._go_on):
                return self._work()
        except OperationalError as problem:
            # Of a cancel that comes from another process, the database alone tells; a time-out it words otherwise.
            if self._cancelled.is_set() or "user request" in str(problem):
                raise CallCancelled from problem
            raise
        finally:
            # From here on the connection belongs to whoever comes next: no cancel may be on its way to it.
            with self._lock:
                self._database = None
            self._finished.set()

    def cancel(self) -> bool:
        """End the work and wait for its end; False if it has not ended after ``PATIENCE_SECONDS``. No query."""
        with self._lock:
            self._cancelled.set()
            if not self._begun:
                return True
        until = time.monotonic() + PATIENCE_SECONDS
        while not self._finished.is_set() and time.monotonic() < until:
            with self._lock:
                running = self._database.connection if self._database is not None else None
                if running is not None:
                    try:
                        running.cancel_safe(timeout=1)
                    except Error as problem:
                        logger.warning("statement_not_cancelled", problem=str(problem))
            self._finished.wait(STEP_SECONDS)
        return self._finished.is_set()

    def _go_on(self, execute: Callable[..., Any], sql: Any, parameters: Any, many: bool, context: Any) -> Any:
        if self._cancelled.is_set():
            raise CallCancelled
        return execute(sql, parameters, many, context)

    @contextlib.contextmanager
    def _registered(self, database: BaseDatabaseWrapper) -> Iterator[None]:
        if self._name is None:
            yield
            return
        with _named_lock:
            _named.setdefault(self._name, set()).add(self)
        try:
            with database.cursor() as cursor:
                cursor.execute(_NAME, [self._name])
            yield
        finally:
            _unname(database)
            with _named_lock:
                _named[self._name].discard(self)
                if not _named[self._name]:
                    del _named[self._name]


def call_name(identity: str, session: str, request_id: object = None) -> str:
    """Return the name of a request of a client's session; without ``request_id`` how the names of all of them begin.

    It is what the database calls the connection meanwhile. Clients count their requests from one, and choose their
    session's name from what they are told, so whose session it is belongs to the name: nobody ends another's work.
    """
    part = _digest([identity, session])
    return f"memstate-mcp:{part}:" + (_digest([str(request_id)]) if request_id is not None else "")


def calls_cancel(name: str) -> None:
    """End the calls whose names begin so, in whatever process they run, and wait for it for ``PATIENCE_SECONDS``.

    One query, and one for each twentieth of a second in which another process still works on one.
    """
    with _named_lock:
        here = [call for named, calls in _named.items() if named.startswith(name) for call in calls]
    for call in here:
        call.cancel()
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        with connection.cursor() as cursor:
            cursor.execute(_CANCEL, [name])
            row = cursor.fetchone()
        if not row or not row[0]:
            return
        time.sleep(STEP_SECONDS)


async def call_awaited(call: Call[T], outcome: Awaitable[T]) -> T:
    """Wait for the outcome of a call that runs in another thread; if the waiting is cancelled, so is the call."""
    try:
        return await outcome
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(call.cancel)
        raise


def _unname(database: BaseDatabaseWrapper) -> None:
    # A cancel that comes late may hit this statement; a connection that kept its name would be hit for another's work.
    for _time in range(3):
        with contextlib.suppress(DatabaseError), database.cursor() as cursor:
            cursor.execute(_UNNAME)
            return
    database.close()


def _digest(parts: list[str]) -> str:
    # PostgreSQL keeps 63 characters of a name.
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]
