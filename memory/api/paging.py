"""Pages: how many rows one may hold."""

from django.conf import settings

from memory.domain.errors import ValueRefused


def limit_checked(limit: int) -> int:
    """Return ``limit``. Raises ``ValueRefused`` if it is more than a page may hold."""
    if limit > settings.MEMSTATE_MAX_PAGE_SIZE:
        raise ValueRefused(f"limit is at most {settings.MEMSTATE_MAX_PAGE_SIZE}; {limit} was asked for.")
    return limit
