"""A client for MemState in one file: typed, asynchronous and synchronous, with retries.

It needs only Python 3.11 and ``httpx2``, so you can copy this file into any project:

    from memstate import MemState                # or the name of your copy

    with MemState(api_key="ms_...") as memory:
        memory.ingest("new_topic", title="Tea", summary="Mara drinks green tea.", scope="/user/mara")
        print(memory.query("What does she drink?", scope="/user/mara")["summary_text"])

``AsyncMemState`` has the same methods as coroutines. Arguments that are omitted or ``None`` have the API's defaults.
Replies are dictionaries; the most common have a type. ``request`` reaches any route. All errors are ``MemStateError``.

Requests that are safe to repeat are retried if the connection breaks or the status is 429, 502, 503 or 504. These are
GET, PUT and DELETE, queries, and requests with an ``Idempotency-Key``: ``ingest``, ``ingest_batch`` and ``chat``.
Before a retry, the client waits for the time in ``Retry-After``, or for an increasing time. All other requests, and
those of ``chat_stream``, are sent once.
"""

import asyncio
import copy
import datetime as dt
import email.utils
import functools
import itertools
import json as json_format
import os
import random
import time
import urllib.parse
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, Literal, NotRequired, ParamSpec, Self, TypedDict, TypeVar, Unpack, cast

import httpx2

# Replies are JSON. Their types are declared but not checked.
# mypy: disable-error-code="no-any-return"

P = ParamSpec("P")
T = TypeVar("T")
AnyPage = TypeVar("AnyPage", bound=Mapping[str, Any])

# The wait before the second attempt, and the longest wait, in seconds. The wait doubles with each attempt.
FIRST_WAIT, LONGEST_WAIT = 0.5, 20.0
# At most this many random seconds are added to Retry-After, so that clients do not retry at the same time.
MAX_JITTER = 0.25
# The problem type of a 409 if the first request with the same Idempotency-Key is still running.
STILL_IN_PROGRESS = "urn:memstate:problem:still-in-progress"


# --- Arguments and replies --------------------------------------------------------------------------------------------

# A time with an offset: a datetime, or text such as 2026-03-01T00:00:00Z.
When = str | dt.datetime
Placement = Literal["new_topic", "extend_topic", "version_field"]
Rung = Literal["active", "summarized", "detached", "archived"]
Intent = Literal["query", "ingest", "both"]
# A reply, or a part of one, without a type. See the documentation of the API for its members.
Members = dict[str, Any]


class IngestMembers(TypedDict, total=False):
    """The arguments of ``ingest``, except the placement."""

    topic_id: str | None
    title: str
    summary: str | None
    topic_kind: str | None
    salience: float
    # Each has name and value; optional: field_type, ref_topic_id, why_changed, impact_expected, provenance.
    fields: Sequence[Mapping[str, Any]]
    # Only with extend_topic: names of fields that get an empty value.
    empty_fields: Sequence[str]
    # Links: to_topic_id; optional: kind.
    edges: Sequence[Mapping[str, str]]
    suggest_similar: bool
    scope: str | None
    categories: Sequence[str]
    valid_from: When | None
    pinned: bool
    # Only with an operator key: the past time at which the item was learned, and the time of its last use (default:
    # now).
    created_at: When | None
    last_used_at: When | None


class IngestItem(IngestMembers):
    """One item of a batch."""

    placement: Placement


class QueryOptions(TypedDict, total=False):
    """The arguments of ``query``, except the question."""

    stages: Sequence[Literal["semantic", "structural", "temporal"]]
    explain: bool
    top_k: int
    # Without the semantic stage, the reply contains these topics, in this order.
    topic_ids: Sequence[str] | None
    field_names: Sequence[str] | None
    scope: str | None
    kinds: Sequence[str] | None
    categories: Sequence[str] | None
    # Only topics whose fields now have exactly these values, as text.
    field_values: Mapping[str, str] | None
    include_archived: bool
    include_cold: bool
    include_detached: bool
    as_of: When | None
    created_after: When | None
    created_before: When | None
    asked_at: When | None
    depth: int
    min_relevance: float | None
    token_budget: int | None


