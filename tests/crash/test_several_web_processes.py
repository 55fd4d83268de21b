"""Three web processes behind one database hold together what one holds alone, and one of them may be killed.

Each process is asked over connections that it has accepted, so that every request reaches the one that is meant. What
processes cache (keys, stores, policies) they have read before each test.
"""

import contextlib
import http.client
import queue
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import settings as site
from fakeredis import TcpFakeServer

from memory.access.keys import key_create
from memory.jobs import tasks
from memory.models import AccessLog, ApiKey, AuditEvent, Field, PolicyVersion, Revision, Topic
from tests.cast import Answer, Caller, Cast, Send, cast_make, cast_over, over_connection, worker_turn
from tests.concurrency.test_runs_together import assert_archived_once, deadlocks, old_topics, saliences
from tests.concurrency.test_writers import at_once
from tests.console.people import account_make, client_of
from tests.console.test_keys import secret_in
from tests.crash.test_killed import assert_every_access_is_folded_once
from tests.seed import SEED
from tests.waits import eventually, turns_until_done
from tests.web_server import PATIENCE, WebServer, database_address

# More kills find nothing new, and each costs the start of a process.
KILLS = 2
# Requests to one process at the same time.
TOGETHER = 4
REQUESTS_PER_MINUTE, SIGN_IN_ATTEMPTS = 12, 3

Fleet = list[Cast]


