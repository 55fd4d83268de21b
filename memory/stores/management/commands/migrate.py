"""Django's command `migrate`, which makes the shared tables in ``public`` and then brings the stores up."""

from typing import Any

from django.core.management.commands import migrate

from memory.stores.current import store_use


class Command(migrate.Command):
    help = "Brings the database to the tables of this release: those that all stores share, then those of each store."

    def handle(self, *args: Any, **options: Any) -> None:
        with store_use(None):
            super().handle(*args, **options)
