"""A whole installation that is killed outright while it studies a text, and starts anew: the same topics as ever."""

import random
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from memory.agents.study.progress import session_ids
from memory.models import StudyJob
from memstate_site.postgres.address import embedded_address
from tests.agents.study.reader import CITIES, text_about
from tests.crash.test_killed import KILLS, ask, installed, number, rows, store_connect
from tests.crash.test_study_killed import LEARNED, Watched, numbered
from tests.llm.server import KEY, MODEL, Asked, Model, model_served
from tests.postgres_process import server_pid
from tests.seed import SEED
from tests.site.conftest import Installation, working_folder  # noqa: F401 - a fixture
from tests.waits import eventually

# The full variant is MEMSTATE_TEST_KILLS=10. Each time everything has to start again.
WHOLE = max(2, KILLS // 4)
TEXT = text_about(20, chars=14_000)
PEOPLE = range(0, 20, 5)


class Unhurried(Watched):
    """Takes a moment for each answer, as models do, so that a kill finds it at work."""

    def __call__(self, asked: Asked) -> Any:
        time.sleep(0.05)
        return super().__call__(asked)


@pytest.fixture
def model() -> Iterator[Model]:
    with model_served() as served:
        yield served


@pytest.fixture
def installation(working_folder: Path, model: Model) -> Iterator[Installation]:  # noqa: F811
    """One that asks the scripted model."""
    with installed(
        working_folder,
        MEMSTATE_LLM_MODEL=MODEL,
        MEMSTATE_LLM_BASE_URL=model.url,
        MEMSTATE_LLM_API_KEY=KEY,
        MEMSTATE_CHAT_CHUNK_CHARS="2000",
        MEMSTATE_STUDY_PHASE_DELAY_SECONDS="0.2",
    ) as running:
        yield running


def posted(installation: Installation, path: str, body: Any) -> Any:
    status, reply = ask(installation.port, path, body)
    assert status == 200, reply
    return reply


def begun(installation: Installation, scope: str) -> uuid.UUID:
    """Tell the assistant a long text to remember, where some of it is known."""
    known = [("city", city) for city in CITIES] + [("person", f"Person {each}") for each in PEOPLE]
    items = [{"placement": "new_topic", "title": title, "topic_kind": kind, "scope": scope} for kind, title in known]
    posted(installation, "/v1/ingest/batch", items)
    said = {"messages": [{"role": "user", "content": TEXT}], "intent_override": "ingest", "scope": scope}
    return uuid.UUID(posted(installation, "/v1/chat", said)["study"]["study_id"])


def job_of(address: str, job_id: uuid.UUID) -> StudyJob:
    columns = ("id", "scope", "status", "done", "segments", "topics", "links", "merged", "steps", "warning", "failure")
    ((row),) = rows(address, f"SELECT {', '.join(columns)} FROM memory_studyjob WHERE id = %s", job_id)
    return StudyJob(**dict(zip(columns, row, strict=True)))


def ended(address: str, job_id: uuid.UUID) -> StudyJob:
    eventually(lambda: job_of(address, job_id).status != "working", 90)
    return job_of(address, job_id)


def kill_whole(installation: Installation) -> None:
    """What a power cut does to processes: all of them, the database too."""
    assert installation.process is not None
    database = server_pid(installation.folder)
    assert database is not None
    heads = [psutil.Process(installation.process.pid), psutil.Process(database)]
    everybody = [*heads, *(child for head in heads for child in head.children(recursive=True))]
    for each in everybody:
        with suppress(psutil.Error):
            each.send_signal(signal.SIGKILL)
    installation.process.wait(10)
    _gone, alive = psutil.wait_procs([each for each in everybody if each.pid != installation.process.pid], 10)
    assert not alive


def test_an_installation_that_is_killed_whole_while_it_studies_learns_the_same(
    installation: Installation, model: Model
) -> None:
    chance = random.Random(SEED)
    print(f"MEMSTATE_TEST_SEED={SEED}")
    address = embedded_address(installation.folder)
    model.answers(Watched())
    expected = ended(address, begun(installation, "/undisturbed"))
    assert (expected.status, expected.done) == ("done", expected.segments)
    watched = Unhurried()
    model.answers(watched)
    job_id = begun(installation, "/killed")
    for turn in range(WHOLE):
        reached = 1 + (expected.segments - 2) * turn // WHOLE
        eventually(lambda reached=reached: job_of(address, job_id).done >= reached, 60)
        time.sleep(chance.uniform(0.0, 0.3))
        kill_whole(installation)
        installation.start()
        # The job counts exactly the parts whose topics are there.
        job = job_of(address, job_id)
        assert job.status == "working"
        made = rows(address, "SELECT id FROM memory_topic WHERE kind = %s", job.kind)
        assert {each for (each,) in made} == set(session_ids(job))
        # Three minutes later upkeep finds it; a question is one of the things that call upkeep.
        with store_connect(address) as connection:
            late = "enqueued_at - interval '4 minutes', moved_at = moved_at - interval '4 minutes'"
            connection.execute(f"UPDATE memory_studyjob SET enqueued_at = {late} WHERE id = %s", [job_id])
        posted(installation, "/v1/query", {"q": "Who lives in Oslo?", "scope": "/elsewhere"})
    job = ended(address, job_id)
    assert (job.status, job.failure, job.steps, job.warning) == ("done", "", expected.steps, expected.warning)
    learned = [numbered(each, rows(address, LEARNED, each.scope)) for each in (job, expected)]
    assert learned[0] == learned[1]
    # No part is skipped, none is begun again once it is done, and each kill repeats one at most.
    parts = [part for part in watched.begun if part]
    assert parts == sorted(parts)
    assert set(parts) == set(range(1, job.segments + 1))
    assert len(parts) - job.segments <= WHOLE
    # Begun once, ended once, and all of it noted for its conversation once.
    journal = "SELECT count(*) FROM memory_auditevent WHERE action = %s AND after->>'study' = %s"
    assert [number(address, journal, f"study_{each}", str(job_id)) for each in ("started", "done")] == [1, 1]
    notes = """SELECT w.what, t.title, count(*) FROM memory_conversationwrite w JOIN memory_topic t ON t.id = w.topic_id
               JOIN memory_studyjob j ON j.conversation_id = w.conversation_id WHERE j.id = %s
               GROUP BY 1, 2 ORDER BY 1, 2"""
    assert rows(address, notes, job_id) == rows(address, notes, expected.pk)
    print(f"{WHOLE} kills, {len(parts) - job.segments} of {job.segments} parts begun twice, {job.topics} topics")
