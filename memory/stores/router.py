"""Decides where migrations create tables: those of ``memory`` in stores, all others in ``public``."""

from contextvars import ContextVar
from typing import Any

# True while the tables of a store are migrated (``memory.stores.migrate``).
in_store: ContextVar[bool] = ContextVar("store_migrates", default=False)


class StoreRouter:
    """Keeps the migrations of ``memory`` from creating tables in ``public``. Django still records them there."""

    def allow_migrate(self, _db: str, app_label: str, **_hints: Any) -> bool:
        """Return whether the tables of an application are created now."""
        return (app_label == "memory") is in_store.get()
