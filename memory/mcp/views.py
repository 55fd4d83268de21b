"""/mcp: who calls is known, and the body bounded, before anything of the SDK sees the request."""

import uuid
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.views.decorators.csrf import csrf_exempt

from memory.api.authentication import request_authenticate
from memory.api.parsing import body_read
from memory.api.problems import failure_told, problem_response, refusal_response
from memory.domain.errors import MemoryProblem, NotAllowed
from memory.domain.jsonguard import json_guarded
from memory.domain.problem_codes import ProblemCode
from memory.mcp.bridge import Exchange
from memory.mcp.calls import call_name, calls_cancel

SESSION = "Mcp-Session-Id"
_CANCELLED = "notifications/cancelled"


class _Origins(CsrfViewMiddleware):
    """Django's judgement of the pages that may send requests here: our own, and those of MEMSTATE_TRUSTED_ORIGINS."""

    def allows(self, request: HttpRequest) -> bool:
        """Tell whether the request comes from such a page, or from none."""
        return "Origin" not in request.headers or bool(self._origin_verified(request))  # type: ignore[attr-defined] # no stub


@csrf_exempt
def mcp(request: HttpRequest) -> HttpResponse:
    """Answer one message of the protocol. Keys, limits and refusals before the protocol are those of the API."""
    try:
        return _answer(request)
    except MemoryProblem as problem:
        return refusal_response(problem)
    except Exception as problem:
        return problem_response(*failure_told(problem))


def _answer(request: HttpRequest) -> HttpResponse:
    if not _Origins(mcp).allows(request):
        raise NotAllowed(
            "Pages of other sites may not speak to this address; see MEMSTATE_TRUSTED_ORIGINS.",
            code=ProblemCode.FOREIGN_ORIGIN,
        )
    principal = request_authenticate(request)
    session = request.headers.get(SESSION)
    if request.method == "DELETE":
        # A session is a name and nothing is kept for it; what still runs under it ends.
        if session is not None:
            calls_cancel(call_name(principal.identity, session))
        return HttpResponse(status=204)
    if request.method != "POST":
        sentence = "There is no stream of events here; send messages by POST, and DELETE ends a session."
        return problem_response(405, sentence, ProblemCode.METHOD_NOT_POSSIBLE, {"Allow": "POST, DELETE"})
    body = body_read(request, limit=settings.MEMSTATE_MAX_BODY_BYTES)
    message = _message(body)
    method = message.get("method")
    if method == _CANCELLED and session is not None:
        # The SDK, which keeps nothing between requests, could not know what is meant.
        asked = message.get("params")
        if isinstance(asked, dict) and asked.get("requestId") is not None:
            calls_cancel(call_name(principal.identity, session, asked["requestId"]))
        return HttpResponse(status=202)
    name = None
    if session is not None and message.get("id") is not None:
        name = call_name(principal.identity, session, message["id"])
    reply = Exchange(request, body, principal=principal, name=name).answer()
    response = HttpResponse(reply.body, status=reply.status)
    del response["Content-Type"]
    for header, value in reply.headers:
        response[header] = value
    if method == "initialize" and reply.status == 200:
        response[SESSION] = uuid.uuid4().hex
    return response


def _message(body: bytes) -> dict[str, Any]:
    # What is no message is for the SDK to refuse, with the protocol's own codes.
    try:
        message = json_guarded(body, max_depth=settings.MEMSTATE_MAX_JSON_DEPTH)
    except MemoryProblem:
        return {}
    return message if isinstance(message, dict) else {}
