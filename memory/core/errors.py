"""Exceptions for refused requests: a sentence for people, and a code for programs. ``memory/api/problems.py`` maps the
classes to HTTP status codes."""

from memory.core.problem_codes import ProblemCode


class MemoryProblem(Exception):
    """A refused request, with a sentence for the caller. The request has written nothing. The class determines the HTTP
    status and the default code."""

    code: ProblemCode = ProblemCode.REFUSED

    def __init__(self, sentence: str, *, code: ProblemCode | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        if code is not None:
            self.code = code


def failure_sentence(problem: Exception) -> str:
    """Return the cause that a failed job reports: the sentence of a problem, or the class name of another error."""
    return problem.sentence if isinstance(problem, MemoryProblem) else type(problem).__name__


class RequestRefused(MemoryProblem):
    """The request contradicts itself or names something that does not exist (400)."""


class NotVisible(MemoryProblem):
    """The request names something that does not exist or is outside the scope of the key (404)."""

    code = ProblemCode.NOT_VISIBLE


class Conflict(MemoryProblem):
    """The request conflicts with the present state (409)."""

    code = ProblemCode.CONFLICT


class PreconditionFailed(Conflict):
    """What the request names with If-Match was changed in the meantime (412)."""

    code = ProblemCode.CHANGED_MEANWHILE


class ValueRefused(MemoryProblem):
    """A value is of the wrong type or out of range (422)."""

    code = ProblemCode.INVALID_VALUE


class NotAllowed(MemoryProblem):
    """The role of the key does not cover the request (403)."""

    code = ProblemCode.NOT_ALLOWED
