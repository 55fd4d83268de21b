"""The Django application of what all stores share."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class StoresConfig(AppConfig):
    """Registers the shared models, and migrates the stores after the shared tables."""

    name = "memory.stores"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Migrate the stores whenever the shared tables are migrated."""
        post_migrate.connect(_stores_migrate, sender=self)


def _stores_migrate(**_context: Any) -> None:
    from memory.stores.migrate import stores_migrate

    stores_migrate()
