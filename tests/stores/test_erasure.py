"""A purge masks, and a verification reads, what belongs to its own store, also in the tables that all stores share."""

import uuid
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ, Task
from django_q.tasks import async_task

from memory.access.keys import key_create
from memory.erasure.verify import Trace, erasure_verify
from memory.jobs.stores import store_create
from memory.stores.current import MAIN, store_use
from tests.cast import Caller, Cast, in_process

pytestmark = pytest.mark.django_db

FACT = "Zofia Wyszynska moved from Gdansk into the flat above the bakery"
SECRET = "ms_the-secret-of-an-operator-in-the-store-other"


@pytest.fixture
def callers(cast: Cast) -> dict[str, Caller]:
    store_create("other")
    with store_use("other"):
        key_create(name="operator", role="operator", secret=SECRET)
    return {MAIN: cast.operator, "other": Caller(in_process, SECRET)}


def _job_add(store: str) -> None:
    """Add a waiting job, and one that failed with the text in its error."""
    with store_use(store):
        async_task("memory.jobs.tasks.duplicates_search", f"/{store}", FACT)
    queued = OrmQ.objects.latest("id").task
    now = timezone.now()
    Task.objects.create(
        id=uuid.uuid4().hex,
        name="job",
        func=queued["func"],
        args=queued["args"],
        kwargs=queued["kwargs"],
        group=queued.get("group"),
        result=f"Failing row contains ({FACT})",
        success=False,
        started=now,
        stopped=now,
    )


def _shared(store: str) -> list[Any]:
    """Return the jobs of a store, waiting and failed."""
    waiting = [each.task for each in OrmQ.objects.order_by("id")]
    failed = Task.objects.order_by("started").values("args", "kwargs", "group", "result")
    return [each for each in [*waiting, *failed] if each["kwargs"] == {"store": store}]


def _traces(store: str) -> list[Trace]:
    with store_use(store):
        report = erasure_verify()
    return report.traces + report.stored_again


@pytest.mark.parametrize(("first", "then"), [("other", MAIN), (MAIN, "other")])
def test_a_purge_leaves_the_same_text_of_another_store(callers: dict[str, Caller], first: str, then: str) -> None:
    topics = {store: caller.remember("Zofia", summary=FACT) for store, caller in callers.items()}
    OrmQ.objects.all().delete()
    for store in callers:
        _job_add(store)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    before = _shared(then)
    assert len(before) == 2
    purged = callers[first].request("DELETE", f"/v1/topics/{topics[first]}", {"reason": "asked"}).ok()
    assert purged["receipt_id"]
    assert _shared(then) == before
    assert FACT not in str(_shared(first))
    assert len(_shared(first)) == 1
    assert callers[then].topic(topics[then])["summary"] == FACT
    assert _traces(first) == _traces(then) == []
    _job_add(then)
    assert _traces(first) == []
    _job_add(first)
    assert {trace.table for trace in _traces(first)} == {"django_q_ormq", "django_q_task"}
    callers[then].request("DELETE", f"/v1/topics/{topics[then]}", {"reason": "asked"}).ok()
    assert FACT not in str(_shared(then))
    assert FACT in str(_shared(first))
