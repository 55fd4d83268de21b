"""The API as one object: routers, authentication, parser, errors, and the OpenAPI document."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import re_path
from django.urls.resolvers import URLPattern, URLResolver
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from memory.api import (
    chat,
    client_file,
    conversations,
    duplicates,
    erasure,
    evidence,
    extract,
    ingest,
    policies,
    query,
    receipts,
    runs,
    service,
    studies,
    topics,
)
from memory.api.authentication import ApiKeyAuth, BearerAuth
from memory.api.parsing import GuardedParser
from memory.api.problems import not_stored, problem_response, problems_register
from memory.api.responses import REFUSALS
from memory.core.problem_codes import ProblemCode

DESCRIPTION = """A memory store for language-model agents that forgets on purpose.

Every route but `/v1/client.py` needs a key, sent as `X-API-Key` or as `Authorization: Bearer`. A key has a role
(`reader`, `agent`, `operator`; each may do what those before it may) and a scope outside which nothing is visible.
Refusals are problem documents after RFC 9457; their `detail` is a sentence to show. Unknown members of a request are
ignored, and replies may gain members, so that clients and servers of different ages understand each other. The
exception are requests that steer forgetting: there a member that is not known is refused, lest a mistyped scope forgets
in the whole store.
"""

TAGS = [
    {"name": "ingest", "description": "Remembering."},
    {"name": "extract", "description": "A text becomes facts."},
    {"name": "query", "description": "Asking for context."},
    {"name": "chat", "description": "The assistant: conversations that read and write the memory, and their undo."},
    {"name": "studies", "description": "Long messages that become topics in the background."},
    {"name": "topics", "description": "Explicit lookup and upkeep. These requests do not raise salience."},
    {"name": "command", "description": "Forgetting on command: release, purge and supersede."},
    {"name": "duplicates", "description": "Topics that may be one: review, merge, undo."},
    {"name": "policies", "description": "What forgets what, and when: values and rules, version by version."},
    {"name": "runs", "description": "Forgetting: plans, runs, undo, and what a policy would do."},
    {
        "name": "evidence",
        "description": "Why topics were forgotten, what was regretted, what a policy would have done.",
    },
    {"name": "service", "description": "How the store is doing."},
]


def _problems_only(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Return ``view`` with the refusals that Ninja writes as plain text turned into problem documents.

    Keys are no cookies, so nobody's browser can be made to send one: there is nothing to protect from forgery, and a
    client that mistakes an address or a method is to hear of that.
    """

    @csrf_exempt
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            response = view(request, *args, **kwargs)
        except Http404:
            return _nothing_here(request)
        if response.status_code != 405:
            return not_stored(response)
        allowed = ", ".join(sorted(response["Allow"].split(", ")))
        sentence = f"{request.method} is not possible at this address; possible is {allowed}."
        return problem_response(405, sentence, ProblemCode.METHOD_NOT_POSSIBLE, {"Allow": allowed})

    return answer


def _nothing_here(_request: HttpRequest, **_parts: str) -> HttpResponseBase:
    return problem_response(404, "This URL does not exist.", ProblemCode.ADDRESS_NOT_FOUND)


class MemoryAPI(NinjaAPI):
    """NinjaAPI, with problem documents for every refusal, described as what they are."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """Return the name of the operation, from which client generators make the names of functions."""
        return operation.view_func.__name__

    @property
    def urls(self) -> tuple[list[URLResolver | URLPattern], str, str]:
        """Return the routes, and after them a last one that answers for every other address below them."""
        patterns, app_name, namespace = super().urls
        for pattern in patterns:
            if isinstance(pattern, URLPattern):
                pattern.callback = _problems_only(pattern.callback)
        return [*patterns, re_path("", csrf_exempt(_nothing_here))], app_name, namespace

    def get_openapi_schema(self, *args: Any, **kwargs: Any) -> OpenAPISchema:
        """Return the OpenAPI document; refusals have the content type of RFC 9457."""
        schema = super().get_openapi_schema(*args, **kwargs)
        for path in schema["paths"].values():
            for operation in path.values():
                for status, response in operation.get("responses", {}).items():
                    content = response.get("content", {})
                    if int(status) >= 400 and "application/json" in content:
                        content["application/problem+json"] = content.pop("application/json")
                        response["description"] = REFUSALS[int(status)]
        return schema


api = MemoryAPI(
    title="MemState",
    version="1",
    description=DESCRIPTION,
    openapi_extra={"tags": TAGS},
    auth=[ApiKeyAuth(), BearerAuth()],
    parser=GuardedParser(),
    docs_url="/docs",
    openapi_url="/openapi.json",
    urls_namespace="v1",
)
problems_register(api)
# Evidence before policies, whose last route takes every address below its own.
for room in (
    ingest,
    extract,
    query,
    topics,
    chat,
    conversations,
    studies,
    erasure,
    receipts,
    duplicates,
    runs,
    evidence,
    policies,
    service,
    client_file,
):
    api.add_router("", room.router)
