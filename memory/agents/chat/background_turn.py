"""A turn that runs in a background thread, while a stream or a page waits for its events.

Each thread uses a database connection and waits for the model, so a process runs only a few of them.
"""

import contextvars
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import connection, connections

from memory.core.errors import MemoryProblem
from memory.core.problem_codes import ProblemCode

# Something must be written at least this often: proxies close idle connections, and only a write shows whether the
# client is still connected.
BEAT_SECONDS = 3.0
BUSY_SECONDS = 5

_room = threading.Lock()
_at_work = 0


class TooManyConversations(MemoryProblem):
    """The maximum number of turns is running (503); ``retry_after`` is in seconds."""

    code = ProblemCode.TOO_MANY_CONVERSATIONS
    retry_after = BUSY_SECONDS


@contextmanager
def turn_slot() -> Iterator[None]:
    """Take a slot for a running turn during the block. Raises ``TooManyConversations`` if no slot is free.

    At most half of the web threads may be used for turns, because the model is slow and the other threads must answer
    queries and ingests.
    """
    global _at_work
    most = max(1, settings.MEMSTATE_WEB_THREADS // 2)
    with _room:
        if _at_work >= most:
            raise TooManyConversations(
                f"The assistant is already answering {most} messages, which is its limit. Try again in a few seconds."
            )
        _at_work += 1
    try:
        yield
    finally:
        with _room:
            _at_work -= 1


class Running:
    """Work in a background thread. ``work`` is called with ``emit``, which reports an event, and with ``go_on``, which
    returns False after the client has disconnected. An exception is reported as the event ``failed``."""

    def __init__(
        self,
        work: Callable[[Callable[[str, Any], None], Callable[[], bool]], object],
        *,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Start the thread. ``at_end`` is called when the work is done."""
        self._events: queue.SimpleQueue[tuple[str, Any] | None] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._work, self._at_end = work, at_end
        # The context contains the id of the request for log lines.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="conversation", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            # The process cannot create more threads.
            at_end()
            raise

    def events(self) -> Iterator[tuple[str, Any] | None]:
        """Yield the events, and None after each ``BEAT_SECONDS`` without an event, until the end.

        Closing the iterator early stops the work at its next round.
        """
        try:
            while True:
                try:
                    event = self._events.get(timeout=BEAT_SECONDS)
                except queue.Empty:
                    yield None
                    continue
                if event is None:
                    return
                yield event
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop the work at its next round."""
        self._stopped.set()

    def join(self, seconds: float) -> None:
        """Wait for the end. For tests."""
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            self._work(lambda name, data: self._events.put((name, data)), lambda: not self._stopped.is_set())
        except Exception as problem:
            self._events.put(("failed", problem))
        finally:
            self._events.put(None)
            try:
                # Otherwise the connections of this thread would stay open.
                connections.close_all()
            finally:
                self._at_end()


def connection_lend() -> None:
    """Return the database connection of this thread to the pool while the thread waits. The next query takes another
    connection."""
    if not connection.in_atomic_block:
        connection.close()
