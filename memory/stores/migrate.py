"""Bringing stores to the tables of this release."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from memory.stores.current import MAIN, store_schema, store_use
from memory.stores.models import Store
from memory.stores.router import in_store

_APP = "memory"
# Stores that are migrated at once, each on a connection of its own.
AT_ONCE = 4


@cache
def version_current() -> str:
    """Return the version of a store's tables in this release: the name of the last migration. No query."""
    # From the names of the files: to load all migrations takes a web process time and memory.
    folder = Path(apps.get_app_config(_APP).path) / "migrations"
    return max(name for _finder, name, _package in iter_modules([str(folder)]))


def stores_behind() -> list[str]:
    """Return the names of the stores whose tables are older than this release. One query."""
    behind = Store.objects.exclude(version=version_current()).order_by("created_at", "name")
    return list(behind.values_list("name", flat=True))


def stores_migrate(*, progress: Callable[[int], object] = lambda _stores: None) -> None:
    """Make the store ``main`` if there is no store, and migrate all stores to this release, ``AT_ONCE`` at a time. One
    query if there is nothing to do.

    What an interrupted call has done is not repeated by the next. A store that fails does not hold up the others; the
    first error is raised at the end. ``progress`` is called with the number of stores done since the last call.
    """
    with store_use(None):
        behind = stores_behind()
        if not behind and not Store.objects.exists():
            Store.objects.create(name=MAIN, created_at=timezone.now())
            behind = [MAIN]
    if len(behind) < 2 or connection.in_atomic_block:
        for name in behind:
            store_migrate(name)
            progress(1)
        return
    failed: list[Exception] = []
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for each in as_completed([threads.submit(_in_thread, name) for name in behind]):
            progress(1)
            if isinstance(problem := each.exception(), Exception):
                failed.append(problem)
    if failed:
        raise failed[0]


def _in_thread(name: str) -> None:
    try:
        store_migrate(name)
    finally:
        connection.close()


def store_migrate(name: str) -> None:
    """Bring the tables of one store to this release; each migration is a transaction together with the version."""
    with store_use(name):
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {store_schema(name)}")
        executor = MigrationExecutor(connection)
        nodes = executor.loader.graph.nodes
        ours = [node for node in executor.loader.graph.forwards_plan((_APP, version_current())) if node[0] == _APP]
        version = Store.objects.values_list("version", flat=True).get(pk=name)
        known = ours[: ours.index((_APP, version)) + 1] if version else []
        # The record in ``public`` is that of the shared tables; the version of a store is in its own row.
        executor.recorder = _Recorder(name)
        executor.loader.applied_migrations = {node: nodes[node] for node in nodes if node[0] != _APP or node in known}
        token = in_store.set(True)
        try:
            executor.migrate([(_APP, version_current())])
        finally:
            in_store.reset(token)


class _Recorder(MigrationRecorder):
    """Records the migrations of a store in its row of the list of stores."""

    def __init__(self, name: str) -> None:
        super().__init__(connection)
        self._name = name

    def ensure_schema(self) -> None:
        """Make nothing: the list of stores is there."""

    def applied_migrations(self) -> Any:
        """Return nothing: the caller knows what is applied."""
        return {}

    def record_applied(self, app: str, name: str) -> None:
        """Record a migration."""
        Store.objects.filter(pk=self._name).update(version=name)
