"""A pytest plugin: each test run has a database server of its own, and nothing of it is left afterwards.

It is loaded with `-p` (see pyproject.toml), because it must act before Django's settings are read. A run with
DATABASE_URL set uses that server instead.
"""

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


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    """Start the server; a wrapper comes before every other plugin, and so before the one that loads the settings."""
    # A test run never touches, nor depends on, the data folder of the installation in the same checkout.
    folder = Path(tempfile.mkdtemp(prefix="memstate-test-"))
    early_config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ["MEMSTATE_DATA_DIR"] = str(folder)
    if not envstr("DATABASE_URL"):
        # What the tests write may be lost with the machine, so nothing waits for the disk.
        server = EmbeddedServer(folder, careless=True)
        early_config.add_cleanup(server.stop)
        try:
            os.environ["DATABASE_URL"] = server.start()
        except PostgresError as problem:
            raise pytest.UsageError(str(problem)) from problem
    return (yield)
