"""The Django application that holds the store."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class MemoryConfig(AppConfig):
    """Registers the models of ``memory`` under the label that table names start with."""

    name = "memory"
    verbose_name = "Memory"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Create the schedules after migrations, however the store is started."""
        post_migrate.connect(_schedules_make, sender=self)


def _schedules_make(**_context: Any) -> None:
    from memory.jobs.tasks import schedules_ensure
    from memory.stores.current import MAIN, store_use

    with store_use(MAIN):
        schedules_ensure()
