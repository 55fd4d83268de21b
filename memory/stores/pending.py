"""Which stores have work for upkeep, in one table of all stores, so that idle stores cost nothing."""

import datetime as dt

from django.utils import timezone

from memory.stores.current import MAIN, store_current
from memory.stores.models import Store

# A request enqueues upkeep itself. After so long, the entry of the queue is taken for lost.
LOST_AFTER = dt.timedelta(minutes=1)


def work_pending() -> None:
    """Note that the current store has work. One query, which writes nothing while it is noted already."""
    Store.objects.filter(pk=store_current(), pending_at__isnull=True).update(pending_at=timezone.now())


def work_done(began: dt.datetime, *, left: bool) -> None:
    """Note that upkeep, which ``began`` then, has done the work of the current store, unless something is ``left`` or
    has come since. Two queries."""
    here = Store.objects.filter(pk=store_current())
    here.update(used_at=timezone.now())
    if left:
        here.update(pending_at=timezone.now())
    else:
        here.filter(pending_at__lte=began).update(pending_at=None)


def stores_waiting(*, now: dt.datetime) -> list[str]:
    """Return the stores but ``main`` whose work has waited for a minute, each at most once a minute. One query, two if
    there are any."""
    waiting = Store.objects.exclude(pk=MAIN).filter(pending_at__lt=now - LOST_AFTER)
    names = list(waiting.order_by("pending_at").values_list("pk", flat=True))
    if names:
        Store.objects.filter(pk__in=names).update(pending_at=now)
    return names


def stores_recent(within: dt.timedelta | None, *, now: dt.datetime) -> list[str]:
    """Return the stores but ``main`` in which upkeep had work lately, or ever. One query."""
    recent = Store.objects.exclude(pk=MAIN).filter(used_at__isnull=False)
    if within is not None:
        recent = recent.filter(used_at__gte=now - within)
    return list(recent.order_by("pk").values_list("pk", flat=True))
