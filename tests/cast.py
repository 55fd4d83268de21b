"""The cast: the same callers in every test, each with a real key, speaking to the whole stack.

``agent`` and ``operator`` see everything, ``reader`` sees everything and changes nothing. ``alice`` and ``stranger``
are agents bound to ``/user/alice`` and ``/user/bob``, ``auditor`` is a reader bound to ``/user``.
"""

import contextlib
import datetime as dt
import http.client
import json as json_module
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from memory.access.keys import PREFIX_LENGTH, secret_hash
from memory.access.principal import SYSTEM, Principal
from memory.core.ids import uuid7_at
from memory.core.problem_codes import URN_PREFIX, ProblemCode
from memory.jobs import tasks
from memory.models import ApiKey, AuditEvent
from memory.stores.keys import key_note

PARTS = {
    "agent": ("agent", "/"),
    "operator": ("operator", "/"),
    "reader": ("reader", "/"),
    "stranger": ("agent", "/user/bob"),
    "alice": ("agent", "/user/alice"),
    "auditor": ("reader", "/user"),
}

_NOTHING: Any = object()
# The place of a member before what is wrong with it.


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0]

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json_module.loads(self.body)

    @property
    def detail(self) -> str:
        """The sentence of a refusal; that it is a problem document is checked on the way."""
        assert self.code
        sentence = self.json["detail"]
        assert isinstance(sentence, str)
        assert sentence
        return sentence

    @property
    def code(self) -> str:
        """The code of a refusal; that it is a problem document is checked on the way."""
        assert self.content_type == "application/problem+json", (self.status, self.content_type, self.body[:500])
        assert self.json["status"] == self.status
        return code_of(self.json)

    @property
    def about(self) -> set[str]:
        """The code of a refusal, and the member of the request that it names."""
        return {self.code, self.json.get("member", "")}

    def ok(self) -> Any:
        """Return the JSON of a success; fail with what the server said otherwise."""
        assert self.status == 200, (self.status, self.body[:2000])
        assert self.content_type == "application/json"
        return self.json


def code_of(problem: Mapping[str, Any]) -> str:
    """Return the code of a problem document, or of an item of a batch that was refused."""
    begin, code = problem["type"][: len(URN_PREFIX)], problem["type"][len(URN_PREFIX) :]
    assert begin == URN_PREFIX
    assert code in set(ProblemCode)
    return str(code)


Send = Callable[[str, str, bytes | None, Mapping[str, str]], Answer]


@contextlib.contextmanager
def raises_code(kind: type[BaseException], code: str) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Expect an exception of a kind with the code of a problem."""
    assert code in set(ProblemCode)
    with pytest.raises(kind) as caught:
        yield caught
    assert getattr(caught.value, "code", None) == code, caught.value


def in_process(method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
    """Send a request through the middleware and routes, in the thread and transaction of the test."""
    headers = dict(headers)
    content_type = headers.pop("Content-Type", "application/json")
    client = Client(raise_request_exception=False, enforce_csrf_checks=True)
    reply = client.generic(method, path, data=body or b"", content_type=content_type, headers=headers)
    content = b"".join(reply.streaming_content) if reply.streaming else reply.content
    return Answer(reply.status_code, {name.lower(): value for name, value in reply.headers.items()}, content)


def over_http(host: str, port: int) -> Send:
    """Return a way to send requests over a socket of their own each; safe to use from many threads."""

    def send(method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        connection = http.client.HTTPConnection(host, port, timeout=60)
        try:
            return over_connection(connection, method, path, body, headers)
        finally:
            connection.close()

    return send


def over_connection(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
) -> Answer:
    """Send a request over a connection, which stays open."""
    connection.request(method, path, body=body, headers={"Content-Type": "application/json", **headers})
    reply = connection.getresponse()
    return Answer(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())


@dataclass(frozen=True)
class Caller:
    """One client with one key, or none."""

    send: Send
    secret: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def request(
        self,
        method: str,
        path: str,
        json: Any = _NOTHING,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send ``json`` as it is encoded by default, or ``body`` as it is."""
        if json is not _NOTHING:
            body = json_module.dumps(json).encode()
        own = {"X-API-Key": self.secret} if self.secret is not None else {}
        return self.send(method, path, body, {**own, **self.headers, **(headers or {})})

    def get(self, path: str, **more: Any) -> Answer:
        return self.request("GET", path, **more)

    def post(self, path: str, json: Any = _NOTHING, **more: Any) -> Answer:
        return self.request("POST", path, json, **more)

    def patch(self, path: str, json: Any = _NOTHING, **more: Any) -> Answer:
        return self.request("PATCH", path, json, **more)

    def put(self, path: str, json: Any = _NOTHING, **more: Any) -> Answer:
        return self.request("PUT", path, json, **more)

    def delete(self, path: str, **more: Any) -> Answer:
        return self.request("DELETE", path, **more)

    # What nearly every test does.

    def ingest(self, placement: str = "new_topic", /, **members: Any) -> Any:
        """Ingest one item, which must be accepted, and return the reply."""
        return self.post("/v1/ingest", {"placement": placement, **members}).ok()

    def remember(self, title: str, /, **members: Any) -> str:
        """Make a topic and return its id; keyword ``values`` become fields."""
        values = members.pop("values", {})
        fields = [{"name": name, "value": value} for name, value in values.items()]
        topic_id = self.ingest(title=title, fields=[*fields, *members.pop("fields", [])], **members)["topic_id"]
        assert isinstance(topic_id, str)
        return topic_id

    def query(self, q: str, /, **members: Any) -> Any:
        """Ask, and return the reply, which must be a success."""
        return self.post("/v1/query", {"q": q, **members}).ok()

    def found(self, q: str, /, **members: Any) -> list[str]:
        """Ask, and return the ids of the candidates, best first."""
        return [candidate["topic_id"] for candidate in self.query(q, **members)["candidates"]]

    def topic(self, topic_id: str) -> Any:
        """Look a topic up by its id."""
        return self.get(f"/v1/topics/{topic_id}").ok()


