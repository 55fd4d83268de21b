"""Identifiers that sort by creation time."""

import os
import uuid


def uuid7(*, now_ms: int) -> uuid.UUID:
    """Return a version 7 UUID (RFC 9562, section 5.7) for the moment ``now_ms``, in milliseconds since 1970.

    Rows created one after another get neighbouring keys, so that inserts touch the right edge of a B-tree only.
    Python gains ``uuid.uuid7`` in 3.14; this goes when that is the oldest version supported.
    """
    value = (now_ms & 0xFFFF_FFFF_FFFF) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return uuid.UUID(int=value)
