"""Limits the processor time of embedding: for the writes of one request, and for one key in a minute. Only requests
with a key are limited."""

import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

from django.conf import settings

from memory.core.errors import MemoryProblem
from memory.core.problem_codes import ProblemCode
from memory.embedding.base import EmbeddingFailed


class EmbeddingTimeUsed(MemoryProblem):
    """Embedding has used the processor time of this key (429); ``retry_after`` is in seconds."""

    code = ProblemCode.EMBEDDING_TIME_USED

    def __init__(self, retry_after: int) -> None:
        super().__init__("Embedding has used as much processor time as this key may use in a minute.")
        self.retry_after = retry_after


class ClientGone(EmbeddingFailed):
    """The client has closed its connection, so embedding was stopped. Nothing has been written."""


class _Used:
    """The seconds that each key has used in this process. They decrease evenly, by the limit of a key per minute."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._levels: dict[str, tuple[float, float]] = {}

    def level(self, identity: str, spent: float = 0.0) -> float:
        """Add ``spent`` and return the number of seconds that count as used now."""
        now, rate = time.monotonic(), settings.MEMSTATE_EMBEDDING_SECONDS_PER_KEY / 60
        with self._lock:
            level, since = self._levels.get(identity, (0.0, now))
            level = max(0.0, level - (now - since) * rate) + spent
            if level:
                self._levels[identity] = (level, now)
            else:
                self._levels.pop(identity, None)
        return level


_used = _Used()


@dataclass
class Allowance:
    """The processor time of one request. ``gone`` returns whether its client has closed the connection."""

    gone: Callable[[], bool]
    # The identity of the key; None until it is known.
    identity: str | None = None
    spent: float = field(default=0.0, init=False)

    def spend(self, seconds: float) -> None:
        """Count ``seconds`` of processor time."""
        self.spent += seconds
        if self.identity is not None:
            _used.level(self.identity, seconds)

    def left(self) -> bool:
        """Return whether more texts of a write may be embedded. Raises ``ClientGone``."""
        if self.identity is None:
            return True
        if self.spent and self.gone():
            raise ClientGone("The client closed the connection. Nothing was written.")
        used = _used.level(self.identity)
        return (
            self.spent < settings.MEMSTATE_EMBEDDING_SECONDS_PER_REQUEST
            and used < settings.MEMSTATE_EMBEDDING_SECONDS_PER_KEY
        )

    def require(self) -> None:
        """Raise ``EmbeddingTimeUsed`` if the key has reached its limit, ``ClientGone`` if the client is gone."""
        if self.identity is None or self.left():
            return
        limit = settings.MEMSTATE_EMBEDDING_SECONDS_PER_KEY
        above = _used.level(self.identity) - limit
        if above >= 0:
            raise EmbeddingTimeUsed(int(above / limit * 60) + 1)


_current: ContextVar[Allowance | None] = ContextVar("embedding_allowance", default=None)


def allowance_current() -> Allowance | None:
    """Return the allowance of the running request; None outside a request."""
    return _current.get()


def allowance_begin(gone: Callable[[], bool]) -> None:
    """Begin the allowance of a request whose key is not known yet."""
    _current.set(Allowance(gone))


def allowance_identify(identity: str) -> None:
    """Set the identity of the key for which the running request embeds."""
    allowance = _current.get()
    if allowance is not None:
        allowance.identity = identity


def allowance_end() -> None:
    """End the allowance of the request."""
    _current.set(None)
