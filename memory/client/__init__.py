"""The Python client, for programs in this checkout. Other programs copy ``memstate.py``, which needs no other file."""

from memory.client.memstate import (
    STILL_IN_PROGRESS,
    AsyncMemState,
    Conflict,
    ConnectionBroken,
    Event,
    MemState,
    MemStateError,
    NotAllowed,
    NotFound,
    Refused,
    ServerFault,
    TimedOut,
    TooManyRequests,
    Unavailable,
)

__all__ = [
    "STILL_IN_PROGRESS",
    "AsyncMemState",
    "Conflict",
    "ConnectionBroken",
    "Event",
    "MemState",
    "MemStateError",
    "NotAllowed",
    "NotFound",
    "Refused",
    "ServerFault",
    "TimedOut",
    "TooManyRequests",
    "Unavailable",
]