class TopicFilter(TypedDict, total=False):
    """The arguments of ``topics`` and ``topics_iter``."""

    scope: str | None
    # Whether topics in scopes below are listed.
    below: bool
    title: str | None
    kind: str | None
    rung: Rung | Literal["any"] | None
    pinned: bool | None
    text: str | None
    q: str | None
    created_after: When | None
    created_before: When | None
    cursor: str | None
    limit: int


class TopicChanges(TypedDict, total=False):
    """The arguments of ``topic_edit``, except the topic. ``salience`` requires an operator key. ``base_updated_at`` is
    the ``updated_at`` of the version that was edited; if the topic has changed since, ``Conflict`` is raised."""

    title: str | None
    summary: str | None
    topic_kind: str | None
    categories: Sequence[str] | None
    salience: float | None
    base_updated_at: When | None
    reason: str


class ChatOptions(TypedDict, total=False):
    """The arguments of ``chat`` and ``chat_stream``, except the messages."""

    model: str | None
    intent_override: Intent | None
    intent_turns: int | None
    max_tool_rounds: int | None
    study: bool
    scope: str | None
    conversation_id: str | None
    idempotency_key: str | None


class IngestReply(TypedDict):
    """The result of one item."""

    topic_id: str
    # created_topic:<id>, field:<name>, version:<name>, edge:<to>
    applied: list[str]
    version_ids: dict[str, str]
    similar_topic_ids: list[str]
    # If the topic is not found by meaning yet: topics, until.
    waiting: NotRequired[Members]


class BatchReply(TypedDict):
    """The result of each item, in the order of the request."""

    # Each has index and status, and either the members of IngestReply or the detail of a refusal.
    results: list[Members]
    accepted: int
    refused: int
    waiting: NotRequired[Members]


class TopicCard(TypedDict):
    """The members that every reply has for a topic."""

    topic_id: str
    title: str
    summary: str
    label: str
    topic_kind: str
    salience: float
    failed_salience: float
    scope: str
    rung: Rung
    categories: list[str]
    pinned: bool
    created_at: str
    updated_at: str
    retrieval_count: int
    last_retrieved_at: str | None


class Candidate(TopicCard):
    """One topic of an answer."""

    similarity: NotRequired[float | None]
    # How well the topic answers the question, 0 to 1; comparable between questions.
    relevance: NotRequired[float | None]
    score: NotRequired[float | None]
    # Topics that say the same; they come after all others, or are left out.
    also: NotRequired[list[str]]
    neighbors: list[Members]
    # Each has name, field_type, current (the revision in force), history and more.
    fields: list[Members]
    score_parts: NotRequired[dict[str, float] | None]


class QueryReply(TypedDict):
    """The answer: topics, best first, and the same as text."""

    query: str
    candidates: list[Candidate]
    summary_text: str
    # The topics of the scope that are not found by meaning yet: topics, until.
    waiting: NotRequired[Members]
    explain: NotRequired[Members | None]


class TopicRow(TopicCard):
    """A topic in a list."""

    archived: bool
    pin_reason: str
    released_at: str | None
    merged_into: str | None
    provenance: str


class TopicPage(TypedDict):
    """One page. ``next`` is the cursor of the next page, None on the last page."""

    items: list[TopicRow]
    next: str | None


class TopicDetail(TopicRow):
    """A topic with all its fields and links, and the topics that were merged into it."""

    fields: list[Members]
    neighbors: list[Members]
    also_from: list[Members]


class ChatReply(TypedDict):
    """The answer of the assistant, with the tool calls behind it."""

    reply: str
    intent: Intent
    intent_source: Literal["override", "model", "rule"]
    tool_log: list[Members]
    model: str
    rounds: int
    conversation_id: str
    ended: Literal["done", "rounds", "time", "model"]
    study: Members | None


