"""What can be wrong with a request: a sentence for the caller, and a code that programs tell problems apart by.

The API maps the classes to statuses in one place (``memory/api/problems.py``); commands print the sentence.
"""

from memory.core.problem_codes import ProblemCode


class MemoryProblem(Exception):
    """A refusal with a sentence for the caller. Nothing has been written when one is raised.

    The class says how it is answered, ``code`` what is wrong. A class has a code for what has none of its own.
    """

    code: ProblemCode = ProblemCode.REFUSED

    def __init__(self, sentence: str, *, code: ProblemCode | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        if code is not None:
            self.code = code


def failure_sentence(problem: Exception) -> str:
    """Return what a failed job reports as the cause: the sentence of a problem, else the name of the error."""
    return problem.sentence if isinstance(problem, MemoryProblem) else type(problem).__name__


class RequestRefused(MemoryProblem):
    """The request contradicts itself or names something that does not exist (400)."""


class NotVisible(MemoryProblem):
    """What the request names does not exist, or lies outside the scope of the key (404)."""

    code = ProblemCode.NOT_VISIBLE


class Conflict(MemoryProblem):
    """The request collides with the present state (409)."""

    code = ProblemCode.CONFLICT


class ValueRefused(MemoryProblem):
    """A value is of the wrong type or out of range (422)."""

    code = ProblemCode.INVALID_VALUE


class NotAllowed(MemoryProblem):
    """The role of the key does not cover the request (403)."""

    code = ProblemCode.NOT_ALLOWED
