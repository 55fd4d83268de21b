"""Runs programs of PostgreSQL on the configured database."""

from __future__ import annotations

import os
import subprocess

from django.db import connection
from django.db.backends.postgresql.client import DatabaseClient

from memory.core.problem_codes import ProblemCode
from memory.management.store_command import CommandRefused
from memstate_site.postgres.binaries import packaged_binaries


def program_run(name: str, *arguments: str) -> None:
    """Run ``pg_dump`` or ``psql`` of the package. Raises ``CommandRefused`` with the last line of its error output."""
    program = packaged_binaries().folder / "bin" / name
    # All programs of PostgreSQL accept these arguments. The password is passed in the environment.
    command, environment = DatabaseClient.settings_to_cmd_args_env(connection.settings_dict, [])
    result = subprocess.run(
        [str(program), *arguments, *command[1:]],
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if result.returncode:
        lines = result.stderr.strip().splitlines() or [f"status {result.returncode}"]
        raise CommandRefused(f"{name} failed: {lines[-1]}", ProblemCode.PROGRAM_FAILED)