@dataclass(frozen=True)
class Event:
    """One event of a streamed reply: its name and its data."""

    name: str
    data: Any


# --- Errors ----------------------------------------------------------------------------------------------------------


class MemStateError(Exception):
    """A failed request; the subclasses are the kinds of failure. ``detail`` is an error message for people. ``status``,
    ``title``, ``type`` and ``members`` are those of the problem document, if there is one. ``retry_after`` is in
    seconds. ``transient`` is true if a retry may succeed."""

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        members: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
        transient: bool = False,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.members: dict[str, Any] = dict(members or {})
        self.title: str = str(self.members.get("title", ""))
        self.type: str = str(self.members.get("type", "about:blank"))
        self.retry_after = retry_after
        self.transient = transient

    def __str__(self) -> str:
        """Return the error message, with the status if there is one."""
        return self.detail if self.status is None else f"{self.status}: {self.detail}"


class Refused(MemStateError):
    """The request is invalid or too large (400, 413, 422). Nothing was written."""


class NotAllowed(MemStateError):
    """The key is unknown, expired or revoked, or its role does not allow the request (401, 403)."""


class NotFound(MemStateError):
    """A topic or other object does not exist, or is outside the scope of the key (404)."""


class Conflict(MemStateError):
    """The request conflicts with the current state (409)."""


class TooManyRequests(MemStateError):
    """The key has used up its requests of this minute (429); see ``retry_after``."""


class ServerFault(MemStateError):
    """An error in the server; its log has the details (500)."""


class Unavailable(MemStateError):
    """The server, or a gateway in front of it, is temporarily unavailable (502, 503, 504)."""


class ConnectionBroken(MemStateError):
    """No complete reply was received. If there was a connection, the server may have executed the request."""


class TimedOut(ConnectionBroken):
    """The server sent nothing for longer than ``timeout``."""


_KINDS: dict[int, type[MemStateError]] = {
    **dict.fromkeys((400, 413, 422), Refused),
    **dict.fromkeys((401, 403), NotAllowed),
    **dict.fromkeys((502, 503, 504), Unavailable),
    404: NotFound,
    409: Conflict,
    429: TooManyRequests,
    500: ServerFault,
}
_TRANSIENT = (429, 502, 503, 504)


# --- One request and its reply, without sending ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Call:
    """One request. A retry sends the same request, with the same Idempotency-Key."""

    name: str
    request: httpx2.Request
    repeatable: bool


def _json_of(value: object) -> Any:
    """Return the JSON form of a value that the json module does not know."""
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value.isoformat()} has no offset. Give it a time zone.")
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot be converted to JSON.")


def _segment(value: object) -> str:
    """Return a value as one segment of a URL path. A segment of dots is escaped, because ``..`` means the parent."""
    text = urllib.parse.quote(str(value), safe="")
    return text.replace(".", "%2E") if not text.strip(".") else text


def _topic(topic_id: str, rest: str = "") -> str:
    return f"/v1/topics/{_segment(topic_id)}{rest}"


