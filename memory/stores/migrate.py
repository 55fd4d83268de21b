"""Migrates the tables of stores to this release."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import nullcontext
from typing import Any

from django.core.management.base import CommandError
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from memory.stores.citus import schema_create, schema_place, stores_unplaced
from memory.stores.current import MAIN, store_use
from memory.stores.models import Store
from memory.stores.pending import work_pending
from memory.stores.router import in_store
from memory.stores.versions import stores_behind, version_current

_APP = "memory"
# The number of stores that are migrated at once, each on its own connection.
AT_ONCE = 4
# The number of stores that an error names.
_NAMED = 3


class StoresNotMigrated(CommandError):
    """Some stores still have the tables of another release. ``failed`` maps the name of each store to its error."""

    def __init__(self, failed: dict[str, Exception]) -> None:
        causes = [f"{name} ({_first_line(problem)})" for name, problem in sorted(failed.items())]
        named = ", ".join(causes[:_NAMED]) + (f" and {len(causes) - _NAMED} more" if len(causes) > _NAMED else "")
        super().__init__(
            f"Not migrated: {named}. These stores answer 503 until `python manage.py migrate` succeeds for them."
        )
        self.failed = failed


def _first_line(problem: Exception) -> str:
    return next(iter(str(problem).splitlines()), "") or type(problem).__name__


def stores_unfinished() -> list[str]:
    """Return the names of the stores whose tables are not those of this release, the oldest store first. On a cluster,
    these are followed by the stores whose tables are on no node. Three queries, four on a cluster."""
    here = Store.objects.filter(cluster="").order_by("created_at", "name")
    unplaced = stores_unplaced(here.values_list("name", flat=True))
    return list(dict.fromkeys([*stores_behind(), *unplaced]))


def stores_migrate(*, progress: Callable[[int], object] = lambda _stores: None) -> None:
    """Create the store ``main`` if there is no store, and migrate all stores to this release, ``AT_ONCE`` at a time.
    Queries as in ``stores_unfinished`` if there is nothing to do.

    A later call continues an interrupted one. ``progress`` is called with the number of stores attempted since its last
    call. Raises ``StoresNotMigrated`` at the end if a store fails; the others are migrated nevertheless.
    """
    with store_use(None):
        behind = stores_unfinished()
        if not behind and not Store.objects.exists():
            Store.objects.create(name=MAIN, created_at=timezone.now())
            behind = [MAIN]
    if connection.in_atomic_block:
        for name in behind:
            store_migrate(name)
            progress(1)
        return
    failed: dict[str, Exception] = {}
    with ThreadPoolExecutor(AT_ONCE) as threads:
        names = {threads.submit(_migrate_and_disconnect, name): name for name in behind}
        for each in as_completed(names):
            progress(1)
            if isinstance(problem := each.exception(), Exception):
                failed[names[each]] = problem
    if failed:
        raise StoresNotMigrated(failed) from next(iter(failed.values()))


def _migrate_and_disconnect(name: str) -> None:
    try:
        store_migrate(name)
    finally:
        connection.close()


def store_migrate(name: str) -> None:
    """Migrate the tables of one store to this release. Each migration and the new version are one transaction."""
    with store_use(name):
        schema_create(name)
        executor = _Executor(connection)
        nodes = executor.loader.graph.nodes
        ours = [node for node in executor.loader.graph.forwards_plan((_APP, version_current())) if node[0] == _APP]
        version = Store.objects.values_list("version", flat=True).get(pk=name)
        known = ours[: ours.index((_APP, version)) + 1] if version else []
        # The migrations recorded in ``public`` are those of the shared tables; the row of a store contains its version.
        executor.recorder = _Recorder(name)
        executor.loader.applied_migrations = {node: nodes[node] for node in nodes if node[0] != _APP or node in known}
        token = in_store.set(True)
        try:
            executor.migrate([(_APP, version_current())])
        finally:
            in_store.reset(token)
        # The cluster places the tables after the migrations, because every migration can run on plain tables.
        schema_place(name)


class _Executor(MigrationExecutor):
    """Applies and records a migration in one transaction. Django would commit the tables before the record."""

    def apply_migration(self, state: Any, migration: Any, *args: Any, **more: Any) -> Any:
        """Apply a migration."""
        with transaction.atomic() if migration.atomic else nullcontext():
            return super().apply_migration(state, migration, *args, **more)


class _Recorder(MigrationRecorder):
    """Records the migrations of a store in its row of the list of stores."""

    def __init__(self, name: str) -> None:
        super().__init__(connection)
        self._name = name

    def ensure_schema(self) -> None:
        """Do nothing, because the table of stores exists."""

    def applied_migrations(self) -> Any:
        """Return nothing, because the caller sets the applied migrations."""
        return {}

    def record_applied(self, app: str, name: str) -> None:
        """Record a migration. Upkeep may have to make rows of the former release again, so it has work."""
        Store.objects.filter(pk=self._name).update(version=name)
        work_pending()
