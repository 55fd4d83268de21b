"""The Django application for the tables that all stores share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate

if TYPE_CHECKING:
    from memory.stores.migrate import StoresNotMigrated


class StoresConfig(AppConfig):
    """Registers the shared models, and migrates the stores after the shared tables."""

    name = "memory.stores"
    default_auto_field = "django.db.models.BigAutoField"
    # The error of the last migration if it could not migrate some stores other than ``main``. The command raises it at
    # its end.
    not_migrated: StoresNotMigrated | None = None

    def ready(self) -> None:
        """Migrate the stores whenever the shared tables are migrated."""
        post_migrate.connect(_stores_migrate, sender=self)


def _stores_migrate(sender: StoresConfig, **_context: Any) -> None:
    from tqdm import tqdm

    from memory.stores.current import MAIN
    from memory.stores.migrate import StoresNotMigrated, stores_migrate, stores_unfinished

    # A single store is migrated too quickly for a progress bar.
    behind = len(stores_unfinished())
    sender.not_migrated = None
    try:
        with tqdm(total=behind, unit=" stores", desc="Migrating", dynamic_ncols=True, disable=behind < 2) as bar:
            stores_migrate(progress=bar.update)
    except StoresNotMigrated as problem:
        # The following steps need only the tables of main.
        if MAIN in problem.failed:
            raise
        sender.not_migrated = problem
