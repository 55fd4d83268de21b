"""Pages of lists, newest first or in another order, for every table with an id."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from django.db.models import Expression, F, Model, Q, QuerySet, UUIDField
from django.db.models.expressions import OrderBy

from memory.core.cursors import cursor_make, cursor_number, cursor_parse, cursor_time

Row = TypeVar("Row", bound=Model)

# An order without an index sorts at most this many of the newest rows.
SORTED_AMONG = 10_000


class Order(NamedTuple):
    """An order of a list by the field or expression ``by``. ``parse`` parses a value of ``by`` in a cursor. Rows
    without a value come last. ``among`` names an indexed time column; only the ``SORTED_AMONG`` rows with the latest
    times in it are sorted. It is empty if ``by`` has an index or the table is small."""

    by: str | Expression
    parse: Callable[[str], Any]
    descending: bool = True
    among: str = ""


def newest_page(
    rows: QuerySet[Row], *, cursor: str | None, limit: int, by: str = "created_at"
) -> tuple[list[Row], str | None]:
    """Return a page of ``rows``, and the cursor of the next page or None. Rows are ordered by the time column ``by``
    and by the id, both descending.

    One query. If there is an index on (``by``, id) descending, the cost depends only on the size of the page. Raises
    ``ValueRefused`` for an invalid cursor.
    """
    return _page(rows, Order(by, cursor_time), descending=True, cursor=cursor, limit=limit)


def sorted_page(
    rows: QuerySet[Row], orders: Mapping[str, Order], sort: str, *, cursor: str | None, limit: int
) -> tuple[list[Row], str | None]:
    """Return a page of ``rows``, and the cursor of the next page or None. ``sort`` is the name of one of ``orders``; a
    ``-`` before the name reverses the direction. One query. Raises ``ValueRefused`` for an invalid cursor."""
    order = orders[sort.removeprefix("-")]
    if order.among:
        newest = rows.order_by(f"-{order.among}", "-pk")[:SORTED_AMONG]
        rows = rows.model._default_manager.filter(pk__in=newest.values("pk"))
    descending = order.descending is not sort.startswith("-")
    return _page(rows, order, descending=descending, cursor=cursor, limit=limit)


def _page(
    rows: QuerySet[Row], order: Order, *, descending: bool, cursor: str | None, limit: int
) -> tuple[list[Row], str | None]:
    if isinstance(order.by, str):
        by, complete = order.by, not rows.model._meta.get_field(order.by).null
    else:
        by, complete = "sort_key", False
        rows = cast("QuerySet[Row]", rows.annotate(sort_key=order.by))
    if cursor is not None:
        rows = rows.filter(_after(rows.model, by, order.parse, cursor, descending=descending, complete=complete))
    # An index is in the order of NULLS FIRST, so NULLS LAST is used only where it is needed.
    key = OrderBy(F(by), descending=descending, nulls_last=None if complete else True)
    found = list(rows.order_by(key, "-pk" if descending else "pk")[: limit + 1])
    if len(found) <= limit:
        return found, None
    last, value = found[limit - 1], getattr(found[limit - 1], by)
    return found[:limit], cursor_make("" if value is None else value, last.pk)


def _after(
    model: type[Model], by: str, parse: Callable[[str], Any], cursor: str, *, descending: bool, complete: bool
) -> Q:
    read_id = uuid.UUID if isinstance(model._meta.pk, UUIDField) else cursor_number
    value, last_id = cursor_parse(cursor, parse if complete else lambda text: parse(text) if text else None, read_id)
    beyond = "lt" if descending else "gt"
    later = Q(**{f"pk__{beyond}": last_id})
    if value is None:
        return Q(**{f"{by}__isnull": True}) & later
    after = Q(**{f"{by}__{beyond}": value}) | Q(**{by: value}) & later
    # The first condition is redundant, but lets the database use the index.
    return Q(**{f"{by}__{beyond}e": value}) & after if complete else after | Q(**{f"{by}__isnull": True})
