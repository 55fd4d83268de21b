"""A request about a topic outside the scope of its key costs what one about an unknown topic costs: its time tells
nothing, it locks nothing and embeds nothing."""

import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.access.keys import key_create
from memory.embedding import embedder_get
from tests.cast import Caller, Cast

LONG = "A long text about tea. " * 100
_IDS = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")
_NUMBERS = re.compile(r"s[0-9]+_x[0-9]+|'[0-9][^']*'|\b[0-9]+(?:\.[0-9]+)?\b")

REQUESTS: dict[str, tuple[str, str, Any]] = {
    "read": ("GET", "/v1/topics/{id}", None),
    "edit": ("PATCH", "/v1/topics/{id}", {"title": "x"}),
    "edit the summary": ("PATCH", "/v1/topics/{id}", {"summary": LONG}),
    "pin": ("POST", "/v1/topics/{id}/pin", {}),
    "unpin": ("POST", "/v1/topics/{id}/unpin", {}),
    "archive": ("POST", "/v1/topics/{id}/archive", {}),
    "restore": ("POST", "/v1/topics/{id}/restore", {}),
    "why": ("GET", "/v1/topics/{id}/why", None),
    "purge": ("DELETE", "/v1/topics/{id}", None),
    "extend": ("POST", "/v1/ingest", {"placement": "extend_topic", "topic_id": "{id}", "fields": [{"name": "a"}]}),
    "version": ("POST", "/v1/ingest", {"placement": "version_field", "topic_id": "{id}", "fields": [{"name": "a"}]}),
    "link": (
        "POST",
        "/v1/ingest",
        {"placement": "new_topic", "title": LONG, "edges": [{"to_topic_id": "{id}", "kind": "x"}]},
    ),
    "batch": ("POST", "/v1/ingest/batch", [{"placement": "extend_topic", "topic_id": "{id}"}]),
}


@pytest.fixture
def bound(cast: Cast) -> Caller:
    """An operator of another scope: it may do everything but see."""
    secret = "ms_an-operator-of-bob-in-the-tests-of-work"
    key_create(name="of bob", role="operator", secret=secret, scope="/user/bob")
    return Caller(cast.operator.send, secret)


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The texts that are embedded during the test."""
    texts: list[str] = []
    embedder, real = embedder_get(), embedder_get().embed_passages

    def noted(passages: list[str]) -> Any:
        texts.extend(passages)
        return real(passages)

    monkeypatch.setattr(embedder, "embed_passages", noted)
    return texts


def filled(value: Any, topic_id: str) -> Any:
    if isinstance(value, dict):
        return {name: filled(each, topic_id) for name, each in value.items()}
    if isinstance(value, list):
        return [filled(each, topic_id) for each in value]
    return value.replace("{id}", topic_id) if isinstance(value, str) else value


def statements(caller: Caller, name: str, topic_id: str) -> tuple[int, str, list[str]]:
    """Send the request about a topic; return the status, the body without ids, and the statements without values."""
    method, path, body = REQUESTS[name]
    more = {} if body is None else {"json": filled(body, topic_id)}
    with CaptureQueriesContext(connection) as asked:
        answer = caller.request(method, filled(path, topic_id), **more)
    plain = [_NUMBERS.sub("?", _IDS.sub("?", query["sql"])) for query in asked.captured_queries]
    return answer.status, _IDS.sub("?", answer.text), plain


@pytest.mark.parametrize("name", REQUESTS)
def test_what_is_not_visible_is_not_worked_on(operator: Caller, bound: Caller, embedded: list[str], name: str) -> None:
    foreign = operator.remember("Tea of Alice", scope="/user/alice", summary=LONG, values={"a": LONG, "b": LONG})
    embedded.clear()
    unknown = statements(bound, name, str(uuid.uuid4()))
    # Twice, since the first request of a process may ask for what is kept afterwards.
    unknown = statements(bound, name, str(uuid.uuid4()))
    seen = statements(bound, name, foreign)
    assert seen[:2] == unknown[:2]
    assert seen[2] == unknown[2]
    assert not embedded
