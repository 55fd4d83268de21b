"""Where migrations make tables: those of ``memory`` in stores, all others in ``public``."""

from contextvars import ContextVar
from typing import Any

# True while the tables of a store are migrated (``memory.stores.migrate``).
in_store: ContextVar[bool] = ContextVar("store_migrates", default=False)


class StoreRouter:
    """Keeps the migrations of ``memory`` from making tables in ``public``, where they are recorded all the same."""

    def allow_migrate(self, _db: str, app_label: str, **_hints: Any) -> bool:
        """Return whether the tables of an application are made now."""
        return (app_label == "memory") is in_store.get()
