"""Creating, moving, listing and dropping stores. The journal of ``main`` records changes."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from django.db import IntegrityError, OperationalError, connection, transaction
from django.utils import timezone

from memory.core.errors import Conflict, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.models import AuditEvent, ErasureReceipt, Topic
from memory.models.locks import Lock, lock_missed, session_lock_release, session_lock_try
from memory.stores.citus import move_plan, node_find, schema_create, schema_move, schema_place, stores_nodes
from memory.stores.current import MAIN, NAME_PATTERN, store_schema, store_use
from memory.stores.keys import store_elsewhere, store_unknown
from memory.stores.models import Store
from memory.stores.queue import queued_here, schedules_here, tasks_here
from memory.stores.template import store_statements
from memory.stores.versions import version_current
from memory.transfer.uploads import uploads_remove

# How long a drop waits for transactions that use the store, and how long it waits for one lock. A transaction may wait
# for the drop while the drop waits for it. PostgreSQL ends one of the two after ``deadlock_timeout``, which is 1 s. The
# drop gives up its locks before that and tries again, so that the transaction can end.
DROP_WAIT_SECONDS = 10.0
LOCK_WAIT_SECONDS = 0.2
# A move of an empty store takes some seconds.
EMPTY_MOVE_SECONDS = 300.0


def store_create(name: str, *, actor: str = "system", reason: str = "") -> Store:
    """Create an empty store with the same tables as ``main``, in one transaction. About ten queries and 200 statements,
    which take a third of a second. On a cluster, which also chooses a node for the store, they take two seconds.

    Raises ``ValueRefused`` for an invalid name, ``Conflict`` if the name is taken or ``main`` has older tables than
    this release.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        if store_get(MAIN).version != version_current():
            raise Conflict("Run `python manage.py migrate` first.", code=ProblemCode.STORE_BEHIND)
        store = _entry_create(Store(name=name, version=version_current()), actor=actor, reason=reason)
        with store_use(MAIN):
            statements = store_statements(cursor)
        with store_use(name):
            # A job of a dropped store of this name may have written rows after the drop.
            _shared_rows_delete()
            schema_create(name)
            for statement in statements:
                cursor.execute(statement)
        schema_place(name)
    return store


def store_create_on(name: str, node: str, *, actor: str, reason: str = "") -> Store:
    """Create an empty store on a node of the cluster. Citus chooses the node of a new store, so the empty store is
    moved if this is another one. Must not run in a transaction.

    Raises the errors of ``node_find``, ``store_create`` and ``store_move``. If only the move fails, the store exists on
    another node.
    """
    wanted = node_find(node)
    store = store_create(name, actor=actor, reason=reason)
    if stores_nodes().get(name) != [wanted]:
        store_move(name, to=str(wanted), seconds=EMPTY_MOVE_SECONDS, actor=actor, reason=reason)
    return store


def store_list_elsewhere(name: str, cluster: str, *, actor: str = "system", reason: str = "") -> Store:
    """Add a store of another cluster to the list of stores, and create no tables for it. Two queries. Raises
    ``ValueRefused`` for an invalid name, ``Conflict`` if it is taken."""
    with transaction.atomic():
        return _entry_create(Store(name=name, cluster=cluster), actor=actor, reason=reason)


def _entry_create(store: Store, *, actor: str, reason: str) -> Store:
    if NAME_PATTERN.fullmatch(store.name) is None:
        raise ValueRefused(
            "The name of a store has 1 to 40 characters a-z, 0-9 and _, and begins with a letter.", member="name"
        )
    store.created_at = timezone.now()
    try:
        store.save(force_insert=True)
    except IntegrityError as problem:
        raise Conflict(f"There is a store {store.name} already.", code=ProblemCode.ALREADY_EXISTS) from problem
    after = {"store": store.name} | ({"cluster": store.cluster} if store.cluster else {})
    with store_use(MAIN):
        AuditEvent.objects.create(at=store.created_at, actor=actor, action="store_created", reason=reason, after=after)
    return store


