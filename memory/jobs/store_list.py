"""The stores with their figures, for the page of the administrators of the installation. Read only."""

import datetime as dt
from dataclasses import dataclass

from memory.models import AuditEvent
from memory.models.statements import rows_by_store, rows_read
from memory.stores.citus import cluster_is, schema_sizes, stores_nodes
from memory.stores.current import MAIN, store_schema, store_use
from memory.stores.models import Store
from memory.stores.versions import version_current

_SIZES_SQL = """
SELECT nspname::text, sum(pg_total_relation_size(c.oid))::bigint
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE nspname = ANY(%s) AND relkind = 'r' GROUP BY nspname
"""
# The queries are fast: both times come from indexes, and the number of topics comes from one row of totals.
_FIGURES_SQL = """
SELECT (SELECT coalesce(sum(documents), 0)::bigint FROM memory_corpustotals),
       greatest((SELECT max(at) FROM memory_accesslog), (SELECT max(at) FROM memory_auditevent))
"""


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """A store with its figures. ``cluster`` is empty for a store of this cluster, and ``node`` on plain PostgreSQL.
    ``size`` is the size of its tables in bytes. ``topics`` is the number of live topics, and ``active_at`` the time of
    the last query or change. Both are None if ``behind`` is true: the tables are not those of this release."""

    name: str
    cluster: str
    created_at: dt.datetime
    version: str
    behind: bool
    size: int
    topics: int | None
    active_at: dt.datetime | None
    node: str


def stores_figures(stores: list[Store]) -> list[StoreFigures]:
    """Return the figures of these stores. Four queries for any number of stores; six on a cluster."""
    if not stores:
        return []
    names = [store.name for store in stores]
    here = dict(rows_read(_SIZES_SQL, [[store_schema(name) for name in names]]))
    sizes = {name: here.get(store_schema(name), 0) for name in names} | schema_sizes(names)
    ready = [store.name for store in stores if store.version == version_current()]
    found = {name: (topics, active_at) for name, topics, active_at in rows_by_store(_FIGURES_SQL, ready)}
    nodes = stores_nodes() if cluster_is() else {}
    return [
        StoreFigures(
            store.name,
            store.cluster,
            store.created_at,
            store.version,
            store.version != version_current(),
            sizes[store.name],
            *found.get(store.name, (None, None)),
            ", ".join(map(str, nodes.get(store.name, []))),
        )
        for store in stores
    ]


def stores_named(text: str, *, after: str | None, limit: int) -> list[StoreFigures]:
    """Return at most ``limit`` stores whose names contain ``text`` and come after the name ``after``, ordered by name.
    Five queries; seven on a cluster."""
    rows = Store.objects.filter(name__contains=text).order_by("name")
    return stores_figures(list(rows.filter(name__gt=after)[:limit] if after is not None else rows[:limit]))


def stores_count(text: str, *, at_most: int) -> int:
    """Return the number of stores with ``text`` in their names, but at most ``at_most`` + 1. One query."""
    return Store.objects.filter(name__contains=text)[: at_most + 1].count()


def stores_dropped(*, most: int) -> list[AuditEvent]:
    """Return the journal entries of the last dropped stores, each with its receipt as ``before``. One query."""
    with store_use(MAIN):
        return list(AuditEvent.objects.filter(action="store_dropped").order_by("-at", "-id")[:most])
