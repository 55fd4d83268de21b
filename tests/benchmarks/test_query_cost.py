"""What a query costs as the store grows, beside a bare top-10 statement of pgvector in the same run."""

import json
from typing import Any

import numpy as np
import psycopg
import pytest
from django.db import connection, transaction
from django.test import Client

from memory.embedding import embedder_get
from memory.ingest.bulk import vector_text
from memory.models import prepared
from tests.benchmarks.report import milliseconds, p50, p95, table
from tests.benchmarks.synthetic import question_make, store_clear, store_fill
from tests.cast import cast_make, in_process, secret_of, worker_turn

SIZES = (1_000, 10_000, 100_000)
QUERIES = 200
BARE = "SELECT topic_id FROM memory_topicvector WHERE live ORDER BY embedding <#> %s::vector LIMIT 10"


@pytest.mark.bench
@pytest.mark.django_db(transaction=True)
def test_query_time_hardly_grows_with_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    cast_make(in_process)
    # One client for all: making one loads the middleware, which a server does once.
    client = Client()
    for size in SIZES:
        vectors = store_fill(size, model="instant")
        random = np.random.default_rng(11)
        picked = iter(random.integers(len(vectors), size=10_000))
        monkeypatch.setattr(embedder_get().inner, "embed_query", lambda _text, v=vectors, p=picked: v[next(p)])
        server, stages, statements = _queries(client, random, monkeypatch)
        bare = _bare(vectors, random)
        rows.append([f"{size:,}", p50(server), p95(server), p50(bare), p50(server) / p50(bare), statements, stages])
    table(
        "Query through the whole stack, embedding not counted (ms)",
        ["topics", "p50", "p95", "bare top-10 p50", "ratio", "SQL statements", "stages p50"],
        rows,
    )
    print(f"\np50 at {SIZES[-1]:,} topics is {rows[-1][1] / rows[0][1]:.2f} times that at {SIZES[0]:,}.")
    store_clear()


def _queries(
    client: Client, random: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[float], str, int]:
    stages: dict[str, list[float]] = {}
    statements: list[str] = []

    def ask() -> None:
        body = json.dumps({"q": question_make(random)})
        headers = {"X-API-Key": secret_of("agent")}
        reply = client.post("/v1/query", body, content_type="application/json", headers=headers)
        assert len(reply.json()["candidates"]) == 8
        for part in reply["Server-Timing"].split(", "):
            stage, _, spent = part.partition(";dur=")
            stages.setdefault(stage, []).append(float(spent))

    milliseconds(ask, times=QUERIES, warm_up=30)
    # The server's own measure, from the first middleware to the last: the client of the test does not count.
    totals = stages.pop("total")[-QUERIES:]
    server = [total - spent for total, spent in zip(totals, stages["embedding"][-QUERIES:], strict=True)]

    run_prepared = prepared.rows_prepared

    def counting(sql: str, parameters: Any) -> Any:
        statements.append(sql)
        return run_prepared(sql, parameters)

    def counting_wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        statements.append(sql)
        return execute(sql, params, many, context)

    with monkeypatch.context() as patch, connection.execute_wrapper(counting_wrapper):
        for module in ("recall.probe", "recall.ranking", "recall.bundles", "recall.reinforcement", "policy.effective"):
            patch.setattr(f"memory.{module}.rows_prepared", counting)
        ask()
    shown = ", ".join(f"{stage} {p50(spent[30:]):.2f}" for stage, spent in stages.items() if stage != "total")
    return server, shown, len(statements)


def _bare(vectors: np.ndarray, random: np.random.Generator) -> list[float]:
    with transaction.atomic(), psycopg.ClientCursor(connection.connection) as cursor:

        def ask() -> None:
            cursor.execute(BARE, [vector_text(vectors[random.integers(len(vectors))])])
            cursor.fetchall()

        return milliseconds(ask, times=QUERIES, warm_up=30)


@pytest.mark.bench
@pytest.mark.django_db(transaction=True)
def test_retrievals_leave_the_vectors_alone_and_update_in_place() -> None:
    cast = cast_make(in_process)
    store_fill(5_000, model="instant")
    random = np.random.default_rng(5)
    before = _table_stats()
    for _ in range(40):
        for _ in range(10):
            cast.agent.post("/v1/query", {"q": question_make(random)}).ok()
        worker_turn()
    after = _table_stats()
    rows = [
        [name, *(after[name][at] - before[name][at] for at in range(4))]
        for name in ("memory_vitality", "memory_field", "memory_topic", "memory_topicvector", "memory_topicdocument")
    ]
    table("400 queries and their folding", ["table", "updates", "of them in place (HOT)", "inserts", "deletes"], rows)
    print(f"\nScans of the vector index count as reads; its entries written: {json.dumps(_index_growth())}")
    store_clear()


def _table_stats() -> dict[str, tuple[int, int, int, int]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT relname, n_tup_upd, n_tup_hot_upd, n_tup_ins, n_tup_del FROM pg_stat_user_tables")
        return {name: tuple(numbers) for name, *numbers in cursor.fetchall()}


def _index_growth() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_relation_size('topicvector_hnsw')")
        return {"topicvector_hnsw_bytes": cursor.fetchone()[0]}
