"""The client fits the API: each method calls a route that exists with the arguments that it has, in both halves."""

import ast
import asyncio
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

import httpx2
import jsonschema
import pytest
from django.conf import settings as django_settings

from memory.api.app import api
from memstate import AsyncMemState, ConnectionBroken, Event, MemState, NotFound, Refused
from memstate import client as client_module

DOCUMENT = json.loads(json.dumps(api.get_openapi_schema(path_prefix="/v1/")))
FILE = Path(django_settings.BASE_DIR) / "memstate" / "client.py"
OPERATIONS = {
    operation["operationId"]: (verb.upper(), path, operation)
    for path, operations in DOCUMENT["paths"].items()
    for verb, operation in operations.items()
}
# What stands for no operation of its own, or for one outside of the document.
OTHERS = ("close", "pages", "request", "with_timeout", "ingest_all", "topics_iter", "health")


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
    got = operation.get("requestBody")
    if got is None:
        return None
    schema = resolved(got["content"]["application/json"]["schema"])
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
    """The public methods of a client."""
    return {name: each for name, each in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


def arguments_of(method: Any) -> dict[str, bool]:
    """The arguments of a method by name, and whether each must be given."""
    wanted: dict[str, bool] = {}
    for name, place in inspect.signature(method).parameters.items():
        if place.kind is place.VAR_KEYWORD:
            # ``pages`` hands on whatever it is given, and names nothing.
            for options in get_args(place.annotation):
                wanted.update(dict.fromkeys(get_type_hints(options), False))
        elif name != "self":
            wanted[name] = place.default is place.empty
    return wanted


def called(kind: str, name: str, arguments: dict[str, Any]) -> httpx2.Request:
    """The request that a method makes of its arguments."""
    transport = Sent()
    if kind == "sync":
        with MemState(api_key="ms_any", transport=transport) as client:
            answer = getattr(client, name)(**arguments)
            list(answer if name.endswith("_stream") else ())
        return transport.request

    async def call() -> None:
        async with AsyncMemState(api_key="ms_any", transport=transport) as client:
            answer = getattr(client, name)(**arguments)
            if name.endswith("_stream"):
                assert [event.name async for event in answer] == ["done"]
            else:
                await answer

    asyncio.run(call())
    return transport.request


def operations_of(request: httpx2.Request) -> Iterator[str]:
    """The operations that a request could mean."""
    for name, (verb, path, _operation) in OPERATIONS.items():
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path))
        if verb == request.method and re.fullmatch(pattern, request.url.path):
            yield name


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("name", sorted(methods_of(MemState).keys() - set(OTHERS)))
def test_every_argument_goes_where_the_document_says(kind: str, name: str):
    wanted = arguments_of(methods_of(MemState if kind == "sync" else AsyncMemState)[name])
    required: dict[str, Any] = {each: "some" for each, needed in wanted.items() if needed}
    required |= {each: [] for each in ("items", "messages") if each in required}
    (operation_id,) = operations_of(called(kind, name, required))
    verb, path, operation = OPERATIONS[operation_id]
    schema = body_schema(operation)
    in_body = (schema or {}).get("properties", {})
    places = operation.get("parameters", ())
    in_query = {each["name"]: each["schema"] for each in places if each["in"] == "query"}
    in_path = {each["name"]: each["schema"] for each in places if each["in"] == "path"}
    keyed = {"idempotency_key"} if any(each["name"] == "Idempotency-Key" for each in places) else set()
    whole = {"items"} if schema and schema["type"] == "array" else set()
    assert wanted.keys() == in_body.keys() | in_query.keys() | in_path.keys() | keyed | whole

    given = {each: sample({**in_path, **in_query, **in_body}.get(each, {})) for each in wanted}
    if whole:
        given["items"] = sample(schema)
    request = called(kind, name, given)
    where = f"{name}: {verb} {path}"
    assert list(operations_of(request)) == [operation_id]
    assert request.headers.get("Idempotency-Key") == given.get("idempotency_key"), where
    assert dict(request.url.params).keys() == in_query.keys(), where
    if schema is None:
        assert request.content == b"", where
    else:
        body = json.loads(request.content)
        jsonschema.validate(body, schema)
        assert body == given.get("items", {each: given[each] for each in in_body}), where


def test_types_of_replies_have_the_members_that_the_document_names():
    names = [name for name, each in vars(client_module).items() if is_typeddict(each)]
    compared = [name for name in names if name in DOCUMENT["components"]["schemas"]]
    assert len(compared) >= 9
    for name in compared:
        hints = get_type_hints(getattr(client_module, name), include_extras=True)
        schema = DOCUMENT["components"]["schemas"][name]
        assert hints.keys() == schema["properties"].keys(), name
        if name != "IngestItem":
            needed = {each for each, hint in hints.items() if get_origin(hint) is not NotRequired}
            assert needed == set(schema["required"]), name


