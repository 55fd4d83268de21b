"""Export and import of a large store: how much memory they take, and how fast they are beside raw COPY of the rows."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from memstate_site.folder import CHECKOUT
from tests.benchmarks.ladder_store import store_fill
from tests.benchmarks.report import table
from tests.transfer.shop import emptied
from tests.vacuum import vacuum_analyze

# The full variant; MEMSTATE_BENCH_TOPICS makes it smaller.
TOPICS = int(os.environ.get("MEMSTATE_BENCH_TOPICS", "100000"))
# From here on, memory has to stay as it is.
SETTLED = 5_000
# More topics may add nothing. What varies is what Python keeps of a batch, and on import the cache of folded words: it
# is bounded, and the number in each title of this store fills it with words that come only once.
MAX_GROWTH_MB = 32

_MORE = """
INSERT INTO memory_link (source_id, target_id, kind, created_at, actor)
SELECT id, lag(id, 1, id) OVER (ORDER BY id), 'follows', created_at, 'bench' FROM memory_topic
"""
TABLES = (
    "memory_scope",
    "memory_topic",
    "memory_vitality",
    "memory_topicedit",
    "memory_field",
    "memory_revision",
    "memory_link",
    "memory_auditevent",
    "memory_topicdocument",
    "memory_topicvector",
    "memory_topicmention",
    "memory_duplicatelook",
)

# Says what it has taken at the first moment, once SETTLED topics are through, and at the end.
WORK = """
import json, re, sys, time
import django
django.setup()
from django.db import connection
from django.utils import timezone
from pathlib import Path
from memory.access.principal import SYSTEM
from memory.transfer.export import store_export
from memory.transfer.importing import import_start
from memory.transfer.work import import_work

name, verb, path, settled = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
connection.settings_dict["NAME"] = name
# Of this program alone: what getrusage tells begins with what the tests have taken.
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
told = {"before": peak()}
began = time.perf_counter()
if verb == "export":
    with path.open("wb") as file:
        for number, line in enumerate(store_export(principal=SYSTEM)):
            file.write(line)
            if number == settled:
                told["settled"] = peak()
else:
    # The check has a phase of its own, and both have to be flat: each is measured where it has settled.
    size = path.stat().st_size
    def tick(done, total):
        if done > size * settled / int(sys.argv[5]):
            told.setdefault("settled", peak())
    job = import_start(path, principal=SYSTEM, now=timezone.now(), progress=tick)
    told["checked"], told["check_seconds"] = peak(), time.perf_counter() - began
    began = time.perf_counter()
    def tock(done, total):
        if done > size * settled / int(sys.argv[5]):
            told.setdefault("working", peak())
    job = import_work(job.pk, clock=timezone.now, seconds=1e9, progress=tock)
    assert job.status == "done", job.failure
told["end"], told["seconds"] = peak(), time.perf_counter() - began
print(json.dumps(told))
"""


def worked(verb: str, path: Path) -> Any:
    """Do it in a process of its own, and return what that has measured."""
    environment = {**os.environ, "MEMSTATE_EMBEDDER": "instant", "DJANGO_SETTINGS_MODULE": "memstate_site.settings"}
    words = [str(connection.settings_dict["NAME"]), verb, str(path), str(SETTLED), str(TOPICS)]
    done = subprocess.run(
        [sys.executable, "-c", WORK, *words],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.bench
@pytest.mark.django_db(transaction=True)
def test_memory_is_flat_and_speed_is_that_of_a_few_copies(tmp_path: Path) -> None:
    store_fill(TOPICS)
    with connection.cursor() as cursor:
        cursor.execute(_MORE)
    vacuum_analyze()
    path = tmp_path / "store.jsonl"
    out = worked("export", path)
    emptied()
    came = worked("import", path)
    rows, copied_out, copied_in = _copied(tmp_path)

    def row(name: str, seconds: float, raw: float, settled: float, end: float) -> list[object]:
        return [name, f"{rows / seconds:,.0f}", f"{rows / raw:,.0f}", seconds / raw, settled, end]

    table(
        f"{TOPICS:,} topics, {rows:,} rows, {path.stat().st_size / 2**20:,.0f} MB",
        ["", "rows a second", "raw COPY", "times slower", f"peak at {SETTLED:,} topics, MB", "peak at the end, MB"],
        [
            row("export", out["seconds"], copied_out, out["settled"], out["end"]),
            row("check", came["check_seconds"], copied_in, came["settled"], came["checked"]),
            row("import", came["seconds"], copied_in, came["working"], came["end"]),
        ],
    )
    assert out["end"] - out["settled"] < MAX_GROWTH_MB
    assert came["checked"] - came["settled"] < MAX_GROWTH_MB
    assert came["end"] - came["working"] < MAX_GROWTH_MB
    again = tmp_path / "again.jsonl"
    worked("export", again)
    assert again.read_bytes() == path.read_bytes()


def _copied(folder: Path) -> tuple[int, float, float]:
    """Return how many rows the store has, and how long it takes to copy them out and in again, with nothing else."""
    rows, out, into = 0, 0.0, 0.0
    with connection.cursor() as cursor:
        for name in TABLES:
            began = time.perf_counter()
            with (folder / name).open("wb") as file, cursor.copy(f"COPY {name} TO STDOUT") as copy:
                for block in copy:
                    file.write(block)
            out += time.perf_counter() - began
            cursor.execute(f"SELECT count(*) FROM {name}")
            rows += cursor.fetchone()[0]
        emptied()
        for name in TABLES:
            began = time.perf_counter()
            with (folder / name).open("rb") as file, cursor.copy(f"COPY {name} FROM STDIN") as copy:
                while block := file.read(65536):
                    copy.write(block)
            into += time.perf_counter() - began
    return rows, out, into
