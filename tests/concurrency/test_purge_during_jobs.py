"""A purge, a release or a drop of the store at any moment of a background job: the job ends without an error."""

import contextlib
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import ProgrammingError, connection, connections
from django.utils import timezone

from memory.access.keys import key_create
from memory.access.principal import SYSTEM
from memory.core.errors import Conflict
from memory.erasure.check import erasure_check_start
from memory.erasure.purge import topics_purge
from memory.forgetting.manual_actions import topics_release
from memory.jobs import tasks
from memory.jobs.stores import store_create, store_drop
from memory.models import DuplicatePair, ErasureCheck, ExtractionJob, ImportJob, StudyJob, Topic
from memory.stores.current import store_use
from memory.stores.models import Store
from memory.transfer.importing import import_start
from tests.agents.study.reader import reader, text_about
from tests.agents.study.shop import started
from tests.cast import Caller, Cast, in_process, principal_like
from tests.llm.server import Model
from tests.waiting import waiting
from tests.waits import SECONDS, eventually

pytestmark = [pytest.mark.django_db(transaction=True)]

SECRET = "ms_the-secret-of-an-agent-in-the-store-other"
# How many moments of a job are tried. A job that has more statements is tried at as many of them, evenly spread.
MOMENTS = 8
TEXT = "The boiler number {n} is serviced in May. The kitchen number {n} has a blue door."

# Each job with the number of its attempt, which is the scope of what it works on.
JOBS: dict[str, Callable[[Caller, int, Path], Callable[[], object]]] = {
    "upkeep": lambda _agent, _number, _folder: tasks.upkeep,
    "duplicates_search": lambda _agent, _number, _folder: partial(tasks.duplicates_search, "/"),
    "forget_scheduled": lambda _agent, _number, _folder: partial(tasks.forget_scheduled, "/"),
    "shadow": lambda _agent, _number, _folder: tasks.shadow,
    "tidy": lambda _agent, _number, _folder: tasks.tidy,
    "extraction": lambda agent, number, _folder: extraction(agent, number),
    "study": lambda _agent, number, _folder: study(number),
    "erasure_check": lambda _agent, _number, _folder: erasure_check(),
    "import": lambda _agent, number, folder: import_of_two(number, folder),
}


def extraction(agent: Caller, number: int) -> Callable[[], object]:
    """Begin the extraction of a text that states what a topic states, and return its work."""
    body = {"content": TEXT.format(n=number), "store": True, "scope": f"/{number}"}
    job = agent.post("/v1/extract?background=1", body).json["job_id"]
    return partial(tasks.extraction_continue, job)


def study(number: int) -> Callable[[], object]:
    """Begin the study of a text, and return its work."""
    job_id = str(started(text_about(2, chars=900, seed=number)).pk)

    def work() -> None:
        tasks.study_continue(job_id)
        # It waits for other studies before it links topics. The store may be gone.
        with contextlib.suppress(ProgrammingError):
            StudyJob.objects.filter(pk=job_id).update(not_before=None)
        tasks.study_continue(job_id)

    return work


def erasure_check() -> Callable[[], object]:
    """Begin a verification of erasures, and return its work."""
    job = erasure_check_start(principal=principal_like("operator"), now=timezone.now(), enqueue=lambda _job: None)
    return partial(tasks.erasure_check_continue, str(job.pk))


def import_of_two(number: int, folder: Path) -> Callable[[], object]:
    """Begin the import of two memories, and return its work."""
    path = folder / f"{number}.json"
    path.write_text(json.dumps([{"memory": TEXT.format(n=number)}, {"memory": f"Number {number} again"}]))
    job = import_start(path, principal=SYSTEM, now=timezone.now(), source="mem0", scope=f"/{number}")
    return partial(tasks.import_continue, str(job.pk))


@pytest.fixture(autouse=True)
def _connections_closed() -> Iterator[None]:
    yield
    connections.close_all()


class Meanwhile:
    """Does ``action`` in another connection after the statement with the number ``after``, until it has ended or waits
    for a lock of this connection."""

    def __init__(self, after: int, action: Callable[[], None]) -> None:
        self.acted = False
        self.count = 0
        self._after = after
        self._action = action
        self._thread: threading.Thread | None = None
        self._problem: BaseException | None = None

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        self.count += 1
        if self.count == self._after:
            self.acted = True
            self._thread = threading.Thread(target=self._act)
            self._thread.start()
            eventually(lambda: not self._thread or not self._thread.is_alive() or waiting())
        return result

    def _act(self) -> None:
        try:
            self._action()
        except BaseException as problem:
            self._problem = problem
        finally:
            connections.close_all()

    def end(self) -> None:
        """Wait for the end of the action, which must succeed."""
        if self._thread is not None:
            self._thread.join(SECONDS)
            assert not self._thread.is_alive()
        assert self._problem is None, self._problem


