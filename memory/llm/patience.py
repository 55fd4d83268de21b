"""How each model has been doing in this process: whether it is worth asking, and how often it was of help."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

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
    "memstate_model_seconds",
    "Time until the language model's answer could be used, or was given up.",
    ["purpose"],
    buckets=(0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 60, 120, 300),
)

# So many models besides the usual one are remembered: callers name them.
MOST_OTHERS = 64


@dataclass(slots=True)
class _Standing:
    """How one model has been doing."""

    failures: int = 0
    # Until when nobody asks, by the monotonic clock.
    rests_until: float = 0.0
    # Whether it asked for that itself.
    limited: bool = False

    def pause(self) -> float:
        """Return for how long it is left alone after so many failures."""
        steps = min(20, self.failures - FAILURES_IN_A_ROW)
        return min(LEFT_ALONE_MOST_SECONDS, LEFT_ALONE_SECONDS * 2.0**steps)


_lock = threading.Lock()
# By model, where None is the usual one; the others in the order in which they failed.
_standings: dict[str | None, _Standing] = {}


@contextmanager
def call_counted(purpose: str, *, model: str | None = None, fair: bool = True) -> Iterator[None]:
    """Let one question through unless the model is left alone, and count how it went.

    ``model`` is one that a caller named, None the usual one: each is judged by itself, so that nobody can have the
    usual one left alone by asking for another. Raises ``ModelUnavailable`` at once while it is left alone; after that
    time one question is let through to see, while the others still find it left alone. Where the time was too short to
    be ``fair``, that it ran out is not held against the model.
    """
    started = time.monotonic()
    outcome = "answered"
    try:
        _admit(model, started)
        yield
    except ModelProblem as problem:
        outcome = problem.kind
        if isinstance(problem, ModelUnusable):
            # It is there, and can be asked about something else.
            _forget(model)
        elif problem.kind != "rests" and (fair or problem.kind != "timeout"):
            _failed(model, problem)
            logger.warning("The language model was of no help for %s: %s", purpose, problem.sentence)
        raise
    else:
        _forget(model)
    finally:
        CALLS.labels(purpose, outcome).inc()
        SECONDS.labels(purpose).observe(time.monotonic() - started)


def patience_reset() -> None:
    """Forget how the models have been doing."""
    with _lock:
        _standings.clear()


def _forget(model: str | None) -> None:
    with _lock:
        _standings.pop(model, None)


def _admit(model: str | None, now: float) -> None:
    with _lock:
        found = _standings.get(model)
        if found is None:
            return
        if now < found.rests_until:
            raise Resting(found.rests_until - now, limited=found.limited)
        if found.failures >= FAILURES_IN_A_ROW:
            found.rests_until = now + found.pause()


def _failed(model: str | None, problem: ModelProblem) -> None:
    with _lock:
        found = _standings.pop(model, _Standing())
        _standings[model] = found
        found.failures += 1
        found.limited = isinstance(problem, RateLimited)
        pause = found.pause() if found.failures >= FAILURES_IN_A_ROW else 0.0
        if isinstance(problem, RateLimited):
            # It said when it will answer again.
            pause = max(pause, min(problem.wait or 0.0, LEFT_ALONE_MOST_SECONDS))
        found.rests_until = max(found.rests_until, time.monotonic() + pause)
        others = [name for name in _standings if name is not None]
        if len(others) > MOST_OTHERS:
            del _standings[others[0]]
