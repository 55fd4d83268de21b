"""Request bodies: limited in size and depth before they are parsed."""

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Header
from ninja.parser import Parser
from ninja.types import DictStrAny
from pydantic import AfterValidator

from memory.core.errors import MemoryProblem, RequestRefused, ValueRefused
from memory.core.json_limits import json_guarded
from memory.core.nearest import nearest_hint
from memory.core.problem_codes import ProblemCode
from memory.ingest.idempotency import MAX_KEY_LENGTH

JSON_LINES_TYPES = ("application/x-ndjson", "application/jsonl", "application/json-lines", "application/x-jsonlines")


def _without_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not contain a NUL character, because the database cannot store it")
    return text


# Text from a URL or a header. The checks of request bodies do not cover it.
AddressText = Annotated[str, AfterValidator(_without_nul)]
IdempotencyKey = Annotated[
    AddressText | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=MAX_KEY_LENGTH,
        description="A request that is sent again with the same key takes effect only once.",
    ),
]


View = Callable[..., HttpResponseBase]


def query_checked(view: View) -> View:
    """Wrap ``view``, the function of a Ninja route, so that an unknown parameter of the URL raises ``ValueRefused``."""
    models = view._ninja_operation.models  # type: ignore[attr-defined]
    queries = [model for model in models if model.__ninja_param_source__ == "query"]
    known = [name for model in queries for name in model.__ninja_flatten_map__]

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        for name in request.GET.keys() - set(known):
            hint = nearest_hint(name, known, noun="parameters")
            raise ValueRefused(
                f"{name}: This parameter of the URL does not exist; {hint}.",
                code=ProblemCode.UNKNOWN_MEMBER,
                member=name,
            )
        return view(request, *args, **kwargs)

    return checked


class BodyTooLarge(MemoryProblem):
    """The body is larger than the limit of the route (413)."""

    code = ProblemCode.BODY_TOO_LARGE


class BodyInChunks(RequestRefused):
    """A chunked body, which Django would read as empty (400)."""

    code = ProblemCode.INVALID_BODY

    def __init__(self) -> None:
        super().__init__("The body was sent in chunks. Send it with a Content-Length.")


def body_in_chunks(request: HttpRequest) -> bool:
    """Return whether the body is sent in chunks, without a Content-Length."""
    return not request.META.get("CONTENT_LENGTH") and "Transfer-Encoding" in request.headers


def body_read(request: HttpRequest, *, limit: int) -> bytes:
    """Return the body. Raises ``BodyInChunks``, or ``BodyTooLarge`` for more than ``limit`` bytes; in both cases,
    nothing is read."""
    if body_in_chunks(request):
        raise BodyInChunks
    body_length_check(request, limit=limit)
    return request.body


def body_length_check(request: HttpRequest, *, limit: int) -> None:
    """Raise ``BodyTooLarge`` if the Content-Length exceeds ``limit`` bytes. Nothing is read."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdigit() or int(length) > limit:
        raise BodyTooLarge(f"The body has {length} bytes; the limit is {limit} bytes.")


class GuardedParser(Parser):
    """Parses request bodies for Ninja's schemas."""

    def parse_body(self, request: HttpRequest) -> DictStrAny:
        """Return the JSON of the body. Raises ``BodyTooLarge``, ``RequestRefused`` or ``ValueRefused``."""
        raw = body_read(request, limit=settings.MEMSTATE_MAX_BODY_BYTES)
        body: DictStrAny = json_guarded(raw, max_depth=settings.MEMSTATE_MAX_JSON_DEPTH)
        return body


def batch_parse(request: HttpRequest) -> list[Any]:
    """Return the items of a batch: a JSON list, or JSON Lines if the content type says so. An invalid line becomes a
    ``MemoryProblem`` in the list. The body may have at most ``MEMSTATE_MAX_BATCH_BYTES`` bytes. Raises the errors of
    ``GuardedParser``."""
    raw = body_read(request, limit=settings.MEMSTATE_MAX_BATCH_BYTES)
    depth = settings.MEMSTATE_MAX_JSON_DEPTH
    if (request.content_type or "").lower() in JSON_LINES_TYPES:
        return [_line_parse(line, depth) for line in raw.splitlines() if line.strip()]
    body = json_guarded(raw, max_depth=depth)
    if not isinstance(body, list):
        raise RequestRefused(
            "A batch must be a JSON list of items, or JSON Lines with one item per line.", code=ProblemCode.INVALID_BODY
        )
    return body


def _line_parse(line: bytes, depth: int) -> Any:
    try:
        return json_guarded(line, max_depth=depth)
    except MemoryProblem as problem:
        return problem
