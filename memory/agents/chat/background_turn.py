"""A turn that runs in a thread of its own, while somebody else waits for what it tells: a stream, or a page.

Threads hold a connection of the pool and the patience of a model, so a process has room for a few of them only.
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

# A connection that nobody writes to seems dead to whatever stands between; and whether somebody still listens is found
# out by writing.
BEAT_SECONDS = 3.0
BUSY_SECONDS = 5

_room = threading.Lock()
_at_work = 0


class TooManyConversations(MemoryProblem):
    """All places for conversations are taken (503); ``retry_after`` is in seconds."""

    code = ProblemCode.TOO_MANY_CONVERSATIONS
    retry_after = BUSY_SECONDS


@contextmanager
def place_taken() -> Iterator[None]:
    """Take one of the places for turns at work while the block runs: half of the threads that serve requests.

    A model takes its time, and queries and ingests have to be answered meanwhile. Raises ``TooManyConversations``.
    """
    global _at_work
    most = max(1, settings.MEMSTATE_WEB_THREADS // 2)
    with _room:
        if _at_work >= most:
            raise TooManyConversations(
                f"The assistant is at {most} messages already, which is as many as it can answer at once; try again in "
                "a moment."
            )
        _at_work += 1
    try:
        yield
    finally:
        with _room:
            _at_work -= 1


class Running:
    """Work in a thread of its own. ``work`` gets ``tell``, for what it has to say, and ``go_on``, which turns False
    when nobody listens any more. What it raises is told as the event ``failed``, with the exception."""

    def __init__(
        self,
        work: Callable[[Callable[[str, Any], None], Callable[[], bool]], object],
        *,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin; ``at_end`` is called when the work is done, such as to leave a place that was taken for it."""
        self._told: queue.SimpleQueue[tuple[str, Any] | None] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._work, self._at_end = work, at_end
        # Log lines keep the request's name.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="conversation", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            # There are no more threads to be had.
            at_end()
            raise

    def events(self) -> Iterator[tuple[str, Any] | None]:
        """Yield what is told, and None after each ``BEAT_SECONDS`` of silence, until the end. Closing it early stops
        the work at its next round."""
        try:
            while True:
                try:
                    told = self._told.get(timeout=BEAT_SECONDS)
                except queue.Empty:
                    yield None
                    continue
                if told is None:
                    return
                yield told
        finally:
            self.stop()

    def stop(self) -> None:
        """Let the work end at its next round."""
        self._stopped.set()

    def join(self, seconds: float) -> None:
        """Wait for the end. For tests."""
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            self._work(lambda event, told: self._told.put((event, told)), lambda: not self._stopped.is_set())
        except Exception as problem:
            self._told.put(("failed", problem))
        finally:
            self._told.put(None)
            try:
                # Whatever this thread has opened is nobody's afterwards.
                connections.close_all()
            finally:
                self._at_end()


def connection_lend() -> None:
    """Give the connection of this thread back while it only listens; the next query takes another."""
    if not connection.in_atomic_block:
        connection.close()
