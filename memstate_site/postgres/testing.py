"""A pytest plugin: each test run has a database server of its own, started with the first test that needs it. The
plugin is loaded with `-p`, because it must act before Django's settings are read. If DATABASE_URL is set, no server is
started."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from memstate_site.env import envstr
from memstate_site.postgres.errors import PostgresError
from memstate_site.postgres.server import EmbeddedServer

_server: EmbeddedServer | None = None


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    """Set the address of the server. This hook is a wrapper, so it runs before all other plugins and before Django's
    settings are read."""
    global _server
    # A test run does not use the data folder of the installation in the same checkout.
    folder = Path(tempfile.mkdtemp(prefix="memstate-test-"))
    early_config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ["MEMSTATE_DATA_DIR"] = str(folder)
    if not envstr("DATABASE_URL"):
        # No write waits for the disk, because the data of tests may be lost.
        _server = EmbeddedServer(folder, careless=True)
        early_config.add_cleanup(_server.stop)
        os.environ["DATABASE_URL"] = _server.address()
    return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Start the server before the worker processes of pytest-xdist, which inherit the environment of this process."""
    _start()


@pytest.fixture(scope="session")
def database_server() -> None:
    """Start the server, for tests that connect to DATABASE_URL themselves."""
    _start()


def _start() -> None:
    if _server is not None and not _server.alive:
        try:
            _server.start()
        except PostgresError as problem:
            raise pytest.UsageError(str(problem)) from problem