def purge(topic_id: uuid.UUID) -> None:
    topics_purge([topic_id], principal=SYSTEM, reason="test", now=timezone.now())


def release(topic_id: uuid.UUID) -> None:
    # A run of the job may hold its scope, which is refused and no failure of the job.
    with contextlib.suppress(Conflict):
        topics_release([topic_id], principal=SYSTEM, reason="test", now=timezone.now())


def written(agent: Caller, number: int) -> uuid.UUID:
    """Write topics that give each job something to do, and return the id of one of two equal ones."""
    topic_id = agent.remember(f"The boiler number {number} is serviced in May", scope=f"/{number}")
    agent.remember(f"The boiler number {number} is serviced in May", scope=f"/{number}")
    agent.query(f"boiler {number}")
    agent.post("/v1/ingest?defer=1", {"placement": "new_topic", "title": f"Later {number}"}).ok()
    return uuid.UUID(topic_id)


@pytest.fixture
def _dropped() -> Iterator[None]:
    yield
    if Store.objects.filter(pk="other").exists():
        store_drop("other", actor="test")


@pytest.fixture(autouse=True)
def _model_answers(model: Model) -> None:
    model.answers(reader)


def attempts(cast: Cast, job: str, act: Callable[[uuid.UUID], None], folder: Path) -> Iterator[tuple[uuid.UUID, bool]]:
    """Run a job several times, and ``act`` on a topic after another one of its statements each time. Yield the topic,
    and whether it was acted on."""
    for number, moment in enumerate(moments_of(job, cast.agent, folder), start=1):
        topic_id = written(cast.agent, number)
        work = JOBS[job](cast.agent, number, folder)
        meanwhile = Meanwhile(moment, partial(act, topic_id))
        with connection.execute_wrapper(meanwhile):
            work()
        meanwhile.end()
        assert meanwhile.acted or moment > 1
        for model in (ExtractionJob, ErasureCheck, ImportJob, StudyJob):
            assert list(model._default_manager.filter(status="failed").values_list("failure", flat=True)) == []
        yield topic_id, meanwhile.acted


def moments_of(job: str, agent: Caller, folder: Path, most: int = MOMENTS) -> list[int]:
    """Run a job undisturbed, and return the numbers of its statements, at most ``most`` of them, evenly spread."""
    written(agent, 0)
    undisturbed = Meanwhile(0, lambda: None)
    work = JOBS[job](agent, 0, folder)
    with connection.execute_wrapper(undisturbed):
        work()
    count = undisturbed.count
    assert count
    return sorted({1 + n * (count - 1) // max(1, min(most, count) - 1) for n in range(min(most, count))})


@pytest.mark.parametrize("job", JOBS)
def test_a_purge_at_any_moment_of_a_job_does_not_make_it_fail(cast: Cast, job: str, tmp_path: Path) -> None:
    for topic_id, purged in attempts(cast, job, purge, tmp_path):
        assert not purged or not Topic.objects.filter(pk=topic_id).exists()
        assert not purged or not DuplicatePair.objects.filter(one_id=topic_id).exists()
        assert not purged or not DuplicatePair.objects.filter(other_id=topic_id).exists()


@pytest.mark.thorough
@pytest.mark.parametrize("job", JOBS)
def test_a_release_at_any_moment_of_a_job_does_not_make_it_fail(cast: Cast, job: str, tmp_path: Path) -> None:
    for topic_id, released in attempts(cast, job, release, tmp_path):
        topic = Topic.objects.get(pk=topic_id)
        assert not released or job == "forget_scheduled" or topic.released_at is not None
        assert topic.released_at is None or str(topic_id) not in cast.agent.found("boiler")


@pytest.mark.thorough
@pytest.mark.usefixtures("_dropped")
@pytest.mark.parametrize("job", JOBS)
def test_a_drop_of_the_store_at_any_moment_of_a_job_does_not_make_it_fail(cast: Cast, job: str, tmp_path: Path) -> None:
    # It takes seconds to make a store.
    for moment in moments_of(job, cast.agent, tmp_path, most=5):
        store_create("other")
        with store_use("other"):
            key_create(name="agent", role="agent", secret=SECRET)
            agent = Caller(in_process, SECRET)
            written(agent, moment)
            work = JOBS[job](agent, moment, tmp_path)
        meanwhile = Meanwhile(moment, partial(store_drop, "other", actor="test"))
        with connection.execute_wrapper(meanwhile), store_use("other"):
            work()
        meanwhile.end()
        assert meanwhile.acted or moment > 1
        if not meanwhile.acted:
            store_drop("other", actor="test")
