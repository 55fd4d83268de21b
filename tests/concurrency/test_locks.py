"""Advisory locks: one number for one thing, in one place."""

import threading
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, connections, transaction

from memory.erasure.receipts import purges_wait
from memory.models.locks import Lock, lock_try, lock_wait
from tests.cast import Cast

ROOT = Path(settings.BASE_DIR)
# Before there is a schema, `prepare` keeps others from a database that it is setting up.
ALLOWED = {"memory/models/locks.py", "memstate_site/prepare.py"}


def test_advisory_locks_are_taken_in_one_place() -> None:
    found = {
        str(path.relative_to(ROOT))
        for room in ("memory", "memstate_site")
        for path in (ROOT / room).rglob("*.py")
        if "advisory" in path.read_text(encoding="utf-8")
    }
    assert found == ALLOWED


@pytest.mark.django_db(transaction=True)
def test_a_lock_keeps_out_its_own_kind_and_name_alone() -> None:
    tried: dict[str, bool] = {}

    def other() -> None:
        try:
            with transaction.atomic():
                for lock in Lock:
                    tried[lock.name] = lock_try(lock)
                tried["another name"] = lock_try(Lock.PURGE, "name")
        finally:
            connections.close_all()

    with transaction.atomic():
        lock_wait(Lock.PURGE)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(20)
    assert [name for name, given in tried.items() if not given] == ["PURGE"]


@pytest.mark.django_db(transaction=True)
def test_a_policy_is_saved_while_a_purge_is_at_work(http_cast: Cast) -> None:
    said: list[Any] = []

    def save() -> None:
        body = {"values": {"half_life_days": 20}, "reason": "while a purge is at work"}
        said.append(http_cast.operator.put("/v1/policies/", body))

    with transaction.atomic():
        purges_wait()
        thread = threading.Thread(target=save)
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
    assert said[0].status == 200, said[0].body
    connection.close()
