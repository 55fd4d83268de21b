"""Pages of lists, newest first, for every table with a time and an id."""

import uuid
from typing import TypeVar

from django.db.models import Model, Q, QuerySet

from memory.core.cursors import cursor_make, cursor_parse, cursor_time

Row = TypeVar("Row", bound=Model)


def newest_page(
    rows: QuerySet[Row], *, cursor: str | None, limit: int, by: str = "created_at"
) -> tuple[list[Row], str | None]:
    """Return (page of ``rows``, cursor of the next page or None), ordered by the time ``by`` and the id, a UUID.

    One query. With an index of (``by``, id) descending, its cost depends only on the size of the page. Raises
    ``ValueRefused`` for an invalid cursor.
    """
    rows = rows.order_by(f"-{by}", "-id")
    if cursor is not None:
        at, last_id = cursor_parse(cursor, cursor_time, uuid.UUID)
        # The first condition is redundant, but lets the database use the index.
        rows = rows.filter(Q(**{f"{by}__lte": at}), Q(**{f"{by}__lt": at}) | Q(id__lt=last_id))
    found = list(rows[: limit + 1])
    if len(found) <= limit:
        return found, None
    last = found[limit - 1]
    return found[:limit], cursor_make(getattr(last, by), last.pk)
