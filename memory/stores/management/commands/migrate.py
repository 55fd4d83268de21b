"""Django's command `migrate`, which makes the shared tables in ``public`` and then migrates the stores."""

from typing import Any

from django.core.management.commands import migrate

from memory.stores.current import store_use


class Command(migrate.Command):
    help = "Migrates the tables that all stores share, then the tables of each store."

    def handle(self, *args: Any, **options: Any) -> None:
        with store_use(None):
            super().handle(*args, **options)
