"""The Python client, for programs that run beside the store. Others copy ``memstate.py``, which needs nothing else."""

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
