"""Identifiers that sort by creation time."""

import datetime as dt
import secrets
import threading
import uuid

# A moment that lies behind the last one by less than this is another thread's, or the clock was put right by a little;
# more than this, and somebody is writing about the past.
BACKWARDS_MS = 10_000

_TAIL_BITS = 74
_STEP_BITS = 32

_lock = threading.Lock()
_last_ms = 0
_last_tail = 0


def uuid7(*, now_ms: int) -> uuid.UUID:
    """Return a version 7 UUID (RFC 9562, section 5.7) for the moment ``now_ms``, in milliseconds since 1970.

    Rows created one after another get neighbouring keys, so that inserts touch the right edge of a B-tree only. Within
    this process each is greater than the one before ("monotonic random", section 6.2): what one item creates keeps its
    order even though it shares a moment. Python gains ``uuid.uuid7`` in 3.14; this goes when that is the oldest version
    supported.
    """
    global _last_ms, _last_tail
    with _lock:
        if 0 <= _last_ms - now_ms < BACKWARDS_MS:
            tail = _last_tail + 1 + secrets.randbits(_STEP_BITS)
            # A carry out of the tail moves on to the next millisecond.
            _last_ms, _last_tail = _last_ms + (tail >> _TAIL_BITS), tail & ((1 << _TAIL_BITS) - 1)
        else:
            _last_ms, _last_tail = now_ms, secrets.randbits(_TAIL_BITS)
        moment, tail = _last_ms, _last_tail
    return _uuid7(moment, tail)


def uuid7_at(now: dt.datetime) -> uuid.UUID:
    """Return ``uuid7`` for ``now``, an aware datetime."""
    return uuid7(now_ms=int(now.timestamp() * 1000))


def uuid7_past(*, at_ms: int) -> uuid.UUID:
    """Return a version 7 UUID for a moment of the past, which it holds exactly; several of one moment are in no
    order. Before 1970 there is no such moment, and 1970 stands for it."""
    return _uuid7(max(0, at_ms), secrets.randbits(_TAIL_BITS))


def _uuid7(moment: int, tail: int) -> uuid.UUID:
    high, low = tail >> 62, tail & ((1 << 62) - 1)
    return uuid.UUID(int=(moment & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | high << 64 | 0x2 << 62 | low)
