"""What a conversation writes is noted with it, in the same transaction, and once."""

import datetime as dt
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memory.agents.chat.conversations import conversation_begin
from memory.agents.tools import write_log as written
from memory.agents.tools.write_log import item_write, writes_log
from memory.core.errors import MemoryProblem
from memory.ingest.apply import ingest_apply, ingest_prepare
from memory.ingest.items import IngestEdge, IngestField, IngestItem
from memory.ingest.plan import ItemReply
from memory.models import Conversation, ConversationWrite, Link, Revision
from tests.cast import Caller, principal_like, raises_code

AGENT = principal_like()


@pytest.fixture
def talk(db: None) -> Conversation:
    return conversation_begin(scope="/", channel="api", principal=AGENT, now=timezone.now())


def writer(conversation: Conversation, now: dt.datetime | None = None) -> Callable[[IngestItem], ItemReply]:
    return lambda item: item_write(item, principal=AGENT, now=now or timezone.now(), conversation_id=conversation.pk)


def new(title: str, *to: uuid.UUID, **values: str) -> IngestItem:
    fields = [IngestField(name=name, value=value) for name, value in values.items()]
    return IngestItem(
        placement="new_topic", title=title, fields=fields, edges=[IngestEdge(to_topic_id=each) for each in to]
    )


def extended(topic_id: uuid.UUID, *to: uuid.UUID, **values: str) -> IngestItem:
    return new("", *to, **values).model_copy(update={"placement": "extend_topic", "topic_id": str(topic_id)})


def noted(conversation: Conversation) -> list[tuple[uuid.UUID, str]]:
    rows = ConversationWrite.objects.filter(conversation=conversation).order_by("id")
    return [(row.topic_id, row.what) for row in rows]


def test_topics_values_and_links_are_noted_with_what_an_undo_needs(talk: Conversation):
    write = writer(talk)
    one = write(new("One")).topic_id
    two = write(new("Two", one, kind="green")).topic_id
    write(extended(one, two, kind="black"))
    write(extended(one, kind="white"))
    rows = list(ConversationWrite.objects.order_by("id"))
    assert [(row.topic_id, row.what) for row in rows] == [
        (one, "topic"),
        (two, "topic"),
        (two, "field"),
        (two, "link"),
        (one, "field"),
        (one, "link"),
        (one, "version"),
    ]
    values = {row.pk: row.value for row in Revision.objects.all()}
    assert [values[row.revision_id] for row in rows if row.revision_id] == ["green", "black", "white"]
    links = {row.pk: (row.source_id, row.target_id) for row in Link.objects.all()}
    assert [links[row.link_id] for row in rows if row.link_id] == [(two, one), (one, two)]


def test_a_link_that_was_there_is_not_noted(agent: Caller, talk: Conversation):
    one, two = (uuid.UUID(agent.remember(title)) for title in ("One", "Two"))
    agent.ingest("extend_topic", topic_id=str(one), edges=[{"to_topic_id": str(two)}])
    write = writer(talk)
    write(extended(one, two))
    assert noted(talk) == []
    # Nor one that another conversation made at the very same moment.
    now = timezone.now()
    other = conversation_begin(scope="/", channel="api", principal=AGENT, now=now)
    for conversation in (talk, other):
        writer(conversation, now)(extended(two, one))
    assert (noted(talk), noted(other)) == ([(two, "link")], [])


def test_what_is_refused_is_neither_written_nor_noted(talk: Conversation, monkeypatch: pytest.MonkeyPatch):
    write = writer(talk)
    with raises_code(MemoryProblem, "not-found"):
        write(extended(uuid.UUID(int=9), a="b"))

    def fail(*_args: Any, **_more: Any) -> None:
        raise LookupError

    monkeypatch.setattr(written, "writes_log", fail)
    with pytest.raises(LookupError):
        write(new("Never"))
    assert (noted(talk), Revision.objects.count()) == ([], 0)


def test_any_number_of_items_is_noted_in_one_statement(talk: Conversation):
    now = timezone.now()
    target = writer(talk)(new("Target")).topic_id
    before = ConversationWrite.objects.count()
    items = [new(f"Number {number}", target, target, kind="x") for number in range(60)]
    pairs = _ingested(items, now)
    with CaptureQueriesContext(connection) as queries:
        writes_log(talk.pk, pairs, now=now)
    assert len(queries) == 1
    assert ConversationWrite.objects.count() == before + 60 * 3
    with CaptureQueriesContext(connection) as queries:
        writes_log(talk.pk, [], now=now)
    assert len(queries) == 0


def _ingested(items: list[IngestItem], now: dt.datetime) -> list[tuple[IngestItem, ItemReply]]:
    prepared = ingest_prepare(items, principal=AGENT, now=now, defer=False)
    outcomes = ingest_apply(prepared, principal=AGENT, now=now)
    return [(item, outcome) for item, outcome in zip(items, outcomes, strict=True) if isinstance(outcome, ItemReply)]
