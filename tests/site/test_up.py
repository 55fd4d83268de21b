"""`manage.py up` starts everything, watches over it, and stops it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from memstate_site.folder import CHECKOUT
from tests.postgres_process import server_pid
from tests.site.conftest import START_SECONDS, Installation, folder_copied
from tests.waits import eventually


@pytest.fixture(scope="module")
def first(made_once: Path, working_folder: Path) -> Iterator[Installation]:
    """An installation after its first start; the tests of this file look at it one after the other."""
    with folder_copied(made_once, working_folder) as folder:
        installation = Installation(folder).start()
        eventually(installation.works)
        yield installation
        installation.stop()


def lives(process: psutil.Process) -> bool:
    """Whether a process does anything; one that has ended but was not yet asked how does not count."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def secrets_of(installation: Installation) -> dict[str, str]:
    kept: dict[str, str] = json.loads((installation.folder / "credentials.json").read_text())
    return {name: kept[name] for name in ("admin_password", "agent_key", "operator_key")}


def status_with_key(installation: Installation, key: str) -> int:
    return answer_with_key(installation, key, {})[0]


def answer_with_key(installation: Installation, key: str, headers: dict[str, str]) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", installation.port, timeout=10)
    try:
        connection.request("GET", "/v1/topics", headers={"X-API-Key": key, **headers})
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


def read(terminal: int) -> bytes:
    """Read from a terminal; end the test if nothing comes."""
    assert select.select([terminal], [], [], START_SECONDS)[0], "the terminal is silent"
    return os.read(terminal, 4096)


# --- The first start ---


