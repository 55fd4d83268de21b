"""The types of replies. TypedDicts cost nothing at run time; mypy checks them, and Ninja documents them."""

from collections.abc import Iterable
from typing import Any

from pydantic import Field, WithJsonSchema

# Pydantic supports ``typing.TypedDict`` only from Python 3.12 on.
from typing_extensions import TypedDict

__all__ = ["TypedDict", "doc", "one_of"]


def doc(description: str) -> Any:
    """Return the annotation that describes a member."""
    return Field(description=description)


def one_of(values: Iterable[str]) -> WithJsonSchema:
    """Return the annotation that documents a member of type ``str`` as one of ``values``."""
    return WithJsonSchema({"enum": [*values], "type": "string"})
