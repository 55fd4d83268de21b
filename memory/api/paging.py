"""Parameters of routes that return a page, and the limit of rows per page."""

from typing import Annotated

from django.conf import settings
from ninja import Query

from memory.api.parsing import AddressText
from memory.core.cursors import MAX_CURSOR
from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode

Cursor = Annotated[AddressText | None, Query(max_length=300, description="`next` of the previous page.")]
# A cursor with the path of a scope.
LongCursor = Annotated[AddressText | None, Query(max_length=MAX_CURSOR, description="`next` of the previous page.")]
Limit = Annotated[int, Query(ge=1, description="Rows per page.")]


def limit_checked(limit: int) -> int:
    """Return ``limit``. Raises ``ValueRefused`` if it exceeds the largest page."""
    if limit > settings.MEMSTATE_MAX_PAGE_SIZE:
        raise ValueRefused(
            f"`limit` must be at most {settings.MEMSTATE_MAX_PAGE_SIZE}; it is {limit}.",
            code=ProblemCode.TOO_LARGE,
            member="limit",
        )
    return limit
