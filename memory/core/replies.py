"""How replies are declared: as TypedDicts, which cost nothing to build and which mypy checks and Ninja documents."""

from collections.abc import Iterable
from typing import Any

from pydantic import Field, WithJsonSchema

# Pydantic reads the one of ``typing`` from Python 3.12 on.
from typing_extensions import TypedDict

__all__ = ["TypedDict", "doc", "one_of"]


def doc(description: str) -> Any:
    """Return what describes a member."""
    return Field(description=description)


def one_of(values: Iterable[str]) -> WithJsonSchema:
    """Return what documents a member of type ``str`` as one of ``values``, such as those of a choice of a model."""
    return WithJsonSchema({"enum": [*values], "type": "string"})
