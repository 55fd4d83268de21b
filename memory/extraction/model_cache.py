"""What a model said a moment ago, in this process alone: looking and then storing are one question and one answer.

Not in the shared cache: no text may come to rest where a purge does not reach.
"""

import hashlib
import threading
import time
from collections import OrderedDict

from memory.llm.facts import FactsTold

SECONDS = 600.0
MOST = 64

_lock = threading.Lock()
_told: OrderedDict[str, tuple[float, FactsTold]] = OrderedDict()


def key_of(*parts: str) -> str:
    """Return what a question is known by."""
    return hashlib.sha256("\x00".join(parts).encode("utf-8", "replace")).hexdigest()


def answer_get(key: str) -> FactsTold | None:
    """Return what was told to this question, if that is not long ago."""
    with _lock:
        at, told = _told.get(key, (0.0, None))
        return told if told is not None and time.monotonic() - at < SECONDS else None


def answer_keep(key: str, told: FactsTold) -> None:
    """Keep an answer for a while; the oldest makes room."""
    with _lock:
        now = time.monotonic()
        _told[key] = (now, told)
        _told.move_to_end(key)
        while len(_told) > MOST or now - next(iter(_told.values()))[0] > SECONDS:
            _told.popitem(last=False)
