"""The error of a management command that cannot do what was requested."""

from django.core.management.base import CommandError

from memory.core.errors import MemoryProblem
from memory.core.problem_codes import ProblemCode


class CommandRefused(CommandError):
    """An error of a command: the sentence, followed by the problem code in brackets."""

    def __init__(self, sentence: str, code: ProblemCode, *, returncode: int = 1) -> None:
        super().__init__(f"{sentence} [{code}]", returncode=returncode)
        self.sentence, self.code = sentence, code


def command_refused(problem: MemoryProblem) -> CommandRefused:
    """Return a problem as the error of a command."""
    return CommandRefused(problem.sentence, problem.code)
