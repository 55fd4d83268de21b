"""A client for MemState in one module: typed, synchronous and asynchronous, with retries.

It needs Python 3.11 and ``httpx2``, and nothing else of MemState, so that this file may be copied into any project:

    from memstate import MemState                # or whatever the copy is called

    with MemState(api_key="ms_...") as memory:
        memory.ingest("new_topic", title="Tea", summary="Mara drinks green tea.", scope="/user/mara")
        print(memory.query("What does she drink?", scope="/user/mara")["summary_text"])

``AsyncMemState`` has the same methods, to be awaited. Arguments are those of the API, with its defaults; replies are
plain dictionaries whose members are typed below. Whatever goes wrong is a ``MemStateError``, whose text is a sentence.

What is as good done twice as once is sent again when the connection breaks, or the answer is 429, 502, 503 or 504:
reading, PUT and DELETE, and storing and messages to the assistant, which send an ``Idempotency-Key`` of their own. The
client waits meanwhile, as long as ``Retry-After`` says or else for longer each time. Everything else is sent once, and
so is what is answered event by event.
"""

import asyncio
import copy
import datetime as dt
import email.utils
import json
import os
import random
import time
import urllib.parse
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, ParamSpec, Self, TypedDict, TypeVar, cast

import httpx2

# A moment: with an offset, as a datetime or as text such as 2026-03-01T00:00:00Z.
When = str | dt.datetime

P = ParamSpec("P")
Item = TypeVar("Item")
Page = TypeVar("Page", bound=Mapping[str, Any])

# The wait before the second attempt, in seconds; it doubles with each, up to the second number.
FIRST_WAIT, LONGEST_WAIT = 0.5, 20.0
# How the server calls it that the first of two requests with one key is still at work.
STILL_IN_PROGRESS = "urn:memstate:problem:still-in-progress"
# How much later than Retry-After says we come at most, so that not all who wait come at once.
SPREAD = 0.25


# --- What can go wrong -----------------------------------------------------------------------------------------------


class MemStateError(Exception):
    """A request that did not succeed; the classes below say how. ``detail`` is a sentence to show.

    ``status``, ``title``, ``type`` and ``members`` are those of the problem document; ``status`` is None if no reply
    came. ``retry_after`` is in seconds, if the server named a wait. ``passing`` tells that trying again may help.
    """

    def __init__(
        self, detail: str, *, status: int | None = None, members: Mapping[str, Any] | None = None,
        retry_after: float | None = None, passing: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.members: dict[str, Any] = dict(members or {})
        self.title: str = str(self.members.get("title", ""))
        self.type: str = str(self.members.get("type", "about:blank"))
        self.retry_after = retry_after
        self.passing = passing

    def __str__(self) -> str:
        """Return the sentence, after the status if there is one."""
        return self.detail if self.status is None else f"{self.status}: {self.detail}"


class Refused(MemStateError):
    """The request itself is wrong, or too large (400, 413, 422). Nothing was written."""


class NotAllowed(MemStateError):
    """The key is unknown or has ended, or its role does not cover this (401, 403)."""


class NotFound(MemStateError):
    """What is named does not exist, or lies outside the scope of the key (404)."""


class Conflict(MemStateError):
    """The request collides with the present state (409)."""


class TooManyRequests(MemStateError):
    """The key has used up its requests of this minute (429); see ``retry_after``."""


class ServerFault(MemStateError):
    """Something went wrong in the server, whose log says what (500)."""


class Unavailable(MemStateError):
    """The server, or the gateway before it, cannot answer at present (502, 503, 504)."""


class ConnectionBroken(MemStateError):
    """No whole reply came. Whether the request had its effect is not known, unless no connection was made at all."""


class TimedOut(ConnectionBroken):
    """The server was silent for longer than ``timeout``."""


_KINDS: dict[int, type[MemStateError]] = {
    400: Refused, 401: NotAllowed, 403: NotAllowed, 404: NotFound, 409: Conflict, 413: Refused, 422: Refused,
    429: TooManyRequests, 500: ServerFault, 502: Unavailable, 503: Unavailable, 504: Unavailable,
}  # fmt: skip
_PASSING = (429, 502, 503, 504)


def _seconds_of(header: str | None) -> float | None:
    """Return the seconds that a Retry-After names, as a number or as a date; None if it names none."""
    if not header:
        return None
    try:
        return max(0.0, float(int(header)))
    except (ValueError, OverflowError):
        pass
    try:
        moment = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return max(0.0, (moment - dt.datetime.now(dt.UTC)).total_seconds())


def _problem_of(response: httpx2.Response, call: "_Call") -> MemStateError:
    """Return what a reply that is no success means. Its body has been read."""
    status = response.status_code
    try:
        body = response.json()
    except ValueError:
        body = None
    members = body if isinstance(body, dict) else {}
    detail = members.get("detail")
    if not isinstance(detail, str) or not detail:
        detail = f"The server answered {status} {response.reason_phrase}".rstrip() + " and did not say why."
        if 300 <= status < 400:
            detail = f"The server sends elsewhere ({status}); the base_url is not the address of MemState itself."
    waiting = call.keyed and members.get("type") == STILL_IN_PROGRESS
    return _KINDS.get(status, MemStateError)(
        detail,
        status=status,
        members={"title": response.reason_phrase, **members},
        retry_after=_seconds_of(response.headers.get("Retry-After")),
        passing=status in _PASSING or waiting,
    )


def _broken_by(problem: httpx2.RequestError, call: "_Call") -> MemStateError:
    """Return what an exception of the transport means."""
    what = f"{call.method} {call.path}"
    if isinstance(problem, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return ConnectionBroken(f"{what}: no connection to the server; nothing was sent. ({problem})", passing=True)
    if isinstance(problem, httpx2.TimeoutException):
        return TimedOut(f"{what}: the server took longer than the timeout.", passing=True)
    # What is wrong with the request or the address stays wrong.
    passing = not isinstance(problem, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError)
    return ConnectionBroken(f"{what}: the connection broke. ({problem or type(problem).__name__})", passing=passing)


# --- One request, without sending it ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Route:
    """One operation of the API: where its arguments go. The default ``...`` stands for one that must be given."""

    method: str
    path: str
    query: Mapping[str, object] = field(default_factory=dict)
    body: Mapping[str, object] = field(default_factory=dict)
    # The argument that is the whole body, in place of the above.
    whole: str = ""
    body_required: bool = False
    # Twice is as good as once.
    repeatable: bool = False
    # It takes an Idempotency-Key, so that it may be sent again.
    keyed: bool = False


@dataclass(frozen=True)
class _Call:
    """One request. Sent again, it is the same, its key included."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    content: bytes | None
    headers: Mapping[str, str]
    keyed: bool
    repeatable: bool


def _given(arguments: Mapping[str, Any], defaults: Mapping[str, object]) -> dict[str, Any]:
    """Return what differs from the defaults of the API, by the API's names."""
    given = {name: arguments[name] for name in defaults}
    return {
        name.rstrip("_"): value
        for name, value in given.items()
        if defaults[name] is ... or (value is not None and value != defaults[name])
    }


def _json_of(value: object) -> Any:
    """Return what JSON can say of a value that it does not know."""
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value.isoformat()} has no offset; say which time zone it is meant in.")
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot be said in JSON.")


def _texts_of(value: Any) -> list[str]:
    """Return a value as an address says it, or several."""
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, str | int | float):
        return [str(value)]
    if isinstance(value, Sequence):
        return [text for each in value for text in _texts_of(each)]
    return [_json_of(value)]


def _segment(value: object) -> str:
    """Return a value as one segment of an address. One of dots alone would mean the folder above."""
    text = urllib.parse.quote(str(value), safe="")
    return text.replace(".", "%2E") if not text.strip(".") else text


def _scope_segments(scope: str) -> str:
    """Return a scope as part of an address, with a slash behind it: so it is a scope, whatever its last segment is."""
    segments = [_segment(segment) for segment in scope.strip("/").split("/") if segment]
    return "".join(f"{segment}/" for segment in segments)


# --- What both clients share -----------------------------------------------------------------------------------------


class _Core:
    """Settings, requests and replies; all but the sending."""

    def __init__(
        self, base_url: str, api_key: str | None, *, timeout: float, retries: int, scope: str | None, max_wait: float
    ) -> None:
        key = api_key if api_key is not None else os.environ.get("MEMSTATE_API_KEY", "")
        if not key:
            raise ValueError("A key is needed: give api_key, or set MEMSTATE_API_KEY.")
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ValueError("The key holds characters that no key has; was something else copied with it?")
        self._settings: dict[str, Any] = {
            "base_url": base_url, "headers": {"X-API-Key": key, "User-Agent": "memstate-client/1"},
        }  # fmt: skip
        self._base_url = base_url
        self._timeout = timeout
        self._retries = retries
        self._max_wait = max_wait
        self._scope = scope

    def __repr__(self) -> str:
        """Return what may be shown: not the key, and no password that stands in the address."""
        return f"<{type(self).__name__} at {httpx2.URL(self._base_url).copy_with(userinfo=b'')}>"

    def with_timeout(self, seconds: float) -> Self:
        """Return the same client, over the same connections, with another timeout: for what takes long."""
        other = copy.copy(self)
        other._timeout = seconds
        return other

    def _call(self, route: _Route, arguments: Mapping[str, Any], *, headers: Mapping[str, str] | None = None) -> _Call:
        """Return the request that ``arguments`` make of ``route``."""
        path = route.path.format(**{
            name: _scope_segments(value) if name == "scope" else _segment(value)
            for name, value in arguments.items() if f"{{{name}}}" in route.path
        })  # fmt: skip
        query, body = _given(arguments, route.query), _given(arguments, route.body)
        for members, known in ((query, route.query), (body, route.body)):
            if "scope" in known and "scope" not in members:
                members.update(self._scope_for(arguments))
        whole: Any = body
        if route.whole:
            whole = [{**item, **self._scope_for(item)} for item in arguments[route.whole]]
        content = None
        told = {"Accept": "application/json", **(headers or {})}
        if whole or route.body_required:
            content = json.dumps(whole, default=_json_of, allow_nan=False, separators=(",", ":")).encode()
            told["Content-Type"] = "application/json"
        if route.keyed:
            told["Idempotency-Key"] = arguments["idempotency_key"] or str(uuid.uuid4())
        pairs = tuple((name, text) for name, value in query.items() for text in _texts_of(value))
        return _Call(route.method, path, pairs, content, told, route.keyed, route.keyed or route.repeatable)

    def _scope_for(self, members: Any) -> dict[str, str]:
        """Return the scope of this client as a member, where none is said. What is ingested into a topic stays where
        that lives, and a conversation goes on where it began."""
        if self._scope is None or not isinstance(members, Mapping) or members.get("scope") is not None:
            return {}
        if members.get("conversation_id") is not None:
            return {}
        return {"scope": self._scope} if members.get("placement", "new_topic") == "new_topic" else {}

    def _request(self, http_client: httpx2.Client | httpx2.AsyncClient, call: _Call) -> httpx2.Request:
        return http_client.build_request(
            call.method, call.path, params=call.query or None, content=call.content, headers=call.headers,
            timeout=self._timeout,
        )  # fmt: skip

    def _told(self, response: httpx2.Response, call: _Call) -> Any:
        """Return the JSON of a reply. Raises what a refusal means."""
        if not response.is_success:
            raise _problem_of(response, call)
        if not response.content:
            return None
        try:
            return response.json()
        except ValueError:
            raise MemStateError(
                f"{call.method} {call.path}: the reply is not JSON; is the base_url the address of MemState?",
                status=response.status_code,
            ) from None

    def _wait_after(self, failure: MemStateError, call: _Call, *, attempt: int) -> float:
        """Return the seconds to wait before the attempt after this one, the first being 0. Raises if there is none."""
        if not (call.repeatable and failure.passing) or attempt >= self._retries:
            raise failure
        # Not all who were turned away at once are to come back at once.
        pause = min(LONGEST_WAIT, FIRST_WAIT * 2.0**attempt) * random.uniform(0.5, 1.0)  # noqa: S311
        if failure.retry_after is None:
            return pause
        if failure.retry_after > self._max_wait:
            raise failure
        return max(pause, failure.retry_after + random.uniform(0.0, SPREAD))  # noqa: S311


_LONG = {"Accept": "text/event-stream, application/json;q=0.5"}


def _streams(response: httpx2.Response) -> bool:
    """Tell whether the reply comes event by event."""
    return str(response.headers.get("Content-Type", "")).startswith("text/event-stream")


def _broken_off(call: _Call) -> ConnectionBroken:
    return ConnectionBroken(f"{call.method} {call.path}: the reply broke off before its end.", passing=True)


