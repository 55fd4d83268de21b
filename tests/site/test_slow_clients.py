"""Clients that send slowly, or nothing, hold neither threads nor the server."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from memstate_site import web_worker
from memstate_site.folder import CHECKOUT
from tests.waits import eventually
from tests.web_server import listening

THREADS = 2
SLOW = 12
HEAD = b"POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: memstate_csrf=" + b"a" * 32 + b"\r\n"
# No database is needed for it, and a thread of the work gives it.
FILE = "/static/console/console.css"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a web server with two threads and no database."""
    environment = {
        **os.environ,
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none",
        "DJANGO_SETTINGS_MODULE": "memstate_site.settings",
        "MEMSTATE_EMBEDDER": "instant",
        "MEMSTATE_SECRET_KEY": "a key for tests that is long enough",
        "MEMSTATE_WEB_THREADS": str(THREADS),
    }
    command = [sys.executable, "-m", "gunicorn", "-c", "python:memstate_site.gunicorn_conf", "memstate_site.wsgi"]
    with listening() as opened:
        port, shared = opened.getsockname()[1], opened.fileno()
        environment["MEMSTATE_LISTEN_FD"] = str(shared)
        process = subprocess.Popen(command, cwd=CHECKOUT, env=environment, stderr=subprocess.DEVNULL, pass_fds=[shared])
    try:
        eventually(lambda: answers(port, "/livez"))
        yield port
    finally:
        process.terminate()
        process.wait(20)


def answers(port: int, path: str, *, within: float = 10.0) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=within)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextlib.contextmanager
def clients(port: int, sent: bytes, number: int = SLOW) -> Iterator[list[socket.socket]]:
    """So many connections over which only ``sent`` was sent."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)) for _ in range(number)]
        for one in opened:
            one.sendall(sent)
        time.sleep(0.2)
        yield opened


def over(client: socket.socket, within: float) -> bool:
    """Whether the server ends the connection, with an answer or without."""
    client.settimeout(within)
    try:
        while client.recv(4096):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nX-a: ", id="half a head"),
        pytest.param(HEAD + b"Content-Length: 2000\r\n\r\nusername=", id="half a body"),
    ],
)
def test_clients_that_do_not_go_on_hold_no_thread(port: int, sent: bytes) -> None:
    with clients(port, sent):
        assert answers(port, FILE)
        assert answers(port, "/livez")


def test_liveness_is_answered_while_every_thread_is_held_by_long_bodies(port: int) -> None:
    with clients(port, HEAD + b"Content-Length: 2000000\r\n\r\nusername=", THREADS):
        assert not answers(port, FILE, within=1)
        assert all(answers(port, "/livez") for _ in range(5))
    eventually(lambda: answers(port, FILE))


def test_a_body_for_livez_does_not_hold_its_thread(port: int) -> None:
    with clients(port, b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2000000\r\n\r\n", 1):
        assert answers(port, "/livez", within=10)


def test_clients_that_are_too_slow_are_disconnected(port: int) -> None:
    long_body = HEAD + b"Content-Length: 2000000\r\n\r\nusername="
    with clients(port, b"GET /livez HTTP/1.1\r\nX-a: ", 1) as heads, clients(port, long_body, 1) as bodies:
        began = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() - began < web_worker.REQUEST_SECONDS - 1:
                for one in (*heads, *bodies):
                    one.sendall(b"a")
                time.sleep(0.5)
        assert all(over(one, within=10) for one in (*heads, *bodies))


def test_a_closed_connection_does_not_stop_the_others(port: int) -> None:
    # The client asks for the end of the connection and never closes its own side.
    ask = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    with clients(port, ask, 6):
        assert answers(port, "/livez", within=10)


def test_requests_in_pieces_in_a_row_and_with_long_bodies_are_answered(port: int) -> None:
    ask = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with clients(port, b"", 1) as [client]:
        for at in range(len(ask)):
            client.sendall(ask[at : at + 1])
        client.sendall(ask + ask[:-2])
        time.sleep(0.2)
        client.sendall(ask[-2:])
        client.settimeout(5)
        got = b""
        while got.count(b'{"status": "ok"}') < 3:
            got += client.recv(4096)
    for size in (1, web_worker.SHORT_BODY_BYTES - 1, web_worker.SHORT_BODY_BYTES + 1, 300_000):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("POST", "/sign-in/", body=b"a" * size)
        assert connection.getresponse().status == 403
        connection.close()
