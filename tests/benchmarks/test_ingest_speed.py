"""How much of the embedder's speed ingest keeps, and what it does when embedding costs nothing."""

import time
from collections.abc import Callable

import numpy as np
import pytest

from memory.embedding import embedder_get
from tests.benchmarks.report import table
from tests.benchmarks.synthetic import store_clear
from tests.cast import Caller, Cast

BATCH = 200
MEANINGFUL = 400
INSTANT_BATCHED = 6_000
INSTANT_SINGLE = 600

PLACES = ("Lisbon", "Turku", "Graz", "Cork", "Bergen", "Ghent", "Porto", "Lugano", "Arles", "Tartu")
THINGS = ("the ferry timetable", "a new passport", "the kitchen tap", "Thursday's review", "a wool jacket", "the old flat")


def _texts(count: int) -> list[tuple[str, str]]:
    random = np.random.default_rng(2)
    return [
        (
            f"Note {n} from {PLACES[random.integers(len(PLACES))]}",
            f"Talked about {THINGS[random.integers(len(THINGS))]} and {THINGS[random.integers(len(THINGS))]}; "
            f"the next step is in {random.integers(2, 60)} days, and it may cost {random.integers(10, 900)} euros.",
        )
        for n in range(count)
    ]


def _items(count: int) -> list[dict[str, object]]:
    return [
        {
            "placement": "new_topic", "title": title, "summary": summary, "topic_kind": "observation", "scope": "/bench",
            "fields": [{"name": "place", "value": title.split()[-1]}],
        }
        for title, summary in _texts(count)
    ]  # fmt: skip


def _per_second(count: int, work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return count / (time.perf_counter() - started)


def _batches_send(agent: Caller, items: list[dict[str, object]]) -> None:
    for at in range(0, len(items), BATCH):
        assert agent.post("/v1/ingest/batch", items[at : at + BATCH]).ok()["refused"] == 0


@pytest.mark.bench
@pytest.mark.meaning
@pytest.mark.django_db(transaction=True)
def test_batches_keep_the_embedder_busy(http_cast: Cast) -> None:
    items = _items(MEANINGFUL)
    embedded = [f"{item['title']}\n{item['summary']}\n{item['fields'][0]['value']}" for item in items]  # type: ignore[index]
    embedder = embedder_get()
    embedder.embed_passages(embedded[:32])
    rows = []
    # Alternating, so that a neighbour on the machine slows both.
    for _ in range(3):
        store_clear()
        alone = _per_second(MEANINGFUL, lambda: [embedder.embed_passages(embedded[at : at + BATCH]) for at in (0, BATCH)])
        ingest = _per_second(MEANINGFUL, lambda: _batches_send(http_cast.agent, items))
        rows.append([alone, ingest, f"{ingest / alone:.0%}"])
    table("Topics per second through /v1/ingest/batch", ["embedder alone", "ingest", "share"], rows)
    store_clear()


@pytest.mark.bench
@pytest.mark.django_db(transaction=True)
def test_without_the_cost_of_embedding(http_cast: Cast) -> None:
    items = _items(INSTANT_BATCHED)
    _batches_send(http_cast.agent, items[:BATCH])
    batched = _per_second(INSTANT_BATCHED, lambda: _batches_send(http_cast.agent, items))
    singles = items[:INSTANT_SINGLE]
    single = _per_second(INSTANT_SINGLE, lambda: [http_cast.agent.post("/v1/ingest", item).ok() for item in singles])
    table(
        "Topics per second with an embedder that costs nothing",
        ["batches of 200", "floor", "one by one", "floor"],
        [[batched, 1000, single, 150]],
    )
    store_clear()
