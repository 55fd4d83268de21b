"""The limit of requests per key and minute, if the operator has set one."""

import datetime as dt

import structlog
from django.conf import settings
from django.core.cache import BaseCache, cache, caches

from memory.access.principal import Principal
from memory.core.errors import MemoryProblem
from memory.core.problem_codes import ProblemCode
from memory.stores.current import store_current

logger = structlog.get_logger(__name__)


class TooManyRequests(MemoryProblem):
    """The caller has to wait (429), for example because a key has reached its limit. ``retry_after`` is in seconds."""

    code = ProblemCode.TOO_MANY_REQUESTS

    def __init__(self, sentence: str, retry_after: int) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


def request_count(principal: Principal, *, now: dt.datetime) -> None:
    """Count one request of ``principal``, if there is a limit. No query: the counts are in the cache. Processes that
    share a cache share the counts. While the cache does not answer, each process counts alone.

    Raises ``TooManyRequests`` beyond ``MEMSTATE_REQUESTS_PER_MINUTE`` within one minute of the clock.
    """
    limit: int = settings.MEMSTATE_REQUESTS_PER_MINUTE
    if not limit:
        return
    minute = int(now.timestamp() // 60)
    name = f"requests:{store_current()}:{principal.identity}:{minute}"
    try:
        count = _increment(caches["requests"], name)
    except Exception as problem:
        # All errors are caught, because their classes belong to the client of the shared cache, which few installations
        # load.
        logger.warning("shared_cache_failed", problem=str(problem))
        count = _increment(cache, name)
    if count > limit:
        wait = 60 - int(now.timestamp() % 60)
        raise TooManyRequests(f"This key has made {limit} requests in this minute, which is the limit.", wait)


def _increment(counts: BaseCache, name: str) -> int:
    counts.add(name, 0, timeout=120)
    try:
        return counts.incr(name)
    except ValueError:
        # The cache has dropped the entry in between, so the count starts again.
        return 1
