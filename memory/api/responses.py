"""The statuses a route can answer with besides success."""

from memory.api.schemas import Problem


def problems(*statuses: int) -> dict[int, type[Problem]]:
    """Return the entries of ``response=`` for refusals; every route may also fail with 500."""
    return dict.fromkeys((*statuses, 500), Problem)
