"""A purge or a release at any moment of a background job: the job ends without an error."""

import contextlib
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.core.errors import Conflict
from memory.erasure.purge import topics_purge
from memory.forgetting.manual_actions import topics_release
from memory.jobs import tasks
from memory.models import DuplicatePair, ExtractionJob, ImportJob, Topic
from memory.transfer.importing import import_start
from tests.cast import Cast
from tests.waiting import waiting
from tests.waits import SECONDS, eventually

pytestmark = [pytest.mark.django_db(transaction=True)]

TEXT = "The boiler number {n} is serviced in May. The kitchen number {n} has a blue door."

# Each job with the number of its attempt, which is the scope of what it works on.
JOBS: dict[str, Callable[[Cast, int, Path], Callable[[], object]]] = {
    "upkeep": lambda _cast, _number, _folder: tasks.upkeep,
    "duplicates_search": lambda _cast, _number, _folder: partial(tasks.duplicates_search, "/"),
    "forget_scheduled": lambda _cast, _number, _folder: partial(tasks.forget_scheduled, "/"),
    "shadow": lambda _cast, _number, _folder: tasks.shadow,
    "tidy": lambda _cast, _number, _folder: tasks.tidy,
    "extraction": lambda cast, number, _folder: extraction(cast, number),
    "import": lambda _cast, number, folder: bringing(number, folder),
}


def extraction(cast: Cast, number: int) -> Callable[[], object]:
    """Begin the extraction of a text that states what a topic states, and return its work."""
    body = {"content": TEXT.format(n=number), "store": True, "scope": f"/{number}"}
    job = cast.agent.post("/v1/extract?background=1", body).json["job_id"]
    return partial(tasks.extraction_continue, job)


def bringing(number: int, folder: Path) -> Callable[[], object]:
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
        self.after = after
        self.count = 0
        self._action = action
        self._thread: threading.Thread | None = None
        self._problem: BaseException | None = None

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if self._thread is not None and self._thread.is_alive():
            return result
        self.count += 1
        if self.count == self.after:
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


def written(cast: Cast, number: int) -> uuid.UUID:
    """Write topics that give each job something to do, and return the id of one of two equal ones."""
    topic_id = cast.agent.remember(f"The boiler number {number} is serviced in May", scope=f"/{number}")
    cast.agent.remember(f"The boiler number {number} is serviced in May", scope=f"/{number}")
    cast.agent.query(f"boiler {number}")
    cast.agent.post("/v1/ingest?defer=1", {"placement": "new_topic", "title": f"Later {number}"}).ok()
    return uuid.UUID(topic_id)


def attempts(cast: Cast, job: str, act: Callable[[uuid.UUID], None], folder: Path) -> Iterator[tuple[uuid.UUID, bool]]:
    """Run a job once for each of its statements, and ``act`` on a topic after that statement. Yield the topic, and
    whether it was acted on."""
    moment, statements = 0, 1
    while moment < statements:
        moment += 1
        topic_id = written(cast, moment)
        work = JOBS[job](cast, moment, folder)
        meanwhile = Meanwhile(moment, partial(act, topic_id))
        with connection.execute_wrapper(meanwhile):
            work()
        meanwhile.end()
        statements = meanwhile.count
        assert list(ExtractionJob.objects.filter(status="failed").values_list("failure", flat=True)) == []
        assert not ImportJob.objects.filter(status="failed").exists()
        yield topic_id, moment <= statements


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
