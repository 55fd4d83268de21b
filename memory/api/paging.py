"""Pages: what routes with a list take, and how many rows one may hold."""

from typing import Annotated

from django.conf import settings
from ninja import Query

from memory.api.parsing import AddressText
from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode

Cursor = Annotated[AddressText | None, Query(max_length=300, description="The next of the page before.")]
Limit = Annotated[int, Query(ge=1, description="Rows per page.")]


def limit_checked(limit: int) -> int:
    """Return ``limit``. Raises ``ValueRefused`` if it is more than a page may hold."""
    if limit > settings.MEMSTATE_MAX_PAGE_SIZE:
        raise ValueRefused(
            f"limit is at most {settings.MEMSTATE_MAX_PAGE_SIZE}; {limit} was asked for.",
            code=ProblemCode.LIMIT_TOO_LARGE,
        )
    return limit
