"""The limit of requests per key and minute."""

import datetime as dt

from django.conf import settings
from django.core.cache import cache

from memory.access.principal import Principal
from memory.core.errors import MemoryProblem
from memory.core.problem_codes import ProblemCode
from memory.stores.current import store_current


class TooManyRequests(MemoryProblem):
    """The caller has to wait (429), for example because a key has used up its minute. ``retry_after`` is in seconds."""

    code = ProblemCode.TOO_MANY_REQUESTS

    def __init__(self, sentence: str, retry_after: int) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


def request_count(principal: Principal, *, now: dt.datetime) -> None:
    """Count one request of ``principal``. No queries: counts are in the cache, and processes with a common cache count
    together.

    Raises ``TooManyRequests`` beyond ``MEMSTATE_REQUESTS_PER_MINUTE`` within one minute of the clock.
    """
    limit: int = settings.MEMSTATE_REQUESTS_PER_MINUTE
    minute = int(now.timestamp() // 60)
    name = f"requests:{store_current()}:{principal.identity}:{minute}"
    cache.add(name, 0, timeout=120)
    try:
        count = cache.incr(name)
    except ValueError:
        # The cache has dropped the entry in between, so the count starts again.
        count = 1
    if count > limit:
        wait = 60 - int(now.timestamp() % 60)
        raise TooManyRequests(f"This key has made {limit} requests in this minute, which is the limit.", wait)
