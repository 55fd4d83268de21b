"""The circuit breaker of each model in this process, and the metrics of requests."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import Counter, Histogram

from memory.llm.wire import CircuitOpen, ModelProblem, ModelUnusable, RateLimited

logger = logging.getLogger(__name__)

# After this many failures in a row, the circuit opens for ``OPEN_SECONDS``, and for twice as long after each further
# failure. So a run over thousands of fields does not wait for thousands of timeouts.
FAILURES_IN_A_ROW = 3
OPEN_SECONDS = 30.0
MOST_OPEN_SECONDS = 600.0

CALLS = Counter("memstate_model_calls", "Questions to the language model.", ["purpose", "outcome"])
SECONDS = Histogram(
    "memstate_model_seconds",
    "Time until the language model answered or the request failed.",
    ["purpose"],
    buckets=(0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 60, 120, 300),
)

# The most models other than the configured one whose circuits are stored. Callers name these models.
MOST_OTHERS = 64


@dataclass(slots=True)
class _Circuit:
    """The state of the circuit of one model."""

    failures: int = 0
    # A time of the monotonic clock.
    open_until: float = 0.0
    # Whether the last failure was a rate limit.
    limited: bool = False

    def pause(self) -> float:
        """Return for how many seconds the circuit opens after the present number of failures."""
        steps = min(20, self.failures - FAILURES_IN_A_ROW)
        return min(MOST_OPEN_SECONDS, OPEN_SECONDS * 2.0**steps)


_lock = threading.Lock()
# The circuits by model, in the order of their last failures. The key None stands for the configured model.
_circuits: dict[str | None, _Circuit] = {}


@contextmanager
def call_counted(purpose: str, *, model: str | None = None, fair: bool = True) -> Iterator[None]:
    """Admit one request unless the circuit of the model is open, and count its outcome.

    ``model`` is a model that the caller named, None for the configured one. Each model has its own circuit, so a caller
    who names another model cannot open the circuit of the configured one. Raises ``CircuitOpen`` while the circuit is
    open. Afterwards one request is admitted as a test, and the others are still refused. A timeout counts as a failure
    only if ``fair``.
    """
    started = time.monotonic()
    outcome = "answered"
    try:
        _admit(model, started)
        yield
    except ModelProblem as problem:
        outcome = problem.kind
        if isinstance(problem, ModelUnusable):
            # The model answered, so it is available.
            _forget(model)
        elif problem.kind != "circuit_open" and (fair or problem.kind != "timeout"):
            _failed(model, problem)
            logger.warning("The request to the language model for %s failed: %s", purpose, problem.sentence)
        raise
    else:
        _forget(model)
    finally:
        CALLS.labels(purpose, outcome).inc()
        SECONDS.labels(purpose).observe(time.monotonic() - started)


def circuits_reset() -> None:
    """Close all circuits."""
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
            # The circuit stays open for at least as long as the endpoint asks to wait.
            pause = max(pause, min(problem.wait or 0.0, MOST_OPEN_SECONDS))
        found.open_until = max(found.open_until, time.monotonic() + pause)
        others = [name for name in _circuits if name is not None]
        if len(others) > MOST_OTHERS:
            del _circuits[others[0]]
