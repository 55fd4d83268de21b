"""gunicorn as it is in production, on the database of the tests."""

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Self

import psutil
from django.db import connection

from memstate_site.folder import CHECKOUT
from tests.cast import Send, over_http
from tests.waits import eventually

# A busy machine is slow, not wrong.
PATIENCE = 180.0


def listening() -> socket.socket:
    """Return a socket that listens on a free port of this machine, to be passed on to a server."""
    return socket.create_server(("127.0.0.1", 0), backlog=256)


def database_address() -> str:
    """Return the address of the database of the tests, for other processes."""
    server, _, _name = os.environ["DATABASE_URL"].partition("?")
    more = os.environ["DATABASE_URL"][len(server) :]
    return f"{server.rpartition('/')[0]}/{connection.settings_dict['NAME']}{more}"


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a process that works on the database of the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMSTATE_API")}
    return {**kept, "DATABASE_URL": database_address(), "MEMSTATE_EMBEDDER": "instant", **more}


class WebServer:
    """gunicorn as it is in production, on the database of the tests, until the end of its block. ``settings`` are
    variables of its environment."""

    def __init__(self, log: Path, *, processes: int = 1, **settings: str) -> None:
        self.log = log
        self.processes = processes
        with log.open("wb") as said, listening() as opened:
            self.port = opened.getsockname()[1]
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gunicorn", "-c", "python:memstate_site.gunicorn_conf", "memstate_site.wsgi"],
                cwd=CHECKOUT,
                env=environment(
                    MEMSTATE_LISTEN_FD=str(opened.fileno()),
                    MEMSTATE_WEB_WORKERS=str(processes),
                    **{"MEMSTATE_WEB_THREADS": "8", **settings},
                ),
                pass_fds=[opened.fileno()],
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Self:
        try:
            eventually(self._answers, PATIENCE)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_problem: object) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def send(self) -> Send:
        """Sends requests over a connection of their own each, which any of the processes takes."""
        return over_http("127.0.0.1", self.port)

    def workers(self) -> list[psutil.Process]:
        return psutil.Process(self._process.pid).children()

    def restart(self) -> None:
        """Kill the processes that answer; their master starts others."""
        before = self.workers()
        for worker in before:
            worker.kill()
        eventually(lambda: len(self.workers()) == self.processes and not set(self.workers()) & set(before), PATIENCE)

    def _answers(self) -> bool:
        assert self._process.poll() is None, self.log.read_text()
        with contextlib.suppress(OSError):
            return self.send("GET", "/livez", None, {}).status == 200
        return False
