"""Creating, listing and dropping stores. The journal of ``main`` records both."""

from typing import Any

from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from django_q.models import Task

from memory.core.errors import Conflict, NotVisible, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.models import AuditEvent, ErasureReceipt, Topic
from memory.policy.schedules import cron_schedules_sync
from memory.stores.current import MAIN, NAME_PATTERN, store_schema, store_use
from memory.stores.migrate import version_current
from memory.stores.models import Store
from memory.stores.queue import job_arguments, queued_here, schedules_here
from memory.stores.template import store_statements


def store_create(name: str, *, actor: str = "system", reason: str = "") -> Store:
    """Create an empty store with the tables of ``main``, in one transaction. Some ten queries and 200 statements: a
    third of a second.

    Raises ``ValueRefused`` for an invalid name, ``Conflict`` if the name is taken or ``main`` has older tables than
    this release.
    """
    if NAME_PATTERN.fullmatch(name) is None:
        raise ValueRefused(
            "The name of a store has 1 to 40 characters a-z, 0-9 and _, and begins with a letter.",
            code=ProblemCode.INVALID_STORE_NAME,
        )
    now = timezone.now()
    with transaction.atomic(), connection.cursor() as cursor:
        if store_get(MAIN).version != version_current():
            raise Conflict("Run `python manage.py migrate` first.", code=ProblemCode.STORE_BEHIND)
        try:
            store = Store.objects.create(name=name, version=version_current(), created_at=now)
        except IntegrityError as problem:
            raise Conflict(f"There is a store {name} already.", code=ProblemCode.STORE_EXISTS) from problem
        with store_use(MAIN):
            statements = store_statements(cursor)
            AuditEvent.objects.create(at=now, actor=actor, action="store_created", reason=reason, after={"store": name})
        with store_use(name):
            cursor.execute(f"CREATE SCHEMA {store_schema(name)}")
            for statement in statements:
                cursor.execute(statement)
            cron_schedules_sync(now=now)
    return store


def store_drop(name: str, *, actor: str, reason: str = "") -> dict[str, Any]:
    """Remove a store with everything in it, its keys, jobs and schedules, for good, and return the receipt, which the
    journal of ``main`` keeps. Some ten queries, in one transaction.

    Raises ``NotVisible``, ``Conflict`` for ``main``.
    """
    if name == MAIN:
        raise Conflict("The store main cannot be dropped.", code=ProblemCode.STORE_IS_MAIN)
    now = timezone.now()
    with transaction.atomic(), connection.cursor() as cursor:
        store = store_get(name)
        with store_use(name):
            receipt = {
                "store": name,
                "created_at": store.created_at.isoformat(),
                "dropped_at": now.isoformat(),
                "topics": Topic.objects.count(),
                "receipts_of_erasures": ErasureReceipt.objects.count(),
            }
            queued_here().delete()
            schedules_here().delete()
            Task.objects.filter(kwargs=job_arguments()).delete()
        store.delete()
        cursor.execute(f"DROP SCHEMA {store_schema(name)} CASCADE")
        with store_use(MAIN):
            AuditEvent.objects.create(at=now, actor=actor, action="store_dropped", reason=reason, before=receipt)
    return receipt


def stores_list() -> list[Store]:
    """Return all stores, the oldest first. One query."""
    return list(Store.objects.order_by("created_at", "name"))


def store_get(name: str) -> Store:
    """Return a store. One query. Raises ``NotVisible``."""
    store = Store.objects.filter(pk=name).first()
    if store is None:
        raise NotVisible(f"There is no store {name}.", code=ProblemCode.STORE_NOT_FOUND)
    return store
