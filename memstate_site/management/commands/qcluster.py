"""django-q2's command `qcluster`, with the safeguards of `memstate_site.worker`."""

from __future__ import annotations

import multiprocessing
import sys
from typing import Any

from django_q.management.commands import qcluster

from memory.jobs.tasks import upkeep_request
from memory.stores.current import MAIN, store_use
from memstate_site.worker import cluster_guard


class Command(qcluster.Command):  # type: ignore[misc] # django-q2 has no types
    help = "Runs the job cluster: the workers that do everything that need not happen while a client waits."

    def handle(self, *args: Any, **options: Any) -> None:
        cluster_guard()
        # The upkeep records the worker's heartbeat. It is enqueued now, because the scheduler runs only twice a minute.
        with store_use(MAIN):
            upkeep_request()
        super().handle(*args, **options)
        # The cluster is a child process. This command ends with the status of the cluster.
        sentinels = multiprocessing.active_children()
        for sentinel in sentinels:
            sentinel.join()
        if any(sentinel.exitcode for sentinel in sentinels):
            sys.exit(1)
