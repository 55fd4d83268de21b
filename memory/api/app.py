"""The API as one object: routers, authentication, parser, errors, and the OpenAPI document."""

from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from memory.api import ingest, query, service, topics
from memory.api.authentication import ApiKeyAuth, BearerAuth
from memory.api.parsing import GuardedParser
from memory.api.problems import problems_register

DESCRIPTION = "A memory store for language-model agents that forgets on purpose."


class MemoryAPI(NinjaAPI):
    """NinjaAPI, with problem documents described as what they are."""

    def get_openapi_schema(self, *args: Any, **kwargs: Any) -> OpenAPISchema:
        """Return the OpenAPI document; refusals have the content type of RFC 9457."""
        schema = super().get_openapi_schema(*args, **kwargs)
        for path in schema["paths"].values():
            for operation in path.values():
                for status, response in operation.get("responses", {}).items():
                    content = response.get("content", {})
                    if int(status) >= 400 and "application/json" in content:
                        content["application/problem+json"] = content.pop("application/json")
        return schema


api = MemoryAPI(
    title="MemState",
    version="1",
    description=DESCRIPTION,
    auth=[ApiKeyAuth(), BearerAuth()],
    parser=GuardedParser(),
    docs_url="/docs",
    openapi_url="/openapi.json",
    urls_namespace="v1",
)
problems_register(api)
for room in (ingest, query, topics, service):
    api.add_router("", room.router)
