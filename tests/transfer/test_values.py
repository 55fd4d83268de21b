"""Odd values: whatever a store can remember stands in the file, and comes out of it as it went in."""

import datetime as dt
import json
import uuid
from typing import Any

import pytest
from django.apps import apps
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from memory import models as tables
from memory.ingest import history
from memory.models import Field, FieldSummary, Link, PartitionActivity, Revision, Scope, Topic, TopicEdit, Vitality
from memory.policy.restore import PastVersion
from tests.generated import examples
from tests.transfer.shop import emptied, exported, imported

pytestmark = pytest.mark.django_db

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=40)


def moments(first: int, last: int) -> st.SearchStrategy[dt.datetime]:
    """Return the moments from a year to the end of another."""
    return st.datetimes(
        dt.datetime(first, 1, 2),  # noqa: DTZ001
        dt.datetime(last, 12, 30),  # noqa: DTZ001
        timezones=st.just(dt.UTC),
    )


USE = {
    "salience": st.floats(0, 1e6),
    "reinforced_at": moments(1, 2999),
    "retrieval_count": st.integers(0, 2**30),
    "last_retrieved_at": st.none() | moments(1, 2999),
}
REVISION = {
    "value": TEXT.map(lambda text: text * 20),
    "field_type": st.sampled_from(["string", "json", "float"]),
    "valid_from": moments(1, 9999),
    "recorded_at": moments(1, 2999),
    "provenance": TEXT,
    "why_changed": TEXT,
    "impact_expected": TEXT,
    "actor": TEXT,
}
SUMMARY = {
    "from_seq": st.just(1),
    "through_seq": st.integers(1, 9),
    "text": TEXT,
    "method": st.sampled_from(["extractive", "llm"]),
    "depth": st.integers(1, 2),
    "created_at": moments(1970, 2999),
    "withdrawn_at": st.none() | moments(1970, 2999),
}
FIELD = {
    **USE,
    "name": TEXT,
    "created_at": st.sampled_from([dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.datetime(1, 1, 2, tzinfo=dt.UTC)]),
    "cold_through": st.integers(0, 2),
    "detached": st.booleans(),
    "revisions": st.lists(st.fixed_dictionaries(REVISION), min_size=1, max_size=4),
    "summaries": st.lists(st.fixed_dictionaries(SUMMARY), max_size=2),
    "refers": st.booleans(),
}
EDITED = st.fixed_dictionaries({}, optional={"title": TEXT, "summary": TEXT, "categories": st.lists(TEXT, max_size=2)})
ROW = st.fixed_dictionaries(
    {
        **USE,
        "kind": TEXT,
        "title": TEXT,
        "summary": TEXT.map(lambda text: text * 20),
        "categories": st.lists(TEXT, max_size=3),
        "provenance": TEXT,
        "created_at": moments(1, 2999),
        "updated_at": moments(1970, 2999),
        "rung": st.integers(0, 3),
        "released_at": st.none() | moments(1970, 2999),
        "pinned": st.booleans(),
        "pin_reason": TEXT,
        "fields": st.lists(st.fixed_dictionaries(FIELD), max_size=3, unique_by=lambda field: field["name"]),
        "edits": st.lists(st.tuples(moments(1970, 2999), TEXT, EDITED), max_size=2),
        "merged": st.booleans(),
        "link": TEXT,
    }
)
ODD = '"\\u0000\\ \r\n\u2028\u2029\x7f\x1f\ufeff\U0010ffff'
ODDEST: dict[str, Any] = {
    "salience": 5e-324,
    "reinforced_at": dt.datetime(1, 1, 2, tzinfo=dt.UTC),
    "retrieval_count": 2**30,
    "last_retrieved_at": None,
    **dict.fromkeys(("kind", "title", "summary", "provenance", "pin_reason", "link"), ODD),
    "categories": ["{", "NULL", '"', "\\", "", ODD],
    "created_at": dt.datetime(1, 1, 2, tzinfo=dt.UTC),
    "updated_at": dt.datetime(2999, 12, 30, tzinfo=dt.UTC),
    "rung": 0,
    "released_at": None,
    "pinned": True,
    "fields": [],
    "edits": [(dt.datetime(2026, 1, 1, tzinfo=dt.UTC), ODD, {"title": ODD, "categories": ["", ODD]})],
    "merged": True,
}


def stored(rows: list[dict[str, Any]]) -> None:
    """Write topics as they are given, each linked to itself and to the one before."""
    scope = Scope.objects.create(path="/odd")
    idle = {"active_until": 20_000 * 86_400.0, "idle_spans": [19_000 * 86_400.0, 19_500 * 86_400.0]}
    PartitionActivity.objects.update_or_create(scope="/", defaults=idle)
    for number, row in enumerate(rows):
        own = {name: row[name] for name in USE}
        topic = Topic.objects.create(
            id=uuid.UUID(int=number),
            scope=scope,
            merged_into_id=uuid.UUID(int=number - 1) if number and row["merged"] else None,
            **{
                name: row[name]
                for name in history.TopicHistory.model_fields
                if name not in USE
                and name not in ("type", "id", "scope", "pinned", "pin_reason", "fields", "edits", "vector")
                and name != "counted_seconds"
            },
        )
        fading: dict[str, Any] = {
            "half_life": 1e6,
            "fade": 0,
            "fade_floor": 0,
            "idle_before": 86_399.123_456_7 * number,
        }
        Vitality.objects.create(
            topic=topic,
            scope=scope,
            kind=topic.kind,
            created_at=topic.created_at,
            rung=topic.rung,
            pinned=row["pinned"],
            pin_reason=row["pin_reason"],
            **own,
            **fading,
        )
        for at, actor, before in row["edits"]:
            TopicEdit.objects.create(topic=topic, at=at, actor=actor, before=before)
        for given_field in row["fields"]:
            _field_stored(topic, given_field, fading)
        for target in {topic.pk, uuid.UUID(int=max(0, number - 1))}:
            Link.objects.create(
                source=topic, target_id=target, kind=row["link"], created_at=topic.created_at, actor=row["kind"]
            )


