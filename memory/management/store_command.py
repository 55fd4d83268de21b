"""The base class of the commands that use the store, and the error of a refused command."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import ProgrammingError
from psycopg.errors import UndefinedTable

from memory.core.errors import MemoryProblem
from memory.core.problem_codes import ProblemCode


class StoreCommand(BaseCommand):
    """A command on the store. If the database has no tables, it prints a sentence instead of a traceback."""

    # System checks import all routes and pages, which takes a second. `manage.py check` runs them.
    requires_system_checks = ()

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command. Raises ``CommandError`` if the database has no tables yet."""
        try:
            return super().execute(*args, **options)
        except ProgrammingError as error:
            if not isinstance(error.__cause__, UndefinedTable):
                raise
            raise CommandError(
                "This database has no tables yet. Start the store once with `make run`, or set MEMSTATE_DATA_DIR or "
                "DATABASE_URL to the store that you mean.",
                returncode=2,
            ) from error


class CommandRefused(CommandError):
    """An error of a command: the sentence, followed by the problem code in brackets."""

    def __init__(self, sentence: str, code: ProblemCode, *, returncode: int = 1) -> None:
        super().__init__(f"{sentence} [{code}]", returncode=returncode)
        self.sentence, self.code = sentence, code


def command_refused(problem: MemoryProblem) -> CommandRefused:
    """Return a problem as the error of a command."""
    return CommandRefused(problem.sentence, problem.code)
