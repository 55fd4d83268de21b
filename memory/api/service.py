"""GET /v1/stats, and GET /v1/client.py: the Python client as a file."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag
from ninja import Query, Router

from memory.api.authentication import principal_of
from memory.api.consistency import consistency
from memory.api.parsing import AddressText
from memory.api.replies import json_reply
from memory.api.responses import READ, problems
from memory.core.scopes import MAX_SCOPE_LENGTH
from memory.explain.stats import stats_collect
from memory.recall.replies import Stats

router = Router(tags=["service"])

FILE = Path(__file__).parents[2] / "memstate" / "client.py"
PYTHON = "text/x-python"
_NOT_MODIFIED = {"description": "The copy named by If-None-Match is current."}


@router.get("/stats", summary="Count topics, fields and links", response={200: Stats, **READ})
@consistency("eventual")
def stats(
    request: HttpRequest, scope: Annotated[AddressText | None, Query(max_length=MAX_SCOPE_LENGTH)] = None
) -> HttpResponse:
    """Count the topics, fields, revisions and links of a scope and of everything below it."""
    return json_reply(stats_collect(principal_of(request, "reader").scope_chosen(scope), now=timezone.now()))


@cache
def _file() -> tuple[bytes, str]:
    """Return the content of the client and its ETag. The file is read once per process, because it changes only with a
    release."""
    content = FILE.read_bytes()
    return content, quote_etag(hashlib.sha256(content).hexdigest()[:32])


@router.get(
    "/client.py",
    auth=None,
    summary="Get the Python client",
    response=problems(),
    openapi_extra={
        "responses": {
            200: {"description": "The file.", "content": {PYTHON: {"schema": {"type": "string"}}}},
            304: _NOT_MODIFIED,
        }
    },
)
def client_file(request: HttpRequest) -> HttpResponseBase:
    """Return the Python client for this version, a single file to copy into a project. No key is required."""
    content, etag = _file()
    headers = {
        "ETag": etag,
        "Cache-Control": "public, no-cache",
        "Content-Disposition": 'attachment; filename="memstate.py"',
    }
    response = HttpResponse(content, content_type=f"{PYTHON}; charset=utf-8", headers=headers)
    conditional = get_conditional_response(request, etag=etag, response=response)
    return response if conditional is None else conditional