@dataclass(frozen=True)
class Cast:
    """All callers over one way of sending."""

    agent: Caller
    operator: Caller
    reader: Caller
    stranger: Caller
    alice: Caller
    auditor: Caller
    anonymous: Caller


def cast_make(send: Send) -> Cast:
    """Store a key for every part and return the callers."""
    now = timezone.now()
    # As `key_create` does, for all at once: most tests begin with this.
    ApiKey.objects.bulk_create(
        ApiKey(
            id=uuid7_at(now),
            name=name,
            role=role,
            scope=scope,
            prefix=secret_of(name)[:PREFIX_LENGTH],
            secret_hash=secret_hash(secret_of(name)),
            created_at=now,
        )
        for name, (role, scope) in PARTS.items()
    )
    key_note(*(secret_hash(secret_of(name)) for name in PARTS))
    AuditEvent.objects.bulk_create(
        AuditEvent(
            at=now,
            actor="system",
            action="key_created",
            scope=scope,
            after={"name": name, "role": role, "prefix": secret_of(name)[:PREFIX_LENGTH]},
        )
        for name, (role, scope) in PARTS.items()
    )
    return cast_over(send)


def cast_over(send: Send) -> Cast:
    """Return the callers, whose keys are stored already, over another way of sending."""
    return Cast(**{name: Caller(send, secret_of(name)) for name in PARTS}, anonymous=Caller(send))


def secret_of(name: str) -> str:
    """Return the key of a member of the cast."""
    return f"ms_the-secret-of-{name}-in-the-tests"


def principal_like(role: str = "agent", scope: str = "/") -> Principal:
    """Return a principal for tests that call the rooms without a request."""
    return (
        SYSTEM if (role, scope) == ("operator", "/") else Principal(f"test:{role}:{scope}", f"test:{role}", role, scope)
    )


def worker_turn() -> dict[str, int]:
    """Do what the worker would do now: fold accesses, count words, embed waiting topics."""
    return tasks.upkeep()


def enqueued(task: str) -> list[str]:
    """Return the first argument of every entry of the queue for a task of ``memory.jobs.tasks``, in order."""
    entries = [each.task for each in OrmQ.objects.order_by("id")]
    return [each["args"][0] for each in entries if each["func"] == f"memory.jobs.tasks.{task}"]


def store_rows() -> dict[str, int]:
    """Return the number of rows in every table of the store. One query."""
    tables = [model._meta.db_table for model in apps.get_app_config("memory").get_models()]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(f"SELECT '{table}', count(*) FROM {table}" for table in tables))
        return dict(cursor.fetchall())


class Clock:
    """The time as the application sees it, once ``stop`` or ``set`` has been called."""

    def __init__(self, patch: Callable[[Callable[[], dt.datetime]], None]) -> None:
        self._patch = patch
        self.now = dt.datetime.now(dt.UTC)

    def set(self, now: dt.datetime) -> dt.datetime:
        """Stop the clock at ``now``."""
        self.now = now
        self._patch(lambda: self.now)
        return now

    def stop(self) -> dt.datetime:
        """Stop the clock where it is."""
        return self.set(self.now)

    def forward(self, **delta: float) -> dt.datetime:
        """Let time pass, given as for ``timedelta``, and return the new moment."""
        return self.set(self.now + dt.timedelta(**delta))
