"""What MemState asks of django-q2's cluster beyond its own care: that no process of it is ever left behind or stuck."""

from __future__ import annotations

import os
import signal
from typing import Any

import structlog
from django_q import cluster

from memstate_site.processes import dies_with_parent

log = structlog.get_logger(__name__)

# What a worker's timer says when the worker ended for a known reason.
TIMED_OUT = 0
RECYCLED = -2


class CarefulSentinel(cluster.Sentinel):  # type: ignore[misc] # django-q2 has no types
    """A sentinel that restarts the cluster when one of its processes was killed.

    An idle worker waits inside the queue's lock. Killed there, it takes the lock along, and every other worker waits
    for ever beside a queue that fills: replacing the one process, as django-q2 does, does not help. New queues do.
    """

    def reincarnate(self, process: Any) -> None:
        timer = getattr(process, "timer", None)
        if timer is not None and int(timer.value) in (TIMED_OUT, RECYCLED):
            super().reincarnate(process)
            return
        log.error("A process of the job cluster was killed; the cluster starts afresh.", pid=process.pid)
        # Its other processes end with this one. Whatever they had in hand is handed out again: a job may run twice.
        os._exit(1)


def cluster_guard() -> None:
    """Make every process that the cluster forks end with the one that forked it, and use the sentinel above."""
    ask = None

    def before() -> None:
        nonlocal ask
        ask = dies_with_parent(signal.SIGKILL)

    def in_child() -> None:
        if ask is not None:
            ask()

    os.register_at_fork(before=before, after_in_child=in_child)
    cluster.Sentinel = CarefulSentinel
