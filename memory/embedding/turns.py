"""Shares the embedder evenly among the keys: the one that has used least is next. A key that is alone never waits."""

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

# What a key has used counts less the longer ago it was: after this number of seconds, it counts 1/e. A key that always
# embeds has therefore used about what it takes in a minute.
FORGOTTEN_AFTER = 60.0


class TimeUsed:
    """The seconds of processor time that each key has used in this process lately."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: dict[str, tuple[float, float]] = {}

    def add(self, identity: str, seconds: float) -> None:
        """Count ``seconds`` for a key."""
        now = time.monotonic()
        with self._lock:
            # Keys that have used nothing for some minutes are dropped, so that the table stays small.
            self._used = {key: entry for key, entry in self._used.items() if _left(entry, now) >= 0.001}
            self._used[identity] = (_left(self._used.get(identity, (0.0, now)), now) + seconds, now)

    def of(self, identity: str | None) -> float:
        """Return what a key has used. Callers without a key have used nothing."""
        return self.of_each([identity])[0]

    def of_each(self, identities: Sequence[str | None]) -> list[float]:
        """Return what each key has used, all at the same moment."""
        now = time.monotonic()
        return [_left(self._used.get(identity or "", (0.0, now)), now) for identity in identities]


def _left(entry: tuple[float, float], now: float) -> float:
    seconds, since = entry
    return seconds * math.exp((since - now) / FORGOTTEN_AFTER)


time_used = TimeUsed()


class Asking(Protocol):
    """Something that waits for the embedder."""

    @property
    def identity(self) -> str | None:
        """The key that asks."""


AskingT = TypeVar("AskingT", bound=Asking)


def least_used_first(waiting: Sequence[AskingT]) -> list[AskingT]:
    """Return those that wait, the keys that have used least first. Those of one key keep their order."""
    used = time_used.of_each([each.identity for each in waiting])
    return [each for _used, _at, each in sorted(zip(used, range(len(waiting)), waiting, strict=True))]


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """A request that waits for its turn."""

    identity: str | None


class Turns:
    """Lets at most ``slots`` requests embed at the same time."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._waiting: list[_Waiting] = []
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, identity: str | None, *, within: float) -> Iterator[None]:
        """Wait for a turn, for at most ``within`` seconds; then go on without one. The turn ends with the block."""
        mine = _Waiting(identity)
        with self._changed:
            self._waiting.append(mine)
            self._changed.wait_for(lambda: self._free > 0 and self._next() is mine, timeout=max(0.0, within))
            self._waiting.remove(mine)
            self._free -= 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._changed.notify_all()

    def _next(self) -> _Waiting:
        return least_used_first(self._waiting)[0]
