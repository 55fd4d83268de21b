"""Counts the processor time of embedding: for the writes of one request, and for one key. Only requests with a key are
limited: a write leaves its rest to the worker after a while, and a key is limited if the operator has set a limit."""

import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

from django.conf import settings

from memory.core.errors import MemoryProblem
from memory.core.problem_codes import ProblemCode
from memory.embedding.base import EmbeddingFailed
from memory.embedding.turns import FORGOTTEN_AFTER, time_used


class EmbeddingTimeUsed(MemoryProblem):
    """Embedding has used the processor time of this key (429); ``retry_after`` is in seconds."""

    code = ProblemCode.TOO_MANY_REQUESTS

    def __init__(self, retry_after: int) -> None:
        super().__init__("Embedding has used as much processor time as this key may use in a minute.")
        self.retry_after = retry_after


class ClientGone(EmbeddingFailed):
    """The client has closed its connection, so embedding was stopped. Nothing has been written."""


@dataclass
class Allowance:
    """The processor time of one request. ``gone`` returns whether its client has closed the connection."""

    gone: Callable[[], bool]
    # The identity of the key; None until it is known.
    identity: str | None = None
    spent: float = field(default=0.0, init=False)
    _since: float = field(default_factory=time.monotonic, init=False)

    def spend(self, seconds: float) -> None:
        """Count ``seconds`` of processor time."""
        self.spent += seconds
        if self.identity is not None:
            time_used.add(self.identity, seconds)

    def seconds_left(self) -> float:
        """Return how long a write may still embed, and wait for its turn, before it leaves the rest to the worker."""
        elapsed = time.monotonic() - self._since
        return float(settings.MEMSTATE_EMBEDDING_SECONDS_PER_REQUEST) - max(self.spent, elapsed)

    def left(self) -> bool:
        """Return whether more texts of a write may be embedded. Raises ``ClientGone``."""
        if self.identity is None:
            return True
        if self.spent and self.gone():
            raise ClientGone("The client closed the connection. Nothing was written.")
        return self.seconds_left() > 0 and not self._above_limit()

    def require(self) -> None:
        """Raise ``EmbeddingTimeUsed`` if the key has reached its limit, ``ClientGone`` if the client is gone."""
        if self.identity is None or self.left():
            return
        if above := self._above_limit():
            raise EmbeddingTimeUsed(int(FORGOTTEN_AFTER * math.log(above)) + 1)

    def _above_limit(self) -> float:
        """Return what the key has used, as a multiple of its limit; 0 if it may go on."""
        limit: float = settings.MEMSTATE_EMBEDDING_SECONDS_PER_KEY
        used = time_used.of(self.identity) / limit if limit else 0.0
        return used if used >= 1 else 0.0


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
