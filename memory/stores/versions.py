"""Finds the stores with the tables of this release. Long-running processes notice a change within seconds."""

import time
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from typing import NamedTuple

from django.apps import apps
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Q

from memory.stores.models import Store

KNOWN_SECONDS = 3.0


class Stores(NamedTuple):
    """Facts about all stores. ``several`` is true if this cluster has more than one. ``behind`` has the names of the
    stores that are not served, because they have the tables of another release or are on another cluster."""

    several: bool
    behind: frozenset[str]


# The time of the last read, and its result.
_known: tuple[float, Stores] | None = None


@cache
def version_current() -> str:
    """Return the version of a store's tables in this release: the name of the last migration. No query."""
    # The names of the files are read, because a web process would need time and memory to load all migrations.
    folder = Path(apps.get_app_config("memory").path) / "migrations"
    return max(name for _finder, name, _package in iter_modules([str(folder)]))


def stores_behind() -> list[str]:
    """Return the names of the stores whose tables are not those of this release. One query."""
    behind = Store.objects.filter(cluster="").exclude(version=version_current()).order_by("created_at", "name")
    return list(behind.values_list("name", flat=True))


def stores_known() -> Stores:
    """Return facts about all stores that are at most ``KNOWN_SECONDS`` old. One query if the last read was earlier."""
    global _known
    known, now = _known, time.monotonic()
    if known is None or now - known[0] >= KNOWN_SECONDS:
        other = ~Q(version=version_current())
        read = Store.objects.aggregate(
            count=Count("pk", filter=Q(cluster="")), behind=ArrayAgg("pk", filter=other, default=[])
        )
        known = _known = (now, Stores(read["count"] > 1, frozenset(read["behind"])))
    return known[1]
