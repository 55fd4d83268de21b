"""The base classes of the commands, and the error of a refused command."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import ProgrammingError
from psycopg.errors import UndefinedTable

from memory.core.errors import MemoryProblem
from memory.core.problem_codes import ProblemCode
from memory.jobs.stores import store_here
from memory.stores.current import store_or_none, store_use


@contextmanager
def problems_refused() -> Iterator[None]:
    """Raise a problem of the store as ``CommandRefused``."""
    try:
        yield
    except MemoryProblem as problem:
        raise CommandRefused(problem.sentence, problem.code) from problem


class StoreCommand(BaseCommand):
    """A command on the store. If the database has no tables, it prints a sentence instead of a traceback."""

    # System checks import all routes and pages, which takes a second. `manage.py check` runs them.
    requires_system_checks = ()

    def create_parser(self, *args: Any, **options: Any) -> CommandParser:
        """Return the parser of the command, with the option for a store."""
        parser = super().create_parser(*args, **options)
        parser.add_argument("--in-store", metavar="NAME", help="Use this store instead of main.")
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command in its store. Raises ``CommandError`` for a problem of the store, and if the database has no
        tables."""
        name = options.get("in_store")
        try:
            with problems_refused():
                if name is not None:
                    store_here(name)
                with store_use(name or store_or_none()):
                    return super().execute(*args, **options)
        except ProgrammingError as error:
            if not isinstance(error.__cause__, UndefinedTable):
                raise
            raise CommandError(
                "This database has no tables yet. Start the store once with `make run`, or set MEMSTATE_DATA_DIR or "
                "DATABASE_URL to the store that you mean.",
                returncode=2,
            ) from error


class VerbCommand(BaseCommand):
    """A command with subcommands. The argument ``verb`` names the method that runs: ``list`` runs ``_list``."""

    requires_system_checks = ()

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the verb. Raises ``CommandRefused`` for a problem of the store."""
        with problems_refused():
            getattr(self, f"_{options['verb']}")(options)


class CommandRefused(CommandError):
    """An error of a command: the sentence, followed by the problem code in brackets."""

    def __init__(self, sentence: str, code: ProblemCode, *, returncode: int = 1) -> None:
        super().__init__(f"{sentence} [{code}]", returncode=returncode)
        self.sentence, self.code = sentence, code
