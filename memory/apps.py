"""The Django application that holds the store."""

import gc
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import post_migrate


class MemoryConfig(AppConfig):
    """Registers the models of ``memory`` under the label with which table names begin."""

    name = "memory"
    verbose_name = "Memory"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Create the schedules after each migration."""
        post_migrate.connect(_schedules_make, sender=self)
        if settings.MEMSTATE_PROCESS == "worker":
            # The job cluster forks its processes from this one, so modules that are loaded now are in memory only once.
            from memory.jobs import tasks as _tasks  # noqa: F401

            gc.freeze()


def _schedules_make(**_context: Any) -> None:
    from memory.jobs.tasks import schedules_ensure
    from memory.stores.current import MAIN, store_use

    with store_use(MAIN):
        schedules_ensure()
