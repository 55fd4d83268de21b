"""How replies are declared: as TypedDicts, which cost nothing to build and which mypy checks and Ninja documents."""

from collections.abc import Iterable

from pydantic import WithJsonSchema

# Pydantic reads the one of ``typing`` from Python 3.12 on.
from typing_extensions import TypedDict

__all__ = ["TypedDict", "one_of"]


def one_of(values: Iterable[str]) -> WithJsonSchema:
    """Return what documents a member of type ``str`` as one of ``values``, such as those of a choice of a model."""
    return WithJsonSchema({"enum": [*values], "type": "string"})
