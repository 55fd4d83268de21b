"""Workers that are killed outright in the middle of an import, and several at once: it ends as if no one had been."""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.models import AuditEvent, ImportedTopic
from memory.transfer.importing import import_start
from memstate_site.folder import CHECKOUT
from tests.cast import cast_make, in_process
from tests.forgetting.shop import policy_put
from tests.seed import SEED
from tests.transfer.shop import derived, emptied, exported
from tests.waits import line_of

pytestmark = pytest.mark.django_db(transaction=True)

# The full variant is MEMSTATE_TEST_KILLS=10.
KILLS = int(os.environ.get("MEMSTATE_TEST_KILLS", "5"))
TOPICS = 400
# A worker is killed before it has done this many statements: some batches of lines.
STATEMENTS = 60

# Forks as the workers do: what is loaded once need not be loaded for each that is killed.
HOST = """
import os, sys, uuid
import django
django.setup()
from django.db import connection
from django.utils import timezone
from memory.transfer import lines
from memory.transfer.work import import_work
from tests.crash.stop_points import kill_at_statement

connection.settings_dict["NAME"] = sys.argv[1]
lines.LINES = 25
for line in sys.stdin:
    verb, word, *statement = line.split()
    if verb == "wait":
        print(os.waitstatus_to_exitcode(os.waitpid(int(word), 0)[1]), flush=True)
        continue
    child = os.fork()
    if child == 0:
        status = 1
        if statement:
            kill_at_statement(connection, int(statement[0]))
        try:
            job = import_work(uuid.UUID(word), clock=timezone.now, seconds=600)
            status = 0 if job.status == "done" else 2
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    print(child, flush=True)
"""


class Host:
    """Starts workers on an import, and tells how they ended."""

    def __init__(self, log: Path) -> None:
        environment = {**os.environ, "MEMSTATE_EMBEDDER": "instant", "DJANGO_SETTINGS_MODULE": "memstate_site.settings"}
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", HOST, str(connection.settings_dict["NAME"])],
                cwd=CHECKOUT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )

    def ask(self, verb: str, *words: object) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(" ".join([verb, *map(str, words)]) + "\n")
        self.process.stdin.flush()
        return int(line_of(self.process))


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    started = Host(tmp_path / "workers.log")
    yield started
    assert started.process.stdin is not None
    assert started.process.stdout is not None
    started.process.stdin.close()
    started.process.wait(30)
    started.process.stdout.close()


def test_an_import_that_is_killed_again_and_again_ends_in_the_same_store(host: Host, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    cast = cast_make(in_process)
    items = [
        {
            "placement": "new_topic",
            "title": f"Guest {n} of the winter feast",
            "salience": 0.01 if n % 3 else 1,
            "created_at": "2026-01-01T00:00:00Z",
            "last_used_at": "2026-01-01T00:00:00Z",
            "fields": [{"name": "mail", "value": f"guest{n}@feast.example"}],
        }
        for n in range(TOPICS)
    ]
    made = [result["topic_id"] for result in cast.operator.post("/v1/ingest/batch", items).ok()["results"]]
    links = [
        {
            "placement": "extend_topic",
            "topic_id": one,
            "edges": [{"to_topic_id": other, "kind": "sits_by"}],
            "fields": [{"name": "partner", "value": "x", "ref_topic_id": other}],
        }
        for one, other in zip(made, reversed(made), strict=True)
    ]
    cast.agent.post("/v1/ingest/batch", links).ok()
    for number in range(30):
        cast.agent.query(f"guest {number}")
    policy_put(cast.operator, topic_count_soft_limit=0, max_archive_share=1.0, prune_after_days=0)
    cast.operator.post("/v1/runs", {"event": "manual", "dry_run": False}).ok()
    before, texts = exported(), derived()
    path = tmp_path / "file.jsonl"
    path.write_bytes(before)
    emptied()
    job = import_start(path, principal=SYSTEM, now=timezone.now())
    killed: list[int] = []
    while len(killed) < KILLS:
        # One worker, or two at once. Each kills itself at a statement.
        workers = [host.ask("work", job.pk, chance.randrange(STATEMENTS)) for _ in range(1 + chance.randrange(2))]
        killed += [host.ask("wait", worker) for worker in workers]
        job.refresh_from_db()
        if job.status != "working":
            break
    print(f"{Counter(killed)[-signal.SIGKILL]} of {len(killed)} workers were killed at work")
    last = [host.ask("work", job.pk) for _ in range(2)]
    assert {host.ask("wait", worker) for worker in last} == {0}, f"seed {SEED}"
    job.refresh_from_db()
    assert (job.status, job.failure, job.done) == ("done", "", job.lines)
    assert exported() == before, f"seed {SEED}"
    assert derived() == texts
    assert {why for counts in job.counts.values() for why in counts} == {"brought"}
    assert sum(counts["brought"] for counts in job.counts.values()) == job.lines - 2
    assert ImportedTopic.objects.filter(job=job).count() == TOPICS
    assert AuditEvent.objects.filter(action="import_done").count() == 1
