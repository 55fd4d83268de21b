"""Records which stores have work for upkeep, in one table for all stores, so that idle stores cost nothing."""

import datetime as dt
from collections.abc import Callable

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from memory.stores.current import MAIN, store_current, store_use
from memory.stores.models import Store
from memory.stores.versions import version_current

# A request enqueues upkeep itself. After this time, its entry in the queue is assumed to be lost.
LOST_AFTER = dt.timedelta(minutes=1)


def work_pending() -> None:
    """Record that the current store has work. One query, which writes nothing if this is recorded already; none in
    ``main``, where upkeep runs each minute."""
    if store_current() != MAIN:
        Store.objects.filter(pk=store_current(), pending_at__isnull=True).update(pending_at=timezone.now())


def after_commit(work: Callable[[], object]) -> None:
    """Call ``work`` in the current store after the running transaction has committed, or at once outside a transaction.
    An error of ``work`` is only logged, because the transaction has committed.

    On a cluster, a transaction that writes to a store and to ``public`` takes three times as long as one that writes to
    the store alone. So the tables in ``public`` are written after the commit.
    """
    name = store_current()

    def in_store() -> None:
        with store_use(name):
            work()

    transaction.on_commit(in_store, robust=True)


def work_done(began: dt.datetime, *, left: bool) -> None:
    """Record that upkeep, which began at ``began``, has done the work of the current store, unless ``left`` is true or
    work was added since. Two queries."""
    here = Store.objects.filter(pk=store_current())
    here.update(used_at=timezone.now())
    if left:
        here.update(pending_at=timezone.now())
    else:
        here.filter(pending_at__lte=began).update(pending_at=None)


def stores_waiting(*, now: dt.datetime) -> list[str]:
    """Return the stores except ``main`` whose work has waited for a minute, each store at most once a minute. One
    query; two if there are such stores."""
    waiting = _others().filter(pending_at__lt=now - LOST_AFTER)
    names = list(waiting.order_by("pending_at").values_list("pk", flat=True))
    if names:
        Store.objects.filter(pk__in=names).update(pending_at=now)
    return names


def stores_at_work(*, now: dt.datetime, within: dt.timedelta, most: int) -> list[str]:
    """Return ``main`` and at most ``most`` other stores that have work, or had work less than ``within`` ago. Stores
    that are being migrated are left out. One query."""
    worked = Q(pending_at__isnull=False) | Q(used_at__gte=now - within)
    others = _others().filter(worked, version=version_current())
    return [MAIN, *others.order_by(F("used_at").desc(nulls_first=True), "pk").values_list("pk", flat=True)[:most]]


def stores_recent(within: dt.timedelta, *, now: dt.datetime) -> list[str]:
    """Return the stores except ``main`` that had work less than ``within`` ago. One query."""
    recent = _others().filter(used_at__gte=now - within)
    return list(recent.order_by("pk").values_list("pk", flat=True))


def stores_used(*, after: str, most: int) -> list[str]:
    """Return at most ``most`` stores that ever had work and whose names come after ``after``, ordered by name. ``main``
    and stores that are being migrated are left out. One query."""
    used = _others().filter(used_at__isnull=False, version=version_current(), pk__gt=after)
    return list(used.order_by("pk").values_list("pk", flat=True)[:most])


def _others() -> QuerySet[Store]:
    return Store.objects.filter(cluster="").exclude(pk=MAIN)
