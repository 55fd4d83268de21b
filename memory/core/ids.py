"""Identifiers that sort by creation time."""

import datetime as dt
import secrets
import threading
import uuid

# If a time is at most this much before the previous one, another thread was faster or the clock was corrected. An
# earlier time is intended: the caller writes rows with past times.
BACKWARDS_MS = 10_000

_TAIL_BITS = 74
_STEP_BITS = 32

_lock = threading.Lock()
_last_ms = 0
_last_tail = 0


def uuid7(*, now_ms: int) -> uuid.UUID:
    """Return a version 7 UUID (RFC 9562, section 5.7) for the time ``now_ms``, in milliseconds since 1970.

    Rows that are created one after another get neighbouring keys, so inserts change only the right edge of a B-tree.
    Within this process each UUID is greater than the previous one ("monotonic random", section 6.2), so rows of the
    same millisecond keep their order. ``uuid.uuid7`` of Python 3.14 can replace this function.
    """
    global _last_ms, _last_tail
    with _lock:
        if 0 <= _last_ms - now_ms < BACKWARDS_MS:
            tail = _last_tail + 1 + secrets.randbits(_STEP_BITS)
            # If the tail overflows, the milliseconds are increased.
            _last_ms, _last_tail = _last_ms + (tail >> _TAIL_BITS), tail & ((1 << _TAIL_BITS) - 1)
        else:
            _last_ms, _last_tail = now_ms, secrets.randbits(_TAIL_BITS)
        at_ms, tail = _last_ms, _last_tail
    return _uuid7(at_ms, tail)


def uuid7_at(now: dt.datetime) -> uuid.UUID:
    """Return ``uuid7`` for ``now``, an aware datetime."""
    return uuid7(now_ms=int(now.timestamp() * 1000))


def uuid7_past(*, at_ms: int) -> uuid.UUID:
    """Return a version 7 UUID for exactly ``at_ms``, a past time in milliseconds since 1970. Times before 1970 count as
    1970. UUIDs of the same millisecond have no order."""
    return _uuid7(max(0, at_ms), secrets.randbits(_TAIL_BITS))


def _uuid7(at_ms: int, tail: int) -> uuid.UUID:
    high, low = tail >> 62, tail & ((1 << 62) - 1)
    return uuid.UUID(int=(at_ms & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | high << 64 | 0x2 << 62 | low)
