"""A turn of a conversation that runs in a background thread, while a stream or a page waits for its events.

Each turn occupies a thread and a database connection, so a process runs only a few turns at once.
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

# The longest time between two writes to the client, in seconds. Proxies close idle connections, and only a write shows
# whether the client is still connected.
BEAT_SECONDS = 3.0

_slots_lock = threading.Lock()
_slots_taken = 0


class TooManyConversations(MemoryProblem):
    """The maximum number of turns is running (503); ``retry_after`` is in seconds."""

    code = ProblemCode.TOO_MANY_REQUESTS
    retry_after = 5


@contextmanager
def turn_slot() -> Iterator[None]:
    """Take a slot for a running turn during the block. Raises ``TooManyConversations`` if no slot is free.

    There are half as many slots as web threads. Turns are slow, and the other requests need threads, too.
    """
    global _slots_taken
    most = max(1, settings.MEMSTATE_WEB_THREADS // 2)
    with _slots_lock:
        if _slots_taken >= most:
            raise TooManyConversations(
                f"The assistant is already answering {most} messages, which is its limit. Try again in a few seconds."
            )
        _slots_taken += 1
    try:
        yield
    finally:
        with _slots_lock:
            _slots_taken -= 1


class Running(threading.Thread):
    """Runs ``work(emit, go_on)`` in a background thread. ``emit`` reports an event. ``go_on`` returns False after the
    client has disconnected. An exception is reported as the event ``failed``. ``at_end`` is called after the work."""

    def __init__(
        self,
        work: Callable[[Callable[[str, Any], None], Callable[[], bool]], object],
        *,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        # The context contains the id of the request, which log lines show.
        run = contextvars.copy_context().run
        super().__init__(target=run, args=(self._run,), name="conversation", daemon=True)
        self._events: queue.SimpleQueue[tuple[str, Any] | None] = queue.SimpleQueue()
        self._left = threading.Event()
        self._work, self._at_end = work, at_end
        try:
            self.start()
        except RuntimeError:
            # The process cannot create more threads.
            at_end()
            raise

    def events(self) -> Iterator[tuple[str, Any] | None]:
        """Yield the events, and None after ``BEAT_SECONDS`` without an event. Closing the iterator stops the work."""
        try:
            while True:
                try:
                    event = self._events.get(timeout=BEAT_SECONDS)
                except queue.Empty:
                    yield None
                else:
                    if event is None:
                        return
                    yield event
        finally:
            self.stop()

    def stop(self) -> None:
        """Make ``go_on`` return False, so that the work stops before its next round of tool calls."""
        self._left.set()

    def _run(self) -> None:
        try:
            self._work(lambda name, data: self._events.put((name, data)), lambda: not self._left.is_set())
        except Exception as problem:
            self._events.put(("failed", problem))
        finally:
            self._events.put(None)
            try:
                # Django does not close the connections of a background thread.
                connections.close_all()
            finally:
                self._at_end()


def connection_lend() -> None:
    """Outside a transaction, return the connection of this thread to the pool. The next query takes another one."""
    if not connection.in_atomic_block:
        connection.close()
