"""The label ``store`` of the metrics of this process."""

import datetime as dt
import threading
import time
from typing import TypeVar

from prometheus_client.metrics import MetricWrapperBase

from memory.stores.current import MAIN, store_or_none

Family = TypeVar("Family", bound=MetricWrapperBase)

# Metrics name ``main`` and at most MAX_STORES other stores, which have work or had work within WORKED_WITHIN.
MAX_STORES = 100
WORKED_WITHIN = dt.timedelta(hours=1)
# The label of all further stores. It cannot be the name of a store.
OTHERS = "(others)"

_families: list[MetricWrapperBase] = []
_lock = threading.Lock()
# The named stores except ``main``, with the time of the last use on the monotonic clock, oldest first.
_used: dict[str, float] = {}


def per_store(family: Family) -> Family:
    """Register a metric, and return it. Its label ``store`` gets the values of ``store_label``."""
    _families.append(family)
    return family


def store_label() -> str:
    """Return the label of the current store: its name or ``OTHERS``; empty without a store. The series of a store that
    has not been used for ``WORKED_WITHIN`` are removed if another store needs the place."""
    name = store_or_none()
    if name is None or name == MAIN:
        return name or ""
    now = time.monotonic()
    with _lock:
        if _used.pop(name, None) is None and len(_used) >= MAX_STORES:
            oldest = next(iter(_used))
            if now - _used[oldest] < WORKED_WITHIN.total_seconds():
                return OTHERS
            del _used[oldest]
            for family in _families:
                family.remove_by_labels({"store": oldest})
        _used[name] = now
        return name
