"""Out of one store and into an empty one: what is remembered comes back as it was, and goes on working."""

import json
import uuid
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.utils import timezone
from django_q.models import Schedule

from memory.access.principal import SYSTEM
from memory.demo.build import story_build
from memory.demo.store import story_load
from memory.forgetting.manual_actions import topics_restore
from memory.jobs import tasks
from memory.models import (
    AccessLog,
    AuditEvent,
    Conversation,
    DuplicatePair,
    ErasureReceipt,
    Field,
    ForgetRun,
    PolicyVersion,
    Revision,
    Topic,
    TopicVector,
    Vitality,
)
from memory.transfer import export as export_room
from memory.transfer.lines import MODELS
from tests.cast import Caller, Cast, Clock
from tests.forgetting.shop import policy_put
from tests.transfer.shop import derived, emptied, exported, imported, kinds, lines, rich

pytestmark = pytest.mark.django_db


def test_a_rich_store_comes_back_byte_for_byte_and_goes_on_working(cast: Cast, clock: Clock, tmp_path: Path) -> None:
    made = rich(cast, clock)
    before, texts = exported(), derived()
    assert kinds(before) == {"memstate", "end", *MODELS}
    topic = cast.reader.topic(made["odd"])
    rungs = dict(Vitality.objects.values_list("topic_id", "rung"))
    emptied()
    job = imported(before, tmp_path)
    assert exported() == before
    assert derived() == texts
    # Nothing was left out, and the journal says who has imported what, for the import and for each topic.
    assert {why for counts in job.counts.values() for why in counts} == {"brought"}
    events = list(AuditEvent.objects.filter(action__startswith="import_").order_by("id"))
    assert [(event.action, event.actor) for event in events] == [
        ("import_started", "system"),
        ("import_done", "system"),
    ]
    assert events[1].after["counts"] == job.counts
    of_topics = AuditEvent.objects.filter(action="imported")
    assert of_topics.count() == Topic.objects.count()
    assert set(of_topics.values_list("reason", flat=True)) == {f"import {job.pk}"}
    # What happened stays where it happened.
    for model in (ForgetRun, AccessLog, Conversation, DuplicatePair, ErasureReceipt):
        assert not model._default_manager.exists()
    # What is imported is in the state that it was in, and found.
    assert dict(Vitality.objects.values_list("topic_id", "rung")) == rungs
    again = cast.reader.topic(made["odd"])
    assert {name: again[name] for name in ("title", "scope", "created_at")} == {
        name: topic[name] for name in ("title", "scope", "created_at")
    }
    assert made["odd"] in cast.agent.found("Rumpelstilzchen 東京", scope="/odd")
    assert made["released"] not in cast.agent.found("An old address")
    why = cast.reader.get(f"/v1/topics/{made['other']}/why").ok()
    assert [(entry["what"], entry["actor"]) for entry in why["history"]] == [("imported", "system")]
    topics_restore([uuid.UUID(made["other"])], principal=SYSTEM, reason="needed", now=clock.now)
    waiting = TopicVector.objects.filter(embedding=None)
    assert waiting.exists()
    tasks.upkeep()
    assert not waiting.exists()


def test_vectors_come_along_if_they_are_of_the_same_model(agent: Caller, tmp_path: Path) -> None:
    for name in ("Oslo", "Bergen"):
        agent.remember(f"The pier of {name}")
    before = exported(vectors=True)
    emptied()
    imported(before, tmp_path)
    assert exported(vectors=True) == before
    assert not TopicVector.objects.filter(embedding=None).exists()
    # One of another model, and one of another text, are made anew.
    other = before.replace(b'"model":"instant"', b'"model":"another"', 1).replace(b"pier of Bergen", b"port of Bergen")
    emptied()
    imported(other, tmp_path)
    assert TopicVector.objects.filter(embedding=None).count() == 2


def test_a_part_of_a_store_is_a_store(cast: Cast, clock: Clock, tmp_path: Path) -> None:
    rich(cast, clock)
    part = exported(scope="/people")
    assert kinds(part) >= {"topic", "reference", "link"}
    scopes = {json.loads(line)["scope"] for kind in ("policy", "topic") for line in lines(part, kind)}
    assert {scope.split("/")[1] for scope in scopes} == {"people"}
    emptied()
    imported(part, tmp_path)
    assert exported(scope="/people") == part
    assert lines(exported())[1:] == lines(part)[1:]


def test_policies_come_with_their_versions_and_are_in_force(cast: Cast, tmp_path: Path) -> None:
    topic = cast.agent.remember("At work", scope="/work")
    policy_put(cast.operator, "/work", half_life_days=3, cron="0 3 * * *")
    policy_put(cast.operator, "/work", half_life_days=5, cron="0 4 * * *")
    before = exported()
    emptied()
    Schedule.objects.all().delete()
    imported(before, tmp_path)
    assert exported() == before
    assert PolicyVersion.objects.filter(scope="/work").count() == 2
    # The half-life is that of the policy, which came first.
    assert Vitality.objects.get(topic_id=topic).half_life == 5 * 86_400
    assert Schedule.objects.filter(func="memory.jobs.tasks.forget_scheduled", cron="0 4 * * *").exists()
    # Elsewhere, it is that of the policy that is in force there.
    emptied()
    policy_put(cast.operator, "/work", half_life_days=7)
    assert imported(before, tmp_path).counts["policy"] == {"there": 1}
    assert Vitality.objects.get(topic_id=topic).half_life == 7 * 86_400


def test_no_line_is_longer_than_a_few_megabytes(agent: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the texts are, and however many revisions there are of them."""
    monkeypatch.setattr(export_room, "LINE_BYTES", 40_000)
    monkeypatch.setattr(export_room, "FETCH_BYTES", 40_000)
    words = "harbor walks " * 700
    values = {"one": words, "other": "short", "third": words}
    ids = [agent.remember(f"Topic {number}", values=values) for number in range(4)]
    for number in range(12):
        agent.ingest("version_field", topic_id=ids[0], fields=[{"name": "one", "value": f"{number} {words}"}])
    content, texts = exported(), derived()
    assert max(map(len, lines(content))) < 2 * 40_000
    assert (len(lines(content, "topic")), len(lines(content, "history")) > 1) == (4, True)
    monkeypatch.undo()
    whole = exported()
    assert lines(whole, "history") == []
    emptied()
    imported(content, tmp_path)
    assert exported() == whole
    assert derived() == texts
    assert Revision.objects.filter(field__topic_id=ids[0], field__name="one").count() == 13
    assert Field.objects.get(topic_id=ids[0], name="one").last_seq == 13


def test_the_demo_comes_back_byte_for_byte(db: None, tmp_path: Path) -> None:
    now = timezone.now()
    # The worst statistics: those of tables that have pages and no rows.
    with transaction.atomic(), connection.cursor() as cursor:
        sid = transaction.savepoint()
        story_load(story_build(now=now, topics=60), now=now, progress=lambda _done: None)
        transaction.savepoint_rollback(sid)
        cursor.execute("ANALYZE")
    story_load(story_build(now=now, topics=250), now=now, progress=lambda _done: None)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '10s'")
        before = exported()
        # The numbers of rows that ANALYZE found outlast the transaction: no other test gets the worst ones.
        cursor.execute("ANALYZE")
    assert kinds(before) >= {"policy", "topic", "link"}
    emptied()
    imported(before, tmp_path)
    assert exported() == before
