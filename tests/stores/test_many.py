"""Fifty stores are created, used and migrated side by side, and none sees another."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from memory.stores.migrate import stores_migrate
from memory.stores.models import Store
from tests.cast import Caller
from tests.stores.many import NEXT_RELEASE, many_dropped, next_release, store_with_agent

__all__ = ["many_dropped", "next_release"]

STORES, SIDE_BY_SIDE = 50, 4
TITLE = "Only in one store"


@pytest.mark.django_db(transaction=True)
@pytest.mark.thorough
@pytest.mark.usefixtures("many_dropped")
def test_fifty_stores_are_created_used_and_migrated_side_by_side(next_release: Callable[[], None]) -> None:
    def made(name: str) -> tuple[Caller, str]:
        try:
            caller = store_with_agent(name)
            return caller, caller.remember(TITLE)
        finally:
            connection.close()

    def seen(caller: Caller) -> list[str]:
        try:
            return caller.found("Only in")
        finally:
            connection.close()

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        callers, topics = zip(*pool.map(made, (f"store{number}" for number in range(STORES))), strict=True)
        assert list(pool.map(seen, callers)) == [[topic] for topic in topics]

    next_release()
    done: list[int] = []
    stores_migrate(progress=done.append)

    assert sum(done) == STORES + 1
    assert not Store.objects.exclude(version=NEXT_RELEASE).exists()
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        assert list(pool.map(seen, callers)) == [[topic] for topic in topics]
