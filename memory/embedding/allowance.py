"""How much processor time embedding may take: of one request for a write, and of one key in a minute.

Only requests with a key have an allowance. Jobs, commands and people at the console have none.
"""

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
    """The client has closed its connection, so nothing more is embedded for it. Nothing has been written."""


class _Used:
    """What each key has used in this process, in seconds. It drains evenly, a whole minute's allowance in a minute."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._levels: dict[str, tuple[float, float]] = {}

    def level(self, identity: str, spent: float = 0.0) -> float:
        """Add ``spent`` and return what counts as used now."""
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
    """The remaining processor time of one request. ``gone`` returns whether its client has closed the connection."""

    gone: Callable[[], bool]
    # None until a key is known.
    identity: str | None = None
    spent: float = field(default=0.0, init=False)

    def spend(self, seconds: float) -> None:
        """Count processor time."""
        self.spent += seconds
        if self.identity is not None:
            _used.level(self.identity, seconds)

    def left(self) -> bool:
        """Whether more may be embedded for a write. Raises ``ClientGone``."""
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
        """Raise ``EmbeddingTimeUsed`` if the key has used its minute, ``ClientGone``."""
        if self.identity is None or self.left():
            return
        limit = settings.MEMSTATE_EMBEDDING_SECONDS_PER_KEY
        above = _used.level(self.identity) - limit
        if above >= 0:
            raise EmbeddingTimeUsed(int(above / limit * 60) + 1)


_current: ContextVar[Allowance | None] = ContextVar("embedding_allowance", default=None)


def allowance_current() -> Allowance | None:
    """Return the allowance of the running request; None outside of requests."""
    return _current.get()


def allowance_begin(gone: Callable[[], bool]) -> None:
    """Begin a request, whose key is not known yet."""
    _current.set(Allowance(gone))


def allowance_identify(identity: str) -> None:
    """Count what the running request embeds for the key with this identity."""
    allowance = _current.get()
    if allowance is not None:
        allowance.identity = identity


def allowance_end() -> None:
    """End the request."""
    _current.set(None)
