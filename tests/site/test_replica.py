"""A streaming replica of a real installation: what it answers, and what happens when it is away or behind."""

import http.client
import json
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from memstate_site.postgres.account import Account, server_account
from memstate_site.postgres.binaries import binaries_for
from tests.session import processes_that_last
from tests.site.conftest import Installation
from tests.waits import eventually

KEY = "a-key-for-the-replica-tests"
OPERATOR = "an-operator-key-for-the-replica-tests"
LAG = "X-MemState-Replica-Lag"
EVENTUAL = {"X-MemState-Consistency": "eventual"}
STRONG = {"X-MemState-Consistency": "strong"}


class Server:
    """A PostgreSQL server of one's own in a folder."""

    def __init__(self, folder: Path, account: Account) -> None:
        self.folder, self.account = folder, account
        self.programs = binaries_for(account).folder / "bin"
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        account.give(folder)

    @property
    def address(self) -> str:
        return f"postgresql://memstate@/postgres?host={quote(str(self.folder), safe='')}"

    def program(self, name: str, *arguments: str) -> None:
        subprocess.run(
            [self.programs / name, *arguments],
            cwd=self.folder,
            check=True,
            stdout=subprocess.DEVNULL,
            **self.account.popen_options(),
            timeout=60,
        )

    def start(self) -> None:
        options = {"listen_addresses": "", "unix_socket_directories": str(self.folder), "port": "5432", "fsync": "off"}
        self.process = subprocess.Popen(
            [self.programs / "postgres", "-D", "data", *(f"--{name}={value}" for name, value in options.items())],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self.account.popen_options(),
        )
        eventually(self.answers)

    def answers(self) -> bool:
        try:
            return self.run("SELECT 1") == 1
        except psycopg.OperationalError:
            return False

    def run(self, statement: str) -> Any:
        with psycopg.connect(self.address, autocommit=True) as connection:
            row = connection.execute(statement).fetchone()
            assert row is not None
            return row[0]

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(30)
            self.process = None


@dataclass
class Running:
    """An installation whose database is ``primary``, and which names ``replica``."""

    installation: Installation
    primary: Server
    replica: Server


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """Everything but the replica runs; that does not exist yet."""
    place = Path(tempfile.mkdtemp(prefix="memstate-replica-"))
    place.chmod(0o755)
    account = server_account()
    primary, replica = Server(place / "primary", account), Server(place / "replica", account)
    primary.program("initdb", "-D", "data", "-U", "memstate", "-A", "trust", "--no-sync")
    primary.start()
    data = place / "store"
    data.mkdir()
    settings = {"DATABASE_URL": primary.address, "DATABASE_REPLICA_URL": replica.address}
    installation = Installation(
        data, MEMSTATE_API_KEY=KEY, MEMSTATE_ADMIN_KEY=OPERATOR, MEMSTATE_REPLICA_MAX_LAG="3", **settings
    ).start()
    try:
        yield Running(installation, primary, replica)
    finally:
        installation.stop()
        replica.kill()
        primary.kill()
        shutil.rmtree(place, ignore_errors=True)


Reply = tuple[int, Any, float | None]


@pytest.fixture(scope="module")
def send(running: Running) -> Callable[..., Reply]:
    """Send a request; return status, JSON and the lag of the replica, None if the primary has answered."""

    def send(method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", running.installation.port, timeout=30)
        content = None if body is None else json.dumps(body)
        connection.request(
            method, path, content, {"X-API-Key": KEY, "Content-Type": "application/json", **(headers or {})}
        )
        reply = connection.getresponse()
        lag = reply.getheader(LAG)
        value = json.loads(reply.read())
        connection.close()
        return reply.status, value, None if lag is None else float(lag)

    return send


def ingest(send: Callable[..., Reply], title: str) -> str:
    item = {"placement": "new_topic", "title": title, "summary": f"{title} is noted.", "scope": "/replica"}
    status, reply, lag = send("POST", "/v1/ingest", item)
    assert (status, lag) == (200, None)
    return str(reply["topic_id"])


def ask(send: Callable[..., Reply], question: str, headers: dict[str, str] | None = None) -> tuple[list[str], bool]:
    status, reply, lag = send("POST", "/v1/query", {"q": question, "scope": "/replica"}, headers)
    assert status == 200, reply
    return [each["topic_id"] for each in reply["candidates"]], lag is not None


def recorded(running: Running) -> int:
    return int(running.primary.run("SELECT count(*) FROM store_main.memory_accesslog"))


def test_without_its_replica_the_primary_answers(send: Callable[..., Reply]) -> None:
    topic = ingest(send, "Lantern")
    assert ask(send, "Lantern", EVENTUAL) == ([topic], False)
    status, page, lag = send("GET", "/v1/topics")
    assert (status, lag) == (200, None)
    assert topic in {each["topic_id"] for each in page["items"]}


def test_a_replica_answers_lists_and_queries_that_allow_it(running: Running, send: Callable[..., Reply]) -> None:
    running.replica.program("pg_basebackup", "-D", "data", "-R", "-c", "fast", "-d", running.primary.address)
    with processes_that_last():
        running.replica.start()
    topic = ingest(send, "Compass")

    # The list reads there once the installation has tried again and the replica has caught up.
    def listed_there() -> bool:
        _, page, lag = send("GET", "/v1/topics")
        return lag is not None and topic in {each["topic_id"] for each in page["items"]}

    eventually(listed_there)
    before = recorded(running)
    assert ask(send, "Compass", EVENTUAL) == (ask(send, "Compass")[0], True)
    # Both queries are recorded, on the primary.
    assert recorded(running) == before + 2
    assert ask(send, "Compass", STRONG)[1] is False
    assert send("GET", "/v1/topics", headers=STRONG)[2] is None
    status, preview, lag = send("POST", "/v1/policies/preview", {"scope": "/replica"}, {"X-API-Key": OPERATOR})
    assert (status, preview["active"]) == (200, 2)
    assert lag is not None
    assert send("GET", f"/v1/topics/{topic}")[2] is None


def test_a_replica_that_is_behind_is_reported_apart_and_then_left_alone(
    running: Running, send: Callable[..., Reply]
) -> None:
    running.replica.run("SELECT pg_wal_replay_pause()::text")
    try:
        topic = ingest(send, "Sextant")
        assert topic in ask(send, "Sextant")[0]
        found, there = ask(send, "Sextant", EVENTUAL)
        assert topic not in found or not there
        # Beyond the limit, the primary answers, and so nothing is missing.
        eventually(lambda: not ask(send, "Sextant", EVENTUAL)[1])
        assert topic in ask(send, "Sextant", EVENTUAL)[0]
    finally:
        running.replica.run("SELECT pg_wal_replay_resume()::text")
    eventually(lambda: ask(send, "Sextant", EVENTUAL)[1])
    assert topic in ask(send, "Sextant", EVENTUAL)[0]


def test_a_replica_that_is_killed_is_not_missed(running: Running, send: Callable[..., Reply]) -> None:
    eventually(lambda: send("GET", "/v1/topics")[2] is not None)
    running.replica.kill()
    for _ in range(5):
        status, page, lag = send("GET", "/v1/topics")
        assert (status, lag) == (200, None)
        assert page["items"]
        assert ask(send, "Compass", EVENTUAL)[1] is False
