"""Caches recent answers of the model in this process, so that a preview and the request to store ask only once.

The shared cache is not used, because a purge cannot erase text there.
"""

import hashlib
import threading
import time
from collections import OrderedDict

from memory.llm.facts import CheckedFacts

SECONDS = 600.0
MOST = 64

_lock = threading.Lock()
_answers: OrderedDict[str, tuple[float, CheckedFacts]] = OrderedDict()


def key_of(*parts: str) -> str:
    """Return the cache key of a question."""
    return hashlib.sha256("\x00".join(parts).encode("utf-8", "replace")).hexdigest()


def answer_get(key: str) -> CheckedFacts | None:
    """Return the cached answer to a question, if it is recent."""
    with _lock:
        at, answer = _answers.get(key, (0.0, None))
        return answer if answer is not None and time.monotonic() - at < SECONDS else None


def answer_keep(key: str, answer: CheckedFacts) -> None:
    """Cache an answer for ``SECONDS``. If there are more than ``MOST`` answers, the oldest is dropped."""
    with _lock:
        now = time.monotonic()
        _answers[key] = (now, answer)
        _answers.move_to_end(key)
        while len(_answers) > MOST or now - next(iter(_answers.values()))[0] > SECONDS:
            _answers.popitem(last=False)