def _field_stored(topic: Topic, row: dict[str, Any], fading: dict[str, Any]) -> None:
    field = Field.objects.create(
        id=uuid.uuid4(),
        topic=topic,
        name=row["name"],
        created_at=row["created_at"],
        last_seq=len(row["revisions"]),
        cold_through=row["cold_through"],
        detached=row["detached"],
        **{name: row[name] for name in USE},
        **fading,
    )
    for seq, revision in enumerate(row["revisions"], start=1):
        refers = topic if row["refers"] else None
        Revision.objects.create(id=uuid.uuid4(), field=field, seq=seq, ref_topic=refers, **revision)
    for summary in row["summaries"]:
        FieldSummary.objects.create(field=field, **summary)


@examples(20)
@given(rows=st.lists(ROW, min_size=1, max_size=8))
@example(rows=[ODDEST, ODDEST])
def test_odd_values_come_out_as_they_went_in(rows: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    emptied()
    stored(rows)
    before = exported()
    # Each line is a line, and JSON for everybody.
    assert [json.loads(line)["type"] for line in before.decode().split("\n")[:-1]][-1] == "end"
    emptied()
    job = imported(before, tmp_path_factory.mktemp("odd"))
    assert exported() == before
    assert {why for counts in job.counts.values() for why in counts} == {"brought"}
    # A second time, nothing is written.
    again = imported(before + b"", tmp_path_factory.mktemp("again"))
    assert {why for counts in again.counts.values() for why in counts} == {"there"}
    assert exported() == before


# Tables that are not in an export, each with the reason.
HAPPENED = "what happened stays where it happened"
OURS = "belongs to this installation"
DERIVED = "made anew from the texts"
LEFT_OUT = {
    **dict.fromkeys(("ForgetRun", "ForgetAction", "DuplicatePair", "AccessLog", "ShadowHit", "Watermark"), HAPPENED),
    **dict.fromkeys(("ErasureReceipt", "AuditEvent", "Conversation", "ConversationTurn"), HAPPENED),
    **dict.fromkeys(("ConversationWrite", "ImportJob", "ImportedTopic", "ErasureCheck"), HAPPENED),
    **dict.fromkeys(
        ("ApiKey", "IdempotencyRecord", "ForgetListing", "ForgetPause", "ExtractionJob", "StudyJob", "Rekeying"), OURS
    ),
    **dict.fromkeys(("PartitionActivity",), "topics carry the idle time that counts for them"),
    **dict.fromkeys(("WakeUp", "WorkerHeartbeat"), OURS),
    **dict.fromkeys(("NotificationTarget", "NotificationOccurrence", "NotificationDelivery"), OURS),
    **dict.fromkeys(("DuplicateLook", "TopicDocument", "TopicMention", "Lexeme", "CorpusTotals"), DERIVED),
}
# Tables that are, each with the part that holds a row, and the columns that it holds in another way or not at all.
KEYED = {
    "idle_before": "counted_seconds",
    "wall": "the policy's",
    "half_life": "the policy's",
    "fade": "from salience",
    "fade_floor": "from fade",
}
PARTS: dict[type[Any], tuple[type[BaseModel], dict[str, str]]] = {
    tables.Scope: (history.TopicHistory, {"path": "scope"}),
    tables.Topic: (history.TopicHistory, {"merged_into": "a line of its own"}),
    tables.Vitality: (
        history.TopicHistory,
        {
            "topic": "id",
            "live": "from rung and state",
            "pinned_by_agent": "a pin that comes with a file is its importer's",
            **KEYED,
        },
    ),
    tables.TopicEdit: (history.PastEdit, {"topic": "the part around it"}),
    tables.Field: (history.PastField, {"topic": "the part around it", **KEYED}),
    tables.Revision: (
        history.PastRevision,
        {"field": "the part around it", "seq": "its place", "ref_topic": "a line of its own"},
    ),
    tables.FieldSummary: (history.PastSummary, {"field": "the part around it"}),
    tables.TopicVector: (
        history.PastVector,
        {"topic": "the part around it", "scope": "the topic's", "live": "the topic's"},
    ),
    tables.Link: (history.PastLink, {}),
    tables.PolicyVersion: (PastVersion, {"scope": "the part around it"}),
}


def test_every_table_and_column_is_in_the_file_or_is_left_out_with_a_reason() -> None:
    for model in apps.get_app_config("memory").get_models():
        assert (model in PARTS) != (model.__name__ in LEFT_OUT), (
            f"{model.__name__} is a new table: say how it stands in an export (memory/ingest/history.py), or why not."
        )
        if model in PARTS:
            part, otherwise = PARTS[model]
            columns = {field.name for field in model._meta.concrete_fields} - {"id"}
            assert columns - part.model_fields.keys() <= otherwise.keys(), model.__name__
