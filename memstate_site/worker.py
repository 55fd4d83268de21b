"""Safeguards for django-q2's cluster: its processes end with it, stuck workers are replaced, and only known jobs
run."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import structlog
from django.db.models.signals import post_save
from django.utils.module_loading import import_string
from django_q import cluster, worker
from django_q.models import Task
from django_q.signals import call_hook

from memstate_site.processes import dies_with_parent

log = structlog.get_logger(__name__)

# The values of a worker's timer if the worker ended for a known reason.
TIMED_OUT = 0
RECYCLED = -2


class CarefulSentinel(cluster.Sentinel):  # type: ignore[misc] # django-q2 has no types
    """A sentinel that restarts the cluster when one of its processes was killed. An idle worker holds the lock of the
    queue. If this worker is killed, the queue stays locked, and all other workers would wait forever."""

    def reincarnate(self, process: Any) -> None:
        timer = getattr(process, "timer", None)
        if timer is not None and int(timer.value) in (TIMED_OUT, RECYCLED):
            super().reincarnate(process)
            return
        log.error("A process of the job cluster was killed; the cluster starts afresh.", pid=process.pid)
        # The other processes end with this one. Their jobs stay in the queue and run again later; every job may run
        # twice.
        os._exit(1)


def task_locate(name: str) -> Callable[..., object] | None:
    """Return the function of a registered job, or None for any other name. The queue then reports a failed job."""
    from memory.jobs.tasks import TASKS

    return import_string(name) if name in TASKS else None


def tasks_only() -> None:
    """Let this process and its children run only registered jobs. Otherwise, a row in the table of schedules could run
    any function of any module."""
    worker.pydoc = SimpleNamespace(locate=task_locate)
    post_save.disconnect(call_hook, sender=Task)


def cluster_guard() -> None:
    """Kill every forked process when its parent dies, install ``CarefulSentinel``, and run registered jobs only."""
    tasks_only()
    ask = None

    def before() -> None:
        nonlocal ask
        ask = dies_with_parent(signal.SIGKILL)

    def in_child() -> None:
        if ask is not None:
            ask()

    os.register_at_fork(before=before, after_in_child=in_child)
    cluster.Sentinel = CarefulSentinel
