"""manage.py mcp: serves one agent that speaks MCP over stdin and stdout."""

import os
import sys
import threading
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError, connections
from django.utils import timezone

from memory.access.keys import KeyRefused, key_authenticate
from memory.core.problem_codes import ProblemCode
from memory.management.store_command import CommandRefused

_HOW = "Give one in MEMSTATE_API_KEY or with --key-file; manage.py key create makes one."


class Command(BaseCommand):
    """Reads the key from the environment or a file, because all accounts of the machine can read command lines."""

    help = "Serve one agent over stdin and stdout by the Model Context Protocol."
    # Agents start this command and wait until it is ready.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--key-file", type=Path, help="A file that contains only the key.")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Serve until the client closes stdin. A missing or invalid key ends with exit status 2."""
        secret = _secret(options["key_file"])
        try:
            key_authenticate(secret, now=timezone.now())
        except KeyRefused as problem:
            raise CommandRefused(f"{problem.sentence} {_HOW}", problem.code, returncode=2) from problem
        except DatabaseError as problem:
            raise CommandRefused(
                f"The store cannot be read: {problem}", ProblemCode.DATABASE_UNAVAILABLE, returncode=2
            ) from problem
        finally:
            # From here on, this thread needs no connection: it only waits until the agent ends.
            connections.close_all()
        # Imported here, because the SDK takes long to load.
        from memory.mcp.stdio import stdio_serve

        # Load what requests need now, so that the first query does not wait for it.
        threading.Thread(target=_warm, daemon=True).start()
        # The server reads in another thread, where it cannot be interrupted. This thread receives signals.
        failures: list[BaseException] = []

        def serve() -> None:
            try:
                stdio_serve(secret, clock=timezone.now)
            except BaseException as problem:
                failures.append(problem)

        served = threading.Thread(target=serve, daemon=True)
        served.start()
        try:
            served.join()
        except KeyboardInterrupt:
            sys.exit(130)
        if failures:
            raise failures[0]


def _warm() -> None:
    from memory.embedding import embedder_get
    from memory.mcp.server import requests_load

    requests_load()
    embedder_get()


def _secret(file: Path | None) -> str:
    if file is None:
        secret = os.environ.get("MEMSTATE_API_KEY", "")
    else:
        try:
            secret = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise CommandRefused(
                f"{file} cannot be read: {problem}.", ProblemCode.INVALID_FILE, returncode=2
            ) from problem
    if not secret.strip():
        raise CommandRefused(f"There is no key. {_HOW}", ProblemCode.KEY_MISSING, returncode=2)
    return secret.strip()
