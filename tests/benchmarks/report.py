"""Prints a benchmark's figures as a Markdown table, ready for docs/benchmarks.md."""

import statistics
import time
from collections.abc import Callable, Sequence


def milliseconds(work: Callable[[], object], *, times: int, warm_up: int = 10) -> list[float]:
    """Return how long ``work`` took each time, after some calls that do not count."""
    for _ in range(warm_up):
        work()
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        taken.append((time.perf_counter() - started) * 1000)
    return taken


def p50(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def p95(values: Sequence[float]) -> float:
    """Return what 95 of 100 values stay below."""
    return sorted(values)[int(len(values) * 0.95)]


def p99(values: Sequence[float]) -> float:
    """Return what 99 of 100 values stay below."""
    return sorted(values)[int(len(values) * 0.99)]


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table."""
    print(f"\n\n{title}\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row) + " |")