def test_both_clients_have_the_same_methods_with_the_same_arguments():
    ones, others = (
        {
            name: [
                (each.name, each.default, str(each.annotation))
                for each in inspect.signature(method).parameters.values()
            ]
            for name, method in methods_of(kind).items()
            if name != "pages"
        }
        for kind in (MemState, AsyncMemState)
    )
    assert ones == others
    for name, method in methods_of(MemState).items():
        assert method.__doc__, name
        assert not inspect.iscoroutinefunction(method), name
        assert not inspect.isasyncgenfunction(method), name


def test_the_file_needs_nothing_but_the_standard_library_and_httpx2():
    imported = {
        (node.module or "").partition(".")[0] if isinstance(node, ast.ImportFrom) else alias.name.partition(".")[0]
        for node in ast.walk(ast.parse(FILE.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported - sys.stdlib_module_names == {"httpx2"}


def test_a_copy_of_the_file_runs_alone(tmp_path: Path):
    (tmp_path / "memstate.py").write_bytes(FILE.read_bytes())
    program = (
        "import sys; from memstate import AsyncMemState, MemState; print(MemState(api_key='ms_any'));"
        "print(any(name.partition('.')[0] in ('memory', 'django') for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {program}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        timeout=60,
    )
    assert done.stdout.split("\n")[:2] == ["<MemState at http://127.0.0.1:8765>", "False"]


# --- Event by event --------------------------------------------------------------------------------------------------

EVENTS = (
    b': a word in between\n\nevent: intent\ndata: {"intent": "query"}\n\nevent: reply\ndata: {"text":\ndata: "Hi"}\n\n'
)
DONE = b"event: done\ndata: {}\n\n"
FAILED = b'event: error\ndata: {"status": 422, "detail": "The model refused."}\n\n'
MESSAGES = [{"role": "user", "content": "What does Mara drink?"}]


class Watched(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """The events of a reply, and whether it was closed."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        yield self.content

    async def __aiter__(self) -> Any:
        yield self.content

    def close(self) -> None:
        self.closed = True

    async def aclose(self) -> None:
        self.closed = True


class Streaming(Sent):
    """Answers event by event."""

    def __init__(self, events: bytes, status: int = 200) -> None:
        super().__init__()
        self.status = status
        self.stream = Watched(events)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.request = request
        kind = "text/event-stream" if self.status == 200 else "application/problem+json"
        return httpx2.Response(self.status, headers={"Content-Type": kind}, stream=self.stream)


def streamed(events: bytes, status: int = 200) -> Iterator[Event]:
    yield from MemState(api_key="ms_any", transport=Streaming(events, status)).chat_stream(MESSAGES)


async def collected(events: bytes) -> list[tuple[str, Any]]:
    async with AsyncMemState(api_key="ms_any", transport=Streaming(events)) as client:
        return [(event.name, event.data) async for event in client.chat_stream(MESSAGES)]


def test_events_come_one_by_one_and_errors_among_them_are_raised():
    expected = [("intent", {"intent": "query"}), ("reply", {"text": "Hi"}), ("done", {})]
    assert [(event.name, event.data) for event in streamed(EVENTS + DONE)] == expected
    assert asyncio.run(collected(EVENTS + DONE)) == expected
    events = streamed(EVENTS)
    assert [next(events).name, next(events).name] == ["intent", "reply"]
    with pytest.raises(ConnectionBroken, match="ended too early"):
        next(events)
    with pytest.raises(ConnectionBroken, match="ended too early"):
        asyncio.run(collected(EVENTS))
    events = streamed(EVENTS + FAILED)
    assert [next(events).name, next(events).name] == ["intent", "reply"]
    with pytest.raises(Refused, match=r"422: The model refused\."):
        next(events)
    with pytest.raises(Refused, match=r"The model refused\."):
        asyncio.run(collected(FAILED))
    with pytest.raises(NotFound, match=r"404: No such topic\."):
        next(streamed(b'{"status": 404, "detail": "No such topic."}', 404))


def test_the_synchronous_client_works_inside_of_an_event_loop():
    async def loop() -> list[str]:
        return [event.name for event in streamed(EVENTS + DONE)]

    assert asyncio.run(loop()) == ["intent", "reply", "done"]


def test_whoever_stops_listening_leaves_the_connection():
    transport = Streaming(EVENTS + DONE)
    events = MemState(api_key="ms_any", transport=transport).chat_stream(MESSAGES)
    assert next(events).name == "intent"
    assert not transport.stream.closed
    events.close()
    assert transport.stream.closed

    async def listen() -> bool:
        transport = Streaming(EVENTS + DONE)
        async with AsyncMemState(api_key="ms_any", transport=transport) as client:
            events = client.chat_stream(MESSAGES)
            assert (await anext(events)).name == "intent"
            await events.aclose()
        return transport.stream.closed

    assert asyncio.run(listen())
