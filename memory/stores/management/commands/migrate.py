"""Django's command `migrate`, which makes the shared tables in ``public`` and then migrates the stores."""

from typing import Any

from django.apps import apps
from django.core.management.commands import migrate

from memory.stores.apps import StoresConfig
from memory.stores.current import store_use


class Command(migrate.Command):
    help = "Migrates the tables that all stores share, then the tables of each store."

    def handle(self, *args: Any, **options: Any) -> None:
        with store_use(None):
            super().handle(*args, **options)
        stores = apps.get_app_config("stores")
        assert isinstance(stores, StoresConfig)
        if stores.not_migrated is not None:
            raise stores.not_migrated
