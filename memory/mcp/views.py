"""The view at /mcp. It checks the origin, the key and the size of the body before the SDK gets the request."""

import httpx2
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from memory.access.principal import Principal
from memory.api.authentication import request_authenticate
from memory.api.parsing import body_read
from memory.api.problems import failure_of, not_stored, problem_response, refusal_response
from memory.core.errors import MemoryProblem, NotAllowed
from memory.core.problem_codes import ProblemCode

# The headers that the protocol uses, besides those that begin with Mcp-. The SDK gets no other headers, so it does not
# get the key.
_HEADERS = {"accept", "content-type"}


class _Origins(CsrfViewMiddleware):
    """Checks the origin of requests with Django's rules: this site and MEMSTATE_TRUSTED_ORIGINS."""

    def allows(self, request: HttpRequest) -> bool:
        """Return whether the request has an allowed origin or no origin."""
        return "Origin" not in request.headers or bool(self._origin_verified(request))  # type: ignore[attr-defined] # no stub


@csrf_exempt
def mcp(request: HttpRequest) -> HttpResponse:
    """Answer one message of the protocol. Keys, rate limits, and errors outside the protocol are the same as in the
    API."""
    try:
        return not_stored(_answer(request))
    except MemoryProblem as problem:
        return refusal_response(problem)
    except Exception as problem:
        return problem_response(*failure_of(problem))


def _answer(request: HttpRequest) -> HttpResponse:
    if not _Origins(mcp).allows(request):
        raise NotAllowed("Pages of other sites may not use this URL. To allow a site, set MEMSTATE_TRUSTED_ORIGINS.")
    principal = request_authenticate(request)
    if request.method != "POST":
        sentence = "This URL has no event stream and no sessions. Send each message by POST."
        return problem_response(405, sentence, ProblemCode.METHOD_NOT_POSSIBLE, {"Allow": "POST"})
    body = body_read(request, limit=settings.MEMSTATE_MAX_BODY_BYTES)
    headers = [
        (name.encode("latin-1", "replace"), value.encode("latin-1", "replace"))
        for name, value in request.headers.items()
        if name.lower() in _HEADERS or name.lower().startswith("mcp-")
    ]
    answered = _exchange(httpx2.Request("POST", "http://memstate/mcp", headers=headers, content=body), principal)
    response = HttpResponse(answered.content, status=answered.status_code)
    del response["Content-Type"]
    for header, value in answered.headers.items():
        response[header] = value
    return response


@async_to_sync
async def _exchange(request: httpx2.Request, principal: Principal) -> httpx2.Response:
    """Return the answer of the SDK. ``async_to_sync`` blocks this thread; meanwhile, the
    thread executes the functions of the store that the SDK calls."""
    # Imported here, because the SDK takes a second and 25 MB to load, and most processes do not need it.
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from memory.mcp.server import server_make

    manager = StreamableHTTPSessionManager(
        server_make(lambda function: sync_to_async(function)(principal), clock=timezone.now),
        # Without streams and sessions, any process can answer the next request, and no thread waits between requests.
        json_response=True,
        stateless=True,
        max_request_body_size=settings.MEMSTATE_MAX_BODY_BYTES,
    )
    async with manager.run():
        response = await httpx2.ASGITransport(manager.handle_request).handle_async_request(request)
        await response.aread()
    return response
