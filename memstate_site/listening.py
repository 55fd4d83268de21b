"""The address of the web server, which the supervisor opens before it starts any process."""

from __future__ import annotations

import errno
import http.client
import socket
import time

import psutil

from memstate_site.env import SettingError

BACKLOG = 1024
# Maps the address of a server that listens on all addresses to one at which this machine can reach it.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


def listening_socket(host: str, port: int, *, patience: float = 0.0) -> socket.socket:
    """Return a socket that listens on the address. Retries for `patience` seconds, because a process that was killed
    may still use the address. Raises ``SettingError``."""
    try:
        family, kind, protocol, _name, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as problem:
        raise SettingError(
            f"MEMSTATE_API_HOST is {host!r}, which is not an address of this machine: {problem.strerror}."
        ) from None
    deadline = time.monotonic() + patience
    while True:
        opened = socket.socket(family, kind, protocol)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind(address)
            opened.listen(BACKLOG)
        except OSError as problem:
            opened.close()
            if problem.errno == errno.EADDRINUSE and time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            raise SettingError(_sentence(problem, host, port)) from problem
        return opened


def shown_address(host: str, port: int) -> str:
    """Return the URL of the server for a browser on this machine."""
    name = EVERYWHERE.get(host, host)
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"


def status_of(host: str, port: int, path: str, *, asks_as: str) -> int | None:
    """Return the HTTP status of a page, or None if no answer comes within a second. ``asks_as`` is the host name in the
    request."""
    connection = http.client.HTTPConnection(EVERYWHERE.get(host, host), port, timeout=1)
    try:
        connection.request("GET", path, headers={"Host": asks_as, "Connection": "close"})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _sentence(problem: OSError, host: str, port: int) -> str:
    if problem.errno == errno.EADDRINUSE:
        return (
            f"Port {port} on {host} is in use by {_user_of(port)}. "
            "Stop that program, or choose another port with MEMSTATE_API_PORT."
        )
    if problem.errno == errno.EADDRNOTAVAIL:
        return f"MEMSTATE_API_HOST is {host}, which is not an address of this machine."
    if problem.errno in (errno.EACCES, errno.EPERM):
        return f"This account may not listen on port {port}; choose one above 1023 with MEMSTATE_API_PORT."
    return f"It is not possible to listen on {host} port {port}: {problem.strerror}."


def _user_of(port: int) -> str:
    try:
        for connection in psutil.net_connections(kind="tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,)
            if listens and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (process {connection.pid})"
    except (psutil.Error, OSError, AttributeError):
        # An ordinary account may not be allowed to see which process uses the address.
        pass
    return "another program"
