"""Exceptions for refused requests: a sentence for people, and a code for programs. ``memory/api/problems.py`` maps the
classes to HTTP status codes."""

from collections.abc import Iterator
from contextlib import contextmanager

from memory.core.problem_codes import ProblemCode


class MemoryProblem(Exception):
    """A refused request, with a sentence for the caller. The request has written nothing. The class determines the HTTP
    status and the default code. ``member`` is the path of the wrong value in the request, such as ``rules[2].action``;
    it is empty if the problem has no single place, or if the place is not known where the problem is raised."""

    code: ProblemCode

    def __init__(self, sentence: str, *, code: ProblemCode | None = None, member: str = "") -> None:
        super().__init__(sentence)
        self.sentence, self.member = sentence, member
        if code is not None:
            self.code = code

    def as_members(self) -> dict[str, str]:
        """Return ``code`` and, if known, ``member``."""
        return {"code": self.code, "member": self.member} if self.member else {"code": self.code}


@contextmanager
def problems_within(member: str) -> Iterator[None]:
    """Put ``member`` before the ``member`` of a problem, because the values that are read here are parts of it."""
    try:
        yield
    except MemoryProblem as problem:
        problem.member = f"{member}.{problem.member}" if problem.member else member
        raise


def failure_sentence(problem: Exception) -> str:
    """Return the cause that a failed job reports: the sentence of a problem, or the class name of another error."""
    return problem.sentence if isinstance(problem, MemoryProblem) else type(problem).__name__


class RequestRefused(MemoryProblem):
    """The request contradicts itself or names something that does not exist (400)."""

    code = ProblemCode.CONTRADICTORY_REQUEST


class NotVisible(MemoryProblem):
    """The request names something that does not exist or is outside the scope of the key (404)."""

    code = ProblemCode.NOT_FOUND


class Conflict(MemoryProblem):
    """The request conflicts with the present state (409)."""

    code = ProblemCode.CONFLICT


class PreconditionFailed(Conflict):
    """What the request names with If-Match was changed in the meantime (412)."""

    code = ProblemCode.CHANGED_MEANWHILE


class ValueRefused(MemoryProblem):
    """A value is of the wrong type or out of range (422)."""

    code = ProblemCode.INVALID_MEMBER


class NotAllowed(MemoryProblem):
    """The role of the key does not cover the request (403)."""

    code = ProblemCode.NOT_ALLOWED
