"""Out of one store and into an empty one: nothing is lost, nothing is added, and everything goes on working."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from memory import jobs
from memory.access.principal import SYSTEM
from memory.command.purge import topics_purge
from memory.command.verify import erasure_verify
from memory.demo.build import story_build
from memory.demo.store import story_load
from memory.duplicates.merge import pair_merge, pair_undo
from memory.forgetting.runs import run_take_back
from memory.models import AuditEvent, ForgetAction, ForgetRun, Link, TopicVector
from memory.transfer.shape import ORDER
from tests.cast import Caller, Cast, Clock
from tests.duplicates.shop import pair_make
from tests.transfer.shop import brought, derived, emptied, ended, exported, lines, rich, sorts

pytestmark = pytest.mark.django_db


def taken_back(made: dict[str, Any], clock: Clock) -> bytes:
    """Take back every run that can be, merges among them, and return what the store is then; it stays as it was."""
    with transaction.atomic():
        for run in ForgetRun.objects.filter(status="done", applied__gt=0).order_by("-created_at", "-id"):
            if str(run.pk) not in (str(made["held"]), str(made["applying"])):
                run_take_back(run.pk, principal=SYSTEM, reason="all of it", now=clock.now)
        told = exported()
        transaction.set_rollback(True)
    return told


def test_a_rich_store_comes_back_byte_for_byte_and_goes_on_working(cast: Cast, clock: Clock, tmp_path: Path) -> None:
    made = rich(cast, clock)
    before, texts = exported(), derived()
    assert sorts(before) == {"memstate", "end", *ORDER}
    undone = taken_back(made, clock)
    regret = cast.operator.get("/v1/regret").ok()
    archived = ForgetAction.objects.filter(action="archived").values_list("topic_id", flat=True)
    why = {str(topic_id): cast.reader.get(f"/v1/topics/{topic_id}/why").ok() for topic_id in archived[:5]}
    emptied()
    job = brought(before, tmp_path)
    assert exported() == before
    assert derived() == texts
    # Nothing was left out, and the journal tells of the import itself.
    assert {why for counts in job.counts.values() for why in counts} == {"brought"}
    told = list(AuditEvent.objects.filter(action__startswith="import_").order_by("id"))
    assert [(event.action, event.actor) for event in told] == [("import_started", "system"), ("import_done", "system")]
    assert told[1].after["counts"] == job.counts
    # The trail of the past says the same: what was regretted, why each topic was archived, what was erased.
    assert cast.operator.get("/v1/regret").ok() == regret
    assert why
    assert {topic_id: cast.reader.get(f"/v1/topics/{topic_id}/why").ok() for topic_id in why} == why
    verdict = erasure_verify()
    assert (verdict.ok, verdict.chain.count) == (True, 2)
    # Taking back what was done there does here what it would have done there.
    assert taken_back(made, clock) == undone
    # Found by word at once; by meaning, too, once the worker was there. The run that was at work is still at work.
    assert made["odd"] in cast.agent.found("Rumpelstilzchen 東京", scope="/odd")
    assert {row.status for row in ForgetRun.objects.filter(pk__in=[made["held"], made["applying"]])} == {
        "held",
        "applying",
    }
    waiting = TopicVector.objects.filter(embedding=None)
    assert waiting.exists()
    jobs.upkeep()
    assert not waiting.exists()
    assert ForgetRun.objects.get(pk=made["applying"]).status == "done"
    # What is written now has numbers of its own.
    one, other = cast.agent.remember("New here"), cast.agent.remember("And this")
    cast.agent.ingest("extend_topic", topic_id=one, edges=[{"to_topic_id": other, "kind": "near"}])


def test_vectors_come_along_if_they_are_of_the_same_model(agent: Caller, tmp_path: Path) -> None:
    for name in ("Oslo", "Bergen"):
        agent.remember(f"The pier of {name}")
    before = exported(vectors=True)
    emptied()
    brought(before, tmp_path)
    assert exported(vectors=True) == before
    assert not TopicVector.objects.filter(embedding=None).exists()
    # One of another model is made anew.
    other = before.replace(b'"model":"instant"', b'"model":"another"', 1)
    emptied()
    brought(other, tmp_path)
    assert TopicVector.objects.filter(embedding=None).count() == 1


def test_a_part_of_a_store_is_a_store(cast: Cast, clock: Clock, tmp_path: Path) -> None:
    rich(cast, clock)
    part = exported(scope="/people")
    assert sorts(part) >= {"policy", "topic", "reference", "link", "run", "action", "access", "audit"}
    # What proves something as a whole alone, and what lies elsewhere, is not in it.
    assert not {"receipt", "watermark"} & sorts(part)
    assert b'"scope":"/home"' not in part
    emptied()
    brought(part, tmp_path)
    assert exported(scope="/people") == part
    assert lines(exported())[1:] == lines(part)[1:]


def test_a_number_that_a_journal_names_is_never_given_again(cast: Cast, clock: Clock, tmp_path: Path) -> None:
    """A merge has moved a link, and the link is gone since; taking back the merge must not move another."""
    there = cast.agent.remember("There")
    older = cast.agent.remember("Anna", values={"city": "Oslo"}, edges=[{"to_topic_id": there, "kind": "near"}])
    clock.forward(minutes=1)
    newer = cast.agent.remember("Anna", values={"job": "pilot"})
    clock.forward(minutes=1)
    pair = pair_make(older, newer).pk
    pair_merge(pair, principal=SYSTEM, reason="the same", now=clock.now)
    topics_purge([uuid.UUID(there)], principal=SYSTEM, reason="asked for", now=clock.now)
    before = exported()
    assert lines(before, "link") == []
    emptied()
    job = brought(before, tmp_path)
    assert job.report["numbers"]["link"] >= 1
    one, other = cast.agent.remember("One"), cast.agent.remember("Other")
    cast.agent.ingest("extend_topic", topic_id=one, edges=[{"to_topic_id": other, "kind": "near"}])
    made = Link.objects.get()
    assert made.pk > job.report["numbers"]["link"]
    pair_undo(pair, principal=SYSTEM, reason="they are two", now=clock.now)
    made.refresh_from_db()
    assert (str(made.source_id), str(made.target_id)) == (one, other)
    # Nor by what is imported behind it, where the last link is gone again.
    more = exported()
    topics_purge([uuid.UUID(one)], principal=SYSTEM, reason="asked for", now=clock.now)
    assert not Link.objects.exists()
    renamed = b"".join(lines(more)).replace(one.encode(), str(uuid.uuid4()).encode())
    renamed = renamed.replace(other.encode(), str(uuid.uuid4()).encode())
    kept = [line for line in lines(renamed) if b'"type":"topic"' in line or b'"type":"link"' in line]
    brought(ended([lines(more)[0], *kept]), tmp_path)
    assert Link.objects.get().pk > made.pk


def test_the_demo_comes_back_byte_for_byte(db: None, tmp_path: Path) -> None:
    now = timezone.now()
    story_load(story_build(now=now, topics=250), now=now, progress=lambda _done: None)
    before = exported()
    assert sorts(before) >= {"policy", "topic", "link", "run", "action", "pair", "access", "audit", "conversation"}
    emptied()
    brought(before, tmp_path)
    assert exported() == before
