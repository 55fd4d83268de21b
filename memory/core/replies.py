"""The types of replies, and replies as JSON. TypedDicts cost nothing at run time; mypy checks them, and Ninja documents
them."""

import datetime as dt
import json
import uuid
from collections.abc import Iterable
from typing import Any

from pydantic import Field, WithJsonSchema

# Pydantic supports ``typing.TypedDict`` only from Python 3.12 on.
from typing_extensions import TypedDict

__all__ = ["TypedDict", "doc", "json_text", "one_of"]


def doc(description: str) -> Any:
    """Return the annotation that describes a member."""
    return Field(description=description)


def one_of(values: Iterable[str]) -> WithJsonSchema:
    """Return the annotation that documents a member of type ``str`` as one of ``values``."""
    return WithJsonSchema({"enum": [*values], "type": "string"})


def _encode(value: object) -> str:
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form here")


def json_text(body: Any) -> str:
    """Return ``body`` as JSON, with times in ISO 8601 and UUIDs as text."""
    return json.dumps(body, default=_encode, ensure_ascii=False, separators=(",", ":"))
