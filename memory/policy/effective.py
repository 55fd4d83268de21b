"""The one place that says which knobs are in force for a scope."""

from functools import lru_cache
from typing import Any

from django.conf import settings

from memory.domain.knobs import Knobs


@lru_cache(maxsize=1)
def _defaults(overrides: tuple[tuple[str, Any], ...]) -> Knobs:
    return Knobs(**dict(overrides))


def knobs_effective(_scope: str) -> Knobs:
    """Return the knobs in force for a scope: the defaults, as the environment changes them. No queries."""
    return _defaults(tuple(sorted(settings.MEMSTATE_KNOBS.items())))
