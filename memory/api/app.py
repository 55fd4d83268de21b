"""The API object: routers, authentication, parser, errors, and the OpenAPI document."""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import re_path
from django.urls.resolvers import URLPattern, URLResolver
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema, get_schema
from ninja.operation import Operation

from memory.api import (
    chat,
    conversations,
    duplicates,
    erasure,
    evidence,
    extract,
    ingest,
    pause,
    policies,
    query,
    receipts,
    runs,
    service,
    studies,
    topics,
)
from memory.api.authentication import ApiKeyAuth, BearerAuth
from memory.api.parsing import GuardedParser, query_checked
from memory.api.problems import not_stored, problem_response, problems_register
from memory.api.responses import REFUSALS
from memory.core.problem_codes import ProblemCode

DESCRIPTION = """A memory store for language-model agents that forgets on purpose.

Every route but `/v1/client.py` needs a key, sent as `X-API-Key` or as `Authorization: Bearer`. A key has a role
(`reader`, `agent`, `operator`; each may do what those before it may) and a scope outside which nothing is visible.
A description names the role that its route needs; a route without one is open to readers.
Errors are problem documents (RFC 9457); their `detail` is a sentence to show. Members of a request and parameters of a
URL that do not exist are refused with 422 (`unknown-member`) and the nearest that does, so that no mistyped `scope`
forgets in the whole store. Replies may gain members.
A key of the installation names the store of a request by `X-MemState-Store`; without the header, it works on `main`.
With a database replica, `X-MemState-Consistency: eventual` lets a query read there and `strong` keeps a list from it;
such a reply has `X-MemState-Replica-Lag` in seconds.
"""

TAGS = [
    {"name": "ingest", "description": "Store observations."},
    {"name": "extract", "description": "Turn a text into facts."},
    {"name": "query", "description": "Search for context."},
    {"name": "chat", "description": "The assistant: conversations that read and write the memory, and their undo."},
    {"name": "studies", "description": "Jobs that turn long messages into topics."},
    {"name": "topics", "description": "Look up and edit topics. These requests do not raise salience."},
    {"name": "command", "description": "Forgetting on command: release, purge and supersede."},
    {"name": "duplicates", "description": "Possible duplicates: review, merge, undo."},
    {"name": "policies", "description": "Values and rules that control forgetting, with all versions."},
    {"name": "runs", "description": "Forgetting: plans, runs, undo, and previews of a policy."},
    {
        "name": "evidence",
        "description": "Why topics were forgotten, what was regretted, and what a policy would have done.",
    },
    {"name": "service", "description": "Counts, and the client."},
]


def _problems_only(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Return a view that answers with a problem document where Ninja would send plain text. The view is exempt from
    CSRF checks, because a forged request cannot contain the key in a header."""

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
        sentence = f"This URL does not support {request.method}. Use {allowed}."
        return problem_response(405, sentence, ProblemCode.METHOD_NOT_POSSIBLE, {"Allow": allowed})

    return answer


def _nothing_here(_request: HttpRequest, **_parts: str) -> HttpResponseBase:
    return problem_response(404, "This URL does not exist.", ProblemCode.ADDRESS_NOT_FOUND)


class MemoryAPI(NinjaAPI):
    """NinjaAPI with problem documents for all errors, also in the OpenAPI document."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """Return the name of the view, which client generators use as the name of a function."""
        return operation.view_func.__name__

    @property
    def urls(self) -> tuple[list[URLResolver | URLPattern], str, str]:
        """Return the routes, followed by one that answers all other URLs with 404."""
        patterns, app_name, namespace = super().urls
        for pattern in patterns:
            if isinstance(pattern, URLPattern):
                pattern.callback = _problems_only(pattern.callback)
        return [*patterns, re_path("", csrf_exempt(_nothing_here))], app_name, namespace

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        """Return the OpenAPI document. Its errors have the content type of RFC 9457."""
        return _document(self.get_root_path(path_params or {}) if path_prefix is None else path_prefix)


@cache
def _document(path_prefix: str) -> OpenAPISchema:
    # It takes a second to make, and routes do not change while the process runs.
    schema = get_schema(api=api, path_prefix=path_prefix)
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
api.add_decorator(query_checked)
# Evidence precedes policies, because the last route of policies matches every URL below /v1/policies/.
for module in (
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
    pause,
    evidence,
    policies,
    service,
):
    api.add_router("", module.router)
