"""The package as a user installs it: built, installed into an empty environment, started, asked, stopped."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from memstate import MemState
from memstate_site.folder import CHECKOUT
from tests.waits import eventually

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]


class Installed:
    """The command ``memstate`` of an environment, for a user with an empty home folder."""

    def __init__(self, folder: Path) -> None:
        self.home, self.programs = folder / "home", folder / "environment" / "bin"
        self.home.mkdir()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "MEMSTATE_API_PORT": str(self.port),
        }

    def run(self, *arguments: str) -> str:
        command = [self.programs / "memstate", *arguments]
        return subprocess.run(
            command, cwd=self.home, env=self.environment, timeout=300, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    @contextlib.contextmanager
    def started(self) -> Iterator[str]:
        """Start MemState, yield what the start has written, and stop it."""
        log = self.home / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [self.programs / "memstate"],
                cwd=self.home,
                env=self.environment,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        try:
            eventually(lambda: "is ready" in log.read_text() or process.poll() is not None, seconds=180)
            assert process.poll() is None, log.read_text()
            yield log.read_text()
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def client(self) -> MemState:
        (file,) = self.home.rglob("credentials.json")
        return MemState(f"http://127.0.0.1:{self.port}", json.loads(file.read_text())["operator_key"])


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    wheel = [*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(CHECKOUT)]
    subprocess.run(wheel, check=True, timeout=300)
    venv.create(folder / "environment", with_pip=False)
    (file,) = folder.glob("memstate-*.whl")
    python = str(folder / "environment" / "bin" / "python")
    subprocess.run([*pip, "--python", python, "install", "--quiet", str(file)], check=True, timeout=600)
    return Installed(folder)


def test_an_installed_package_starts_answers_and_keeps_its_data_over_an_upgrade(installed: Installed):
    with installed.started() as said:
        (file,) = installed.home.rglob("credentials.json")
        assert str(file.parent) in said
        with installed.client() as memory:
            memory.ingest("new_topic", title="Tea", summary="Mara drinks green tea. Her code is AB-1234-X.")
            assert "green tea" in memory.query("What does Mara drink?")["summary_text"]
            assert "def pages" in client_served(memory)
        assert "first agent key" in installed.run("key", "list")
        assert "healthy" in installed.run("doctor")
    # The folder as an older release has left it.
    installed.run("migrate", "memory", "0007")
    with installed.started(), installed.client() as memory:
        assert "green tea" in memory.query("What does Mara drink?")["summary_text"]
        listed = memory.request("POST", "/v1/forget", json={"verb": "purge", "query": "AB 1234 X"})
        assert listed["count"] == 1


def client_served(memory: MemState) -> str:
    """The file of the client, which the package serves."""
    reply = memory._http.get("/v1/client.py")
    return str(reply.text)


def test_the_demo_and_the_help_are_in_the_package(installed: Installed):
    installed.environment["MEMSTATE_DATA_DIR"] = str(installed.home / "other")
    assert "The store now holds 40 topics" in installed.run("demo", "--topics", "40")
    assert "verify_erasure" in installed.run("help")
    del installed.environment["MEMSTATE_DATA_DIR"]