def store_move(
    name: str,
    *,
    to: str | None,
    seconds: float,
    actor: str,
    reason: str = "",
    progress: Callable[[int, int], object] = lambda _done, _all: None,
) -> str:
    """Move the tables of a store to another node of the cluster while it is in use, and return the node. Only one store
    moves at a time.

    ``to`` is passed to ``move_plan``, and ``progress`` to ``schema_move``. Raises the errors of these functions and
    those of ``store_here``, and ``Conflict`` if the store has older tables than this release, because its migration
    would change tables that move, or if another store is moving. Must not run in a transaction.
    """
    if store_here(name).version != version_current():
        raise Conflict("Run `python manage.py migrate` first.", code=ProblemCode.STORE_BEHIND)
    with store_use(MAIN):
        if not session_lock_try(Lock.MOVE_STORE):
            raise Conflict("Another store is moving. Wait for it.")
    try:
        source, target = move_plan(name, to)
        schema_move(name, target, seconds=seconds, progress=progress)
        with store_use(MAIN):
            AuditEvent.objects.create(
                at=timezone.now(),
                actor=actor,
                action="store_moved",
                reason=reason,
                before={"store": name, "node": str(source)},
                after={"store": name, "node": str(target)},
            )
    finally:
        with store_use(MAIN):
            session_lock_release(Lock.MOVE_STORE)
    return str(target)


def store_drop(name: str, *, actor: str, reason: str = "") -> dict[str, Any]:
    """Permanently remove a store with its content, keys, jobs, schedules and uploaded files, and return the receipt,
    which the journal of ``main`` keeps. About ten queries in one transaction, which is repeated while another
    transaction uses the store; the files are removed after the commit.
    A store of another cluster is only removed from the list.

    A transaction that uses the store has ``DROP_WAIT_SECONDS`` to end; later transactions find no store. Raises
    ``NotVisible``, and ``Conflict`` for ``main`` and for a store in which a transaction takes longer.
    """
    drop_refuse(name)
    until = time.monotonic() + DROP_WAIT_SECONDS
    while True:
        try:
            return _drop(name, actor=actor, reason=reason)
        except OperationalError as problem:
            if not lock_missed(problem):
                raise
            if time.monotonic() >= until:
                raise Conflict(
                    f"The store {name} is in use, so it was not dropped. Try again in a moment.", code=ProblemCode.BUSY
                ) from problem
        time.sleep(LOCK_WAIT_SECONDS)


def _drop(name: str, *, actor: str, reason: str) -> dict[str, Any]:
    now = timezone.now()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = {int(LOCK_WAIT_SECONDS * 1000)}")
        # If two drops run at once, the second one finds no store.
        store = store_get(name, lock=True)
        with store_use(name):
            receipt = {
                "store": name,
                "created_at": store.created_at.isoformat(),
                "dropped_at": now.isoformat(),
                # The tables of a store of another cluster are not here.
                "topics": None if store.cluster else Topic.objects.count(),
                "receipts_of_erasures": None if store.cluster else ErasureReceipt.objects.count(),
            }
            _shared_rows_delete()
        store.delete()
        cursor.execute(f"DROP SCHEMA IF EXISTS {store_schema(name)} CASCADE")
        with store_use(MAIN):
            AuditEvent.objects.create(at=now, actor=actor, action="store_dropped", reason=reason, before=receipt)
        transaction.on_commit(partial(_files_remove, name))
    return receipt


def drop_refuse(name: str) -> None:
    """Raise ``Conflict`` for ``main``, which cannot be dropped."""
    if name == MAIN:
        raise Conflict("The store “main” cannot be dropped.")


def _shared_rows_delete() -> None:
    queued_here().delete()
    schedules_here().delete()
    tasks_here().delete()


def _files_remove(name: str) -> None:
    with store_use(name):
        uploads_remove()


def stores_list() -> list[Store]:
    """Return all stores, the oldest first. One query."""
    return list(Store.objects.order_by("created_at", "name"))


def store_get(name: str, *, lock: bool = False) -> Store:
    """Return a store. One query. Raises ``NotVisible``."""
    stores = Store.objects.select_for_update() if lock else Store.objects
    store = stores.filter(pk=name).first()
    if store is None:
        raise store_unknown(name)
    return store


def store_here(name: str) -> Store:
    """Return a store of this cluster. One query. Raises ``NotVisible``, ``StoreElsewhere``."""
    store = store_get(name)
    if store.cluster:
        raise store_elsewhere(name, store.cluster)
    return store
