"""A purge or a release at any moment of a background job: the job ends without an error."""

import threading
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.db import connection, connections
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.erasure.purge import topics_purge
from memory.jobs import tasks
from memory.models import DuplicatePair, Topic
from tests.cast import Cast
from tests.waiting import waiting
from tests.waits import SECONDS, eventually

pytestmark = [pytest.mark.django_db(transaction=True)]

JOBS: dict[str, Callable[[], object]] = {
    "upkeep": tasks.upkeep,
    "duplicates_search": lambda: tasks.duplicates_search("/"),
    "forget_scheduled": lambda: tasks.forget_scheduled("/"),
    "shadow": tasks.shadow,
    "tidy": tasks.tidy,
}


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


def written(cast: Cast, number: int) -> uuid.UUID:
    """Write topics that give each job something to do, and return the id of one of two equal ones."""
    topic_id = cast.agent.remember(f"The boiler number {number} is serviced in May", scope=f"/{number}")
    cast.agent.remember(f"The boiler number {number} is serviced in May", scope=f"/{number}")
    cast.agent.query(f"boiler {number}")
    cast.agent.post("/v1/ingest?defer=1", {"placement": "new_topic", "title": f"Later {number}"}).ok()
    return uuid.UUID(topic_id)


@pytest.mark.parametrize("job", JOBS)
def test_a_purge_at_any_moment_of_a_job_does_not_make_it_fail(cast: Cast, job: str) -> None:
    moment, statements = 0, 1
    while moment < statements:
        moment += 1
        topic_id = written(cast, moment)
        meanwhile = Meanwhile(moment, partial(purge, topic_id))
        with connection.execute_wrapper(meanwhile):
            JOBS[job]()
        meanwhile.end()
        statements = meanwhile.count
        assert moment > statements or not Topic.objects.filter(pk=topic_id).exists()
        assert not DuplicatePair.objects.filter(one_id=topic_id).exists()
        assert not DuplicatePair.objects.filter(other_id=topic_id).exists()
