"""A worker that is killed outright again and again while it studies a long text: the same topics as without."""

import random
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from memory.agents.study.progress import session_ids
from memory.ingest.apply import ingest_apply, ingest_prepare
from memory.ingest.items import IngestItem
from memory.models import AuditEvent, ConversationWrite, StudyJob, Topic
from tests.agents.study.reader import CITIES, part_of, reader, rounds_of, text_about
from tests.agents.study.shop import started, worked
from tests.cast import principal_like
from tests.crash.test_killed_runs import KILLS, Workers, pause
from tests.llm.server import KEY, MODEL, Asked, Model
from tests.seed import SEED
from tests.waits import eventually

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = text_about(30, chars=100_000)


@pytest.fixture
def workers(tmp_path: Path, served_model: Model, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """Workers that ask the scripted model."""
    settings.MEMSTATE_CHAT_CHUNK_CHARS = 10_000
    # What an answer takes on a busy machine is no trouble of the model.
    settings.MEMSTATE_LLM_TIMEOUT_SECONDS = 60.0
    environment = {
        "MEMSTATE_LLM_MODEL": MODEL,
        "MEMSTATE_LLM_BASE_URL": served_model.url,
        "MEMSTATE_LLM_API_KEY": KEY,
        "MEMSTATE_STUDY_PHASE_DELAY_SECONDS": "0.2",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    made = Workers(tmp_path / "workers.log")
    try:
        yield made
    finally:
        made.end()


LEARNED = """
SELECT t.id, t.title, t.summary, t.categories, t.provenance, m.title,
    (SELECT array_agg(f.name || '=' || r.value ORDER BY f.name, r.seq) FROM memory_field f
     JOIN memory_revision r ON r.field_id = f.id WHERE f.topic_id = t.id),
    (SELECT array_agg(ARRAY[l.kind, l.target_id::text, o.title] ORDER BY l.kind, o.title)
     FROM memory_link l JOIN memory_topic o ON o.id = l.target_id WHERE l.source_id = t.id)
FROM memory_topic t JOIN memory_scope s ON s.id = t.scope_id
LEFT JOIN memory_topic m ON m.id = t.merged_into_id
WHERE s.path = %s AND t.kind <> 'source' ORDER BY t.title, t.kind LIKE 'study:%%'
"""


def known(scope: str) -> None:
    """What the store knew before: cities, and some of the people, who may be merged with."""
    people = [("person", f"Person {number}") for number in range(0, 30, 7)]
    items = [
        IngestItem(placement="new_topic", title=title, topic_kind=kind, scope=scope)
        for kind, title in [*(("city", city) for city in CITIES), *people]
    ]
    agent, now = principal_like("agent"), timezone.now()
    ingest_apply(ingest_prepare(items, principal=agent, now=now, defer=False), principal=agent, now=now)


def learned(job: StudyJob) -> list[Any]:
    """Everything that a study has written, its topics by their numbers: what differs between two jobs is their ids."""
    with connection.cursor() as cursor:
        cursor.execute(LEARNED, [job.scope])
        return numbered(job, cursor.fetchall())


def numbered(job: StudyJob, rows: list[Any]) -> list[Any]:
    """What ``LEARNED`` tells, with the numbers of a study's topics in place of their ids."""
    place = {topic_id: f"#{number}" for number, topic_id in enumerate(session_ids(job))}
    return [
        (
            place.get(topic_id),
            *columns,
            [(kind, place.get(uuid.UUID(target)), title) for kind, target, title in links or []],
        )
        for topic_id, *columns, links in rows
    ]


class Watched:
    """The reader, with a note of which part it was asked to begin, and when one was at work."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.lock = threading.Lock()

    def __call__(self, asked: Asked) -> Any:
        if not rounds_of(asked):
            with self.lock:
                self.begun.append(part_of(asked))
        return reader(asked)


def test_a_study_whose_worker_is_killed_makes_the_same_topics_and_asks_for_no_part_again(
    workers: Workers, served_model: Model, settings: Any
) -> None:
    chance = random.Random(SEED)
    print(f"MEMSTATE_TEST_SEED={SEED}")
    settings.MEMSTATE_STUDY_PHASE_DELAY_SECONDS = 0.0
    served_model.answers(reader)
    known("/undisturbed")
    expected = worked(started(TEXT, scope="/undisturbed"), seconds=300)
    assert expected.status == "done"

    watched = Watched()
    served_model.answers(watched)
    known("/killed")
    job = started(TEXT, scope="/killed")
    work = f"study {job.pk}"
    workers.start(work)
    hits = 0
    for turn in range(KILLS):
        reached = (job.segments - 1) * turn // KILLS
        eventually(lambda reached=reached: StudyJob.objects.get(pk=job.pk).done >= reached, 60)
        pause(chance)
        hits += workers.kill(chance) > 0
        # At every moment the job counts exactly the parts whose topics are there.
        row = StudyJob.objects.get(pk=job.pk)
        assert set(Topic.objects.filter(kind=job.kind).values_list("pk", flat=True)) == set(session_ids(row))
    print(f"{hits} of {KILLS} kills hit the study at work")
    eventually(lambda: StudyJob.objects.get(pk=job.pk).status != "working", 120)
    # Two at one job: the second finds it taken, or done.
    workers.start(work)
    assert workers.join(work) == [0, 0]
    job = StudyJob.objects.get(pk=job.pk)
    assert (job.status, job.failure, job.done) == ("done", "", job.segments)
    assert (job.steps, job.warning) == (expected.steps, expected.warning)
    assert learned(job) == learned(expected)
    # No part is skipped, none is begun again once it is done, and each kill repeats one at most.
    parts = [part for part in watched.begun if part]
    assert parts == sorted(parts)
    assert set(parts) == set(range(1, job.segments + 1))
    assert len(parts) - job.segments <= KILLS
    assert len(watched.begun) - len(parts) <= -(-job.to_link // 4) + KILLS
    # Noted once each, and journaled once.
    notes = [
        sorted(ConversationWrite.objects.filter(conversation=each.conversation_id).values_list("what", "topic__title"))
        for each in (job, expected)
    ]
    assert notes[0] == notes[1]
    assert AuditEvent.objects.filter(action="study_done", after__study=str(job.pk)).count() == 1
    assert "Traceback" not in workers.said()
    print(f"{KILLS} kills, {len(parts) - job.segments} of {job.segments} parts begun twice, {job.to_link} topics")
