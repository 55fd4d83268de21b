"""The Django application that holds the store."""

import gc
import os
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import post_migrate

# The scheduling priority of background work, from 0 to 19 (the lowest).
WORKER_NICENESS = 10


class MemoryConfig(AppConfig):
    """Registers the models of ``memory``. Table names begin with the label of this application."""

    name = "memory"
    verbose_name = "Memory"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Create the schedules after each migration. In a worker, also load the modules of the jobs and lower the
        priority of the process."""
        post_migrate.connect(_schedules_make, sender=self)
        if settings.MEMSTATE_PROCESS == "worker":
            # The job cluster forks its processes from this one, so modules that are loaded now are in memory only once.
            from memory.jobs import tasks as _tasks  # noqa: F401

            gc.freeze()
            # If cores are scarce, requests come first.
            os.setpriority(os.PRIO_PROCESS, 0, max(WORKER_NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))


def _schedules_make(**_context: Any) -> None:
    from memory.jobs.tasks import schedules_ensure
    from memory.stores.current import MAIN, store_use

    with store_use(MAIN):
        schedules_ensure()
