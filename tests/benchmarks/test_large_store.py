"""What one store costs at ten thousand topics and at ``MEMSTATE_BENCH_TOPICS``: query, ingest, export, and bytes."""

import os
from pathlib import Path

import numpy as np
import psutil
import pytest
from django.db import connection
from django.test import Client

from memory.access.principal import SYSTEM
from memory.embedding import embedder_get
from memory.transfer.export import store_export
from tests.benchmarks.report import milliseconds, p50, p95, table
from tests.benchmarks.synthetic import TABLES, store_clear, store_fill
from tests.benchmarks.test_ingest_speed import BATCH, _items
from tests.benchmarks.test_query_cost import _bare, _queries
from tests.cast import Caller, cast_make, in_process

SMALL = 10_000
TOPICS = int(os.environ.get("MEMSTATE_BENCH_TOPICS", "100000"))
SINGLES, BATCHES = 200, 10
# Lines of the export, after which its memory must stay as it is.
SETTLED = 5_000


@pytest.mark.bench
@pytest.mark.django_db(transaction=True)
def test_a_store_as_it_grows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    agent = cast_make(in_process).agent
    client = Client()
    queries, writes, exports, bytes_per_topic = [], [], [], []
    for size in dict.fromkeys((min(SMALL, TOPICS), TOPICS)):
        vectors = store_fill(size, model="instant")
        random = np.random.default_rng(11)
        picked = iter(random.integers(size, size=10_000))
        with monkeypatch.context() as patch:
            patch.setattr(embedder_get().inner, "embed_query", lambda _text, v=vectors, p=picked: v[next(p)])
            server, _stages, statements = _queries(client, random, monkeypatch)
        bare = _bare(vectors, random)
        queries.append([f"{size:,}", p50(server), p95(server), p50(bare), p50(server) / p50(bare), statements])
        bytes_per_topic.append([f"{size:,}", *_bytes(size)])
        exports.append([f"{size:,}", *_exported(tmp_path / "store.jsonl")])
        writes.append([f"{size:,}", *_written(agent)])
    table(
        "Query, embedding not counted (ms)",
        ["topics", "p50", "p95", "plain top-10 p50", "ratio", "SQL statements"],
        queries,
    )
    table("Ingest with an embedder that costs nothing (ms a topic)", ["topics", "one by one", f"in {BATCH}s"], writes)
    table(
        "Export (memory of the process, MB)", ["topics", "MB written", f"at {SETTLED:,} lines", "at the end"], exports
    )
    table("Bytes a topic, with indexes", ["topics", "vectors", "words", "all", "MB in all"], bytes_per_topic)
    store_clear()


def _written(agent: Caller) -> tuple[float, float]:
    items = _items(SINGLES + BATCH * BATCHES)
    singles, rest = iter(items[:SINGLES]), items[SINGLES:]
    batches = iter([rest[at : at + BATCH] for at in range(0, len(rest), BATCH)])
    one = milliseconds(lambda: agent.post("/v1/ingest", next(singles)).ok(), times=SINGLES - 10)
    many = milliseconds(lambda: agent.post("/v1/ingest/batch", next(batches)).ok(), times=BATCHES - 2, warm_up=2)
    return p50(one), p50(many) / BATCH


def _exported(path: Path) -> tuple[float, float, float]:
    """Return (size of the file, memory after ``SETTLED`` lines, memory at the end) in MB."""
    process, settled = psutil.Process(), 0.0
    with path.open("wb") as file:
        for number, line in enumerate(store_export(principal=SYSTEM)):
            file.write(line)
            if number == SETTLED:
                settled = process.memory_info().rss / 2**20
    return path.stat().st_size / 2**20, settled, process.memory_info().rss / 2**20


def _bytes(topics: int) -> tuple[float, float, float, float]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT t, pg_total_relation_size(t::regclass) FROM unnest(%s::text[]) t", [list(TABLES)])
        sizes = dict(cursor.fetchall())
    whole = sum(sizes.values())
    words = sizes["memory_topicdocument"] + sizes["memory_lexeme"]
    return sizes["memory_topicvector"] / topics, words / topics, whole / topics, whole / 2**20
