"""What can be wrong with a request, each with the sentence that the caller is shown.

The API maps these to statuses in one place (``memory/api/problems.py``); commands print the sentence.
"""


class MemoryProblem(Exception):
    """A refusal with a sentence for the caller. Nothing has been written when one is raised."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class RequestRefused(MemoryProblem):
    """The request contradicts itself or names something that does not exist (400)."""


class NotVisible(MemoryProblem):
    """What the request names does not exist, or lies outside the scope of the key (404)."""


class Conflict(MemoryProblem):
    """The request collides with the present state (409)."""


class ValueRefused(MemoryProblem):
    """A value is of the wrong type or out of range (422)."""


class NotAllowed(MemoryProblem):
    """The role of the key does not cover the request (403)."""
