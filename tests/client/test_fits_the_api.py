"""The module is made from the routes and fits them: each operation has its method, and each argument its place."""

import ast
import asyncio
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command

from memory.api.app import api
from memory.client import AsyncMemState, Event, MemState
from memory.management.client_methods import COVERED
from memory.management.client_text import client_text

DOCUMENT = json.loads(json.dumps(api.get_openapi_schema(path_prefix="/v1/")))
MODULE = Path(django_settings.BASE_DIR) / "memory" / "client.py"
OPERATIONS = {
    operation["operationId"]: (verb.upper(), path, operation)
    for path, operations in DOCUMENT["paths"].items()
    for verb, operation in operations.items()
}


def resolved(schema: Any) -> Any:
    """A schema with what it refers to in place."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            return resolved(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
        return {name: resolved(value) for name, value in schema.items()}
    return [resolved(each) for each in schema] if isinstance(schema, list) else schema


def sample(schema: Any) -> Any:
    """A value that fits a schema and is not its default."""
    schema = resolved(schema)
    if "anyOf" in schema:
        return sample({"default": schema.get("default"), **schema["anyOf"][0]})
    if "enum" in schema:
        return next(value for value in [*schema["enum"], schema["enum"][0]] if value != schema.get("default"))
    kind = schema.get("type", "string")
    if kind == "object":
        members = schema.get("properties", {"a": {}})
        return {name: sample(member) for name, member in members.items()}
    if kind == "array":
        return [sample(schema.get("items", {}))]
    if kind == "boolean":
        return not schema.get("default", False)
    if kind in ("integer", "number"):
        return schema.get("minimum", 0) + (1 if schema.get("default") != schema.get("minimum", 0) + 1 else 2)
    formats = {"date-time": "2026-03-01T00:00:00Z", "uuid": "01900000-0000-7000-8000-000000000001"}
    return formats.get(schema.get("format", ""), "some text")


def body_schema(operation: Any) -> Any:
    """The schema of the body of an operation, or nothing."""
    told = operation.get("requestBody")
    if told is None:
        return None
    schema = resolved(told["content"]["application/json"]["schema"])
    return next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), schema)


class Sent(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """Takes a request and answers nothing of interest."""

    def __init__(self) -> None:
        self.request = httpx2.Request("GET", "http://nowhere")

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.request = request
        return httpx2.Response(200, json={"items": [], "next": None})

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return self.handle_request(request)


def methods_of(kind: type) -> dict[str, Any]:
    """The methods that stand for operations."""
    return {
        name: method
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
        and name not in ("close", "pages", "with_timeout", "ingest_all")
        and not name.endswith(("_iter", "_stream"))
    }


def called(kind: str, name: str, arguments: dict[str, Any]) -> httpx2.Request:
    """The request that a method makes of its arguments."""
    transport = Sent()
    if kind == "sync":
        with MemState(api_key="ms_any", transport=transport) as client:
            getattr(client, name)(**arguments)
        return transport.request

    async def call() -> None:
        async with AsyncMemState(api_key="ms_any", transport=transport) as client:
            await getattr(client, name)(**arguments)

    asyncio.run(call())
    return transport.request


def operation_of(request: httpx2.Request) -> Iterator[tuple[str, dict[str, str]]]:
    """The operations that a request could mean, with what its address holds."""
    for name, (verb, path, _operation) in OPERATIONS.items():
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+)", re.escape(path))
        found = re.fullmatch(
            pattern, request.url.path.removesuffix("/") if not path.endswith("/") else request.url.path
        )
        if verb == request.method and found:
            yield name, found.groupdict()


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_every_argument_goes_where_the_document_says(kind: str):
    known: dict[str, Any] = {
        place["name"]: sample(place["schema"])
        for _verb, _path, operation in OPERATIONS.values()
        for place in operation.get("parameters", ())
    }
    reached: set[str] = set()
    for name, method in methods_of(MemState if kind == "sync" else AsyncMemState).items():
        wanted = inspect.signature(method).parameters
        minimal = called(
            kind,
            name,
            {each: "some" for each, place in wanted.items() if place.default is place.empty and each != "self"}
            | ({"items": []} if "items" in wanted else {}),
        )
        # The most exact address is the one that is meant.
        (operation_id, _held) = max(operation_of(minimal), key=lambda found: len(OPERATIONS[found[0]][1]))
        reached.add(operation_id)
        verb, path, operation = OPERATIONS[operation_id]
        schema = body_schema(operation)
        in_body = (schema or {}).get("properties", {})
        in_query = {each["name"]: each for each in operation.get("parameters", ()) if each["in"] == "query"}

        given = {
            each: sample((in_body or {})[each]) if each in in_body else known.get(each)
            for each in wanted
            if each not in ("self", "items", "idempotency_key")
        } | ({"items": sample(schema)} if "items" in wanted else {})
        if "idempotency_key" in wanted:
            given["idempotency_key"] = "a-key"
        request = called(kind, name, given)
        where = f"{name}: {verb} {path}"
        assert request.headers.get("Idempotency-Key") == given.get("idempotency_key"), where
        told = dict(request.url.params)
        # What may be said in both places is said in the body; what a method settles is no argument.
        left_out = in_query.keys() & in_body.keys() | ({"background"} if "background" in in_query else set())
        assert told.keys() - {"background"} == in_query.keys() - left_out, where
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "path":
                assert parameter["name"] in wanted, where
        if schema is None:
            assert request.content == b"", where
        else:
            body = json.loads(request.content)
            jsonschema.validate(body, schema)
            assert body == given.get("items", {each: given[each] for each in in_body}), where
    assert reached == OPERATIONS.keys() - COVERED.keys()


def test_both_clients_have_the_same_methods_with_the_same_arguments():
    ones, others = (
        {
            name: [
                (each.name, each.default, str(each.annotation))
                for each in inspect.signature(method).parameters.values()
            ]
            for name, method in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_") and name != "pages"
        }
        for kind in (MemState, AsyncMemState)
    )
    assert ones == others


def test_the_module_needs_nothing_but_the_standard_library_and_httpx2():
    imported = {
        (node.module or "").partition(".")[0] if isinstance(node, ast.ImportFrom) else alias.name.partition(".")[0]
        for node in ast.walk(ast.parse(MODULE.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported - sys.stdlib_module_names == {"httpx2"}


def test_the_committed_module_fits_the_routes():
    call_command("client", "--check", verbosity=0)


def test_checking_fails_when_the_client_does_not_fit_the_routes(tmp_path: Path, settings: Any):
    file = tmp_path / "memory" / "client.py"
    file.parent.mkdir()
    fitting = MODULE.read_text(encoding="utf-8")
    assert "top_k: int = 8" in fitting
    file.write_text(fitting.replace("top_k: int = 8", "top_k: int = 5"), encoding="utf-8")
    settings.BASE_DIR = tmp_path
    with pytest.raises(CommandError, match=r"differs from the routes; run `python manage\.py client`"):
        call_command("client", "--check")
    call_command("client", verbosity=0)
    assert file.read_text(encoding="utf-8") == fitting


# --- What the document does not hold at present -----------------------------------------------------------------------

SMALL = {
    "components": {
        "schemas": {
            "Order": {
                "type": "object",
                "description": 'With """quotes""" and a \\.',
                "required": ["class"],
                "properties": {"class": {"type": "string", "description": "A word of Python's own."}},
            },
            "Event": {"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}},
            "Kind": {"enum": ["a", "b"]},
        }
    },
    "paths": {
        "/v1/orders": {
            "post": {
                "operationId": "order",
                "summary": "Order",
                "description": "Take an order.",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "required": ["from", "kind"],
                                "properties": {
                                    "kind": {"$ref": "#/components/schemas/Kind"},
                                    "from": {"type": "string"},
                                    "at": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
                                    "by": {"type": "array", "items": {"$ref": "#/components/schemas/Event"}},
                                },
                            }
                        }
                    },
                },
                "responses": {
                    "200": {
                        "content": {
                            "application/json": {"schema": {"$ref": "#/components/schemas/Order"}},
                            "text/event-stream": {"schema": {"type": "string"}},
                        }
                    },
                    "404": {},
                },
            },
            "delete": {"operationId": "order_end", "summary": "End", "responses": {"204": {}}},
        }
    },
}


@pytest.fixture(scope="module")
def small() -> Any:
    """The client as it would be if the API were another one."""
    text = client_text(
        {
            "paths": DOCUMENT["paths"] | SMALL["paths"],
            "components": {"schemas": DOCUMENT["components"]["schemas"] | SMALL["components"]["schemas"]},
        },
        MODULE.read_text(encoding="utf-8"),
    )
    space: dict[str, Any] = {"__name__": "small"}
    exec(compile(text, "small.py", "exec"), space)
    return space


EVENTS = (
    b': a word in between\n\nevent: intent\ndata: {"intent": "query"}\n\nevent: reply\ndata: {"text":\ndata: "Hi"}\n\n'
)
DONE = b"event: done\ndata: {}\n\n"
FAILED = b'event: error\ndata: {"status": 422, "detail": "The model refused."}\n\n'


class Streaming(Sent):
    """Answers event by event."""

    def __init__(self, events: bytes, status: int = 200) -> None:
        super().__init__()
        self.events, self.status = events, status

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.request = request
        kind = "text/event-stream" if self.status == 200 else "application/problem+json"
        return httpx2.Response(self.status, headers={"Content-Type": kind}, content=self.events)


def test_words_of_python_and_names_that_are_taken_are_written_otherwise(small: Any):
    transport = Sent()
    client = small["MemState"](api_key="ms_any", transport=transport)
    client.order("here", kind="a", by=[{"at": "2026-03-01T00:00:00Z"}])
    sent = {"from": "here", "kind": "a", "by": [{"at": "2026-03-01T00:00:00Z"}]}
    assert json.loads(transport.request.content) == sent
    assert small["Order"].__required_keys__ == {"class"}
    nothing = httpx2.MockTransport(lambda _request: httpx2.Response(204))
    assert small["MemState"](api_key="ms_any", transport=nothing).order_end() is None
    assert small["EventMembers"].__annotations__
    assert small["Event"] is not small["EventMembers"]


def test_events_come_one_by_one_and_errors_among_them_are_raised(small: Any):
    expected = [("intent", {"intent": "query"}), ("reply", {"text": "Hi"}), ("done", {})]

    def streamed(events: bytes, status: int = 200) -> Iterator[Event]:
        client = small["MemState"](api_key="ms_any", transport=Streaming(events, status))
        yield from client.order_stream("here", kind="a")

    async def collected(events: bytes) -> list[tuple[str, Any]]:
        async with small["AsyncMemState"](api_key="ms_any", transport=Streaming(events)) as client:
            return [(event.name, event.data) async for event in client.order_stream("here", kind="a")]

    assert [(event.name, event.data) for event in streamed(EVENTS + DONE)] == expected
    assert asyncio.run(collected(EVENTS + DONE)) == expected
    events = streamed(EVENTS)
    assert [next(events).name, next(events).name] == ["intent", "reply"]
    with pytest.raises(small["ConnectionBroken"], match="broke off before its end"):
        next(events)
    with pytest.raises(small["ConnectionBroken"], match="broke off before its end"):
        asyncio.run(collected(EVENTS))
    events = streamed(EVENTS + FAILED)
    assert [next(events).name, next(events).name] == ["intent", "reply"]
    with pytest.raises(small["Refused"], match=r"422: The model refused\."):
        next(events)
    with pytest.raises(small["Refused"], match=r"The model refused\."):
        asyncio.run(collected(FAILED))
    with pytest.raises(small["NotFound"], match=r"404: No such topic\."):
        next(streamed(b'{"status": 404, "detail": "No such topic."}', 404))
    with pytest.raises(small["ConnectionBroken"], match="event-stream"):
        next(small["MemState"](api_key="ms_any", transport=Sent()).order_stream("here", kind="a"))


def test_what_cannot_be_said_is_said_when_it_is_made():
    odd = {"operationId": "odd", "summary": "Odd", "responses": {"200": {}}}
    odd["parameters"] = [{"name": "session", "in": "cookie", "schema": {"type": "string"}}]
    document = {"paths": {"/v1/odd": {"get": odd}}, "components": {"schemas": {}}}
    with pytest.raises(ValueError, match="odd: the client cannot send session in cookie"):
        client_text(document, MODULE.read_text(encoding="utf-8"))
    del odd["parameters"]
    with pytest.raises(ValueError, match="the same name: odd, odd"):
        client_text({**document, "paths": {"/v1/odd": {"get": odd, "post": odd}}}, MODULE.read_text(encoding="utf-8"))
    with pytest.raises(ValueError, match="has lost the lines"):
        client_text(document, "")
