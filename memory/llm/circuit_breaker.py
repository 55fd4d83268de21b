"""The circuit breaker of each model in this process, and the metrics of requests."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import Counter, Histogram

from memory.llm.wire import CircuitOpen, ModelProblem, ModelUnusable, RateLimited
from memory.stores.metrics import per_store, store_label

logger = logging.getLogger(__name__)

# After this many failures in a row, the circuit opens for ``OPEN_SECONDS``: no requests are sent. Each further failure
# doubles this time. So a run over thousands of fields does not wait for thousands of timeouts.
FAILURES_IN_A_ROW = 3
OPEN_SECONDS = 30.0
MAX_OPEN_SECONDS = 600.0

CALLS = per_store(Counter("memstate_model_calls", "Questions to the language model.", ["store", "purpose", "outcome"]))
SECONDS = per_store(
    Histogram(
        "memstate_model_seconds",
        "Time until the language model answered or the request failed.",
        ["store", "purpose"],
        buckets=(0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 60, 120, 300),
    )
)

# Callers may choose models other than the configured one. Circuits are stored for at most this number of other models.
MAX_OTHERS = 64


@dataclass(slots=True)
class _Circuit:
    failures: int = 0
    # A time of the monotonic clock.
    open_until: float = 0.0
    # Whether the last failure was a rate limit.
    limited: bool = False

    def pause(self) -> float:
        """Return the number of seconds for which the circuit opens after the present number of failures."""
        steps = min(20, self.failures - FAILURES_IN_A_ROW)
        return min(MAX_OPEN_SECONDS, OPEN_SECONDS * 2.0**steps)


_lock = threading.Lock()
# The circuits by model, in the order of their last failures. The key of the configured model is None.
_circuits: dict[str | None, _Circuit] = {}


@contextmanager
def call_counted(purpose: str, *, model: str | None = None, fair: bool = True) -> Iterator[None]:
    """Admit one request unless the circuit of the model is open, and count its outcome.

    ``model`` is None for the configured model. Each model has its own circuit. While the circuit is open,
    ``CircuitOpen`` is raised. After this time, one request is admitted as a test. A timeout counts as a failure only if
    ``fair`` is true.
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
        store = store_label()
        CALLS.labels(store, purpose, outcome).inc()
        SECONDS.labels(store, purpose).observe(time.monotonic() - started)


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
            pause = max(pause, min(problem.wait or 0.0, MAX_OPEN_SECONDS))
        found.open_until = max(found.open_until, time.monotonic() + pause)
        others = [name for name in _circuits if name is not None]
        if len(others) > MAX_OTHERS:
            del _circuits[others[0]]
