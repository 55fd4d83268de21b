"""Replies as JSON. Routes return TypedDicts (``memory.core.replies``), which are encoded without pydantic models."""

import datetime as dt
import json
import uuid
from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse


def _encode(value: object) -> str:
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form here")


def json_text(body: Any) -> str:
    """Return ``body`` as JSON, with times in ISO 8601 and UUIDs as text."""
    return json.dumps(body, default=_encode, ensure_ascii=False, separators=(",", ":"))


def json_reply(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """Return ``body`` as a reply."""
    return HttpResponse(json_text(body), status=status, content_type="application/json", headers=headers)
