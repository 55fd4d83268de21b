"""Replies as JSON. Routes return TypedDicts (``memory.core.replies``), which are encoded without pydantic models."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse

from memory.core.replies import json_text


def json_reply(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """Return ``body`` as a reply."""
    return HttpResponse(json_text(body), status=status, content_type="application/json", headers=headers)
