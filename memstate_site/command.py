"""Runs MemState's commands, for ``manage.py``, ``memstate`` and ``python -m memstate_site``."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import warnings

from memstate_site.env import SettingError, envstr
from memstate_site.postgres.errors import PostgresError

# This one stays as long as an agent does, so it uses what runs and starts nothing.
BESIDE_UP = {"mcp"}

# These say or write something without looking into the database; every other command gets a running one.
WITHOUT_DATABASE = {
    "check",
    "diffsettings",
    "findstatic",
    "help",
    "makemessages",
    "makemigrations",
    "openapi",
    "up",
    "version",
}


def command_run(arguments: list[str]) -> int:
    """Run a command and return its exit status. ``arguments`` are those of the process, the name of the program
    first."""
    try:
        return _run(arguments)
    except (SettingError, PostgresError) as problem:
        # The message is a sentence for the person at the terminal; a traceback would only hide it.
        print(problem, file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader of the output, such as `head`, has ended. Python would try to write the rest at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(arguments: list[str]) -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memstate_site.settings")
    command = arguments[1] if len(arguments) > 1 else "help"
    asks_for_help = not {"-h", "--help", "--version"}.isdisjoint(arguments)
    if command == "qcluster":
        os.environ.setdefault("MEMSTATE_PROCESS", "worker")
    if command == "mcp":
        # Its statements answer an agent who waits, as those of a web request do.
        os.environ.setdefault("MEMSTATE_STATEMENT_TIMEOUT_MS", "30000")
    if command == "makemigrations":
        # It would like to compare with a database, but does its work as well without one.
        warnings.filterwarnings("ignore", message="Got an error checking a consistent migration history")

    with contextlib.ExitStack() as stack:
        if command not in WITHOUT_DATABASE and not asks_for_help and not envstr("DATABASE_URL"):
            from memstate_site.postgres.session import server_session

            # Settings read the address from here, as they would for a server of the user's own.
            os.environ["DATABASE_URL"] = stack.enter_context(server_session(start=command not in BESIDE_UP))
        if command == "up" and not asks_for_help:
            if arguments[2:]:
                print("The command up takes no options; docs/settings.md lists the settings.", file=sys.stderr)
                return 2
            # Without Django: what watches over the other processes stays small and starts at once.
            from memstate_site.supervisor import run

            return run()
        from django.core.management import execute_from_command_line

        execute_from_command_line(arguments)
        # The job cluster returns while its processes go on; they need the database until they end.
        for child in multiprocessing.active_children():
            child.join()
        sys.stdout.flush()
    return 0