def test_the_first_start_names_the_file_with_the_secrets_where_its_output_may_be_a_log(first: Installation) -> None:
    said = first.said()
    for secret in secrets_of(first).values():
        assert secret not in said
    assert str(first.folder / "credentials.json") in said
    assert f"MemState is ready at http://127.0.0.1:{first.port}" in said
    for path in first.folder.iterdir():
        if path.is_file():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_the_first_start_shows_the_secrets_at_a_terminal(made_once: Path, working_folder: Path) -> None:
    with folder_copied(made_once, working_folder) as folder:
        ours, theirs = pty.openpty()
        installation = Installation(folder)
        process = subprocess.Popen(
            [sys.executable, CHECKOUT / "manage.py", "up"], env=installation.environment, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        said = b""
        try:
            with contextlib.suppress(OSError):
                while b"MemState is ready" not in said and (piece := read(ours)):
                    said += piece
            assert all(said.count(secret.encode()) == 1 for secret in secrets_of(installation).values())
        finally:
            process.terminate()
            with contextlib.suppress(OSError):
                while read(ours):
                    pass
            process.wait(30)
            os.close(ours)


def test_the_keys_of_the_first_start_open_the_api(first: Installation) -> None:
    secrets = secrets_of(first)
    assert status_with_key(first, secrets["agent_key"]) == 200
    assert status_with_key(first, secrets["operator_key"]) == 200
    assert status_with_key(first, "ms_something-else") == 401


def test_pages_and_static_files_are_served(first: Installation) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", first.port, timeout=10)
    for path, kind in {
        "/sign-in/": "text/html",
        "/static/console/console.css": "text/css",
        "/static/admin/css/base.css": "text/css",
        "/static/plotly/plotly.min.js": "text/javascript",
        "/static/django_htmx/htmx-2.min.js": "text/javascript",
    }.items():
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, path
        assert kind in (answer.getheader("Content-Type") or "")
        assert "script-src 'self'" in (answer.getheader("Content-Security-Policy") or "script-src 'self'")
    connection.close()


def test_pages_name_files_that_browsers_keep_and_that_come_compressed(first: Installation) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", first.port, timeout=10)
    connection.request("GET", "/sign-in/")
    page = connection.getresponse().read().decode()
    named = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
    assert any(path.endswith("/console/console.css") for path in named)
    for path in named:
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, path
        assert "immutable" in (answer.getheader("Cache-Control") or ""), path
        assert answer.getheader("Content-Encoding") == "gzip", path
    connection.close()


def test_a_host_that_was_not_allowed_is_not_answered(first: Installation) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", first.port, timeout=10)
    connection.request("GET", "/admin/login/", headers={"Host": "evil.example"})
    assert connection.getresponse().status == 400
    connection.close()


# --- Beside others ---


def test_a_second_start_on_the_same_folder_is_refused(first: Installation) -> None:
    assert first.process is not None
    status, said = Installation(first.folder).refused()
    assert status == 2
    assert f"already runs on the data folder {first.folder} (process {first.process.pid})" in said
    assert "Traceback" not in said


def test_options_are_refused_before_anything_is_started(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, CHECKOUT / "manage.py", "up", "--port", "8000"],
        env={**os.environ, "MEMSTATE_DATA_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 2
    assert "docs/settings.md" in done.stderr
    assert server_pid(folder) is None


def test_a_port_that_is_taken_is_refused_before_anything_is_started(first: Installation, folder: Path) -> None:
    status, said = Installation(folder, MEMSTATE_API_PORT=str(first.port)).refused()
    assert status == 2
    assert f"Port {first.port} on 127.0.0.1 is in use by" in said
    assert "MEMSTATE_API_PORT" in said
    assert not (folder / "postgres.log").stat().st_size or server_pid(folder) is None


def test_two_installations_run_side_by_side(first: Installation, folder: Path) -> None:
    second = Installation(folder).start()
    try:
        assert first.answers()
        assert second.answers()
        # Each has its own keys.
        assert status_with_key(second, secrets_of(first)["agent_key"]) == 401
    finally:
        assert second.stop() == 0
    assert first.answers()


def test_other_commands_use_the_running_database(first: Installation) -> None:
    result = subprocess.run(
        [
            sys.executable,
            CHECKOUT / "manage.py",
            "shell",
            "-v0",
            "-c",
            "from memory.models import ApiKey as K; print(K.objects.count())",
        ],
        env=first.environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert result.stdout.strip() == "2"


# --- Whatever is killed comes back ---

VICTIMS: dict[str, Callable[[Installation], psutil.Process]] = {
    "the web server's master": lambda up: up.child("gunicorn"),
    "the web server's worker": lambda up: up.child("gunicorn").children()[0],
    "the job cluster": lambda up: up.cluster()[0],
    "the job cluster's sentinel": lambda up: up.cluster()[0].children()[0],
    "a job worker": lambda up: up.cluster()[0].children()[0].children()[0],
    "the database": lambda up: up.child("postgres"),
}


@pytest.mark.parametrize("who", VICTIMS)
def test_what_is_killed_comes_back(first: Installation, who: str) -> None:
    eventually(first.works)
    victim = VICTIMS[who](first)
    family = first.cluster() if "job" in who else []
    victim.kill()
    eventually(lambda: not lives(victim))
    # After the death of one of its processes, the whole cluster is a new one: its queues may have died too.
    eventually(lambda: first.works() and not set(family) & set(first.cluster()))
    assert [process for process in family if lives(process)] == []
    assert "started again" in first.said() or "was sent SIGKILL" in first.said()


# --- Stopping, and starting again ---


def test_sigterm_stops_everything_in_a_few_seconds(first: Installation) -> None:
    eventually(first.works)
    assert first.process is not None
    processes = psutil.Process(first.process.pid).children(recursive=True)
    assert first.stop() == 0
    assert [process for process in processes if lives(process)] == []
    assert "MemState has stopped." in first.said()
    # The database was shut down, not killed, and nothing stays behind in /tmp.
    assert not (first.folder / "postgres" / "postmaster.pid").exists()
    assert not (first.folder / "socket-folder").exists()


def test_the_second_start_shows_no_secret_and_accepts_a_given_key(first: Installation) -> None:
    secrets = secrets_of(first)
    given = "a key that somebody chose for themselves"
    again = Installation(first.folder, MEMSTATE_API_KEY=given).start()
    try:
        said = again.said()
        assert not any(secret in said for secret in (*secrets.values(), given))
        assert f"The secrets of the first start are in {first.folder / 'credentials.json'}" in said
        assert status_with_key(again, given) == 200
        assert status_with_key(again, secrets["agent_key"]) == 200
        # Those who serve do not carry the secrets of the first step along.
        for child in ("gunicorn", "qcluster"):
            assert not {"MEMSTATE_API_KEY", "MEMSTATE_ADMIN_KEY", "MEMSTATE_ADMIN_PASSWORD"} & set(
                again.child(child).environ()
            )
    finally:
        assert again.stop() == 0


STUCK = """
from django.db import connection
from memory.access.keys import key_create
from memory.jobs.stores import store_create
from memory.stores.models import Store
for name in ("stuck", "well"):
    store_create(name)
key_create(name="all", role="reader", secret="ms_a-key-for-all-the-stores", installation=True)
Store.objects.exclude(pk="main").update(version="")
# The migration makes the tables of one store again, and finds tables that it does not know in the other one.
connection.cursor().execute("DROP SCHEMA store_well CASCADE")
"""


def test_a_store_that_cannot_be_migrated_does_not_prevent_the_start(first: Installation) -> None:
    before = Installation(first.folder).start()
    try:
        command = [sys.executable, CHECKOUT / "manage.py", "shell", "-v0", "-c", STUCK]
        subprocess.run(command, env=before.environment, cwd="/", check=True, timeout=60)
    finally:
        assert before.stop() == 0
    again = Installation(first.folder).start()
    try:
        said = again.said()
        assert "Traceback" not in said
        assert [line for line in said.splitlines() if "Not migrated: stuck" in line]
        assert "Not migrated: main" not in said
        # The progress of the two stores.
        assert "2/2" in said
        answers = {
            store: answer_with_key(again, "ms_a-key-for-all-the-stores", {"X-MemState-Store": store})
            for store in ("main", "well", "stuck")
        }
        assert {store: status for store, (status, _body) in answers.items()} == {"main": 200, "well": 200, "stuck": 503}
        assert "urn:memstate:problem:store-behind" in answers["stuck"][1]
    finally:
        assert again.stop() == 0


def test_after_the_supervisor_is_killed_the_next_start_works_at_once(first: Installation) -> None:
    killed = Installation(first.folder).start()
    eventually(killed.works)
    assert killed.process is not None
    left = psutil.Process(killed.process.pid).children(recursive=True)
    killed.process.kill()
    killed.process.wait(60)
    again = Installation(first.folder, MEMSTATE_API_PORT=str(killed.port)).start()
    try:
        assert [process for process in left if lives(process)] == []
    finally:
        assert again.stop() == 0


def test_ctrl_c_during_the_first_start_leaves_nothing_half_made() -> None:
    folder = Path(tempfile.mkdtemp(prefix="memstate-interrupted-"))
    installation = Installation(folder)
    log = installation.log.open("wb")
    process = subprocess.Popen(
        [sys.executable, CHECKOUT / "manage.py", "up"],
        cwd="/",
        env=installation.environment,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    eventually(lambda: "Creating a new database" in installation.said())
    process.send_signal(signal.SIGINT)
    assert process.wait(15) == 0
    log.close()
    assert "Traceback" not in installation.said()
    assert not list(folder.glob("postgres*/PG_VERSION"))
    # What a child of initdb wrote after its end was not waited for goes with the next start.
    shutil.rmtree(folder)
    installation.log.unlink()


def test_with_a_database_of_ones_own_no_server_is_started(tmp_path: Path, database_server: None) -> None:
    installation = Installation(tmp_path / "data", DATABASE_URL=os.environ["DATABASE_URL"]).start()
    try:
        with pytest.raises(LookupError):
            installation.child("postgres")
        assert installation.answers()
        assert not (tmp_path / "data" / "postgres").exists()
    finally:
        assert installation.stop() == 0


def test_a_database_that_cannot_be_reached_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        # Bound, but no one listens: connections are refused at once.
        taken.bind(("127.0.0.1", 0))
        address = f"postgresql://me:secret@127.0.0.1:{taken.getsockname()[1]}/db"
        monkeypatch.setattr("memstate_site.prepare.DATABASE_WAIT_SECONDS", 0)
        monkeypatch.setenv("DATABASE_URL", address)
        from memstate_site.env import SettingError
        from memstate_site.prepare import _connect

        with pytest.raises(SettingError, match="cannot be reached") as refused:
            _connect()
    assert "secret" not in str(refused.value)