def _checked(options: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    """Return ``options`` as a dict. Raises ``TypeError`` for a name that ``kind`` does not have."""
    if unknown := options.keys() - kind.__annotations__.keys():
        raise TypeError(f"Unknown argument {min(unknown)!r}; possible are {', '.join(kind.__annotations__)}.")
    return dict(options)


def _without_none(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _seconds_of(header: str | None) -> float | None:
    """Return the seconds of a Retry-After header, which is a number or a date; None if the header is neither."""
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


def _error_of(status: int | None, body: Any, default: str, **more: Any) -> MemStateError:
    """Return the error for a problem document. ``default`` is the error message if the document has none."""
    members = body if isinstance(body, dict) else {}
    detail = members.get("detail")
    detail = detail if isinstance(detail, str) and detail else default
    more = {"members": members, "transient": status in _TRANSIENT, **more}
    return _KINDS.get(status or 0, MemStateError)(detail, status=status, **more)


def _connection_error(problem: httpx2.RequestError, call: _Call) -> MemStateError:
    if isinstance(problem, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return ConnectionBroken(f"{call.name}: no connection; nothing was sent. ({problem})", transient=True)
    if isinstance(problem, httpx2.TimeoutException):
        return TimedOut(f"{call.name}: the server took longer than the timeout.", transient=True)
    # A retry cannot correct an invalid address or request.
    transient = not isinstance(problem, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError)
    what = str(problem) or type(problem).__name__
    return ConnectionBroken(f"{call.name}: the connection broke. ({what})", transient=transient)


def _reply_read(response: httpx2.Response, call: _Call) -> Any:
    """Return the JSON of a completely read reply. Raises ``MemStateError`` for an error status."""
    status = response.status_code
    try:
        body = response.json() if response.content else None
    except ValueError:
        body = None
        if response.is_success:
            what = "the reply is not JSON; is the base_url the address of MemState?"
            raise MemStateError(f"{call.name}: {what}", status=status) from None
    if response.is_success:
        return body
    default = f"The server answered {status} {response.reason_phrase}".rstrip() + " without an error message."
    if 300 <= status < 400:
        default = f"The server redirects ({status}); base_url is not the address of MemState."
    members = {"title": response.reason_phrase, **(body if isinstance(body, dict) else {})}
    still_in_progress = "Idempotency-Key" in call.request.headers and members.get("type") == STILL_IN_PROGRESS
    retry_after = _seconds_of(response.headers.get("Retry-After"))
    raise _error_of(
        status, members, default, retry_after=retry_after, transient=status in _TRANSIENT or still_in_progress
    )


def _event_of(event: httpx2.ServerSentEvent) -> Event:
    try:
        data = json_format.loads(event.data)
    except ValueError:
        data = event.data
    if event.event == "error":
        status = data.get("status") if isinstance(data, dict) else None
        known = status if isinstance(status, int) else None
        raise _error_of(known, data, "The server ended the reply without an error message.")
    return Event(event.event, data)


async def _result_of(answer: Awaitable[T] | T) -> T:
    return await answer if isinstance(answer, Awaitable) else answer


async def _one_by_one(items: Iterable[T]) -> AsyncIterator[T]:
    for item in items:
        yield item


class _Core:
    """Settings, and functions that make and send requests."""

    _asynchronous: bool

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8765",
        api_key: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 4,
        max_wait: float = 60.0,
        scope: str | None = None,
        store: str | None = None,
        transport: httpx2.BaseTransport | httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Create a client. ``api_key`` defaults to the environment variable MEMSTATE_API_KEY.

        ``timeout`` is in seconds, for the connection and for each read. ``retries`` is the maximum number of retries of
        a request. If the server requests a wait of more than ``max_wait`` seconds, the client raises the error instead.
        ``scope`` is the default scope of all calls except ``request``. ``store`` names the store, for a key of the
        installation. ``transport`` is for tests, and for your own proxies and certificates.
        """
        key = api_key if api_key is not None else os.environ.get("MEMSTATE_API_KEY", "")
        if not key:
            raise ValueError("A key is required. Pass api_key or set MEMSTATE_API_KEY.")
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ValueError("The key contains characters that are not allowed in a key. Copy it again.")
        named = {} if store is None else {"X-MemState-Store": store}
        headers = {"X-API-Key": key, "User-Agent": "memstate-client/1", **named}
        kind: Any = httpx2.AsyncClient if self._asynchronous else httpx2.Client
        self._http = kind(base_url=base_url, headers=headers, transport=transport)
        self._base_url, self._scope = base_url, scope
        self._timeout, self._retries, self._max_wait = timeout, retries, max_wait

    def __repr__(self) -> str:
        """Return the class and the address, without the key and without a password in the address."""
        return f"<{type(self).__name__} at {httpx2.URL(self._base_url).copy_with(userinfo=b'')}>"

    def with_timeout(self, seconds: float) -> Self:
        """Return a client for slow requests. It has another timeout, and shares the connections of this one."""
        other = copy.copy(self)
        other._timeout = seconds
        return other

    def _call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, Any] | None = None,
        key: str | None = None,
        repeatable: bool | None = None,
        accept: str = "application/json",
    ) -> _Call:
        if not path.startswith("/"):
            # A complete URL could send the key to another server.
            raise ValueError(f"The path must begin with a slash, as in /v1/stats; {path!r} does not.")
        headers = {"Accept": accept}
        content = None
        if body is not None:
            text = json_format.dumps(body, default=_json_of, allow_nan=False, separators=(",", ":"))
            content, headers["Content-Type"] = text.encode(), "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key
        if repeatable is None:
            repeatable = key is not None or method.upper() in ("GET", "PUT", "DELETE")
        given = json_format.loads(json_format.dumps(_without_none(params or {}), default=_json_of))
        more: dict[str, Any] = {"content": content, "headers": headers, "timeout": self._timeout}
        request = self._http.build_request(method, path, params=given or None, **more)
        return _Call(f"{method} {path}", request, repeatable)

    def _scoped(self, **members: Any) -> dict[str, Any]:
        """Return the members that are not None, with the default scope of the client if none is given."""
        given = _without_none(members)
        return {**given, **self._scope_for(given)}

    def _scope_for(self, members: Mapping[str, Any]) -> dict[str, str]:
        """Return the default scope as a member. Return an empty dict if the request has a scope, or names an existing
        topic or conversation."""
        if self._scope is None or members.get("scope") is not None or members.get("conversation_id") is not None:
            return {}
        return {"scope": self._scope} if members.get("placement", "new_topic") == "new_topic" else {}

    def _chat_call(self, messages: Sequence[Mapping[str, str]], options: ChatOptions, accept: str) -> _Call:
        body = self._scoped(messages=messages, **_checked(options, ChatOptions))
        key = body.pop("idempotency_key", None) or str(uuid.uuid4())
        return self._call("POST", "/v1/chat", body, key=key, accept=accept)

    async def _ask(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Send a request, with retries if allowed, and return the JSON of the reply."""
        return await self._send(self._call(method, path, body, **more))

    async def _ingest(self, path: str, body: Any, *, defer: bool, key: str | None) -> Any:
        params = {"defer": True} if defer else None
        return await self._ask("POST", path, body, params=params, key=key or str(uuid.uuid4()))

    async def _send(self, call: _Call) -> Any:
        attempt = 0
        while True:
            try:
                return [event async for event in self._events(call)][-1].data
            except MemStateError as failure:
                pause = self._wait_after(failure, call, attempt=attempt)
            if self._asynchronous:
                await asyncio.sleep(pause)
            else:
                time.sleep(pause)  # noqa: ASYNC251
            attempt += 1

    async def _events(self, call: _Call) -> AsyncGenerator[Event, None]:
        """Send a request once, and yield the events of its reply. A reply without a stream is one event, ``done``."""
        try:
            response = await _result_of(self._http.send(call.request, stream=True))
            try:
                kind = str(response.headers.get("Content-Type", ""))
                if not (response.is_success and kind.startswith("text/event-stream")):
                    await _result_of(response.aread() if self._asynchronous else response.read())
                    yield Event("done", _reply_read(response, call))
                    return
                source: Any = httpx2.EventSource(response, max_event_size=None)
                async for event in source if self._asynchronous else _one_by_one(source):
                    yield (result := _event_of(event))
                    if result.name == "done":
                        return
            finally:
                await _result_of(response.aclose() if self._asynchronous else response.close())
        except httpx2.RequestError as problem:
            raise _connection_error(problem, call) from problem
        raise ConnectionBroken(f"{call.name}: the reply ended too early.", transient=True)

    def _wait_after(self, failure: MemStateError, call: _Call, *, attempt: int) -> float:
        """Return the seconds to wait before the next attempt; ``attempt`` starts at 0. Raises ``failure`` if the call
        must not be retried."""
        if not (call.repeatable and failure.transient) or attempt >= self._retries:
            raise failure
        # Random, so that clients do not retry at the same time.
        pause = min(LONGEST_WAIT, FIRST_WAIT * 2.0**attempt) * random.uniform(0.5, 1.0)  # noqa: S311
        if failure.retry_after is None:
            return pause
        if failure.retry_after > self._max_wait:
            raise failure
        return max(pause, failure.retry_after + random.uniform(0.0, MAX_JITTER))  # noqa: S311


# --- The asynchronous client -----------------------------------------------------------------------------------------


class AsyncMemState(_Core):
    """A client for asyncio. Its methods call each other through the class and not through ``self``. The reason is that
    ``MemState`` runs them too, but has blocking methods with the same names."""

    _asynchronous = True

    async def __aenter__(self) -> Self:
        """Return the client itself; its connections are closed at the end."""
        return self

    async def __aexit__(self, *_problem: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        await _result_of(self._http.aclose() if self._asynchronous else self._http.close())

    async def ingest(
        self,
        placement: Placement,
        *,
        defer: bool = False,
        idempotency_key: str | None = None,
        **members: Unpack[IngestMembers],
    ) -> IngestReply:
        """Store one item: a new topic, additions to a topic, or a new revision of a field."""
        body = self._scoped(placement=placement, **_checked(members, IngestMembers))
        return await self._ingest("/v1/ingest", body, defer=defer, key=idempotency_key)

    async def ingest_batch(
        self, items: Sequence[IngestItem], *, defer: bool = False, idempotency_key: str | None = None
    ) -> BatchReply:
        """Store up to 1,000 items. Each is accepted or refused separately; see ``results`` of the reply."""
        body = [{**item, **self._scope_for(item)} for item in items]
        return await self._ingest("/v1/ingest/batch", body, defer=defer, key=idempotency_key)

    async def ingest_all(
        self, items: Iterable[IngestItem], *, size: int = 500, defer: bool = False
    ) -> AsyncGenerator[BatchReply, None]:
        """Store any number of items, ``size`` (at most 1,000) in a request, and yield the reply of each request. In the
        replies, ``index`` counts over all items. After an exception, all earlier batches are stored."""
        if size < 1:
            raise ValueError("size is at least 1.")
        start, left = 0, iter(items)
        while portion := list(itertools.islice(left, size)):
            reply = await AsyncMemState.ingest_batch(self, portion, defer=defer)
            for result in reply["results"]:
                result["index"] += start
            yield reply
            start += len(portion)

    async def extract(
        self,
        content: str,
        *,
        scope: str | None = None,
        store: bool = False,
        kind: str | None = None,
        background: bool = False,
    ) -> Members:
        """Extract facts from a text. ``store`` stores the new facts. ``background`` starts a job."""
        body = self._scoped(content=content, scope=scope, store=store, kind=kind)
        return await self._ask("POST", "/v1/extract", body, params={"background": True} if background else None)

    async def extraction(self, job_id: str) -> Members:
        """Return the progress of a background extraction."""
        return await self._ask("GET", f"/v1/extract/{_segment(job_id)}")

    async def supersede(
        self, old_query: str, *, new_text: str, scope: str | None = None, reason: str = "", token: str | None = None
    ) -> Members:
        """Replace a fact by ``new_text``; ``old_query`` describes the fact. The old value stays in the history. If
        several facts fit, the ``members`` of ``Conflict`` list them, each with a ``token`` to send."""
        body = self._scoped(old_query=old_query, new_text=new_text, scope=scope, reason=reason, token=token)
        return await self._ask("POST", "/v1/supersede", body)

    async def query(self, q: str, **options: Unpack[QueryOptions]) -> QueryReply:
        """Return the topics that answer a question, best first, each with its fields and neighbours."""
        body = self._scoped(q=q, **_checked(options, QueryOptions))
        return await self._ask("POST", "/v1/query", body, repeatable=True)

    async def topics(self, **filters: Unpack[TopicFilter]) -> TopicPage:
        """List topics, one page at a time. ``text`` searches for words."""
        return await self._ask("GET", "/v1/topics", params=self._scoped(**_checked(filters, TopicFilter)))

    async def topics_iter(self, **filters: Unpack[TopicFilter]) -> AsyncGenerator[TopicRow, None]:
        """Yield all topics that ``topics`` lists, page after page of ``limit`` rows."""
        async for page in AsyncMemState.pages(functools.partial(AsyncMemState.topics, self), **filters):
            for row in page["items"]:
                yield row

    async def topic(self, topic_id: str) -> TopicDetail:
        """Return one topic on any rung. This does not raise the salience of the topic."""
        return await self._ask("GET", _topic(topic_id))

    async def field_history(
        self, topic_id: str, name: str, *, cursor: str | None = None, limit: int | None = None
    ) -> Members:
        """List the revisions of a field, newest first, one page at a time."""
        path = _topic(topic_id, f"/fields/{_segment(name)}/history")
        return await self._ask("GET", path, params={"cursor": cursor, "limit": limit})

    async def stats(self, *, scope: str | None = None) -> Members:
        """Count the topics, fields, revisions and links of a scope and of everything below it."""
        return await self._ask("GET", "/v1/stats", params=self._scoped(scope=scope))

    async def health(self) -> Members:
        """Raise ``Unavailable`` unless the store is ready. The error has the failed checks in ``members["failed"]``."""
        return await self._ask("GET", "/readyz", repeatable=False)

    async def topic_edit(self, topic_id: str, **changes: Unpack[TopicChanges]) -> TopicDetail:
        """Change the properties of a topic. The previous values stay in its history."""
        return await self._ask("PATCH", _topic(topic_id), _without_none(_checked(changes, TopicChanges)))

    async def topic_pin(self, topic_id: str, *, reason: str = "") -> TopicDetail:
        """Protect a topic from being forgotten."""
        return await self._ask("POST", _topic(topic_id, "/pin"), {"reason": reason})

    async def topic_unpin(self, topic_id: str, *, reason: str = "") -> TopicDetail:
        """Unpin a topic, so that it can be forgotten again."""
        return await self._ask("POST", _topic(topic_id, "/unpin"), {"reason": reason})

    async def topic_restore(self, topic_id: str, *, reason: str = "") -> TopicDetail:
        """Restore an archived topic. Requires an operator key."""
        return await self._ask("POST", _topic(topic_id, "/restore"), {"reason": reason})

    async def chat(self, messages: Sequence[Mapping[str, str]], **options: Unpack[ChatOptions]) -> ChatReply:
        """Return the assistant's reply to the last message. Each message has a role and a content. The reply is
        streamed, so ``timeout`` limits the time without data, and not the whole time of the answer."""
        return await self._send(self._chat_call(messages, options, "text/event-stream, application/json;q=0.5"))

    def chat_stream(
        self, messages: Sequence[Mapping[str, str]], **options: Unpack[ChatOptions]
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of the reply of ``chat``; the last is ``done``, with the whole reply. Raises the errors of
        ``chat``. The request is not retried; a second call with the same ``idempotency_key`` yields the same events."""
        return self._events(self._chat_call(messages, options, "text/event-stream"))

    async def conversations(self, *, cursor: str | None = None, limit: int | None = None) -> Members:
        """List conversations, the most recently active first, one page at a time."""
        return await self._ask("GET", "/v1/chat", params={"cursor": cursor, "limit": limit})

    async def conversation(
        self, conversation_id: str, *, cursor: str | None = None, limit: int | None = None
    ) -> Members:
        """Return one page of the turns of a conversation, newest first, and what the conversation wrote."""
        path = f"/v1/chat/{_segment(conversation_id)}"
        return await self._ask("GET", path, params={"cursor": cursor, "limit": limit})

    async def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        cursor: str | int | None = None,
        idempotency_key: str | None = None,
        repeatable: bool | None = None,
    ) -> Any:
        """Send any request, as in ``request("GET", "/v1/runs", params={"status": "held"})``, and return its JSON.
        ``cursor`` is added to ``json`` if that is passed, otherwise to ``params``. This lets ``pages`` accept this
        method. ``repeatable`` allows retries; it is true for GET, PUT and DELETE, and with an ``idempotency_key``."""
        if cursor is not None and json is not None:
            json = {**json, "cursor": cursor}
        elif cursor is not None:
            params = {**(params or {}), "cursor": cursor}
        return await self._ask(method, path, json, params=params, key=idempotency_key, repeatable=repeatable)

    @staticmethod
    async def pages(
        method: Callable[P, Awaitable[AnyPage]], /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncGenerator[AnyPage, None]:
        """Call a method for one page after another, and yield each page, as in ``pages(memory.topics, limit=100)``."""
        more: dict[str, Any] = dict(kwargs)
        while True:
            page = await cast(Callable[..., Awaitable[AnyPage]], method)(*args, **more)
            yield page
            more["cursor"] = page.get("next")
            if more["cursor"] is None:
                return


# --- The synchronous client ------------------------------------------------------------------------------------------


def _finished(answer: Awaitable[T]) -> T:
    """Run a coroutine that never waits for an event loop. Its first step is therefore also the last."""
    try:
        answer.__await__().__next__()
    except StopIteration as end:
        return end.value
    raise RuntimeError("A method of the synchronous client waited for an event loop.")


def _blocking(method: Callable[Concatenate[Any, P], Awaitable[T]]) -> Callable[Concatenate[Any, P], T]:
    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return _finished(method(self, *args, **kwargs))

    return call


def _blocking_each(
    method: Callable[Concatenate[Any, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[Any, P], Iterator[T]]:
    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return _each(method(self, *args, **kwargs))

    return call


def _each(answers: AsyncGenerator[T, None]) -> Iterator[T]:
    try:
        while True:
            yield _finished(answers.__anext__())
    except StopAsyncIteration:
        return
    finally:
        _finished(answers.aclose())


class MemState(_Core):
    """A client with blocking methods. Several threads may use one client at once."""

    _asynchronous = False

    def __enter__(self) -> Self:
        """Return the client itself; its connections are closed at the end."""
        return self

    def __exit__(self, *_problem: object) -> None:
        """Close the connections."""
        self.close()

    close = _blocking(AsyncMemState.close)
    ingest = _blocking(AsyncMemState.ingest)
    ingest_batch = _blocking(AsyncMemState.ingest_batch)
    ingest_all = _blocking_each(AsyncMemState.ingest_all)
    extract = _blocking(AsyncMemState.extract)
    extraction = _blocking(AsyncMemState.extraction)
    supersede = _blocking(AsyncMemState.supersede)
    query = _blocking(AsyncMemState.query)
    topics = _blocking(AsyncMemState.topics)
    topics_iter = _blocking_each(AsyncMemState.topics_iter)
    topic = _blocking(AsyncMemState.topic)
    field_history = _blocking(AsyncMemState.field_history)
    stats = _blocking(AsyncMemState.stats)
    health = _blocking(AsyncMemState.health)
    topic_edit = _blocking(AsyncMemState.topic_edit)
    topic_pin = _blocking(AsyncMemState.topic_pin)
    topic_unpin = _blocking(AsyncMemState.topic_unpin)
    topic_restore = _blocking(AsyncMemState.topic_restore)
    chat = _blocking(AsyncMemState.chat)
    chat_stream = _blocking_each(AsyncMemState.chat_stream)
    conversations = _blocking(AsyncMemState.conversations)
    conversation = _blocking(AsyncMemState.conversation)
    request = _blocking(AsyncMemState.request)

    @staticmethod
    def pages(method: Callable[P, AnyPage], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[AnyPage]:
        """Call a method for one page after another, and yield each page, as in ``pages(memory.topics, limit=100)``."""

        async def answered(**more: Any) -> AnyPage:
            return cast(Callable[..., AnyPage], method)(*args, **more)

        return _each(AsyncMemState.pages(answered, **kwargs))
