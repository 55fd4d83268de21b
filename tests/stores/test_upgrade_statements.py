"""The upgrade to statements that are stored once: copies in titles and summaries are emptied, and nothing is lost."""

import datetime as dt
import importlib
from typing import Any

import pytest
from django.db import connection

from memory.models import AuditEvent, TopicDocument, TopicEdit, TopicVector
from tests.cast import Caller, worker_turn

UPGRADE = importlib.import_module("memory.migrations.0005_statements_stored_once")
LONG = "Petra mag Kaffee, und zwar nur den aus der kleinen Rösterei am Fluss, in der ihre Schwester arbeitet."

# Title, summary and field before; title and summary after.
STORES: list[tuple[str, str, tuple[str, str], tuple[str, str]]] = [
    ("Device A is a Synology NAS", "", ("note", "Device A is a Synology NAS"), ("", "")),
    ("Mara", "Mara lives in Oslo.", ("note", "Mara lives in Oslo."), ("Mara", "")),
    ("Prefers tea to coffee", "", ("memory", "Prefers tea to coffee."), ("", "")),
    ("Petra mag Kaffee, und zwar…", "", ("fact", LONG), ("", "")),
    ("薬は1日2錠飲むこと", "", ("fact", "薬は1日2錠飲むこと。"), ("", "")),
    ("Анна живёт в Осло", "Она там работает.", ("text", "Анна живёт в  Осло."), ("", "Она там работает.")),
    ("أحمد لا يأكل السمك", "", ("memory", "أحمد لا يأكل السمك"), ("", "")),
    ("Where Mara lives", "", ("note", "In Oslo, near the harbour."), ("Where Mara lives", "")),
    ("Oslo", "", ("city", "Oslo"), ("Oslo", "")),
]


def upgrade() -> None:
    with connection.cursor() as cursor:
        cursor.execute(UPGRADE._STATEMENTS_SQL)


@pytest.mark.parametrize(("title", "summary", "field", "after"), STORES, ids=[each[0] for each in STORES])
def test_only_copies_are_emptied(agent: Caller, title: str, summary: str, field: Any, after: Any) -> None:
    name, value = field
    topic_id = agent.ingest(title=title, summary=summary, fields=[{"name": name, "value": value}])["topic_id"]
    upgrade()
    stored = agent.topic(topic_id)
    assert (stored["title"], stored["summary"]) == after
    assert stored["fields"][0]["current"]["value"] == value
    assert stored["label"]
    changed = after != (title, summary)
    assert TopicEdit.objects.filter(topic_id=topic_id).exists() is changed
    assert AuditEvent.objects.filter(topic_id=topic_id, action="edited", actor="system").exists() is changed
    assert TopicDocument.objects.get(topic_id=topic_id).outdated is changed
    upgrade()
    assert TopicEdit.objects.filter(topic_id=topic_id).count() == changed


def test_a_corrected_note_replaces_the_old_statement(agent: Caller, operator: Caller, clock: Any) -> None:
    topic_id = agent.ingest(
        title="Device A is a Synology NAS", fields=[{"name": "note", "value": "Device A is a Synology NAS"}]
    )["topic_id"]
    field = {"name": "note", "value": "Device A is an fnOS NAS."}
    agent.ingest(placement="version_field", topic_id=topic_id, fields=[field])
    before = dt.datetime.now(dt.UTC)
    upgrade()
    assert TopicVector.objects.get(topic_id=topic_id).embedding is None
    worker_turn()
    assert TopicVector.objects.get(topic_id=topic_id).embedding is not None
    assert not TopicDocument.objects.get(topic_id=topic_id).outdated
    found = agent.post("/v1/query", {"q": "Device A"}).ok()
    assert "Synology" not in found["summary_text"]
    assert found["candidates"][0]["label"] == "Device A is an fnOS NAS."
    earlier = agent.post("/v1/query", {"q": "Device A", "as_of": before.isoformat()}).ok()
    assert earlier["candidates"][0]["title"] == "Device A is a Synology NAS"


def test_a_title_stays_where_the_field_was_emptied(agent: Caller, operator: Caller) -> None:
    topic_id = agent.ingest(title="Device A is a NAS", fields=[{"name": "note", "value": "Device A is a NAS"}])[
        "topic_id"
    ]
    agent.ingest(placement="version_field", topic_id=topic_id, fields=[{"name": "note", "value": ""}])
    upgrade()
    assert agent.topic(topic_id)["title"] == "Device A is a NAS"
