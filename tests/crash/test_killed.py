"""A real installation under load, whose processes are killed outright again and again: nothing is left half done."""

import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from memstate_site.postgres.account import server_account
from memstate_site.postgres.address import embedded_address
from memstate_site.postgres.place import socket_folder_remove
from tests.postgres_process import server_pid
from tests.seed import SEED
from tests.site.conftest import Installation, working_folder  # noqa: F401 - a fixture
from tests.waits import eventually

# The full variant is MEMSTATE_TEST_KILLS=10.
KILLS = int(os.environ.get("MEMSTATE_TEST_KILLS", "5"))
WRITERS = 3
ITEMS = 30

AGENT_KEY = "agent-key-of-the-crash-tests"
OPERATOR_KEY = "operator-key-of-the-crash-tests"


@contextlib.contextmanager
def installed(working_folder: Path, **environment: str) -> Iterator[Installation]:  # noqa: F811
    """A first start on an empty folder, as anybody's: what is acknowledged has to be on the disk."""
    parent = working_folder / f"crash-{uuid.uuid4().hex[:8]}"
    parent.mkdir(mode=0o711)
    folder = parent / "data"
    running = Installation(
        folder,
        MEMSTATE_API_KEY=AGENT_KEY,
        MEMSTATE_ADMIN_KEY=OPERATOR_KEY,
        MEMSTATE_ADMIN_PASSWORD="Sesame-open-the-crash-tests-1",
        # What was returned is compared with what was counted.
        MEMSTATE_REINFORCE_MIN_RELEVANCE="0",
        **environment,
    )
    try:
        yield running.start()
    finally:
        running.stop()
        socket_folder_remove(folder, server_account())
        shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture
def installation(working_folder: Path) -> Iterator[Installation]:  # noqa: F811
    with installed(working_folder) as running:
        yield running


def ask(port: int, path: str, body: Any, **headers: str) -> tuple[int, Any]:
    """Send a request; raises what a client sees when the server dies under it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(
            "POST", path, json.dumps(body), {"Content-Type": "application/json", "X-API-Key": AGENT_KEY, **headers}
        )
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


class Client:
    """Sends batches and questions until it is stopped, and notes what was acknowledged."""

    def __init__(self, port: int, counter: str) -> None:
        self.port = port
        self.counter = counter
        self.stop = threading.Event()
        self.acknowledged: dict[str, dict[str, Any]] = {}
        self.sent: dict[str, list[dict[str, Any]]] = {}
        self.answered = 0
        self.lost = 0
        self.unexpected: list[Any] = []

    def batch(self, name: str) -> list[dict[str, Any]]:
        """New topics that lean on each other, and a new version of a field that everybody writes."""
        ids = [str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name} {place}")) for place in range(ITEMS - 1)]
        return [
            {
                "placement": "new_topic",
                "topic_id": topic_id,
                "title": f"{name} topic {place}",
                "summary": f"batch {name}",
                "categories": [name],
                "fields": [
                    {"name": "first", "value": f"value {place}"},
                    {"name": "second", "value": "2", "field_type": "int"},
                ],
                "edges": [{"to_topic_id": ids[place - 1], "kind": "after"}] if place else [],
            }
            for place, topic_id in enumerate(ids)
        ] + [{"placement": "version_field", "topic_id": self.counter, "fields": [{"name": "state", "value": name}]}]

    def write(self, number: int) -> None:
        turn = 0
        while not self.stop.is_set():
            turn += 1
            name = f"w{number}t{turn}"
            body = self.sent[name] = self.batch(name)
            # Every third batch carries no key: whoever gets no answer cannot know, and does not send it again.
            headers = {} if turn % 3 == 0 else {"Idempotency-Key": name}
            while True:
                try:
                    status, reply = ask(self.port, "/v1/ingest/batch", body, **headers)
                except (OSError, http.client.HTTPException, ValueError):
                    status, reply = 0, None
                if status == 200:
                    self.acknowledged[name] = reply
                    break
                if status not in (0, 503):
                    self.unexpected.append((name, status, reply))
                    break
                self.lost += 1
                if not headers:
                    break
                time.sleep(0.1)

    def question(self) -> None:
        turn = 0
        while not self.stop.is_set():
            turn += 1
            body = {"q": f"value {turn % 30} of topic {turn}", "top_k": 5}
            try:
                status, reply = ask(self.port, "/v1/query", body)
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.1)
                continue
            if status == 200:
                self.answered += 1
            elif status != 503:
                self.unexpected.append((body, status, reply))


def killable(installation: Installation, victim: str) -> psutil.Process:
    """The process that plays the victim now."""
    match victim:
        case "web server":
            return installation.child("gunicorn")
        case "web process":
            return installation.child("gunicorn").children()[0]
        case "worker":
            return installation.child("qcluster")
        case "worker process":
            return random.choice(installation.child("qcluster").children(recursive=True))
        case "database":
            pid = server_pid(installation.folder)
            assert pid is not None
            return psutil.Process(pid)
        case "database session":
            pid = server_pid(installation.folder)
            assert pid is not None
            sessions = [child for child in psutil.Process(pid).children() if "memstate" in " ".join(child.cmdline())]
            return random.choice([child for child in sessions if "[local]" in " ".join(child.cmdline())] or sessions)
    raise LookupError(victim)


def kill(installation: Installation, victim: str) -> None:
    for _attempt in range(50):
        with contextlib.suppress(psutil.Error, LookupError, IndexError):
            killable(installation, victim).send_signal(signal.SIGKILL)
            return
        time.sleep(0.1)
    raise AssertionError(f"There was no {victim} to kill.")


VICTIMS = ["database", "web server", "worker", "database session", "web process", "worker process"]


def store_connect(address: str) -> psycopg.Connection[Any]:
    """Connect to the store ``main`` of an installation."""
    return psycopg.connect(address, options="-c search_path=store_main,public")


def rows(address: str, sql: str, *parameters: Any) -> list[Any]:
    with store_connect(address) as connection:
        return connection.execute(sql, parameters).fetchall()


def number(address: str, sql: str, *parameters: Any) -> int:
    return int(rows(address, sql, *parameters)[0][0])


# The text of each topic, put together anew from its row and the current values of its fields.
TEXTS = """
SELECT t.id, concat_ws(E'\\n', nullif(t.title, ''), nullif(t.summary, ''), (
    SELECT string_agg(r.value, E'\\n' ORDER BY f.created_at, f.id) FROM memory_field f
    JOIN memory_revision r ON r.field_id = f.id AND r.seq = f.last_seq
    WHERE f.topic_id = t.id AND r.value <> '')) AS text