class _Sender(_Core):
    """Sends, and waits meanwhile."""

    _http: httpx2.Client

    def __enter__(self) -> Self:
        """Return the client itself; its connections are closed at the end."""
        return self

    def __exit__(self, *_problem: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        self._http.close()

    def _ask(self, route: _Route, arguments: Mapping[str, Any]) -> Any:
        return self._until_told(self._once, self._call(route, arguments))

    def _ask_long(self, route: _Route, arguments: Mapping[str, Any]) -> Any:
        """Return the whole reply of a route that can stream, by its stream: so that the timeout is one of silence."""
        return self._until_told(self._once_streamed, self._call(route, arguments, headers=_LONG))

    def _until_told(self, once: Callable[[_Call], Any], call: _Call) -> Any:
        attempt = 0
        while True:
            try:
                return once(call)
            except MemStateError as failure:
                pause = self._wait_after(failure, call, attempt=attempt)
            time.sleep(pause)
            attempt += 1

    def _once(self, call: _Call) -> Any:
        try:
            response = self._http.send(self._request(self._http, call))
        except httpx2.RequestError as problem:
            raise _broken_by(problem, call) from problem
        return self._told(response, call)

    @contextmanager
    def _opened(self, call: _Call) -> Iterator[httpx2.Response]:
        try:
            response = self._http.send(self._request(self._http, call), stream=True)
            try:
                if not response.is_success:
                    response.read()
                    raise _problem_of(response, call)
                yield response
            finally:
                response.close()
        except httpx2.RequestError as problem:
            raise _broken_by(problem, call) from problem

    def _events(self, route: _Route, arguments: Mapping[str, Any]) -> Iterator["Event"]:
        call = self._call(route, arguments, headers={"Accept": "text/event-stream"})
        with self._opened(call) as response:
            for event in httpx2.EventSource(response, max_event_size=None):
                yield (told := _event_of(event))
                if told.name == "done":
                    return
        raise _broken_off(call)

    def _once_streamed(self, call: _Call) -> Any:
        with self._opened(call) as response:
            if not _streams(response):
                response.read()
                return self._told(response, call)
            for event in httpx2.EventSource(response, max_event_size=None):
                if (told := _event_of(event)).name == "done":
                    return told.data
        raise _broken_off(call)

    @staticmethod
    def pages(method: Callable[P, Page], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[Page]:
        """Call a method that answers in pages until there is none, as in ``memory.pages(memory.topics, limit=100)``."""
        more: dict[str, Any] = dict(kwargs)
        while True:
            page = cast("Callable[..., Page]", method)(*args, **more)
            yield page
            more["cursor"] = page.get("next")
            if more["cursor"] is None:
                return


class _AsyncSender(_Core):
    """Sends, and lets others work meanwhile. Like ``_Sender``, line by line."""

    _http: httpx2.AsyncClient

    async def __aenter__(self) -> Self:
        """Return the client itself; its connections are closed at the end."""
        return self

    async def __aexit__(self, *_problem: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        await self._http.aclose()

    async def _ask(self, route: _Route, arguments: Mapping[str, Any]) -> Any:
        return await self._until_told(self._once, self._call(route, arguments))

    async def _ask_long(self, route: _Route, arguments: Mapping[str, Any]) -> Any:
        """Return the whole reply of a route that can stream, by its stream: so that the timeout is one of silence."""
        return await self._until_told(self._once_streamed, self._call(route, arguments, headers=_LONG))

    async def _until_told(self, once: Callable[[_Call], Awaitable[Any]], call: _Call) -> Any:
        attempt = 0
        while True:
            try:
                return await once(call)
            except MemStateError as failure:
                pause = self._wait_after(failure, call, attempt=attempt)
            await asyncio.sleep(pause)
            attempt += 1

    async def _once(self, call: _Call) -> Any:
        try:
            response = await self._http.send(self._request(self._http, call))
        except httpx2.RequestError as problem:
            raise _broken_by(problem, call) from problem
        return self._told(response, call)

    @asynccontextmanager
    async def _opened(self, call: _Call) -> AsyncIterator[httpx2.Response]:
        try:
            response = await self._http.send(self._request(self._http, call), stream=True)
            try:
                if not response.is_success:
                    await response.aread()
                    raise _problem_of(response, call)
                yield response
            finally:
                await response.aclose()
        except httpx2.RequestError as problem:
            raise _broken_by(problem, call) from problem

    async def _events(self, route: _Route, arguments: Mapping[str, Any]) -> AsyncIterator["Event"]:
        call = self._call(route, arguments, headers={"Accept": "text/event-stream"})
        async with self._opened(call) as response:
            async for event in httpx2.EventSource(response, max_event_size=None):
                yield (told := _event_of(event))
                if told.name == "done":
                    return
        raise _broken_off(call)

    async def _once_streamed(self, call: _Call) -> Any:
        async with self._opened(call) as response:
            if not _streams(response):
                await response.aread()
                return self._told(response, call)
            async for event in httpx2.EventSource(response, max_event_size=None):
                if (told := _event_of(event)).name == "done":
                    return told.data
        raise _broken_off(call)

    @staticmethod
    async def pages(method: Callable[P, Awaitable[Page]], /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[Page]:
        """Call a method that answers in pages until there is none, as in ``memory.pages(memory.topics, limit=100)``."""
        more: dict[str, Any] = dict(kwargs)
        while True:
            page = await cast("Callable[..., Awaitable[Page]]", method)(*args, **more)
            yield page
            more["cursor"] = page.get("next")
            if more["cursor"] is None:
                return


@dataclass(frozen=True)
class Event:
    """One event of a reply that comes as it grows: its name, and what its data says."""

    name: str
    data: Any


def _event_of(event: httpx2.ServerSentEvent) -> Event:
    """Return an event with its data read. Raises what the server says went wrong meanwhile."""
    try:
        data = json.loads(event.data)
    except ValueError:
        data = event.data
    if event.event == "error":
        members = data if isinstance(data, dict) else {}
        status = members.get("status")
        status = status if isinstance(status, int) else None
        detail = members.get("detail") or "The server broke off and did not say why."
        kind = _KINDS.get(status or 0, MemStateError)
        raise kind(str(detail), status=status, members=members, passing=status in _PASSING)
    return Event(event.event, data)


# --- Generated from the routes by `manage.py client`; what is changed here is lost -----------------------------------


class IngestField(TypedDict):
    """A value for a named field. Unknown members are ignored, so that newer clients keep working."""

    name: str
    # Text, or for types other than string also a JSON value of that type.
    value: NotRequired[Any]
    field_type: NotRequired[Literal["string", "int", "float", "bool", "date", "datetime", "list", "json"]]
    # Topic that the value stands for. Left out keeps the reference, null removes it.
    ref_topic_id: NotRequired[str | None]
    why_changed: NotRequired[str | None]
    impact_expected: NotRequired[str | None]
    provenance: NotRequired[str]


class IngestEdge(TypedDict):
    """A link from the topic to another."""

    to_topic_id: str
    kind: NotRequired[str]


class IngestReply(TypedDict):
    """What one item did."""

    topic_id: str
    # created_topic:<id>, field:<name>, version:<name>, edge:<to>
    applied: list[str]
    # Id of the new revision, by field name.
    version_ids: dict[str, str]
    similar_topic_ids: list[str]


class IngestItem(TypedDict):
    """One observation and where it belongs."""

    placement: Literal["new_topic", "extend_topic", "version_field"]
    topic_id: NotRequired[str | None]
    # Used by new_topic; empty becomes 'untitled'.
    title: NotRequired[str]
    # Used by new_topic.
    summary: NotRequired[str | None]
    topic_kind: NotRequired[str | None]
    salience: NotRequired[float]
    fields: NotRequired[Sequence[IngestField]]
    edges: NotRequired[Sequence[IngestEdge]]
    suggest_similar: NotRequired[bool]
    scope: NotRequired[str | None]
    categories: NotRequired[Sequence[str]]
    valid_from: NotRequired[When | None]
    pinned: NotRequired[bool]
    # Operator keys: the moment in the past it was learned.
    created_at: NotRequired[When | None]


class BatchItemReply(TypedDict):
    """One item of a batch: its status, and either what it did or why it was refused."""

    index: int
    status: int
    topic_id: NotRequired[str | None]
    applied: NotRequired[list[str]]
    version_ids: NotRequired[dict[str, str]]
    similar_topic_ids: NotRequired[list[str]]
    # What is wrong, as in a problem document; of a refused item.
    type: NotRequired[str | None]
    detail: NotRequired[str | None]


class BatchReply(TypedDict):
    """The outcome of each item, in the order sent."""

    results: list[BatchItemReply]
    accepted: int
    refused: int


class KnownFact(TypedDict):
    """A fact that was not stored again, and the topic that says it."""

    text: str
    topic_id: str


class ExtractReply(TypedDict):
    """What a text states."""

    # Each a self-contained sentence of at most 500 characters.
    extracted: list[str]
    # Ids of the topics that were made, in the order of their facts.
    stored: list[str]
    skipped_duplicates: list[KnownFact]
    # llm only if a language model told all of it.
    method: Literal["llm", "extractive"]
    # One for each part of the text.
    methods: list[Literal["llm", "extractive"]]
    # How the facts were found, and what that cannot do.
    note: str
    warning: NotRequired[str | None]
    # The topic that holds the text, outside every query.
    source_topic_id: NotRequired[str | None]
    # What was left out: sentences by what they are, facts by what is wrong.
    dropped: dict[str, int]


class ExtractAccepted(TypedDict):
    """The text is kept, and the worker extracts its facts."""

    job_id: str
    status: str
    segments: int
    source_topic_id: str | None


class ExtractionOut(TypedDict):
    """An extraction in the background, and what it has come to so far."""

    # Each a self-contained sentence of at most 500 characters.
    extracted: list[str]
    # Ids of the topics that were made, in the order of their facts.
    stored: list[str]
    skipped_duplicates: list[KnownFact]
    # llm only if a language model told all of it.
    method: Literal["llm", "extractive"]
    # One for each part of the text.
    methods: list[Literal["llm", "extractive"]]
    # How the facts were found, and what that cannot do.
    note: str
    warning: NotRequired[str | None]
    # The topic that holds the text, outside every query.
    source_topic_id: NotRequired[str | None]
    # What was left out: sentences by what they are, facts by what is wrong.
    dropped: dict[str, int]
    job_id: str
    status: Literal["working", "done", "cancelled", "failed"]
    scope: str
    kind: str
    segments: int
    done: int
    # Share of the segments that are stored, 0 to 1.
    progress: float
    actor: str
    failure: str | None
    created_at: str
    finished_at: str | None


class NeighborOut(TypedDict):
    """A topic reached over links."""

    topic_id: str
    kind: str
    title: str
    summary: str
    topic_kind: str
    direction: Literal["out", "in"]
    depth: int


class RevisionOut(TypedDict):
    """One value a field has had."""

    id: str
    value: str
    valid_from: str
    provenance: str
    why_changed: str
    impact_expected: str
    recorded_at: str
    seq: int


class FieldSummaryOut(TypedDict):
    """What the cold revisions of a field amount to. ``depth`` 2 is a summary that took in an earlier one."""

    text: str
    from_seq: int
    through_seq: int
    method: Literal["extractive", "llm"]
    depth: int


class FieldOut(TypedDict):
    """A field with its current revision; ``history`` is oldest first."""

    id: str
    name: str
    field_type: str
    ref_topic_id: str | None
    current: RevisionOut | None
    history: list[RevisionOut]
    # In place of revisions that have turned cold; include_cold brings those themselves.
    summary: NotRequired[FieldSummaryOut | None]
    salience: float


class Candidate(TypedDict):
    """One bundle of an answer."""

    topic_id: str
    title: str
    summary: str
    topic_kind: str
    # Effective, at the moment of the reply.
    salience: float
    failed_salience: float
    scope: str
    rung: Literal["active", "summarized", "detached", "archived"]
    categories: list[str]
    pinned: bool
    created_at: str
    updated_at: str
    retrieval_count: int
    last_retrieved_at: str | None
    # Cosine between question and topic.
    similarity: NotRequired[float | None]
    # What the candidates are ranked by.
    score: NotRequired[float | None]
    neighbors: list[NeighborOut]
    fields: list[FieldOut]
    # With explain: the parts of the score, which sum up to it times decay.
    score_parts: NotRequired[dict[str, float] | None]


class QueryReply(TypedDict):
    """The answer: bundles, best first, and the same as text."""

    query: str
    candidates: list[Candidate]
    summary_text: str
    # With explain: milliseconds per stage, and more.
    explain: NotRequired[dict[str, Any] | None]


class TopicRow(TypedDict):
    """A topic as lists and lookups show it."""

    topic_id: str
    title: str
    summary: str
    topic_kind: str
    # Effective, at the moment of the reply.
    salience: float
    failed_salience: float
    scope: str
    rung: Literal["active", "summarized", "detached", "archived"]
    categories: list[str]
    pinned: bool
    created_at: str
    updated_at: str
    retrieval_count: int
    last_retrieved_at: str | None
    archived: bool
    pin_reason: str
    released_at: str | None
    merged_into: str | None
    provenance: str


class TopicPage(TypedDict):
    """One page; ``next`` is the cursor of the page after it, null on the last."""

    items: list[TopicRow]
    next: str | None


class DetailField(TypedDict):
    """A field in a lookup: how many revisions it has, how many are cold, and whether it is detached."""

    id: str
    name: str
    field_type: str
    ref_topic_id: str | None
    current: RevisionOut | None
    history: list[RevisionOut]
    # In place of revisions that have turned cold; include_cold brings those themselves.
    summary: NotRequired[FieldSummaryOut | None]
    salience: float
    revisions: int
    cold_revisions: int
    detached: bool


class DetailNeighbor(TypedDict):
    """A linked topic in a lookup, at whatever rung it stands."""

    topic_id: str
    kind: str
    title: str
    summary: str
    topic_kind: str
    direction: Literal["out", "in"]
    depth: int
    rung: Literal["active", "summarized", "detached", "archived"]


class MergedTopic(TypedDict):
    """A topic that was merged into another. ``merged_into`` is the one it went into first."""

    topic_id: str
    title: str
    provenance: str
    created_at: str
    merged_into: str


class TopicDetail(TypedDict):
    """A topic with all its fields and links, and what was merged into it."""

    topic_id: str
    title: str
    summary: str
    topic_kind: str
    # Effective, at the moment of the reply.
    salience: float
    failed_salience: float
    scope: str
    rung: Literal["active", "summarized", "detached", "archived"]
    categories: list[str]
    pinned: bool
    created_at: str
    updated_at: str
    retrieval_count: int
    last_retrieved_at: str | None
    archived: bool
    pin_reason: str
    released_at: str | None
    merged_into: str | None
    provenance: str
    fields: list[DetailField]
    neighbors: list[DetailNeighbor]
    also_from: list[MergedTopic]


class PurgeReply(TypedDict):
    """What a purge erased. Kept elsewhere, number and hash prove later that no receipt was taken out since."""

    receipt_id: str
    number: int
    # The topic, those that were merged into it, and the texts they were extracted from.
    topic_ids: list[str]
    # Rows erased or masked, by table.
    counts: dict[str, int]
    hash: str


class HistoryRevision(TypedDict):
    """A revision in full."""

    id: str
    value: str
    valid_from: str
    provenance: str
    why_changed: str
    impact_expected: str
    recorded_at: str
    seq: int
    field_type: str
    ref_topic_id: str | None
    actor: str
    cold: bool


class HistoryPage(TypedDict):
    """Revisions, newest first."""

    items: list[HistoryRevision]
    next: str | None


class ChatMessage(TypedDict):
    """One message of the conversation. Those of the role ``system`` are wishes, which stand behind our instructions."""

    role: Literal["user", "assistant", "system"]
    content: str


class ToolCallOut(TypedDict):
    """A function that the model called."""

    tool: str
    # As the model sent them; text if they were no JSON.
    arguments: Any
    # What of the result it was told, 16,000 characters at most, with left_out where a list was longer; {error} if
    # it was refused.
    result: Any
    ok: bool
    ms: float
    # The topics that it read or wrote.
    topic_ids: list[str]


class StudyOut(TypedDict):
    """How far the study of a long message has come. No word of the message is in it."""

    study_id: str
    conversation_id: str
    status: Literal["working", "done", "cancelled", "failed"]
    # building makes topics of the text by themselves, linking puts them in their place among the rest.
    phase: Literal["building", "waiting", "linking"]
    scope: str
    # The kind of its topics, by which they are listed.
    kind: str
    # The model that was asked for; empty for the usual one.
    model: str
    actor: str
    # Parts that the text is cut into.
    segments: int
    # Parts whose topics are stored.
    done: int
    # Topics that linking looks at; 0 until it begins.
    to_link: int
    linked: int
    # 0 to 1, over both phases.
    progress: float
    # Topics made so far.
    topics: int
    # Links that linking has made.
    links: int
    # Of the topics, those that were merged into topics known before.
    merged: int
    # The topic that holds the text, outside every query.
    source_topic_id: str | None
    # What went otherwise than it should, in sentences.
    warning: str | None
    # Why it has failed, or why it waits.
    failure: str | None
    # When it goes on, if it waits.
    waits_until: str | None
    created_at: str
    moved_at: str
    finished_at: str | None


class ChatReply(TypedDict):
    """The answer, and how it came about."""

    reply: str
    intent: Literal["query", "ingest", "both"]
    # Who says so: the request, the model, or a rule where that is of no help.
    intent_source: Literal["override", "model", "rule"]
    # In the order in which they were made. Beyond 500,000 characters of all, only that they were.
    tool_log: list[ToolCallOut]
    model: str
    # How often tools were used before the answer.
    rounds: int
    # Send it to go on; whatever is written is noted with it.
    conversation_id: str
    # done, or why it ended before: the most rounds, the time, or the model, which failed.
    ended: Literal["done", "rounds", "time", "model"]
    # The job that a long text became, as GET /v1/studies/{id} tells it.
    study: StudyOut | None


class ConversationOut(TypedDict):
    """Messages to the assistant that belong together."""

    conversation_id: str
    # The beginning of the first message; empty if that was erased.
    name: str
    scope: str
    channel: Literal["api", "console"]
    # Who began it, and alone goes on with it.
    actor: str
    turns: int
    created_at: str
    # When the last message came or was answered.
    moved_at: str
    # When what it wrote was last taken back.
    undone_at: str | None
    undone_by: str | None


class ConversationPage(TypedDict):
    """Conversations, the one that moved last first; ``next`` is the cursor of the next page, null on the last."""

    items: list[ConversationOut]
    next: str | None


class WrittenOut(TypedDict):
    """A topic that a conversation wrote to."""

    topic_id: str
    title: str
    # It is the conversation's own.
    made: bool
    released: bool
    # Into another topic.
    merged: bool


class WroteOut(TypedDict):
    """What a conversation and its studies wrote, but for what was erased."""

    # Made.
    topics: int
    # Newer values of fields that were there.
    values: int
    fields: int
    links: int
    merges: int
    # Of all these, what an undo has taken back.
    taken_back: int
    # How many topics it wrote to.
    topic_count: int
    # These topics, the latest first; the first thousand.
    items: list[WrittenOut]


class CallOut(TypedDict):
    """A function that the model called, as a conversation keeps it: what it returned is not kept."""

    tool: str
    # As the model sent them, cut where they are long; empty if erased.
    arguments: Any
    ok: bool
    ms: float
    # The topics that it read or wrote.
    topic_ids: list[str]
    # What came of it, in a few words.
    said: str


class TurnOut(TypedDict):
    """A message and what became of it."""

    # From 1, without a gap.
    place: int
    at: str
    # Of a text that is studied, only how long it was.
    message: str
    reply: str
    intent: Literal["query", "ingest", "both"] | None
    intent_source: Literal["override", "model", "rule"] | None
    model: str
    rounds: int
    # How it ended: done, at a limit, with the model's failure, because whoever asked went away, by a fault or a
    # late refusal, or with its process; or that the assistant is at it.
    ended: Literal["working", "done", "rounds", "time", "model", "stopped", "failed", "lost"]
    # A purge has emptied it.
    erased: bool
    tool_log: list[CallOut]
    # The job that a long message became.
    study: StudyOut | None


class ConversationDetail(TypedDict):
    """A conversation with its turns, the newest first; ``next`` is the cursor of the next page, null on the last."""

    conversation_id: str
    # The beginning of the first message; empty if that was erased.
    name: str
    scope: str
    channel: Literal["api", "console"]
    # Who began it, and alone goes on with it.
    actor: str
    turns: int
    created_at: str
    # When the last message came or was answered.
    moved_at: str
    # When what it wrote was last taken back.
    undone_at: str | None
    undone_by: str | None
    wrote: WroteOut
    items: list[TurnOut]
    next: str | None


class TakenBack(TypedDict):
    """How much of each sort."""

    # Made by the conversation; released.
    topics: int
    # Written over by it; what was there before is a new revision.
    values: int
    # Added by it to topics that were there; their newest revision is empty.
    fields: int
    # Made by it between topics that were there; removed.
    links: int
    # Of its studies; taken apart.
    merges: int


class UndoneItem(TypedDict):
    """One thing that is taken back. A link stands with its source."""

    what: Literal["topic", "value", "field", "link", "merge"]
    topic_id: str
    title: str
    told: str


class LeftItem(TypedDict):
    """One thing that is left as it is."""

    what: Literal["topic", "value", "field", "link", "merge"]
    topic_id: str
    title: str
    told: str
    why: str


class ConversationUndoReply(TypedDict):
    """What an undo did, or would do. The lists hold the first thousand of each."""

    conversation_id: str
    dry_run: bool
    sentence: str
    taken_back: TakenBack
    items: list[UndoneItem]
    left: list[LeftItem]
    left_count: int
    studies_cancelled: int
    # Takes the release of its topics back.
    run_id: str | None
    # Of a dry run: what tells whether the same would be done later.
    digest: str | None


class StudyPage(TypedDict):
    """Studies, newest first, and the cursor of the next page."""

    items: list[StudyOut]
    next: str | None


class FilterIn(TypedDict):
    """What all topics of a command have in common; what is left out is not asked about."""

    scope: NotRequired[str | None]
    # Age since creation: 30d, 2w, 6m, 1y, 24h.
    older_than: NotRequired[str | None]
    # Any of them.
    categories: NotRequired[Sequence[str] | None]
    kinds: NotRequired[Sequence[str] | None]
    ids: NotRequired[Sequence[str] | None]


class ForgetMatch(TypedDict):
    """A topic that would go."""

    topic_id: str
    title: str
    summary: str
    scope: str
    topic_kind: str
    standing: str
    pinned: bool
    why: str
    # 0 to 1.
    confidence: float
    # By what it was found.
    by: Literal["identifier", "name", "meaning", "filter"]
    excerpt: str
    # What the topic says beside this fact; that stays, as a topic of its own.
    keeps: str


class ForgetReply(TypedDict):
    """A list, and what became of it. ``token`` is null where there is nothing to execute."""

    token: str | None
    expires_at: str
    verb: Literal["release", "purge"]
    count: int
    ambiguous: bool
    # What is asked back, or why nothing was found.
    question: str
    # At most 200 of them.
    matches: list[ForgetMatch]
    executed: bool
    run_id: NotRequired[str | None]
    receipt_id: NotRequired[str | None]


class SupersededOut(TypedDict):
    """What became of one topic."""

    topic_id: str
    mode: Literal["whole", "part"]
    before: str
    after: str
    # 0 to 1.
    confidence: float
    # By what it was found.
    by: Literal["identifier", "name", "meaning"]


class SupersedeReply(TypedDict):
    """Where the new text stands, and what it replaced."""

    topic_id: str
    superseded: list[SupersededOut]


class ReceiptOut(TypedDict):
    """That something was erased: ids and keyed hashes, no word of it. Receipts form a chain."""

    receipt_id: str
    number: int
    at: str
    actor: str
    # With whatever it named of what was erased masked.
    reason: str
    scope: str
    topic_ids: list[str]
    # HMAC-SHA-256 of each erased text that nothing else says.
    content_hashes: list[str]
    # The same of each identifier that nothing else names.
    identifier_hashes: list[str]
    counts: dict[str, int]
    # Empty for the first receipt.
    previous_hash: str
    # HMAC-SHA-256 of the reason as it was given; a later purge may mask it.
    reason_hash: str
    # SHA-256 over all other members but the reason.
    hash: str


class ReceiptPage(TypedDict):
    """Receipts, newest first."""

    items: list[ReceiptOut]
    next: str | None


class PairTopic(TypedDict):
    """One of two topics."""

    topic_id: str
    title: str
    summary: str
    updated_at: str


class PairOut(TypedDict):
    """Two topics of one scope and kind that may be one. A merge keeps ``newer``."""

    id: str
    scope: str
    kind: str
    # duplicate: they say the same; supersedes: the newer may replace the older.
    verdict: Literal["duplicate", "supersedes"]
    # lapsed: one of the two has changed or left; it waits to be compared anew.
    state: Literal["open", "merged", "kept", "superseded", "undone", "lapsed"]
    # Cosine of the two texts.
    similarity: float | None
    same_title: bool
    # Something that matters differs, so that it is never merged by itself.
    held: bool
    # What differs, in sentences.
    held_because: list[str]
    newer: PairTopic
    older: PairTopic
    survivor: str | None
    found_at: str
    decided_at: str | None
    decided_by: str
    reason: str
    # The run that takes the decision back.
    run_id: str | None


class PairPage(TypedDict):
    """Pairs, found last first."""

    items: list[PairOut]
    next: str | None


class PairDifference(TypedDict):
    """Something that matters and differs; empty where a side says nothing of the kind."""

    sort: str
    older: str
    newer: str
    where: str
    sentence: str


class PairDetail(TypedDict):
    """A pair with what matters and differs, and what a merge would do."""

    id: str
    scope: str
    kind: str
    # duplicate: they say the same; supersedes: the newer may replace the older.
    verdict: Literal["duplicate", "supersedes"]
    # lapsed: one of the two has changed or left; it waits to be compared anew.
    state: Literal["open", "merged", "kept", "superseded", "undone", "lapsed"]
    # Cosine of the two texts.
    similarity: float | None
    same_title: bool
    # Something that matters differs, so that it is never merged by itself.
    held: bool
    # What differs, in sentences.
    held_because: list[str]
    newer: PairTopic
    older: PairTopic
    survivor: str | None
    found_at: str
    decided_at: str | None
    decided_by: str
    reason: str
    # The run that takes the decision back.
    run_id: str | None
    differences: list[PairDifference]
    # What a merge would do; empty where there is nothing to merge.
    merge: dict[str, Any]
    # What can be decided now.
    may: list[Literal["merge", "keep", "supersede", "undo"]]
    # Why nothing can be decided, if so.
    gone: str


class PairConflict(TypedDict):
    """A topic that changed since, and how."""

    topic_id: str
    why: str


class PairDecided(TypedDict):
    """What was decided. Of an undo, ``restored`` says whether both are as before; if not, nothing was touched."""

    pair: PairOut
    run_id: str | None
    # As merged:<topic>->:<survivor>.
    results: list[str]
    restored: NotRequired[bool | None]
    conflicts: NotRequired[list[PairConflict]]


class RunOut(TypedDict):
    """A run. ``counts`` tells what it does or would do; ``results`` each topic, in order."""

    run_id: str
    scope: str
    event: str
    status: Literal["planned", "held", "applying", "done", "undone", "failed"]
    dry_run: bool
    policy_version: int
    policy_versions: dict[str, int]
    counts: dict[str, int]
    # Left out of lists.
    results: NotRequired[list[str] | None]
    held_because: str | None
    # Why nothing was looked at: too few active topics for this event.
    gate: str | None
    failure: str | None
    planned: int
    applied: int
    skipped: int
    # Due, but beyond max_topics_for_forget_scan.
    left_over: int
    # Share of the planned actions that have been taken, 0 to 1.
    progress: float
    actor: str
    approved_by: str | None
    undone_by: str | None
    judged_at: str
    created_at: str
    started_at: str | None
    finished_at: str | None
    undone_at: str | None


class RunPage(TypedDict):
    """Runs, newest first."""

    items: list[RunOut]
    next: str | None


class ActionOut(TypedDict):
    """What a run does to one topic."""

    place: int
    topic_id: str
    title: str
    action: str
    state: Literal["planned", "applied", "skipped", "undone", "conflict"]
    from_rung: str
    to_rung: str
    score: float | None
    why: dict[str, Any]
    changes: dict[str, Any]
    salience_before: float | None
    salience_after: float | None
    note: str
    at: str | None


class ActionPage(TypedDict):
    """Actions in their order: lowest score first."""

    items: list[ActionOut]
    next: str | None


class ConflictOut(TypedDict):
    """A topic that undo left as it is, and why."""

    topic_id: str
    why: str


class UndoReply(TypedDict):
    """What an undo did. ``conflicts`` lists the first thousand."""

    run_id: str
    restored: int
    conflicts: list[ConflictOut]
    conflict_count: int


class EventReply(TypedDict):
    """The event has been noted; the worker answers within about a second."""

    event: str
    scope: str
    accepted: bool


class StepOut(TypedDict):
    """Topics that a run would move to a rung: under the policy in force, under the draft, and the difference."""

    now: int
    draft: int
    gained: int
    lost: int


class ProjectionOut(TypedDict):
    """What a run at that moment would do if nothing were used until then."""

    at: str
    # Under the draft.
    rungs: dict[str, int]
    # Under the policy in force.
    present: dict[str, int]


class HistogramOut(TypedDict):
    """Scores under the draft: ``edges`` has one entry more than each list of ``rungs``."""

    scale: Literal["log", "linear"]
    edges: list[float]
    rungs: dict[str, list[int]]


class AffectedOut(TypedDict):
    """One topic that a run under the draft would act on; ``new`` if a run under the policy in force would not."""

    topic_id: str
    title: str
    topic_kind: str
    scope: str
    action: str
    from_rung: str
    to_rung: str
    score: float
    why: dict[str, Any]
    new: bool


class PreviewReply(TypedDict):
    """What a draft would do."""

    scope: str
    active: int
    rungs: dict[str, StepOut]
    projections: list[ProjectionOut]
    histogram: HistogramOut
    affected: list[AffectedOut]
    next: str | None


class WhyStanding(TypedDict):
    """Where a topic stands now."""

    rung: Literal["active", "summarized", "detached", "archived"]
    released_at: str | None
    merged_into: str | None
    pinned: bool
    pin_reason: str
    protected_because: list[str]
    # As last written, at salience_at.
    salience: float
    salience_at: str
    score: float
    strategy: str
    # The scope whose policy holds.
    policy: str
    version: int


class WhyStep(TypedDict):
    """When a run would move the topic so far down, if nothing uses it; ``at`` is null for never."""

    rung: Literal["active", "summarized", "detached", "archived", "released"]
    at: str | None
    due: bool
    rule: str | None
    threshold: str | None
    theta: float | None
    never_because: str


class WhyNext(TypedDict):
    """What the next run would make of it, and the steps after that."""

    # A rung, or released; null for a topic that runs do not look at.
    now: str | None
    steps: list[WhyStep]
    # Why scheduled runs do nothing at present, if so.
    gate: str


class WhyEvent(TypedDict):
    """One thing that happened to it; what is beyond the caller's scope is null."""

    at: str
    by: Literal["run", "hand"]
    what: str
    state: Literal["applied", "held", "skipped", "undone", "conflict"]
    run_id: NotRequired[str | None]
    event: NotRequired[str | None]
    actor: str | None
    approved_by: NotRequired[str | None]
    judged_at: NotRequired[str | None]
    from_rung: Literal["active", "summarized", "detached", "archived"] | None
    to_rung: Literal["active", "summarized", "detached", "archived"] | None
    rule: NotRequired[str | None]
    threshold: NotRequired[str | None]
    theta: NotRequired[float | None]
    score: NotRequired[float | None]
    strategy: NotRequired[str | None]
    policy: NotRequired[str | None]
    version: NotRequired[int | None]
    policy_author: NotRequired[str | None]
    policy_reason: NotRequired[str | None]
    undone_at: NotRequired[str | None]
    undone_by: NotRequired[str | None]
    note: NotRequired[str]
    salience: NotRequired[float | None]
    reason: str


class WhyUse(TypedDict):
    """One retrieval that reinforced it."""

    at: str
    actor: str | None
    query: str | None


class WhyUses(TypedDict):
    """What reinforced it."""

    total: int
    last: list[WhyUse]


class WhyRescue(TypedDict):
    """What one more retrieval could have done against the run that archived it."""

    run_id: str
    run_at: str
    possible: bool
    earliest_sufficient: str | None
    latest: str | None
    # Whether any retrieval after its last use would have done.
    any_later_use: bool
    bump: float


class RegretTopic(TypedDict):
    """An archiving that was regretted, with its signals."""

    topic_id: str
    title: str
    topic_kind: str
    scope: str
    rung: Literal["active", "summarized", "detached", "archived"]
    archived_at: str
    by: Literal["run", "hand"]
    run_id: str | None
    policy: str | None
    version: int | None
    from_rung: Literal["active", "summarized", "detached", "archived"] | None
    signals: list[Literal["looked_up", "restored", "shadow"]]
    looked_up: int
    looked_up_at: str | None
    restored_at: str | None
    shadow_hits: int
    shadow_at: str | None
    shadow_rank: int | None


class WhyReply(TypedDict):
    """The why-card of a topic."""

    topic_id: str
    title: str
    topic_kind: str
    scope: str
    standing: WhyStanding
    next: WhyNext
    history: list[WhyEvent]
    reinforced: WhyUses
    rescue: WhyRescue | None
    regret: list[RegretTopic]
    sentences: list[str]


class BacktestOutcome(TypedDict):
    """What one way of forgetting had done; means over the draws for the lot."""

    archived: float
    # Topics retrieved, looked up or restored after they were archived.
    used_afterwards: float
    # Queries whose answer would have lacked at least one of them.
    missed_retrievals: float
    # Share of all topic-days on which a topic was out of retrieval.
    saved: float


class BacktestDay(TypedDict):
    """One run of the replay, for a chart."""

    at: str
    topics: int
    # Until then, this run included.
    archived: int
    # Queries until the next run that would have missed something.
    missed: int
    missed_by_lot: float


class BacktestReply(TypedDict):
    """The draft beside no forgetting, and beside archiving as many topics on the same days by lot."""

    scope: str
    start: str
    end: str
    runs: int
    topics: int
    retrievals: int
    draft: BacktestOutcome
    no_forgetting: BacktestOutcome
    by_lot: BacktestOutcome
    released: int
    summarized: int
    detached: int
    restored: int
    # Of the topics, at the end.
    archived_share: float
    days: list[BacktestDay]
    sentence: str
    # What a replay cannot know.
    notes: list[str]


class RegretSignals(TypedDict):
    """How many archivings have each signal; one may have several."""

    looked_up: int
    restored: int
    shadow: int


class RegretOfVersion(TypedDict):
    """The archivings of one version of a policy, or those by hand."""

    archived: int
    regretted: int
    rate: float
    signals: RegretSignals
    by: Literal["run", "hand"]
    policy: str | None
    version: int | None
    author: str | None
    reason: str | None


class RegretOfRung(TypedDict):
    """The archivings of topics that stood on one rung before."""

    archived: int
    regretted: int
    rate: float
    signals: RegretSignals
    rung: Literal["active", "summarized", "detached", "archived"] | None


class RegretReply(TypedDict):
    """Regret of a scope and everything below it."""

    archived: int
    regretted: int
    rate: float
    signals: RegretSignals
    scope: str
    since: str | None
    until: str | None
    by_version: list[RegretOfVersion]
    by_rung: list[RegretOfRung]
    topics: list[RegretTopic]
    sentence: str


class RuleOut(TypedDict):
    """A rule as it is stored."""

    name: str
    events: list[str]
    condition: dict[str, Any]
    action: str
    category: NotRequired[str | None]
    enabled: bool


class DiffLine(TypedDict):
    """One thing that a version changed; null stands for inherited, or for no such rule."""

    name: str
    before: NotRequired[Any]
    after: NotRequired[Any]
    in_words: str


class PolicyVersionOut(TypedDict):
    """One version of the policy of a scope."""

    scope: str
    version: int
    author: str
    reason: str
    created_at: str
    preset: str | None
    values: dict[str, float | int | bool | str | list[str]]
    rules: list[RuleOut]
    rules_in_words: list[str]
    rolled_back_to: int | None
    diff: list[DiffLine]


class PolicyVersionPage(TypedDict):
    """Versions, newest first; ``next`` is the cursor of the page after this one, null on the last."""

    items: list[PolicyVersionOut]
    next: str | None


# A rule that holds for a scope, in words.
RuleInForce = TypedDict("RuleInForce", {
    "name": str,
    "words": str,
    "enabled": bool,
    # The scope whose policy it stands in.
    "from": str,
    # The preset that brings it, if one does.
    "preset": NotRequired[str | None],
})  # fmt: skip


# A value in force and where it comes from.
EffectiveValue = TypedDict("EffectiveValue", {
    "value": float | int | bool | str | list[str],
    # A scope, default or environment.
    "from": str,
    # The preset of that scope which sets it, if one does.
    "preset": NotRequired[str | None],
})  # fmt: skip


class RekeyingOut(TypedDict):
    """A change of half-life on its way to the rows."""

    scope: str
    reason: str
    started_at: str
    # Topics looked at so far.
    done: int
    # Topics to look at; null before it has begun.
    total: int | None


class PolicyOut(TypedDict):
    """What is set at a scope, and what is in force there."""

    scope: str
    # 0 while nobody has set anything here.
    version: int
    preset: str | None
    # What is set here; everything else is inherited.
    values: dict[str, float | int | bool | str | list[str]]
    # The rules set here, without those of the preset.
    rules: list[RuleOut]
    # All rules that hold here, nearest scope first.
    rules_in_words: list[RuleInForce]
    effective: dict[str, EffectiveValue]
    # What is unwise about values in force; they are accepted all the same.
    warnings: list[str]
    # Changes of half-life that the worker has not brought to all rows.
    rekeying: list[RekeyingOut]


class Stats(TypedDict):
    """Counts for a scope and everything below it; ``backlog`` is of the whole store."""

    scope: str
    topics: int
    rungs: dict[str, int]
    pinned: int
    retrievals: int
    fields: int
    revisions: int
    links: int
    scopes: int
    backlog: dict[str, int]


_INGEST = _Route(
    "POST", "/v1/ingest", query={"defer": False}, body={"placement": ..., "topic_id": None, "title": "",
    "summary": None, "topic_kind": None, "salience": 1.0, "fields": None, "edges": None, "suggest_similar": False,
    "scope": None, "categories": None, "valid_from": None, "pinned": False, "created_at": None}, body_required=True,
    keyed=True,
)  # fmt: skip
_INGEST_BATCH = _Route(
    "POST", "/v1/ingest/batch", query={"defer": False}, whole="items", body_required=True, keyed=True,
)  # fmt: skip
_EXTRACT = _Route(
    "POST", "/v1/extract", query={"background": False}, body={"content": ..., "scope": None, "store": False,
    "kind": None}, body_required=True,
)  # fmt: skip
_EXTRACT_BACKGROUND = _Route(
    "POST", "/v1/extract", query={"background": False}, body={"content": ..., "scope": None, "store": False,
    "kind": None}, body_required=True,
)  # fmt: skip
_EXTRACTION = _Route("GET", "/v1/extract/{job_id}", repeatable=True)
_EXTRACTION_CANCEL = _Route("POST", "/v1/extract/{job_id}/cancel")
_QUERY = _Route(
    "POST", "/v1/query", body={"q": ..., "stages": ("semantic", "structural", "temporal"), "explain": False,
    "top_k": 8, "topic_ids": None, "field_names": None, "scope": None, "kinds": None, "categories": None,
    "include_archived": False, "include_cold": False, "as_of": None, "depth": 1, "token_budget": None},
    body_required=True, repeatable=True,
)  # fmt: skip
_TOPICS = _Route(
    "GET", "/v1/topics", query={"scope": None, "kind": None, "rung": None, "pinned": None, "text": None,
    "cursor": None, "limit": 50}, repeatable=True,
)  # fmt: skip
_TOPIC = _Route("GET", "/v1/topics/{topic_id}", repeatable=True)
_TOPIC_EDIT = _Route(
    "PATCH", "/v1/topics/{topic_id}", body={"title": None, "summary": None, "topic_kind": None, "categories": None,
    "salience": None, "reason": ""}, body_required=True,
)  # fmt: skip
_TOPIC_PURGE = _Route("DELETE", "/v1/topics/{topic_id}", body={"reason": ""}, repeatable=True)
_FIELD_HISTORY = _Route(
    "GET", "/v1/topics/{topic_id}/fields/{name}/history", query={"cursor": None, "limit": 50}, repeatable=True,
)  # fmt: skip
_TOPIC_PIN = _Route("POST", "/v1/topics/{topic_id}/pin", body={"reason": ""})
_TOPIC_UNPIN = _Route("POST", "/v1/topics/{topic_id}/unpin", body={"reason": ""})
_TOPIC_ARCHIVE = _Route("POST", "/v1/topics/{topic_id}/archive", body={"reason": ""})
_TOPIC_RESTORE = _Route("POST", "/v1/topics/{topic_id}/restore", body={"reason": ""})
_CHAT = _Route(
    "POST", "/v1/chat", body={"messages": ..., "model": None, "intent_override": None, "intent_turns": None,
    "max_tool_rounds": None, "study": True, "scope": None, "conversation_id": None}, body_required=True, keyed=True,
)  # fmt: skip
_CONVERSATIONS = _Route("GET", "/v1/chat", query={"cursor": None, "limit": 50}, repeatable=True)
_CONVERSATION = _Route("GET", "/v1/chat/{conversation_id}", query={"cursor": None, "limit": 50}, repeatable=True)
_CONVERSATION_UNDO = _Route(
    "POST", "/v1/chat/{conversation_id}/undo", body={"reason": "", "dry_run": False, "digest": None},
)  # fmt: skip
_STUDIES = _Route("GET", "/v1/studies", query={"conversation_id": None, "cursor": None, "limit": 50}, repeatable=True)
_STUDY = _Route("GET", "/v1/studies/{study_id}", repeatable=True)
_STUDY_CANCEL = _Route("POST", "/v1/studies/{study_id}/cancel")
_STUDY_RESUME = _Route("POST", "/v1/studies/{study_id}/resume")
_FORGET = _Route(
    "POST", "/v1/forget", body={"verb": ..., "query": None, "filter": None, "scope": None, "reason": "",
    "dry_run": True, "token": None}, body_required=True,
)  # fmt: skip
_SUPERSEDE = _Route(
    "POST", "/v1/supersede", body={"old_query": ..., "new_text": ..., "scope": None, "reason": "", "token": None},
    body_required=True,
)  # fmt: skip
_RECEIPTS = _Route("GET", "/v1/receipts", query={"cursor": None, "limit": 50}, repeatable=True)
_RECEIPT = _Route("GET", "/v1/receipts/{receipt_id}", repeatable=True)
_DUPLICATES = _Route(
    "GET", "/v1/duplicates", query={"scope": None, "state": "open", "verdict": None, "held": None, "cursor": None,
    "limit": 50}, repeatable=True,
)  # fmt: skip
_DUPLICATE = _Route("GET", "/v1/duplicates/{pair_id}", repeatable=True)
_DUPLICATE_MERGE = _Route("POST", "/v1/duplicates/{pair_id}/merge", body={"reason": ""})
_DUPLICATE_KEEP = _Route("POST", "/v1/duplicates/{pair_id}/keep", body={"reason": ""})
_DUPLICATE_SUPERSEDE = _Route("POST", "/v1/duplicates/{pair_id}/supersede", body={"reason": ""})
_DUPLICATE_UNDO = _Route("POST", "/v1/duplicates/{pair_id}/undo", body={"reason": ""})
_RUNS = _Route(
    "GET", "/v1/runs", query={"scope": None, "status": None, "event": None, "cursor": None, "limit": 50},
    repeatable=True,
)  # fmt: skip
_RUN_MAKE = _Route(
    "POST", "/v1/runs", body={"scope": None, "event": "cron", "dry_run": True, "now": None}, body_required=True,
)  # fmt: skip
_RUN = _Route("GET", "/v1/runs/{run_id}", repeatable=True)
_RUN_ACTIONS = _Route(
    "GET", "/v1/runs/{run_id}/actions", query={"state": None, "cursor": None, "limit": 50}, repeatable=True,
)  # fmt: skip
_RUN_APPLY = _Route("POST", "/v1/runs/{run_id}/apply", body={"reason": ""})
_RUN_APPROVE = _Route("POST", "/v1/runs/{run_id}/approve", body={"reason": ""})
_RUN_UNDO = _Route("POST", "/v1/runs/{run_id}/undo", body={"reason": ""})
_EVENT = _Route("POST", "/v1/events", body={"event": "memory_pressure", "scope": None}, body_required=True)
_POLICY_PREVIEW = _Route(
    "POST", "/v1/policies/preview", body={"scope": None, "preset": None, "values": None, "rules": None, "at": None,
    "event": "cron", "scale": "log", "only_new": False, "cursor": None, "limit": 50}, body_required=True,
    repeatable=True,
)  # fmt: skip
_TOPIC_WHY = _Route("GET", "/v1/topics/{topic_id}/why", repeatable=True)
_POLICY_BACKTEST = _Route(
    "POST", "/v1/policies/backtest", body={"start": ..., "end": ..., "scope": None, "preset": None, "values": None,
    "rules": None, "step_days": 1.0, "seed": 1}, body_required=True, repeatable=True,
)  # fmt: skip
_REGRET = _Route("GET", "/v1/regret", query={"scope": None, "since": None, "until": None, "limit": 50}, repeatable=True)
_POLICY_VERSIONS = _Route("GET", "/v1/policies/{scope}versions", query={"cursor": None, "limit": 50}, repeatable=True)
_POLICY_ROLLBACK = _Route("POST", "/v1/policies/{scope}rollback", body={"to": ..., "reason": ""}, body_required=True)
_POLICY = _Route("GET", "/v1/policies/{scope}", repeatable=True)
_POLICY_SET = _Route(
    "PUT", "/v1/policies/{scope}", body={"preset": None, "values": None, "rules": None, "reason": "",
    "base_version": None}, body_required=True, repeatable=True,
)  # fmt: skip
_STATS = _Route("GET", "/v1/stats", query={"scope": None}, repeatable=True)


class _Methods(_Sender):
    """The methods of ``MemState``."""

    def ingest(
        self,
        placement: Literal["new_topic", "extend_topic", "version_field"],
        *,
        topic_id: str | None = None,
        title: str = "",
        summary: str | None = None,
        topic_kind: str | None = None,
        salience: float = 1.0,
        fields: Sequence[IngestField] | None = None,
        edges: Sequence[IngestEdge] | None = None,
        suggest_similar: bool = False,
        scope: str | None = None,
        categories: Sequence[str] | None = None,
        valid_from: When | None = None,
        pinned: bool = False,
        created_at: When | None = None,
        defer: bool = False,
        idempotency_key: str | None = None,
    ) -> IngestReply:
        """Remember one observation: a new topic, more about a topic, or a new version of one field.

        All of it is written or nothing is. Once this has answered, the next query finds the topic, by word and by
        meaning.

        ``title``: Used by new_topic; empty becomes 'untitled'.

        ``summary``: Used by new_topic.

        ``created_at``: Operator keys: the moment in the past it was learned.

        ``defer``: Answer before the topic can be found by meaning; the worker embeds it.

        ``idempotency_key``: Made up for each call unless given.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("IngestReply", self._ask(_INGEST, {
            "placement": placement, "topic_id": topic_id, "title": title, "summary": summary,
            "topic_kind": topic_kind, "salience": salience, "fields": fields, "edges": edges,
            "suggest_similar": suggest_similar, "scope": scope, "categories": categories, "valid_from": valid_from,
            "pinned": pinned, "created_at": created_at, "defer": defer, "idempotency_key": idempotency_key,
        }))  # fmt: skip

    def ingest_batch(
        self,
        items: Sequence[IngestItem],
        *,
        defer: bool = False,
        idempotency_key: str | None = None,
    ) -> BatchReply:
        """Remember many observations at once, given as a list or as JSON Lines.

        Each is accepted or refused by itself and answered in its place, with the status that it would have had
        alone. Later ones may name topics that earlier ones create.

        ``items``: An item as for POST /v1/ingest. What is none is refused by itself.

        ``defer``: Answer before the topic can be found by meaning; the worker embeds it.

        ``idempotency_key``: Made up for each call unless given.

        Raises ``Refused``, ``NotAllowed``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("BatchReply", self._ask(_INGEST_BATCH, {
            "items": items, "defer": defer, "idempotency_key": idempotency_key,
        }))  # fmt: skip

    def extract(
        self,
        content: str,
        *,
        scope: str | None = None,
        store: bool = False,
        kind: str | None = None,
    ) -> ExtractReply:
        """Take a text apart into atomic facts, and with `store: true` remember those that are not known yet.

        A language model is asked if one is configured; what it tells is checked against the text, and where it is of
        no help the text's own sentences are taken apart by rules: `method` and `note` say which it was. Text that
        gives orders is only text. Reader keys may look; agent keys may store.

        ``content``: Prose, a list, a transcript; MEMSTATE_EXTRACT_MAX_CHARS characters at most.

        ``kind``: Kind of the topics that facts become; fact if left out.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("ExtractReply", self._ask(_EXTRACT, {
            "content": content, "scope": scope, "store": store, "kind": kind, "background": False,
        }))  # fmt: skip

    def extract_background(
        self,
        content: str,
        *,
        scope: str | None = None,
        store: bool = False,
        kind: str | None = None,
    ) -> ExtractAccepted:
        """Take a text apart into atomic facts, and with `store: true` remember those that are not known yet.

        A language model is asked if one is configured; what it tells is checked against the text, and where it is of
        no help the text's own sentences are taken apart by rules: `method` and `note` say which it was. Text that
        gives orders is only text. Reader keys may look; agent keys may store.

        Answer 202 with the id of a job at once. Needs store.

        ``content``: Prose, a list, a transcript; MEMSTATE_EXTRACT_MAX_CHARS characters at most.

        ``kind``: Kind of the topics that facts become; fact if left out.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("ExtractAccepted", self._ask(_EXTRACT_BACKGROUND, {
            "content": content, "scope": scope, "store": store, "kind": kind, "background": True,
        }))  # fmt: skip

    def extraction(self, job_id: str) -> ExtractionOut:
        """Tell how far an extraction in the background is, and the facts it has found.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("ExtractionOut", self._ask(_EXTRACTION, {"job_id": job_id}))

    def extraction_cancel(self, job_id: str) -> ExtractionOut:
        """Stop an extraction in the background; what it has stored stays.

        Raises ``NotAllowed``, ``NotFound``, ``Conflict``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("ExtractionOut", self._ask(_EXTRACTION_CANCEL, {"job_id": job_id}))

    def query(
        self,
        q: str,
        *,
        stages: Sequence[Literal["semantic", "structural", "temporal"]] = ("semantic", "structural", "temporal"),
        explain: bool = False,
        top_k: int = 8,
        topic_ids: Sequence[str] | None = None,
        field_names: Sequence[str] | None = None,
        scope: str | None = None,
        kinds: Sequence[str] | None = None,
        categories: Sequence[str] | None = None,
        include_archived: bool = False,
        include_cold: bool = False,
        as_of: When | None = None,
        depth: int = 1,
        token_budget: int | None = None,
    ) -> QueryReply:
        """Return the topics that answer a question, best first, each with its fields and neighbours.

        What is returned gains salience a moment later. Without the semantic stage nothing is searched; ``topic_ids``
        choose.

        ``topic_ids``: Without the semantic stage these are the answer, in this order.

        ``depth``: How far neighbours are followed.

        Raises ``Refused``, ``NotAllowed``, ``NotFound`` and ``TooManyRequests``.
        """
        return cast("QueryReply", self._ask(_QUERY, {
            "q": q, "stages": stages, "explain": explain, "top_k": top_k, "topic_ids": topic_ids,
            "field_names": field_names, "scope": scope, "kinds": kinds, "categories": categories,
            "include_archived": include_archived, "include_cold": include_cold, "as_of": as_of, "depth": depth,
            "token_budget": token_budget,
        }))  # fmt: skip

    def topics(
        self,
        *,
        scope: str | None = None,
        kind: str | None = None,
        rung: Literal["active", "summarized", "detached", "archived", "any"] | None = None,
        pinned: bool | None = None,
        text: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> TopicPage:
        """List topics, newest first.

        Archived ones are shown when ``rung`` asks for them; released and merged ones never.

        ``cursor``: The next of the page before.

        ``limit``: Rows per page.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("TopicPage", self._ask(_TOPICS, {
            "scope": scope, "kind": kind, "rung": rung, "pinned": pinned, "text": text, "cursor": cursor,
            "limit": limit,
        }))  # fmt: skip

    def topics_iter(
        self,
        *,
        scope: str | None = None,
        kind: str | None = None,
        rung: Literal["active", "summarized", "detached", "archived", "any"] | None = None,
        pinned: bool | None = None,
        text: str | None = None,
        limit: int = 50,
    ) -> Iterator[TopicRow]:
        """Yield the rows of ``topics``, page after page of ``limit`` rows."""
        for page in self.pages(self.topics, scope=scope, kind=kind, rung=rung, pinned=pinned, text=text, limit=limit):
            yield from page["items"]

    def topic(self, topic_id: str) -> TopicDetail:
        """Look one topic up, at whatever rung it stands. This raises no salience.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("TopicDetail", self._ask(_TOPIC, {"topic_id": topic_id}))

    def topic_edit(
        self,
        topic_id: str,
        *,
        title: str | None = None,
        summary: str | None = None,
        topic_kind: str | None = None,
        categories: Sequence[str] | None = None,
        salience: float | None = None,
        reason: str = "",
    ) -> TopicDetail:
        """Change what a topic says about itself. What it said before stays on record, and ``as_of`` still shows it.

        Raises ``Refused``, ``NotAllowed``, ``NotFound`` and ``TooManyRequests``.
        """
        return cast("TopicDetail", self._ask(_TOPIC_EDIT, {
            "topic_id": topic_id, "title": title, "summary": summary, "topic_kind": topic_kind,
            "categories": categories, "salience": salience, "reason": reason,
        }))  # fmt: skip

    def topic_purge(self, topic_id: str, *, reason: str = "") -> PurgeReply:
        """Erase a topic for good, with its history, its links and its traces in logs. Operator keys; there is no undo.

        Topics that were merged into it go too. What stays is a receipt, which says that something was erased and not
        what.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("PurgeReply", self._ask(_TOPIC_PURGE, {"topic_id": topic_id, "reason": reason}))

    def field_history(self, topic_id: str, name: str, *, cursor: str | None = None, limit: int = 50) -> HistoryPage:
        """All revisions of a field, newest first, warm and cold.

        ``cursor``: The next of the page before.

        ``limit``: Rows per page.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("HistoryPage", self._ask(_FIELD_HISTORY, {
            "topic_id": topic_id, "name": name, "cursor": cursor, "limit": limit,
        }))  # fmt: skip

    def field_history_iter(self, topic_id: str, name: str, *, limit: int = 50) -> Iterator[HistoryRevision]:
        """Yield the rows of ``field_history``, page after page of ``limit`` rows."""
        for page in self.pages(self.field_history, topic_id, name, limit=limit):
            yield from page["items"]

    def topic_pin(self, topic_id: str, *, reason: str = "") -> TopicDetail:
        """Protect a topic from forgetting.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("TopicDetail", self._ask(_TOPIC_PIN, {"topic_id": topic_id, "reason": reason}))

    def topic_unpin(self, topic_id: str, *, reason: str = "") -> TopicDetail:
        """End a topic's protection.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("TopicDetail", self._ask(_TOPIC_UNPIN, {"topic_id": topic_id, "reason": reason}))

    def topic_archive(self, topic_id: str, *, reason: str = "") -> TopicDetail:
        """Take one topic out of retrieval. Operator keys; forgetting as a whole is the policy's work.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("TopicDetail", self._ask(_TOPIC_ARCHIVE, {"topic_id": topic_id, "reason": reason}))

    def topic_restore(self, topic_id: str, *, reason: str = "") -> TopicDetail:
        """Bring one archived topic back. Operator keys.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("TopicDetail", self._ask(_TOPIC_RESTORE, {"topic_id": topic_id, "reason": reason}))

    def chat(
        self,
        messages: Sequence[ChatMessage],
        *,
        model: str | None = None,
        intent_override: Literal["query", "ingest", "both"] | None = None,
        intent_turns: int | None = None,
        max_tool_rounds: int | None = None,
        study: bool = True,
        scope: str | None = None,
        conversation_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> ChatReply:
        """Answer the last message with the help of what is remembered, and remember what it asks to be remembered.

        The language model reads and writes by the same functions as these routes, within the scope of the key; it
        can forget nothing. A message with the intent `query` writes nothing at all, and neither does a reader's key.
        A long text that is to be remembered becomes a job. Once something was done, a failing model is told in
        `ended` and `reply` rather than as an error.

        With an Idempotency-Key the reply is given again, as a stream too. A message that failed before anything was
        written is answered anew; one that was broken off after that is 409.

        ``messages``: Oldest first. Of those before the last, the newest 40,000 characters are read.

        ``model``: Another model at the same endpoint than MEMSTATE_LLM_MODEL.

        ``intent_override``: What the last message wants, if it is not to be found out.

        ``intent_turns``: From how many of the last messages the intent is told; MEMSTATE_CHAT_INTENT_TURNS if left
        out.

        ``max_tool_rounds``: How often tools may be used. No more than MEMSTATE_CHAT_MAX_TOOL_ROUNDS, whatever is
        asked for.

        ``study``: A long message that is to be remembered becomes a job in the background.

        ``conversation_id``: Goes on with a conversation that this caller began; else a new one begins.

        ``idempotency_key``: Made up for each call unless given.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("ChatReply", self._ask_long(_CHAT, {
            "messages": messages, "model": model, "intent_override": intent_override, "intent_turns": intent_turns,
            "max_tool_rounds": max_tool_rounds, "study": study, "scope": scope, "conversation_id": conversation_id,
            "idempotency_key": idempotency_key,
        }))  # fmt: skip

    def chat_stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        model: str | None = None,
        intent_override: Literal["query", "ingest", "both"] | None = None,
        intent_turns: int | None = None,
        max_tool_rounds: int | None = None,
        study: bool = True,
        scope: str | None = None,
        conversation_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Iterator[Event]:
        """Yield what ``chat`` answers as it grows, event by event. Raises as that does."""
        return self._events(_CHAT, {
            "messages": messages, "model": model, "intent_override": intent_override, "intent_turns": intent_turns,
            "max_tool_rounds": max_tool_rounds, "study": study, "scope": scope, "conversation_id": conversation_id,
            "idempotency_key": idempotency_key,
        })  # fmt: skip

    def conversations(self, *, cursor: str | None = None, limit: int = 50) -> ConversationPage:
        """List the conversations that the caller began, the one that moved last first; those of everybody in its scope
        with an operator's key.

        ``cursor``: The next of the page before.

        ``limit``: Rows per page.

        Raises ``NotAllowed``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("ConversationPage", self._ask(_CONVERSATIONS, {"cursor": cursor, "limit": limit}))

    def conversations_iter(self, *, limit: int = 50) -> Iterator[ConversationOut]:
        """Yield the rows of ``conversations``, page after page of ``limit`` rows."""
        for page in self.pages(self.conversations, limit=limit):
            yield from page["items"]

    def conversation(self, conversation_id: str, *, cursor: str | None = None, limit: int = 50) -> ConversationDetail:
        """Tell what was said in a conversation, which tools were called, and what it wrote. Whoever began it sees it;
        with an operator's key, everybody's in its scope.

        ``cursor``: The next of the page before.

        ``limit``: Messages per page.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("ConversationDetail", self._ask(_CONVERSATION, {
            "conversation_id": conversation_id, "cursor": cursor, "limit": limit,
        }))  # fmt: skip

    def conversation_iter(self, conversation_id: str, *, limit: int = 50) -> Iterator[TurnOut]:
        """Yield the rows of ``conversation``, page after page of ``limit`` rows."""
        for page in self.pages(self.conversation, conversation_id, limit=limit):
            yield from page["items"]

    def conversation_undo(
        self,
        conversation_id: str,
        *,
        reason: str = "",
        dry_run: bool = False,
        digest: str | None = None,
    ) -> ConversationUndoReply:
        """Take back everything that a conversation and its studies wrote, as far as nobody has built on it since.
        Topics it made are released, values it wrote become what they were, links it made are removed; history only
        grows. What others have touched since is left, each with the reason. Refused while the assistant is at a
        message of it. Operator keys.

        ``dry_run``: Only tell what would be taken back; nothing is changed.

        ``digest``: Of a dry run; it is refused if something else would be taken back by now.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("ConversationUndoReply", self._ask(_CONVERSATION_UNDO, {
            "conversation_id": conversation_id, "reason": reason, "dry_run": dry_run, "digest": digest,
        }))  # fmt: skip

    def studies(self, *, conversation_id: str | None = None, cursor: str | None = None, limit: int = 50) -> StudyPage:
        """List the studies that the caller began, newest first; those of everybody in its scope with an operator's key.

        ``conversation_id``: Only those of one conversation.

        ``cursor``: The next of the page before.

        ``limit``: Rows per page.

        Raises ``NotAllowed``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("StudyPage", self._ask(_STUDIES, {
            "conversation_id": conversation_id, "cursor": cursor, "limit": limit,
        }))  # fmt: skip

    def studies_iter(self, *, conversation_id: str | None = None, limit: int = 50) -> Iterator[StudyOut]:
        """Yield the rows of ``studies``, page after page of ``limit`` rows."""
        for page in self.pages(self.studies, conversation_id=conversation_id, limit=limit):
            yield from page["items"]

    def study(self, study_id: str) -> StudyOut:
        """Tell how far a study has come, whether it waits and until when.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("StudyOut", self._ask(_STUDY, {"study_id": study_id}))

    def study_cancel(self, study_id: str) -> StudyOut:
        """Stop a study before it asks the model again; what it has stored stays, and it can be resumed.

        Raises ``NotAllowed``, ``NotFound``, ``Conflict``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("StudyOut", self._ask(_STUDY_CANCEL, {"study_id": study_id}))

    def study_resume(self, study_id: str) -> StudyOut:
        """Let a study that was cancelled or has failed go on where it was; no part is studied twice. Not if what its
        conversation wrote was taken back, and not if whoever began it may write no longer.

        Raises ``NotAllowed``, ``NotFound``, ``Conflict``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("StudyOut", self._ask(_STUDY_RESUME, {"study_id": study_id}))

    def forget(
        self,
        verb: Literal["release", "purge"],
        *,
        query: str | None = None,
        filter: FilterIn | None = None,
        scope: str | None = None,
        reason: str = "",
        dry_run: bool = True,
        token: str | None = None,
    ) -> ForgetReply:
        """List what would be released or purged, or do it. Operator keys.

        A dry run, the default, returns the list with the reason for each topic and a `token`. Sending the token
        executes exactly that list; `409` if one of its topics changed. `dry_run: false` lists and executes in one
        call. A query that means several things equally well is `ambiguous`: all of them are listed, nothing is
        executed.

        ``query``: What to forget, in words.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("ForgetReply", self._ask(_FORGET, {
            "verb": verb, "query": query, "filter": filter, "scope": scope, "reason": reason, "dry_run": dry_run,
            "token": token,
        }))  # fmt: skip

    def supersede(
        self,
        old_query: str,
        *,
        new_text: str,
        scope: str | None = None,
        reason: str = "",
        token: str | None = None,
    ) -> SupersedeReply:
        """Replace the fact that `old_query` means by `new_text`. The old value stays in history.

        Of a sentence that holds two facts only the one that is meant goes. Where nothing says the old, the new text
        is remembered and `superseded` is empty. Where facts about different subjects are equally near, nothing is
        done: `409` names them, each with a `token` that says it is meant.

        ``token``: Of a candidate of a 409: that fact is meant.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("SupersedeReply", self._ask(_SUPERSEDE, {
            "old_query": old_query, "new_text": new_text, "scope": scope, "reason": reason, "token": token,
        }))  # fmt: skip

    def receipts(self, *, cursor: str | None = None, limit: int = 50) -> ReceiptPage:
        """List what was purged within the scope of the key, newest first.

        ``cursor``: The next of the page before.

        ``limit``: Rows per page.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("ReceiptPage", self._ask(_RECEIPTS, {"cursor": cursor, "limit": limit}))

    def receipts_iter(self, *, limit: int = 50) -> Iterator[ReceiptOut]:
        """Yield the rows of ``receipts``, page after page of ``limit`` rows."""
        for page in self.pages(self.receipts, limit=limit):
            yield from page["items"]

    def receipt(self, receipt_id: str) -> ReceiptOut:
        """Read the receipt of one purge.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("ReceiptOut", self._ask(_RECEIPT, {"receipt_id": receipt_id}))

    def duplicates(
        self,
        *,
        scope: str | None = None,
        state: Literal["open", "merged", "kept", "superseded", "undone", "lapsed"] = "open",
        verdict: Literal["duplicate", "supersedes"] | None = None,
        held: bool | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> PairPage:
        """List pairs at a scope and below, found last first; without a `state` those that wait for a decision.

        ``cursor``: The next of the page before.

        ``limit``: Rows per page.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("PairPage", self._ask(_DUPLICATES, {
            "scope": scope, "state": state, "verdict": verdict, "held": held, "cursor": cursor, "limit": limit,
        }))  # fmt: skip

    def duplicates_iter(
        self,
        *,
        scope: str | None = None,
        state: Literal["open", "merged", "kept", "superseded", "undone", "lapsed"] = "open",
        verdict: Literal["duplicate", "supersedes"] | None = None,
        held: bool | None = None,
        limit: int = 50,
    ) -> Iterator[PairOut]:
        """Yield the rows of ``duplicates``, page after page of ``limit`` rows."""
        for page in self.pages(self.duplicates, scope=scope, state=state, verdict=verdict, held=held, limit=limit):
            yield from page["items"]

    def duplicate(self, pair_id: str) -> PairDetail:
        """Tell what matters and differs between two topics, and what a merge would do.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("PairDetail", self._ask(_DUPLICATE, {"pair_id": pair_id}))

    def duplicate_merge(self, pair_id: str, *, reason: str = "") -> PairDecided:
        """Make one topic of two: the one that was written to last takes in the other, with its history. Operator keys.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("PairDecided", self._ask(_DUPLICATE_MERGE, {"pair_id": pair_id, "reason": reason}))

    def duplicate_keep(self, pair_id: str, *, reason: str = "") -> PairDecided:
        """Note that both stay. The pair is not offered again unless one of the texts changes. Operator keys.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("PairDecided", self._ask(_DUPLICATE_KEEP, {"pair_id": pair_id, "reason": reason}))

    def duplicate_supersede(self, pair_id: str, *, reason: str = "") -> PairDecided:
        """Release the older topic and link the newer to it as `supersedes`. Operator keys.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("PairDecided", self._ask(_DUPLICATE_SUPERSEDE, {"pair_id": pair_id, "reason": reason}))

    def duplicate_undo(self, pair_id: str, *, reason: str = "") -> PairDecided:
        """Make both topics what they were before. If one has changed since, nothing is touched and `conflicts` says
        how. Operator keys.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("PairDecided", self._ask(_DUPLICATE_UNDO, {"pair_id": pair_id, "reason": reason}))

    def runs(
        self,
        *,
        scope: str | None = None,
        status: Literal["planned", "held", "applying", "done", "undone", "failed"] | None = None,
        event: Literal["ingest_complete", "query_complete", "cron", "memory_pressure", "manual", "by_hand", "revise"]
        | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> RunPage:
        """List the runs of a scope and of everything below it, newest first.

        Changes by hand (`by_hand`) and merges of duplicates (`revise`) are shown to who asks for their event.

        ``cursor``: The next of the page before.

        ``limit``: Rows per page.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("RunPage", self._ask(_RUNS, {
            "scope": scope, "status": status, "event": event, "cursor": cursor, "limit": limit,
        }))  # fmt: skip

    def runs_iter(
        self,
        *,
        scope: str | None = None,
        status: Literal["planned", "held", "applying", "done", "undone", "failed"] | None = None,
        event: Literal["ingest_complete", "query_complete", "cron", "memory_pressure", "manual", "by_hand", "revise"]
        | None = None,
        limit: int = 50,
    ) -> Iterator[RunOut]:
        """Yield the rows of ``runs``, page after page of ``limit`` rows."""
        for page in self.pages(self.runs, scope=scope, status=status, event=event, limit=limit):
            yield from page["items"]

    def run_make(
        self,
        *,
        scope: str | None = None,
        event: Literal["ingest_complete", "query_complete", "cron", "memory_pressure", "manual"] = "cron",
        dry_run: bool = True,
        now: When | None = None,
    ) -> RunOut:
        """Plan what forgetting would do now, or with ``dry_run: false`` do it.

        A long run goes on in the background: read it again for its progress. A run that would archive too much is
        held.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("RunOut", self._ask(_RUN_MAKE, {"scope": scope, "event": event, "dry_run": dry_run, "now": now}))

    def run(self, run_id: str) -> RunOut:
        """Read one run, with its progress while it works.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("RunOut", self._ask(_RUN, {"run_id": run_id}))

    def run_actions(
        self,
        run_id: str,
        *,
        state: Literal["planned", "applied", "skipped", "undone", "conflict"] | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> ActionPage:
        """Read what a run did or would do to each topic, and why.

        ``cursor``: The next of the page before.

        ``limit``: Rows per page.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("ActionPage", self._ask(_RUN_ACTIONS, {
            "run_id": run_id, "state": state, "cursor": cursor, "limit": limit,
        }))  # fmt: skip

    def run_actions_iter(
        self,
        run_id: str,
        *,
        state: Literal["planned", "applied", "skipped", "undone", "conflict"] | None = None,
        limit: int = 50,
    ) -> Iterator[ActionOut]:
        """Yield the rows of ``run_actions``, page after page of ``limit`` rows."""
        for page in self.pages(self.run_actions, run_id, state=state, limit=limit):
            yield from page["items"]

    def run_apply(self, run_id: str, *, reason: str = "") -> RunOut:
        """Do exactly what a dry run has planned; 409 if the policy or one of its topics has changed since.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("RunOut", self._ask(_RUN_APPLY, {"run_id": run_id, "reason": reason}))

    def run_approve(self, run_id: str, *, reason: str = "") -> RunOut:
        """Let a held run go ahead. Topics that have changed since the plan are left alone and listed as skipped.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("RunOut", self._ask(_RUN_APPROVE, {"run_id": run_id, "reason": reason}))

    def run_undo(self, run_id: str, *, reason: str = "") -> UndoReply:
        """Put every topic back that is still as the run left it, byte for byte; the others are listed with the reason.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("UndoReply", self._ask(_RUN_UNDO, {"run_id": run_id, "reason": reason}))

    def event(self, *, event: str = "memory_pressure", scope: str | None = None) -> EventReply:
        """Have the worker forget what is due in a scope, however few topics there are. Operator keys.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("EventReply", self._ask(_EVENT, {"event": event, "scope": scope}))

    def policy_preview(
        self,
        *,
        scope: str | None = None,
        preset: str | None = None,
        values: Mapping[str, Any] | None = None,
        rules: Sequence[Any] | None = None,
        at: Sequence[When] | None = None,
        event: Literal["ingest_complete", "query_complete", "cron", "memory_pressure", "manual"] = "cron",
        scale: Literal["log", "linear"] = "log",
        only_new: bool = False,
        cursor: str | None = None,
        limit: int = 50,
    ) -> PreviewReply:
        """Count what a draft of a policy would forget on the live data, now and later, and list the topics.

        ``values``: The whole set of values; without values, preset and rules, the policy in force.

        ``rules``: The rules of this scope, or names of shipped sets of rules; left out, they stay.

        ``at``: In 30 and 90 days unless given.

        ``only_new``: List only topics that the policy in force would not touch.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("PreviewReply", self._ask(_POLICY_PREVIEW, {
            "scope": scope, "preset": preset, "values": values, "rules": rules, "at": at, "event": event,
            "scale": scale, "only_new": only_new, "cursor": cursor, "limit": limit,
        }))  # fmt: skip

    def topic_why(self, topic_id: str) -> WhyReply:
        """Where it stands, what would happen next, what happened and why, and what would have kept it.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("WhyReply", self._ask(_TOPIC_WHY, {"topic_id": topic_id}))

    def policy_backtest(
        self,
        start: When,
        *,
        end: When,
        scope: str | None = None,
        preset: str | None = None,
        values: Mapping[str, Any] | None = None,
        rules: Sequence[Any] | None = None,
        step_days: float = 1.0,
        seed: int = 1,
    ) -> BacktestReply:
        """What a draft would have archived between two dates, and what of that was used afterwards. Nothing is written.

        ``rules``: Those that are set at the scope now, if left out.

        ``step_days``: From one run to the next.

        ``seed``: Of the draws by lot.

        Raises ``Refused``, ``NotAllowed``, ``NotFound`` and ``TooManyRequests``.
        """
        return cast("BacktestReply", self._ask(_POLICY_BACKTEST, {
            "start": start, "end": end, "scope": scope, "preset": preset, "values": values, "rules": rules,
            "step_days": step_days, "seed": seed,
        }))  # fmt: skip

    def regret(
        self,
        *,
        scope: str | None = None,
        since: When | None = None,
        until: When | None = None,
        limit: int = 50,
    ) -> RegretReply:
        """Archived topics that were looked up, restored or missed afterwards, per policy version and per rung.

        ``since``: With an offset: 2026-03-01T00:00:00Z.

        ``until``: With an offset: 2026-03-01T00:00:00Z.

        ``limit``: Topics to list.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("RegretReply", self._ask(_REGRET, {"scope": scope, "since": since, "until": until, "limit": limit}))

    def policy_versions(self, scope: str, *, cursor: int | None = None, limit: int = 50) -> PolicyVersionPage:
        """All versions, newest first, with what each changed, by whom and why.

        ``scope``: The path of the scope, without its first slash.

        ``cursor``: The next of the page before.

        ``limit``: Rows per page.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("PolicyVersionPage", self._ask(_POLICY_VERSIONS, {
            "scope": scope, "cursor": cursor, "limit": limit,
        }))  # fmt: skip

    def policy_versions_iter(self, scope: str, *, limit: int = 50) -> Iterator[PolicyVersionOut]:
        """Yield the rows of ``policy_versions``, page after page of ``limit`` rows."""
        for page in self.pages(self.policy_versions, scope, limit=limit):
            yield from page["items"]

    def policy_rollback(self, scope: str, *, to: int, reason: str = "") -> PolicyOut:
        """Make a new version with the content of an older one.

        ``scope``: The path of the scope, without its first slash.

        ``to``: The number of a version of this scope; 0 for nothing set.

        ``reason``: Why; must not be empty.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("PolicyOut", self._ask(_POLICY_ROLLBACK, {"scope": scope, "to": to, "reason": reason}))

    def policy(self, scope: str) -> PolicyOut:
        """What is set at a scope, and every value in force there with where it comes from.

        ``scope``: The path of the scope, without its first slash.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("PolicyOut", self._ask(_POLICY, {"scope": scope}))

    def policy_set(
        self,
        scope: str,
        *,
        preset: str | None = None,
        values: Mapping[str, Any] | None = None,
        rules: Sequence[Any] | None = None,
        reason: str = "",
        base_version: int | None = None,
    ) -> PolicyOut:
        """Make a new version: ``values`` is the whole set, and what is left out is inherited. Takes effect at once.

        ``scope``: The path of the scope, without its first slash.

        ``preset``: balanced, memstate, importance-decay, ...; null for none.

        ``values``: The whole set, by name; null is inherited.

        ``rules``: The rules of this scope, or names of shipped sets of rules; left out, they stay.

        ``reason``: Why; must not be empty.

        ``base_version``: The version that was seen; 409 if there is a newer.

        Raises ``Refused``, ``NotAllowed``, ``NotFound``, ``Conflict`` and ``TooManyRequests``.
        """
        return cast("PolicyOut", self._ask(_POLICY_SET, {
            "scope": scope, "preset": preset, "values": values, "rules": rules, "reason": reason,
            "base_version": base_version,
        }))  # fmt: skip

    def stats(self, *, scope: str | None = None) -> Stats:
        """Count the topics, fields, revisions and links of a scope and of everything below it.

        Raises ``NotAllowed``, ``NotFound``, ``Refused`` and ``TooManyRequests``.
        """
        return cast("Stats", self._ask(_STATS, {"scope": scope}))


class _AsyncMethods(_AsyncSender):
    """The methods of ``AsyncMemState``."""

    async def ingest(
        self,
        placement: Literal["new_topic", "extend_topic", "version_field"],
        *,
        topic_id: str | None = None,
        title: str = "",
        summary: str | None = None,
        topic_kind: str | None = None,
        salience: float = 1.0,
        fields: Sequence[IngestField] | None = None,
        edges: Sequence[IngestEdge] | None = None,
        suggest_similar: bool = False,
        scope: str | None = None,
        categories: Sequence[str] | None = None,
        valid_from: When | None = None,
        pinned: bool = False,
        created_at: When | None = None,
        defer: bool = False,
        idempotency_key: str | None = None,
    ) -> IngestReply:
        """Ingest one item. As ``MemState.ingest``."""
        return cast("IngestReply", await self._ask(_INGEST, {
            "placement": placement, "topic_id": topic_id, "title": title, "summary": summary,
            "topic_kind": topic_kind, "salience": salience, "fields": fields, "edges": edges,
            "suggest_similar": suggest_similar, "scope": scope, "categories": categories, "valid_from": valid_from,
            "pinned": pinned, "created_at": created_at, "defer": defer, "idempotency_key": idempotency_key,
        }))  # fmt: skip

    async def ingest_batch(
        self,
        items: Sequence[IngestItem],
        *,
        defer: bool = False,
        idempotency_key: str | None = None,
    ) -> BatchReply:
        """Ingest up to 1,000 items. As ``MemState.ingest_batch``."""
        return cast("BatchReply", await self._ask(_INGEST_BATCH, {
            "items": items, "defer": defer, "idempotency_key": idempotency_key,
        }))  # fmt: skip

    async def extract(
        self,
        content: str,
        *,
        scope: str | None = None,
        store: bool = False,
        kind: str | None = None,
    ) -> ExtractReply:
        """Extract facts from a text. As ``MemState.extract``."""
        return cast("ExtractReply", await self._ask(_EXTRACT, {
            "content": content, "scope": scope, "store": store, "kind": kind, "background": False,
        }))  # fmt: skip

    async def extract_background(
        self,
        content: str,
        *,
        scope: str | None = None,
        store: bool = False,
        kind: str | None = None,
    ) -> ExtractAccepted:
        """Extract facts from a text. As ``MemState.extract_background``."""
        return cast("ExtractAccepted", await self._ask(_EXTRACT_BACKGROUND, {
            "content": content, "scope": scope, "store": store, "kind": kind, "background": True,
        }))  # fmt: skip

    async def extraction(self, job_id: str) -> ExtractionOut:
        """Read an extraction. As ``MemState.extraction``."""
        return cast("ExtractionOut", await self._ask(_EXTRACTION, {"job_id": job_id}))

    async def extraction_cancel(self, job_id: str) -> ExtractionOut:
        """Stop an extraction. As ``MemState.extraction_cancel``."""
        return cast("ExtractionOut", await self._ask(_EXTRACTION_CANCEL, {"job_id": job_id}))

    async def query(
        self,
        q: str,
        *,
        stages: Sequence[Literal["semantic", "structural", "temporal"]] = ("semantic", "structural", "temporal"),
        explain: bool = False,
        top_k: int = 8,
        topic_ids: Sequence[str] | None = None,
        field_names: Sequence[str] | None = None,
        scope: str | None = None,
        kinds: Sequence[str] | None = None,
        categories: Sequence[str] | None = None,
        include_archived: bool = False,
        include_cold: bool = False,
        as_of: When | None = None,
        depth: int = 1,
        token_budget: int | None = None,
    ) -> QueryReply:
        """Ask for context. As ``MemState.query``."""
        return cast("QueryReply", await self._ask(_QUERY, {
            "q": q, "stages": stages, "explain": explain, "top_k": top_k, "topic_ids": topic_ids,
            "field_names": field_names, "scope": scope, "kinds": kinds, "categories": categories,
            "include_archived": include_archived, "include_cold": include_cold, "as_of": as_of, "depth": depth,
            "token_budget": token_budget,
        }))  # fmt: skip

    async def topics(
        self,
        *,
        scope: str | None = None,
        kind: str | None = None,
        rung: Literal["active", "summarized", "detached", "archived", "any"] | None = None,
        pinned: bool | None = None,
        text: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> TopicPage:
        """List topics. As ``MemState.topics``."""
        return cast("TopicPage", await self._ask(_TOPICS, {
            "scope": scope, "kind": kind, "rung": rung, "pinned": pinned, "text": text, "cursor": cursor,
            "limit": limit,
        }))  # fmt: skip

    async def topics_iter(
        self,
        *,
        scope: str | None = None,
        kind: str | None = None,
        rung: Literal["active", "summarized", "detached", "archived", "any"] | None = None,
        pinned: bool | None = None,
        text: str | None = None,
        limit: int = 50,
    ) -> AsyncIterator[TopicRow]:
        """Yield the rows of ``topics``, page after page of ``limit`` rows."""
        async for page in self.pages(
            self.topics, scope=scope, kind=kind, rung=rung, pinned=pinned, text=text, limit=limit
        ):  # fmt: skip
            for row in page["items"]:
                yield row

    async def topic(self, topic_id: str) -> TopicDetail:
        """Look one topic up. As ``MemState.topic``."""
        return cast("TopicDetail", await self._ask(_TOPIC, {"topic_id": topic_id}))

    async def topic_edit(
        self,
        topic_id: str,
        *,
        title: str | None = None,
        summary: str | None = None,
        topic_kind: str | None = None,
        categories: Sequence[str] | None = None,
        salience: float | None = None,
        reason: str = "",
    ) -> TopicDetail:
        """Edit a topic. As ``MemState.topic_edit``."""
        return cast("TopicDetail", await self._ask(_TOPIC_EDIT, {
            "topic_id": topic_id, "title": title, "summary": summary, "topic_kind": topic_kind,
            "categories": categories, "salience": salience, "reason": reason,
        }))  # fmt: skip

    async def topic_purge(self, topic_id: str, *, reason: str = "") -> PurgeReply:
        """Purge a topic. As ``MemState.topic_purge``."""
        return cast("PurgeReply", await self._ask(_TOPIC_PURGE, {"topic_id": topic_id, "reason": reason}))

    async def field_history(
        self,
        topic_id: str,
        name: str,
        *,
        cursor: str | None = None,
        limit: int = 50,
    ) -> HistoryPage:
        """Read the history of a field. As ``MemState.field_history``."""
        return cast("HistoryPage", await self._ask(_FIELD_HISTORY, {
            "topic_id": topic_id, "name": name, "cursor": cursor, "limit": limit,
        }))  # fmt: skip

    async def field_history_iter(self, topic_id: str, name: str, *, limit: int = 50) -> AsyncIterator[HistoryRevision]:
        """Yield the rows of ``field_history``, page after page of ``limit`` rows."""
        async for page in self.pages(self.field_history, topic_id, name, limit=limit):
            for row in page["items"]:
                yield row

    async def topic_pin(self, topic_id: str, *, reason: str = "") -> TopicDetail:
        """Pin a topic. As ``MemState.topic_pin``."""
        return cast("TopicDetail", await self._ask(_TOPIC_PIN, {"topic_id": topic_id, "reason": reason}))

    async def topic_unpin(self, topic_id: str, *, reason: str = "") -> TopicDetail:
        """Unpin a topic. As ``MemState.topic_unpin``."""
        return cast("TopicDetail", await self._ask(_TOPIC_UNPIN, {"topic_id": topic_id, "reason": reason}))

    async def topic_archive(self, topic_id: str, *, reason: str = "") -> TopicDetail:
        """Archive a topic. As ``MemState.topic_archive``."""
        return cast("TopicDetail", await self._ask(_TOPIC_ARCHIVE, {"topic_id": topic_id, "reason": reason}))

    async def topic_restore(self, topic_id: str, *, reason: str = "") -> TopicDetail:
        """Restore a topic. As ``MemState.topic_restore``."""
        return cast("TopicDetail", await self._ask(_TOPIC_RESTORE, {"topic_id": topic_id, "reason": reason}))

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        *,
        model: str | None = None,
        intent_override: Literal["query", "ingest", "both"] | None = None,
        intent_turns: int | None = None,
        max_tool_rounds: int | None = None,
        study: bool = True,
        scope: str | None = None,
        conversation_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> ChatReply:
        """Talk with the assistant. As ``MemState.chat``."""
        return cast("ChatReply", await self._ask_long(_CHAT, {
            "messages": messages, "model": model, "intent_override": intent_override, "intent_turns": intent_turns,
            "max_tool_rounds": max_tool_rounds, "study": study, "scope": scope, "conversation_id": conversation_id,
            "idempotency_key": idempotency_key,
        }))  # fmt: skip

    def chat_stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        model: str | None = None,
        intent_override: Literal["query", "ingest", "both"] | None = None,
        intent_turns: int | None = None,
        max_tool_rounds: int | None = None,
        study: bool = True,
        scope: str | None = None,
        conversation_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncIterator[Event]:
        """Yield what ``chat`` answers as it grows, event by event. Raises as that does."""
        return self._events(_CHAT, {
            "messages": messages, "model": model, "intent_override": intent_override, "intent_turns": intent_turns,
            "max_tool_rounds": max_tool_rounds, "study": study, "scope": scope, "conversation_id": conversation_id,
            "idempotency_key": idempotency_key,
        })  # fmt: skip

    async def conversations(self, *, cursor: str | None = None, limit: int = 50) -> ConversationPage:
        """List conversations. As ``MemState.conversations``."""
        return cast("ConversationPage", await self._ask(_CONVERSATIONS, {"cursor": cursor, "limit": limit}))

    async def conversations_iter(self, *, limit: int = 50) -> AsyncIterator[ConversationOut]:
        """Yield the rows of ``conversations``, page after page of ``limit`` rows."""
        async for page in self.pages(self.conversations, limit=limit):
            for row in page["items"]:
                yield row

    async def conversation(
        self,
        conversation_id: str,
        *,
        cursor: str | None = None,
        limit: int = 50,
    ) -> ConversationDetail:
        """Read a conversation. As ``MemState.conversation``."""
        return cast("ConversationDetail", await self._ask(_CONVERSATION, {
            "conversation_id": conversation_id, "cursor": cursor, "limit": limit,
        }))  # fmt: skip

    async def conversation_iter(self, conversation_id: str, *, limit: int = 50) -> AsyncIterator[TurnOut]:
        """Yield the rows of ``conversation``, page after page of ``limit`` rows."""
        async for page in self.pages(self.conversation, conversation_id, limit=limit):
            for row in page["items"]:
                yield row

    async def conversation_undo(
        self,
        conversation_id: str,
        *,
        reason: str = "",
        dry_run: bool = False,
        digest: str | None = None,
    ) -> ConversationUndoReply:
        """Take back what a conversation wrote. As ``MemState.conversation_undo``."""
        return cast("ConversationUndoReply", await self._ask(_CONVERSATION_UNDO, {
            "conversation_id": conversation_id, "reason": reason, "dry_run": dry_run, "digest": digest,
        }))  # fmt: skip

    async def studies(
        self,
        *,
        conversation_id: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> StudyPage:
        """List studies. As ``MemState.studies``."""
        return cast("StudyPage", await self._ask(_STUDIES, {
            "conversation_id": conversation_id, "cursor": cursor, "limit": limit,
        }))  # fmt: skip

    async def studies_iter(self, *, conversation_id: str | None = None, limit: int = 50) -> AsyncIterator[StudyOut]:
        """Yield the rows of ``studies``, page after page of ``limit`` rows."""
        async for page in self.pages(self.studies, conversation_id=conversation_id, limit=limit):
            for row in page["items"]:
                yield row

    async def study(self, study_id: str) -> StudyOut:
        """Read a study. As ``MemState.study``."""
        return cast("StudyOut", await self._ask(_STUDY, {"study_id": study_id}))

    async def study_cancel(self, study_id: str) -> StudyOut:
        """Stop a study. As ``MemState.study_cancel``."""
        return cast("StudyOut", await self._ask(_STUDY_CANCEL, {"study_id": study_id}))

    async def study_resume(self, study_id: str) -> StudyOut:
        """Resume a study. As ``MemState.study_resume``."""
        return cast("StudyOut", await self._ask(_STUDY_RESUME, {"study_id": study_id}))

    async def forget(
        self,
        verb: Literal["release", "purge"],
        *,
        query: str | None = None,
        filter: FilterIn | None = None,
        scope: str | None = None,
        reason: str = "",
        dry_run: bool = True,
        token: str | None = None,
    ) -> ForgetReply:
        """Release or purge by query or filter. As ``MemState.forget``."""
        return cast("ForgetReply", await self._ask(_FORGET, {
            "verb": verb, "query": query, "filter": filter, "scope": scope, "reason": reason, "dry_run": dry_run,
            "token": token,
        }))  # fmt: skip

    async def supersede(
        self,
        old_query: str,
        *,
        new_text: str,
        scope: str | None = None,
        reason: str = "",
        token: str | None = None,
    ) -> SupersedeReply:
        """Replace a fact by what is true now. As ``MemState.supersede``."""
        return cast("SupersedeReply", await self._ask(_SUPERSEDE, {
            "old_query": old_query, "new_text": new_text, "scope": scope, "reason": reason, "token": token,
        }))  # fmt: skip

    async def receipts(self, *, cursor: str | None = None, limit: int = 50) -> ReceiptPage:
        """List receipts of purges. As ``MemState.receipts``."""
        return cast("ReceiptPage", await self._ask(_RECEIPTS, {"cursor": cursor, "limit": limit}))

    async def receipts_iter(self, *, limit: int = 50) -> AsyncIterator[ReceiptOut]:
        """Yield the rows of ``receipts``, page after page of ``limit`` rows."""
        async for page in self.pages(self.receipts, limit=limit):
            for row in page["items"]:
                yield row

    async def receipt(self, receipt_id: str) -> ReceiptOut:
        """Read a receipt. As ``MemState.receipt``."""
        return cast("ReceiptOut", await self._ask(_RECEIPT, {"receipt_id": receipt_id}))

    async def duplicates(
        self,
        *,
        scope: str | None = None,
        state: Literal["open", "merged", "kept", "superseded", "undone", "lapsed"] = "open",
        verdict: Literal["duplicate", "supersedes"] | None = None,
        held: bool | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> PairPage:
        """List pairs that may be one. As ``MemState.duplicates``."""
        return cast("PairPage", await self._ask(_DUPLICATES, {
            "scope": scope, "state": state, "verdict": verdict, "held": held, "cursor": cursor, "limit": limit,
        }))  # fmt: skip

    async def duplicates_iter(
        self,
        *,
        scope: str | None = None,
        state: Literal["open", "merged", "kept", "superseded", "undone", "lapsed"] = "open",
        verdict: Literal["duplicate", "supersedes"] | None = None,
        held: bool | None = None,
        limit: int = 50,
    ) -> AsyncIterator[PairOut]:
        """Yield the rows of ``duplicates``, page after page of ``limit`` rows."""
        async for page in self.pages(
            self.duplicates, scope=scope, state=state, verdict=verdict, held=held, limit=limit
        ):  # fmt: skip
            for row in page["items"]:
                yield row

    async def duplicate(self, pair_id: str) -> PairDetail:
        """Look at one pair. As ``MemState.duplicate``."""
        return cast("PairDetail", await self._ask(_DUPLICATE, {"pair_id": pair_id}))

    async def duplicate_merge(self, pair_id: str, *, reason: str = "") -> PairDecided:
        """Merge a pair. As ``MemState.duplicate_merge``."""
        return cast("PairDecided", await self._ask(_DUPLICATE_MERGE, {"pair_id": pair_id, "reason": reason}))

    async def duplicate_keep(self, pair_id: str, *, reason: str = "") -> PairDecided:
        """Keep both of a pair. As ``MemState.duplicate_keep``."""
        return cast("PairDecided", await self._ask(_DUPLICATE_KEEP, {"pair_id": pair_id, "reason": reason}))

    async def duplicate_supersede(self, pair_id: str, *, reason: str = "") -> PairDecided:
        """Let the newer replace the older. As ``MemState.duplicate_supersede``."""
        return cast("PairDecided", await self._ask(_DUPLICATE_SUPERSEDE, {"pair_id": pair_id, "reason": reason}))

    async def duplicate_undo(self, pair_id: str, *, reason: str = "") -> PairDecided:
        """Take a decision back. As ``MemState.duplicate_undo``."""
        return cast("PairDecided", await self._ask(_DUPLICATE_UNDO, {"pair_id": pair_id, "reason": reason}))

    async def runs(
        self,
        *,
        scope: str | None = None,
        status: Literal["planned", "held", "applying", "done", "undone", "failed"] | None = None,
        event: Literal["ingest_complete", "query_complete", "cron", "memory_pressure", "manual", "by_hand", "revise"]
        | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> RunPage:
        """List runs. As ``MemState.runs``."""
        return cast("RunPage", await self._ask(_RUNS, {
            "scope": scope, "status": status, "event": event, "cursor": cursor, "limit": limit,
        }))  # fmt: skip

    async def runs_iter(
        self,
        *,
        scope: str | None = None,
        status: Literal["planned", "held", "applying", "done", "undone", "failed"] | None = None,
        event: Literal["ingest_complete", "query_complete", "cron", "memory_pressure", "manual", "by_hand", "revise"]
        | None = None,
        limit: int = 50,
    ) -> AsyncIterator[RunOut]:
        """Yield the rows of ``runs``, page after page of ``limit`` rows."""
        async for page in self.pages(self.runs, scope=scope, status=status, event=event, limit=limit):
            for row in page["items"]:
                yield row

    async def run_make(
        self,
        *,
        scope: str | None = None,
        event: Literal["ingest_complete", "query_complete", "cron", "memory_pressure", "manual"] = "cron",
        dry_run: bool = True,
        now: When | None = None,
    ) -> RunOut:
        """Plan a run, or make one. As ``MemState.run_make``."""
        return cast("RunOut", await self._ask(_RUN_MAKE, {
            "scope": scope, "event": event, "dry_run": dry_run, "now": now,
        }))  # fmt: skip

    async def run(self, run_id: str) -> RunOut:
        """Read a run. As ``MemState.run``."""
        return cast("RunOut", await self._ask(_RUN, {"run_id": run_id}))

    async def run_actions(
        self,
        run_id: str,
        *,
        state: Literal["planned", "applied", "skipped", "undone", "conflict"] | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> ActionPage:
        """Read the actions of a run. As ``MemState.run_actions``."""
        return cast("ActionPage", await self._ask(_RUN_ACTIONS, {
            "run_id": run_id, "state": state, "cursor": cursor, "limit": limit,
        }))  # fmt: skip

    async def run_actions_iter(
        self,
        run_id: str,
        *,
        state: Literal["planned", "applied", "skipped", "undone", "conflict"] | None = None,
        limit: int = 50,
    ) -> AsyncIterator[ActionOut]:
        """Yield the rows of ``run_actions``, page after page of ``limit`` rows."""
        async for page in self.pages(self.run_actions, run_id, state=state, limit=limit):
            for row in page["items"]:
                yield row

    async def run_apply(self, run_id: str, *, reason: str = "") -> RunOut:
        """Apply a plan. As ``MemState.run_apply``."""
        return cast("RunOut", await self._ask(_RUN_APPLY, {"run_id": run_id, "reason": reason}))

    async def run_approve(self, run_id: str, *, reason: str = "") -> RunOut:
        """Approve a held run. As ``MemState.run_approve``."""
        return cast("RunOut", await self._ask(_RUN_APPROVE, {"run_id": run_id, "reason": reason}))

    async def run_undo(self, run_id: str, *, reason: str = "") -> UndoReply:
        """Undo a run. As ``MemState.run_undo``."""
        return cast("UndoReply", await self._ask(_RUN_UNDO, {"run_id": run_id, "reason": reason}))

    async def event(self, *, event: str = "memory_pressure", scope: str | None = None) -> EventReply:
        """Raise memory pressure. As ``MemState.event``."""
        return cast("EventReply", await self._ask(_EVENT, {"event": event, "scope": scope}))

    async def policy_preview(
        self,
        *,
        scope: str | None = None,
        preset: str | None = None,
        values: Mapping[str, Any] | None = None,
        rules: Sequence[Any] | None = None,
        at: Sequence[When] | None = None,
        event: Literal["ingest_complete", "query_complete", "cron", "memory_pressure", "manual"] = "cron",
        scale: Literal["log", "linear"] = "log",
        only_new: bool = False,
        cursor: str | None = None,
        limit: int = 50,
    ) -> PreviewReply:
        """Try a policy out. As ``MemState.policy_preview``."""
        return cast("PreviewReply", await self._ask(_POLICY_PREVIEW, {
            "scope": scope, "preset": preset, "values": values, "rules": rules, "at": at, "event": event,
            "scale": scale, "only_new": only_new, "cursor": cursor, "limit": limit,
        }))  # fmt: skip

    async def topic_why(self, topic_id: str) -> WhyReply:
        """Say why a topic stands where it does. As ``MemState.topic_why``."""
        return cast("WhyReply", await self._ask(_TOPIC_WHY, {"topic_id": topic_id}))

    async def policy_backtest(
        self,
        start: When,
        *,
        end: When,
        scope: str | None = None,
        preset: str | None = None,
        values: Mapping[str, Any] | None = None,
        rules: Sequence[Any] | None = None,
        step_days: float = 1.0,
        seed: int = 1,
    ) -> BacktestReply:
        """Replay a draft over the past. As ``MemState.policy_backtest``."""
        return cast("BacktestReply", await self._ask(_POLICY_BACKTEST, {
            "start": start, "end": end, "scope": scope, "preset": preset, "values": values, "rules": rules,
            "step_days": step_days, "seed": seed,
        }))  # fmt: skip

    async def regret(
        self,
        *,
        scope: str | None = None,
        since: When | None = None,
        until: When | None = None,
        limit: int = 50,
    ) -> RegretReply:
        """Count what was regretted. As ``MemState.regret``."""
        return cast("RegretReply", await self._ask(_REGRET, {
            "scope": scope, "since": since, "until": until, "limit": limit,
        }))  # fmt: skip

    async def policy_versions(self, scope: str, *, cursor: int | None = None, limit: int = 50) -> PolicyVersionPage:
        """Read the history of a policy. As ``MemState.policy_versions``."""
        return cast("PolicyVersionPage", await self._ask(_POLICY_VERSIONS, {
            "scope": scope, "cursor": cursor, "limit": limit,
        }))  # fmt: skip

    async def policy_versions_iter(self, scope: str, *, limit: int = 50) -> AsyncIterator[PolicyVersionOut]:
        """Yield the rows of ``policy_versions``, page after page of ``limit`` rows."""
        async for page in self.pages(self.policy_versions, scope, limit=limit):
            for row in page["items"]:
                yield row

    async def policy_rollback(self, scope: str, *, to: int, reason: str = "") -> PolicyOut:
        """Go back in a policy. As ``MemState.policy_rollback``."""
        return cast("PolicyOut", await self._ask(_POLICY_ROLLBACK, {"scope": scope, "to": to, "reason": reason}))

    async def policy(self, scope: str) -> PolicyOut:
        """Read the policy of a scope. As ``MemState.policy``."""
        return cast("PolicyOut", await self._ask(_POLICY, {"scope": scope}))

    async def policy_set(
        self,
        scope: str,
        *,
        preset: str | None = None,
        values: Mapping[str, Any] | None = None,
        rules: Sequence[Any] | None = None,
        reason: str = "",
        base_version: int | None = None,
    ) -> PolicyOut:
        """Set the policy of a scope. As ``MemState.policy_set``."""
        return cast("PolicyOut", await self._ask(_POLICY_SET, {
            "scope": scope, "preset": preset, "values": values, "rules": rules, "reason": reason,
            "base_version": base_version,
        }))  # fmt: skip

    async def stats(self, *, scope: str | None = None) -> Stats:
        """Count what is there. As ``MemState.stats``."""
        return cast("Stats", await self._ask(_STATS, {"scope": scope}))


# --- End of what is generated ----------------------------------------------------------------------------------------


def _portions(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield ``items`` in lists of ``size``, reading no further ahead than one of them."""
    if size < 1:
        raise ValueError("size is at least 1.")
    portion: list[Item] = []
    for item in items:
        portion.append(item)
        if len(portion) == size:
            yield portion
            portion = []
    if portion:
        yield portion


def _shifted(reply: "BatchReply", start: int) -> "BatchReply":
    """Return a reply whose results are numbered from ``start`` on."""
    for result in reply["results"]:
        result["index"] += start
    return reply


class MemState(_Methods):
    """A client whose methods return when the reply has come. It may be used by several threads at once.

    ``api_key`` is MEMSTATE_API_KEY unless given. ``timeout`` is in seconds, for connecting and for each silence of the
    server. ``retries`` is how often a request is sent again at most; a wait of more than ``max_wait`` seconds that the
    server asks for is not waited. ``scope`` takes the place of every ``scope`` that a call leaves out. ``transport`` is
    for tests, and for proxies and certificates of your own.
    """

    def __init__(
        self, base_url: str = "http://127.0.0.1:8765", api_key: str | None = None, *, timeout: float = 30.0,
        retries: int = 4, max_wait: float = 60.0, scope: str | None = None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:  # fmt: skip
        super().__init__(base_url, api_key, timeout=timeout, retries=retries, scope=scope, max_wait=max_wait)
        self._http = httpx2.Client(**self._settings, transport=transport)

    def ingest_all(self, items: Iterable[IngestItem], *, size: int = 500, defer: bool = False) -> Iterator[BatchReply]:
        """Remember any number of items, ``size`` (at most 1,000) in a request, and yield the reply of each.

        ``index`` counts over all items. Nothing is sent before the first reply is asked for. After an exception, all
        earlier batches are stored.
        """
        start = 0
        for portion in _portions(items, size):
            yield _shifted(self.ingest_batch(portion, defer=defer), start)
            start += len(portion)


class AsyncMemState(_AsyncMethods):
    """A client whose methods are awaited, for asyncio. Its arguments are those of ``MemState``."""

    def __init__(
        self, base_url: str = "http://127.0.0.1:8765", api_key: str | None = None, *, timeout: float = 30.0,
        retries: int = 4, max_wait: float = 60.0, scope: str | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:  # fmt: skip
        super().__init__(base_url, api_key, timeout=timeout, retries=retries, scope=scope, max_wait=max_wait)
        self._http = httpx2.AsyncClient(**self._settings, transport=transport)

    async def ingest_all(
        self, items: Iterable[IngestItem], *, size: int = 500, defer: bool = False
    ) -> AsyncIterator[BatchReply]:
        """Remember any number of items, as ``MemState.ingest_all`` does."""
        start = 0
        for portion in _portions(items, size):
            yield _shifted(await self.ingest_batch(portion, defer=defer), start)
            start += len(portion)
