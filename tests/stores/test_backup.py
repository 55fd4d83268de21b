"""One store is backed up and restored as docs/operations.md says, while the others stay."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import transaction

from memory.jobs.stores import store_create, store_drop
from memory.stores.current import store_use
from memory.stores.models import Store
from memory.stores.queue import schedules_here
from memstate_site.management.programs import program_run
from tests.cast import Cast
from tests.stores.two import OTHER, THEIRS, cast_there, other_make

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def other(cast: Cast) -> Iterator[Cast]:
    cast.agent.remember("A zebra", values={"kind": "zebra"})
    with transaction.atomic():
        other_make()
    yield cast_there(cast)
    if Store.objects.filter(pk=OTHER).exists():
        store_drop(OTHER, actor="x")


def test_a_store_is_restored_with_its_keys_and_schedules(other: Cast, tmp_path: Path) -> None:
    call_command("policy", "--in-store", OTHER, "set", "cron=30 4 * * *", "--reason", "x")
    found = other.agent.found(THEIRS)
    dump, keys, schedules = (tmp_path / name for name in ("other.sql", "keys.csv", "schedules.csv"))
    ours = "kwargs = '{''store'': ''other''}'"
    program_run("pg_dump", "--data-only", "-n", "store_other", "-f", str(dump))
    program_run(
        "psql",
        *("-c", f"\\copy (SELECT * FROM stores_keystore WHERE store_id = 'other') TO {keys}"),
        *("-c", f"\\copy (SELECT * FROM django_q_schedule WHERE {ours}) TO {schedules}"),
    )
    store_drop(OTHER, actor="x")
    assert other.agent.post("/v1/query", {"q": THEIRS}).status == 401

    store_create(OTHER)
    program_run(
        "psql",
        *("-q", "-o", "/dev/null", "-v", "ON_ERROR_STOP=1", "-1", "-f", str(dump)),
        *("-c", f"DELETE FROM public.django_q_schedule WHERE {ours}"),
        *("-c", f"\\copy public.django_q_schedule FROM {schedules}"),
        *("-c", f"\\copy public.stores_keystore FROM {keys}"),
    )

    assert found
    assert other.agent.found(THEIRS) == found
    other.agent.remember("Another one")
    with store_use(OTHER):
        assert schedules_here().get().cron == "30 4 * * *"