FROM memory_topic t
"""


def assert_every_topic_is_whole(address: str) -> None:
    topics = number(address, "SELECT count(*) FROM memory_topic")
    for table in ("memory_vitality", "memory_topicvector", "memory_topicdocument"):
        assert number(address, f"SELECT count(*) FROM {table} JOIN memory_topic t ON t.id = topic_id") == topics, table
    assert not rows(
        address,
        f"""SELECT x.id FROM ({TEXTS}) x JOIN memory_topicdocument d ON d.topic_id = x.id
            JOIN memory_topicvector v ON v.topic_id = x.id
            WHERE d.document <> to_tsvector('english', x.text) OR v.embedding IS NULL OR NOT d.live OR NOT v.live
               OR v.text_hash <> encode(sha256(convert_to(x.text, 'UTF8')), 'hex')""",
    )
    assert not rows(
        address,
        """SELECT f.id FROM memory_field f LEFT JOIN memory_revision r ON r.field_id = f.id
           GROUP BY f.id HAVING count(r.id) <> f.last_seq OR max(r.seq) <> f.last_seq OR min(r.seq) <> 1""",
    )


def assert_every_batch_is_whole(address: str, client: Client) -> None:
    stored = {
        name: tuple(counts)
        for name, *counts in rows(
            address,
            """SELECT t.summary, count(*),
                      sum((SELECT count(*) FROM memory_field f WHERE f.topic_id = t.id)),
                      sum((SELECT count(*) FROM memory_revision r JOIN memory_field f ON f.id = r.field_id
                           WHERE f.topic_id = t.id)),
                      sum((SELECT count(*) FROM memory_link l WHERE l.source_id = t.id)),
                      sum((SELECT count(*) FROM memory_auditevent a WHERE a.topic_id = t.id)),
                      (SELECT count(*) FROM memory_revision r JOIN memory_field f ON f.id = r.field_id
                       WHERE f.topic_id = %s AND r.value = substr(t.summary, 7))
               FROM memory_topic t WHERE t.summary LIKE 'batch %%' GROUP BY t.summary""",
            client.counter,
        )
    }
    made = ITEMS - 1
    whole = (made, 2 * made, 2 * made, made - 1, made, 1)
    for name in client.sent:
        present = stored.pop(f"batch {name}", None)
        assert present == whole or (present is None and name not in client.acknowledged), (name, present)
        if present is None:
            assert not number(address, "SELECT count(*) FROM memory_revision WHERE value = %s", name)
    assert not stored
    for name, reply in client.acknowledged.items():
        assert (reply["accepted"], reply["refused"]) == (ITEMS, 0), name
    # What was acknowledged is there under the very ids that were handed out.
    handed_out = [
        revision
        for reply in client.acknowledged.values()
        for result in reply["results"]
        for revision in result["version_ids"].values()
    ]
    assert len(handed_out) == len(set(handed_out))
    assert number(address, "SELECT count(*) FROM memory_revision WHERE id = ANY(%s::uuid[])", handed_out) == len(
        handed_out
    )


def assert_every_access_is_folded_once(address: str) -> None:
    assert not number(address, "SELECT count(*) FROM memory_accesslog WHERE folded_at IS NULL OR counted IS NULL")
    for table, key, ids in (("memory_vitality", "topic_id", "topic_ids"), ("memory_field", "id", "field_ids")):
        assert not rows(
            address,
            f"""SELECT coalesce(row.{key}, x.id), row.retrieval_count, x.times FROM {table} row
                FULL JOIN (SELECT hit.id, count(*) AS times FROM memory_accesslog a
                           CROSS JOIN LATERAL unnest(a.{ids}) AS hit (id) WHERE a.counted GROUP BY hit.id) x
                  ON x.id = row.{key}
                WHERE coalesce(row.retrieval_count, 0) <> coalesce(x.times, 0)""",
        ), table


def assert_every_word_is_counted_once(address: str) -> None:
    counted = dict(rows(address, "SELECT word, documents FROM memory_lexeme WHERE documents <> 0"))
    assert counted == dict(
        rows(address, "SELECT word, ndoc FROM ts_stat('SELECT document FROM memory_topicdocument WHERE live')")
    )
    assert rows(address, "SELECT documents FROM memory_corpustotals") == rows(
        address, "SELECT count(*) FROM memory_topicdocument WHERE live"
    )


def test_whatever_is_killed_whenever_nothing_is_half_done(installation: Installation) -> None:
    chance = random.Random(SEED)
    print(f"MEMSTATE_TEST_SEED={SEED}")
    eventually(installation.works, 60)
    status, reply = ask(
        installation.port,
        "/v1/ingest",
        {"placement": "new_topic", "title": "Counter", "fields": [{"name": "state", "value": "start"}]},
    )
    assert status == 200
    client = Client(installation.port, reply["topic_id"])
    jobs: list[Callable[[], None]] = [lambda number=number: client.write(number) for number in range(WRITERS)]
    threads = [threading.Thread(target=job, daemon=True) for job in [*jobs, client.question]]
    for thread in threads:
        thread.start()
    order = [VICTIMS[turn % len(VICTIMS)] for turn in range(KILLS)]
    for victim in order:
        # At least one batch goes through in between, and the kill comes at any moment of another one.
        before = len(client.acknowledged)
        eventually(lambda before=before: len(client.acknowledged) > before, 60)
        time.sleep(chance.uniform(0.0, 0.4))
        kill(installation, victim)
    before = len(client.acknowledged)
    eventually(lambda: len(client.acknowledged) > before + WRITERS, 60)
    client.stop.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    eventually(installation.works, 60)
    assert not client.unexpected

    address = embedded_address(installation.folder)
    waiting = """SELECT (SELECT count(*) FROM memory_accesslog WHERE folded_at IS NULL)
                      + (SELECT count(*) FROM memory_topicdocument WHERE uncounted)"""
    eventually(lambda: number(address, waiting) == 0, 90)
    assert_every_topic_is_whole(address)
    assert_every_batch_is_whole(address, client)
    assert_every_access_is_folded_once(address)
    assert_every_word_is_counted_once(address)
    unknown = len(client.sent) - len(client.acknowledged)
    print(
        f"{KILLS} kills ({', '.join(order)}); {len(client.acknowledged)} batches acknowledged, {client.lost} answers "
        f"lost, {unknown} batches of unknown fate, {client.answered} questions answered, "
        f"{number(address, 'SELECT count(*) FROM memory_accesslog')} accesses folded"
    )
    # The test means something only if the kills hit work and work went on.
    assert client.lost > 0
    assert client.answered > 0
    assert number(address, "SELECT count(*) FROM memory_accesslog WHERE counted") > 0
