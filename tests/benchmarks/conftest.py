"""A real installation to measure against: web server, worker and database, each in its own process."""

import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.site.conftest import Installation

KEY = "a-key-for-benchmarks-only"


class Client:
    """One kept connection to an installation. ``server_ms`` is what the server needed for the last reply."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.server_ms = 0.0
        self._connection = http.client.HTTPConnection("127.0.0.1", installation.port, timeout=300)

    def post(self, path: str, body: object) -> Any:
        """Send JSON and return the JSON of the reply; anything but success is an error."""
        headers = {"Content-Type": "application/json", "X-API-Key": KEY}
        self._connection.request("POST", path, json.dumps(body), headers)
        reply = self._connection.getresponse()
        content = reply.read()
        assert reply.status == 200, content[:500]
        self.server_ms = float(reply.getheader("Server-Timing", "").rpartition("total;dur=")[2] or 0)
        return json.loads(content)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Callable[..., Client]]:
    """Start an installation with the given environment and return a client of it; stop it in the end."""
    running: list[Installation] = []
    clients: list[Client] = []

    def start(**environment: str) -> Client:
        name = f"store-{len(running)}"
        settings = {"MEMSTATE_API_KEY": KEY, "MEMSTATE_EMBEDDING_SECONDS_PER_REQUEST": "1000000", **environment}
        running.append(Installation(tmp_path / name, **settings).start())
        clients.append(Client(running[-1]))
        return clients[-1]

    yield start
    for client in clients:
        client.close()
    for installation in running:
        installation.stop()
