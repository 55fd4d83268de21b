"""How the model has been doing in this process: whether it is worth asking, and how often it was of help."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Counter, Histogram

from memory.llm.wire import ModelProblem, ModelUnusable, RateLimited, Resting

logger = logging.getLogger(__name__)

# After so many failures in a row the model is left alone: first for so many seconds, then twice as long after each
# further failure. So a run over thousands of fields, or a page that somebody reloads, does not wait each time.
FAILURES_IN_A_ROW = 3
LEFT_ALONE_SECONDS = 30.0
LEFT_ALONE_MOST_SECONDS = 600.0

CALLS = Counter("memstate_model_calls", "Questions to the language model.", ["purpose", "outcome"])
SECONDS = Histogram(
    "memstate_model_seconds", "Time until the language model's answer could be used, or was given up.", ["purpose"],
    buckets=(0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 60, 120, 300),
)  # fmt: skip

_lock = threading.Lock()
_failures = 0
# Until when nobody asks, by the monotonic clock.
_rests_until = 0.0
# Whether it asked for that itself.
_limited = False


@contextmanager
def call_counted(purpose: str, *, fair: bool = True) -> Iterator[None]:
    """Let one question through unless the model is left alone, and count how it went.

    Raises ``ModelUnavailable`` at once while the model is left alone; after that time one question is let through to
    see, while the others still find it left alone. Where the time was too short to be ``fair``, that it ran out is not
    held against the model.
    """
    started = time.monotonic()
    outcome = "answered"
    try:
        _admit(started)
        yield
    except ModelProblem as problem:
        outcome = problem.kind
        if isinstance(problem, ModelUnusable):
            # It is there, and can be asked about something else.
            patience_reset()
        elif problem.kind != "rests" and (fair or problem.kind != "timeout"):
            _failed(problem)
            logger.warning("The language model was of no help for %s: %s", purpose, problem.sentence)
        raise
    else:
        patience_reset()
    finally:
        CALLS.labels(purpose, outcome).inc()
        SECONDS.labels(purpose).observe(time.monotonic() - started)


def patience_reset() -> None:
    """Forget how the model has been doing."""
    global _failures, _rests_until
    with _lock:
        _failures, _rests_until = 0, 0.0


def _admit(now: float) -> None:
    global _rests_until
    with _lock:
        if now < _rests_until:
            raise Resting(_rests_until - now, limited=_limited)
        if _failures >= FAILURES_IN_A_ROW:
            _rests_until = now + _pause()


def _failed(problem: ModelProblem) -> None:
    global _failures, _limited, _rests_until
    with _lock:
        _failures += 1
        _limited = isinstance(problem, RateLimited)
        pause = _pause() if _failures >= FAILURES_IN_A_ROW else 0.0
        if isinstance(problem, RateLimited):
            # It said when it will answer again.
            pause = max(pause, min(problem.wait or 0.0, LEFT_ALONE_MOST_SECONDS))
        _rests_until = max(_rests_until, time.monotonic() + pause)


def _pause() -> float:
    return min(LEFT_ALONE_MOST_SECONDS, LEFT_ALONE_SECONDS * 2.0 ** min(20, _failures - FAILURES_IN_A_ROW))
