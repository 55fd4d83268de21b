"""The circuit breaker of each model in this process, and the counts of questions and answers."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import Counter, Histogram

from memory.llm.wire import CircuitOpen, ModelProblem, ModelUnusable, RateLimited

logger = logging.getLogger(__name__)

# After so many failures in a row the circuit opens, and the model is not asked: first for so many seconds, then twice
# as long after each further failure. So a run over thousands of fields, or a page that somebody reloads, does not wait
# each time.
FAILURES_IN_A_ROW = 3
OPEN_SECONDS = 30.0
MOST_OPEN_SECONDS = 600.0

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
class _Circuit:
    """How one model has been doing."""

    failures: int = 0
    # Until when the model is not asked, by the monotonic clock.
    open_until: float = 0.0
    # Whether its endpoint asked for that, by a rate limit.
    limited: bool = False

    def pause(self) -> float:
        """Return for how many seconds the circuit opens after so many failures."""
        steps = min(20, self.failures - FAILURES_IN_A_ROW)
        return min(MOST_OPEN_SECONDS, OPEN_SECONDS * 2.0**steps)


_lock = threading.Lock()
# By model, where None is the usual one; the others in the order in which they failed.
_circuits: dict[str | None, _Circuit] = {}


@contextmanager
def call_counted(purpose: str, *, model: str | None = None, fair: bool = True) -> Iterator[None]:
    """Let one question through unless the circuit of the model is open, and count how it went.

    ``model`` is one that a caller named, None the usual one. Each has a circuit of its own, so nobody can open that of
    the usual one by asking for another. Raises ``CircuitOpen`` at once while it is open; after that time one question
    is let through as a test, while the others are still refused. Where the time was too short to be ``fair``, that it
    ran out is not held against the model.
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
        elif problem.kind != "circuit_open" and (fair or problem.kind != "timeout"):
            _failed(model, problem)
            logger.warning("The language model was of no help for %s: %s", purpose, problem.sentence)
        raise
    else:
        _forget(model)
    finally:
        CALLS.labels(purpose, outcome).inc()
        SECONDS.labels(purpose).observe(time.monotonic() - started)


def circuits_reset() -> None:
    """Forget how the models have been doing."""
    with _lock:
        _circuits.clear()


def _forget(model: str | None) -> None:
    with _lock:
        _circuits.pop(model, None)


def _admit(model: str | None, now: float) -> None:
    with _lock:
        found = _circuits.get(model)
        if found is None:
            return
        if now < found.open_until:
            raise CircuitOpen(found.open_until - now, limited=found.limited)
        if found.failures >= FAILURES_IN_A_ROW:
            found.open_until = now + found.pause()


def _failed(model: str | None, problem: ModelProblem) -> None:
    with _lock:
        found = _circuits.pop(model, _Circuit())
        _circuits[model] = found
        found.failures += 1
        found.limited = isinstance(problem, RateLimited)
        pause = found.pause() if found.failures >= FAILURES_IN_A_ROW else 0.0
        if isinstance(problem, RateLimited):
            # It said when it will answer again.
            pause = max(pause, min(problem.wait or 0.0, MOST_OPEN_SECONDS))
        found.open_until = max(found.open_until, time.monotonic() + pause)
        others = [name for name in _circuits if name is not None]
        if len(others) > MOST_OTHERS:
            del _circuits[others[0]]