@contextlib.contextmanager
def reaching(server: WebServer, *, together: int = TOGETHER) -> Iterator[dict[int, Send]]:
    """Return for each process, by its number, a way to send up to ``together`` requests at once to it alone."""
    workers = {worker.pid: worker for worker in server.workers()}
    free: dict[int, queue.SimpleQueue[http.client.HTTPConnection]] = {pid: queue.SimpleQueue() for pid in workers}

    def send(pid: int, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        connection = free[pid].get(timeout=PATIENCE)
        try:
            return over_connection(connection, method, path, body, headers)
        finally:
            free[pid].put(connection)

    with contextlib.ExitStack() as kept:

        def connect() -> bool:
            """Open a connection, and keep it if the process that took it needs one. Return whether all have enough."""
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
            assert over_connection(connection, "GET", "/livez", None, {}).status == 200
            # Otherwise a connection that the server has closed would be opened again, to any process.
            connection.auto_open = 0
            port = connection.sock.getsockname()[1]
            kept.callback(connection.close)
            for pid, worker in workers.items():
                if free[pid].qsize() < together and any(
                    each.raddr and each.raddr.port == port for each in worker.net_connections("tcp")
                ):
                    free[pid].put(connection)
                    break
            else:
                connection.close()
            return all(connections.qsize() >= together for connections in free.values())

        eventually(connect, PATIENCE)
        yield {pid: partial(send, pid) for pid in workers}


@contextlib.contextmanager
def fleet_of(server: WebServer) -> Iterator[Fleet]:
    """Return the cast over each process of ``server``."""
    cast_make(server.send)
    with reaching(server) as ways:
        fleet = [cast_over(send) for send in ways.values()]
        for cast in fleet:
            for caller in (cast.agent, cast.operator):
                caller.get("/v1/policies/").ok()
        yield fleet


@pytest.fixture(scope="module")
def server(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    log = tmp_path_factory.mktemp("web") / "log"
    # What was returned is compared with what was counted.
    with WebServer(log, processes=3, MEMSTATE_REINFORCE_MIN_RELEVANCE="0") as running:
        eventually(lambda: len(running.workers()) == 3, PATIENCE)
        yield running
        assert "Traceback" not in log.read_text()


@pytest.fixture
def fleet(transactional_db: None, server: WebServer) -> Iterator[Fleet]:
    with fleet_of(server) as casts:
        yield casts


def everywhere(fleet: Fleet, send: Callable[[Cast], Answer]) -> list[Answer]:
    """Send a request to all processes at the same time, several times to each."""
    return at_once([partial(send, cast) for cast in fleet for _time in range(TOGETHER)])


def form_send(caller: Caller, path: str, *, session: str = "", **form: str) -> Answer:
    """Send a form of the console as a browser does."""
    token = "t" * 32
    cookies = f"{site.CSRF_COOKIE_NAME}={token}; {site.SESSION_COOKIE_NAME}={session}"
    body = urlencode({"csrfmiddlewaretoken": token, **form}).encode()
    return caller.post(
        path, body=body, headers={"Content-Type": "application/x-www-form-urlencoded", "Cookie": cookies}
    )


# --- Keys ---


def test_a_key_made_or_revoked_through_one_process_is_so_for_all_at_their_next_request(fleet: Fleet) -> None:
    session = client_of(account_make("administrator")).cookies[site.SESSION_COOKIE_NAME].value

    def asked(secret: str) -> set[str]:
        return {answer.code for cast in fleet if (answer := Caller(cast.anonymous.send, secret).get("/v1/topics"))}

    for turn, cast in enumerate(fleet):
        form = {"once": str(uuid.uuid4()), "name": f"key {turn}", "role": "agent", "reason": "a test"}
        made = form_send(cast.anonymous, "/keys/new/", session=session, **form)
        assert made.status == 200
        secret = secret_in(made.text)
        for other in fleet:
            Caller(other.anonymous.send, secret).get("/v1/topics").ok()
        revoke = f"/keys/{ApiKey.objects.get(name=form['name']).pk}/revoke/"
        assert form_send(fleet[turn - 1].anonymous, revoke, session=session, reason="a test").status == 302
        assert asked(secret) == {"key-revoked"}
    # That a key was unknown is not remembered either.
    assert asked("ms_made-by-a-command") == {"key-unknown"}
    key_create(name="late", role="agent", secret="ms_made-by-a-command")
    for cast in fleet:
        Caller(cast.anonymous.send, "ms_made-by-a-command").get("/v1/topics").ok()


# --- Limits ---


@pytest.fixture(scope="module")
def redis() -> Iterator[str]:
    """The address of a Redis."""
    with TcpFakeServer(("127.0.0.1", 0)) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"redis://127.0.0.1:{running.server_address[1]}/0"
        running.shutdown()
        thread.join(60)


@pytest.fixture(scope="module", params=["shared cache", "no shared cache"])
def limited(
    request: pytest.FixtureRequest, django_db_setup: None, redis: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebServer]:
    settings = {
        "MEMSTATE_REQUESTS_PER_MINUTE": str(REQUESTS_PER_MINUTE),
        "MEMSTATE_SIGN_IN_ATTEMPTS": str(SIGN_IN_ATTEMPTS),
        "MEMSTATE_EMBEDDER": "tests.embedding.test_allowance.Costly",
        "MEMSTATE_EMBEDDING_SECONDS_PER_KEY": "1",
        **({"MEMSTATE_CACHE_URL": redis} if request.param == "shared cache" else {}),
    }
    with WebServer(tmp_path_factory.mktemp("web") / "log", processes=2, **settings) as running:
        eventually(lambda: len(running.workers()) == 2, PATIENCE)
        yield running


@pytest.fixture
def limited_fleet(transactional_db: None, limited: WebServer) -> Iterator[Fleet]:
    with fleet_of(limited) as casts:
        yield casts


def answered_in_a_minute(fleet: Fleet) -> list[int]:
    """Let a new key ask all processes at the same time, each more often than a key may ask in a minute. Return how many
    requests each has answered; the others were refused."""
    while True:
        secret, minute = f"ms_{uuid.uuid4()}", time.time() // 60
        key_create(name=secret, role="reader", secret=secret)

        def ask(cast: Cast, secret: str = secret) -> list[Answer]:
            caller = Caller(cast.anonymous.send, secret)
            return [caller.get("/v1/topics") for _time in range(REQUESTS_PER_MINUTE + 3)]

        answers = at_once([partial(ask, cast) for cast in fleet])
        # The count begins again with each minute of the clock.
        if time.time() // 60 == minute:
            break
    assert {answer.code for each in answers for answer in each if answer.status != 200} == {"too-many-requests"}
    return [sum(answer.status == 200 for answer in each) for each in answers]


def test_processes_with_a_shared_cache_count_the_requests_of_a_key_together_and_others_alone(
    limited_fleet: Fleet, request: pytest.FixtureRequest
) -> None:
    answered = answered_in_a_minute(limited_fleet)
    if request.node.callspec.params["limited"] == "shared cache":
        assert sum(answered) == REQUESTS_PER_MINUTE
    else:
        assert answered == [REQUESTS_PER_MINUTE] * 2


def test_each_process_counts_alone_how_long_it_embeds_for_a_key(limited_fleet: Fleet) -> None:
    one, other = limited_fleet
    # Each text costs a second.
    one.agent.post("/v1/ingest/batch", [{"placement": "new_topic", "title": f"Topic {n}"} for n in range(5)]).ok()
    assert one.agent.post("/v1/query", {"q": "Topic 1"}).code == "too-many-requests"
    assert other.agent.query("Topic 1")["candidates"]
    assert one.operator.query("Topic 1")["candidates"]


def test_wrong_passwords_are_counted_by_all_processes_together(limited_fleet: Fleet) -> None:
    account_make("reader", password="a long enough one")
    for turn in range(SIGN_IN_ATTEMPTS):
        caller = limited_fleet[turn % 2].anonymous
        assert form_send(caller, "/sign-in/", username="reader", password="a wrong one").status in (200, 429)
    for cast in limited_fleet:
        assert form_send(cast.anonymous, "/sign-in/", username="reader", password="a long enough one").status == 429


# --- Effects that happen once ---


def test_requests_with_one_idempotency_key_to_all_processes_have_one_effect_and_equal_replies(fleet: Fleet) -> None:
    items = [{"placement": "new_topic", "title": "Once", "fields": [{"name": "n", "value": "1"}]}] * 3
    for turn in range(4):
        for path, body in (("/v1/ingest", items[0]), ("/v1/ingest/batch", items)):
            headers = {"Idempotency-Key": f"{path} {turn}"}
            answers = everywhere(fleet, lambda cast: cast.agent.post(path, body, headers=headers))  # noqa: B023
            assert {answer.status for answer in answers} == {200}
            assert len({answer.body for answer in answers}) == 1
    assert Topic.objects.filter(title="Once").count() == Revision.objects.count() == 4 * (1 + 3)
    assert AuditEvent.objects.filter(action="ingest_new_topic").count() == 4 * (1 + 3)


def test_a_run_that_all_processes_apply_at_once_is_applied_once(fleet: Fleet) -> None:
    for turn in range(3):
        ids = old_topics(fleet[0], 30)
        before = saliences(ids)
        run_id = fleet[turn % len(fleet)].operator.post("/v1/runs", {"event": "manual"}).ok()["run_id"]
        answers = everywhere(fleet, lambda cast: cast.operator.post(f"/v1/runs/{run_id}/apply", {}))  # noqa: B023
        assert sorted(answer.status for answer in answers) == [200] + [409] * (len(answers) - 1)
        assert {answer.code for answer in answers if answer.status == 409} == {"conflict"}
        # On a busy machine the rest is left to the worker.
        assert tasks.run_continue(run_id) == "done"
        assert_archived_once(ids, before)
    assert AuditEvent.objects.filter(action="run_applied").count() == 3


# --- Policies ---


def test_a_policy_saved_through_one_process_is_in_force_at_the_next_request_to_any(fleet: Fleet) -> None:
    old_topics(fleet[0], 10)
    nothing_due = {"forget_salience_threshold": 0, "theta_detach": 0, "theta_summary": 0}
    for turn, cast in enumerate(fleet * 2, 1):
        values = {"max_archive_share": 1.0, **(nothing_due if turn % 2 else {})}
        saved = cast.operator.put("/v1/policies/", {"values": values, "reason": "a test", "base_version": turn - 1})
        assert saved.ok()["version"] == turn
        for other in fleet:
            run = other.operator.post("/v1/runs", {"event": "manual"}).ok()
            assert (run["policy_version"], run["planned"]) == (turn, 0 if turn % 2 else 10)


def test_of_those_who_save_one_version_of_a_policy_through_all_processes_one_wins(fleet: Fleet) -> None:
    # No value comes twice: a save that changes nothing is no new version, and is not refused.
    number = iter(range(1000))
    for turn in range(4):

        def save(cast: Cast, turn: int = turn) -> Answer:
            values = {"query_salience_bump": (1 + next(number)) / 1000}
            return cast.operator.put("/v1/policies/", {"values": values, "reason": "a test", "base_version": turn})

        answers = everywhere(fleet, save)
        assert sorted(answer.status for answer in answers) == [200] + [409] * (len(answers) - 1)
        assert {answer.code for answer in answers if answer.status == 409} == {"changed-meanwhile"}
        (won,) = (answer.json for answer in answers if answer.status == 200)
        shown = [cast.reader.get("/v1/policies/").ok()["values"]["query_salience_bump"] for cast in fleet]
        assert shown == [won["values"]["query_salience_bump"]] * len(fleet)
    assert PolicyVersion.objects.count() == 4


# --- Locks ---


def test_topics_that_all_processes_write_at_once_lose_nothing_and_no_one_waits_in_a_circle(fleet: Fleet) -> None:
    turns, before = 3, deadlocks()
    ids = [fleet[0].agent.remember(f"Topic {n}", values={"state": "0"}) for n in range(8)]
    number = iter(range(1000))

    def write(cast: Cast) -> list[Answer]:
        writer = next(number)
        order = ids if writer % 2 else ids[::-1]
        answers = []
        for turn in range(turns):
            items = [
                {
                    "placement": "extend_topic",
                    "topic_id": topic_id,
                    "fields": [{"name": "state", "value": f"{writer}-{turn}"}],
                    "edges": [{"to_topic_id": other, "kind": "beside"} for other in order if other != topic_id],
                }
                for topic_id in order
            ]
            answers += [
                cast.agent.post("/v1/ingest/batch", items),
                cast.operator.patch(f"/v1/topics/{order[turn]}", {"salience": writer / 10}),
                cast.operator.post(f"/v1/topics/{order[-1 - turn]}/{'unpin' if turn % 2 else 'pin'}", {}),
            ]
        return answers

    answers = [answer for each in at_once([partial(write, cast) for cast in fleet * TOGETHER]) for answer in each]
    assert {answer.status for answer in answers} == {200}, Counter(answer.text for answer in answers)
    assert {answer.json["refused"] for answer in answers if "refused" in answer.json} == {0}
    assert deadlocks() == before
    written = {f"{writer}-{turn}" for writer in range(len(fleet) * TOGETHER) for turn in range(turns)}
    for topic_id in ids:
        field = Field.objects.get(topic_id=topic_id)
        stored = dict(Revision.objects.filter(field=field).values_list("seq", "value"))
        assert sorted(stored) == list(range(1, field.last_seq + 1))
        assert sorted(stored.values()) == sorted({"0", *written})


# --- Kills ---


class Clients:
    """Write and ask over new connections, which any process takes, for as long as they are shown to. A write is sent,
    with one Idempotency-Key, until it is acknowledged; a question is sent once."""

    def __init__(self, send: Send, counter: str) -> None:
        self.agent = cast_over(send).agent
        self.counter = counter
        self.stop = threading.Event()
        self.written: dict[str, Any] = {}
        self.answered: set[str] = set()
        self.lost = 0
        self.unexpected: list[Answer] = []

    def write(self, writer: int) -> None:
        turn = 0
        while not self.stop.is_set():
            turn += 1
            name = f"{writer}-{turn}"
            fields = [{"name": "state", "value": name}]
            body = (
                {"placement": "new_topic", "title": name, "fields": fields}
                if turn % 2
                else {"placement": "version_field", "topic_id": self.counter, "fields": fields}
            )
            while name not in self.written:
                answer = self._sent("/v1/ingest", body, headers={"Idempotency-Key": name})
                if answer is None:
                    self.lost += 1
                    time.sleep(0.1)
                elif answer.status == 200:
                    self.written[name] = answer.json
                else:
                    self.unexpected.append(answer)
                    return

    def ask(self, number: int) -> None:
        turn = 0
        while not self.stop.is_set():
            turn += 1
            question = f"question {number}-{turn}"
            answer = self._sent("/v1/query", {"q": question, "top_k": 5})
            if answer is not None and answer.status == 200:
                self.answered.add(question)
            elif answer is not None:
                self.unexpected.append(answer)

    def fold(self) -> None:
        """Do the work of the worker."""
        while not self.stop.wait(0.2):
            worker_turn()

    def _sent(self, path: str, body: Any, **more: Any) -> Answer | None:
        try:
            return self.agent.post(path, body, **more)
        except (OSError, http.client.HTTPException):
            return None


def test_a_web_process_that_is_killed_at_work_leaves_every_effect_there_once(
    transactional_db: None, server: WebServer
) -> None:
    chance = random.Random(SEED)
    print(f"MEMSTATE_TEST_SEED={SEED}")
    counter = cast_make(server.send).agent.remember("Counter", values={"state": "start"})
    clients, hits = Clients(server.send, counter), 0

    def kill() -> None:
        nonlocal hits
        for _turn in range(10 * KILLS):
            if clients.stop.is_set():
                return
            lost, acknowledged = clients.lost, len(clients.written)
            eventually(lambda: len(clients.written) > acknowledged, PATIENCE)  # noqa: B023
            with reaching(server, together=1) as ways:
                time.sleep(chance.uniform(0.0, 0.1))
                victim = chance.choice(server.workers())
                victim.kill()
                # The others answer before there is another one.
                for pid in ways.keys() - {victim.pid}:
                    cast_over(ways[pid]).agent.get(f"/v1/topics/{counter}").ok()
            eventually(lambda: len({*server.workers()} - {victim}) == server.processes, PATIENCE)  # noqa: B023
            # It takes connections as the others do.
            with reaching(server, together=1):
                hits += clients.lost > lost
            if hits == KILLS:
                break

    def storm() -> None:
        try:
            kill()
        finally:
            clients.stop.set()

    at_once(
        [
            storm,
            clients.fold,
            *(partial(clients.write, n) for n in range(6)),
            *(partial(clients.ask, n) for n in (1, 2)),
        ],
        stop=clients.stop,
    )
    assert hits == KILLS
    assert not clients.unexpected, [answer.text for answer in clients.unexpected]

    made = {
        name: reply for name, reply in clients.written.items() if "topic_id" in reply and reply["topic_id"] != counter
    }
    versions = {name: reply for name, reply in clients.written.items() if name not in made}
    topics = list(Topic.objects.exclude(pk=counter).values_list("title", "id"))
    assert sorted((title, str(topic_id)) for title, topic_id in topics) == sorted(
        (name, reply["topic_id"]) for name, reply in made.items()
    )
    rows = list(Revision.objects.filter(field__topic_id=counter).order_by("seq").values_list("seq", "value", "id"))
    assert [seq for seq, _value, _id in rows] == list(range(1, len(versions) + 2))
    assert sorted((value, str(row_id)) for _seq, value, row_id in rows[1:]) == sorted(
        (name, reply["version_ids"]["state"]) for name, reply in versions.items()
    )
    assert Revision.objects.exclude(field__topic_id=counter).count() == len(made)
    assert AuditEvent.objects.filter(action__startswith="ingest_").count() == 1 + len(clients.written)

    recalls = Counter(AccessLog.objects.filter(kind="query").values_list("query", flat=True))
    assert set(recalls.values()) == {1}
    assert clients.answered <= recalls.keys()
    turns_until_done(worker_turn, "folded")
    assert_every_access_is_folded_once(database_address())
    assert AccessLog.objects.filter(counted=True).count() == len(recalls)
