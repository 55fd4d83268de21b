"""What programs import: the client, and adapters for agent frameworks. It works without the server's packages."""

from memstate.client import (
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
