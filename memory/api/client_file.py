"""GET /v1/client.py: the Python client as a file."""

import hashlib
from functools import cache
from pathlib import Path

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag
from ninja import Router

from memory.api.responses import problems

router = Router(tags=["service"])

FILE = Path(__file__).parents[1] / "client" / "memstate.py"
PYTHON = "text/x-python"
_KEPT = {"description": "The copy named by If-None-Match is current."}


@cache
def _file() -> tuple[bytes, str]:
    """Return the file and its ETag. The file is read once per process, because it changes only with a release."""
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
            304: _KEPT,
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
