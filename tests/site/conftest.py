"""Data folders and running installations for the tests of this folder."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from memstate_site.folder import CHECKOUT
from memstate_site.postgres.account import server_account
from memstate_site.postgres.place import socket_folder_remove
from memstate_site.postgres.server import EmbeddedServer
from tests.session import FOLDER_VARIABLE
from tests.waits import eventually

# A start takes 5 seconds; a busy machine is slow, not wrong.
START_SECONDS = 120.0


class Installation:
    """`manage.py up` on one data folder, as its user sees it. ``port`` is known once it is ready."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.port = 0
        self.log = folder.parent / f"{folder.name}.log"
        inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        self.environment = {
            **inherited,
            "MEMSTATE_DATA_DIR": str(folder),
            "MEMSTATE_EMBEDDER": "instant",
            "MEMSTATE_API_PORT": "0",
            **environment,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Installation:
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, CHECKOUT / "manage.py", "up"],
                cwd="/",
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        eventually(lambda: "MemState is ready" in self.said() or self.process.poll() is not None, START_SECONDS)
        assert self.process.poll() is None, self.said()
        self.port = int(re.findall(r"MemState is ready at http://127\.0\.0\.1:(\d+)", self.said())[-1])
        return self

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=3)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def child(self, word: str) -> psutil.Process:
        """The direct child whose command line contains the word."""
        assert self.process is not None
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.Error):
                if word in " ".join(child.cmdline()):
                    return child
        raise LookupError(word)

    def cluster(self) -> list[psutil.Process]:
        """The processes of the job cluster: main, sentinel, two workers, monitor and pusher when it is complete."""
        try:
            main = self.child("qcluster")
            return [main, *main.children(recursive=True)]
        except (LookupError, psutil.Error):
            return []

    def works(self) -> bool:
        return self.answers() and len(self.cluster()) == 6

    def stop(self) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def refused(self) -> tuple[int, str]:
        """Try to start in vain; the status and what was said."""
        result = subprocess.run(
            [sys.executable, CHECKOUT / "manage.py", "up"],
            cwd="/",
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        return result.returncode, result.stdout + result.stderr


@pytest.fixture(scope="session")
def working_folder() -> Iterator[Path]:
    """A folder that no one else can enter, as the folders of a careful root are."""
    folder = Path(tempfile.mkdtemp(prefix="site-", dir=os.environ[FOLDER_VARIABLE]))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def made_once(working_folder: Path) -> Path:
    """A data folder with an empty database, to be copied: making one takes seconds, copying a moment."""
    folder = working_folder / "made-once"
    folder.mkdir(mode=0o711)
    server = EmbeddedServer(folder, careless=True)
    server.start()
    server.stop()
    return folder


def folder_copy(source: Path, target: Path) -> None:
    """Copy a data folder with its modes and owners."""
    subprocess.run(["cp", "-a", source, target], check=True, timeout=60)


@contextlib.contextmanager
def folder_copied(source: Path, working_folder: Path) -> Iterator[Path]:
    """A copy for a while."""
    parent = Path(tempfile.mkdtemp(prefix="folder-", dir=working_folder))
    folder_copy(source, parent / "data")
    yield parent / "data"
    # A server that was killed could not remove the folder of its socket.
    socket_folder_remove(parent / "data", server_account())
    shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture
def folder(made_once: Path, working_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data folder with a database of its own, which everything below takes for the data folder."""
    with folder_copied(made_once, working_folder) as copy:
        monkeypatch.setenv("MEMSTATE_DATA_DIR", str(copy))
        yield copy


@pytest.fixture(scope="module")
def server(made_once: Path, working_folder: Path) -> Iterator[EmbeddedServer]:
    """A running server that the tests of one file look at together."""
    with folder_copied(made_once, working_folder) as copy:
        running = EmbeddedServer(copy, careless=True)
        running.start()
        yield running
        running.stop()
