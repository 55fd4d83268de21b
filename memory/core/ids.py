"""Identifiers that sort by creation time."""

import datetime as dt
import secrets
import threading
import uuid

# If a time is earlier than the previous one by less than this, the thread was slow or the clock was corrected, and the
# previous time is used. An even earlier time is used as it is, because the caller writes rows with past times.
BACKWARDS_MS = 10_000

_TAIL_BITS = 74
_STEP_BITS = 32

_lock = threading.Lock()
_last_ms = 0
_last_tail = 0


def uuid7(*, now_ms: int) -> uuid.UUID:
    """Return a version 7 UUID (RFC 9562, section 5.7) for ``now_ms``, in milliseconds since 1970. Within this process,
    each UUID is greater than the previous one (section 6.2), unless its time is at least ``BACKWARDS_MS`` earlier. Rows
    of one millisecond therefore keep their order, and inserts change only the right edge of a B-tree."""
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
