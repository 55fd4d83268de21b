"""A key leads to its store or says why not; all stores share one queue, fairly, and idle stores cost nothing."""

import datetime as dt
import uuid

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q import scheduler
from django_q.models import OrmQ, Schedule, Task

from memory.access.keys import key_create, secret_hash
from memory.access.principal import SYSTEM
from memory.core.errors import Conflict
from memory.forgetting.manual_actions import topics_archive
from memory.jobs import tasks
from memory.jobs.stores import store_create
from memory.models import AccessLog, AuditEvent, ForgetRun
from memory.policy.schedules import FUNCTION
from memory.stores.current import MAIN, store_use
from memory.stores.keys import key_forget
from memory.stores.models import Store
from memory.stores.queue import FairBroker
from memory.stores.versions import version_current
from tests.cast import Caller, Cast, in_process, raises_code

pytestmark = pytest.mark.django_db

SECRET = "ms_the-secret-of-an-agent-in-the-store-other"


@pytest.fixture(autouse=True)
def _connection_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler closes the connection, which has the transaction of the test."""
    monkeypatch.setattr(scheduler, "close_old_django_connections", lambda: None)


@pytest.fixture
def there() -> Caller:
    """An agent of the store ``other``."""
    call_command("store", "create", "other")
    with store_use("other"):
        key_create(name="agent", role="agent", secret=SECRET)
    return Caller(in_process, SECRET)


def test_a_key_leads_to_its_store(cast: Cast, there: Caller) -> None:
    topic = there.remember("Only there")
    assert there.found("only there") == [topic]
    assert cast.operator.get(f"/v1/topics/{topic}").code == "not-found"
    assert cast.agent.found("only there") == []
    mine = cast.agent.remember("Only here")
    assert there.get(f"/v1/topics/{mine}").code == "not-found"


def test_a_secret_belongs_to_one_store(there: Caller) -> None:
    with raises_code(Conflict, "already-exists"):
        key_create(name="the same", role="reader", secret=SECRET)


def test_a_request_leaves_no_store_behind(there: Caller) -> None:
    there.remember("Only there")
    assert there.send("GET", "/v1/topics", None, {}).code == "key-missing"
    assert there.send("GET", "/v1/topics", None, {"X-API-Key": "ms_unknown"}).code == "key-unknown"


def test_a_store_that_is_behind_answers_503_while_others_work(cast: Cast, there: Caller) -> None:
    assert there.get("/v1/topics").status == 200
    Store.objects.filter(pk="other").update(version="")
    # This process knows the key, and has to notice.
    answer = there.get("/v1/topics")
    assert (answer.status, answer.code) == (503, "store-behind")
    assert cast.agent.get("/v1/topics").status == 200
    assert cast.anonymous.send("GET", "/readyz", None, {}).status == 200
    call_command("store", "list")
    OrmQ.objects.all().delete()
    for name in ("other", MAIN):
        with store_use(name):
            tasks.duplicates_enqueue("/")
    OrmQ.objects.update(lock=timezone.now() - dt.timedelta(seconds=1))
    broker = FairBroker(list_key="memstate")
    assert [bool(broker.dequeue()) for _time in range(2)] == [True, False]
    Store.objects.filter(pk="other").update(version=version_current())
    assert there.get("/v1/topics").status == 200
    assert broker.dequeue()


@pytest.mark.parametrize(
    ("name", "code"), [("Other", "invalid-member"), ("a" * 41, "invalid-member"), ("main", "already-exists")]
)
def test_a_name_that_will_not_do_makes_nothing(name: str, code: str) -> None:
    before = Store.objects.count()
    with pytest.raises(CommandError, match=code):
        call_command("store", "create", name)
    assert Store.objects.count() == before


def test_commands_work_on_the_store_they_are_given(there: Caller) -> None:
    call_command("key", "--in-store", "other", "create", "another")
    call_command("key", "create", "in main")
    with pytest.raises(CommandError, match="not-found"):
        call_command("key", "--in-store", "nowhere", "list")
    with store_use("other"):
        assert tasks.Topic.objects.count() == 0


def test_a_store_is_dropped_with_all_that_is_its_own(cast: Cast, there: Caller) -> None:
    there.remember("Only there")
    mine = cast.agent.remember("Only here")
    with store_use("other"):
        tasks.upkeep_request()
    with pytest.raises(CommandError, match="invalid-member"):
        call_command("store", "drop", "other", "--confirm", "main")
    with connection.cursor() as cursor:
        # As at the end of the transaction of a request.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    assert there.get("/v1/topics").status == 200
    call_command("store", "drop", "other", "--confirm", "other", "--reason", "the customer left")
    assert not Store.objects.filter(pk="other").exists()
    assert not Schedule.objects.filter(kwargs__contains="other").exists()
    assert not OrmQ.objects.filter(key__contains="other").exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regnamespace('store_other')")
        assert cursor.fetchone() == (None,)
    dropped = AuditEvent.objects.get(action="store_dropped")
    assert (dropped.before["topics"], dropped.reason) == (1, "the customer left")
    key_forget(secret_hash(SECRET))
    assert there.get("/v1/topics").code == "key-unknown"
    assert cast.agent.topic(mine)["title"] == "Only here"
    call_command("store", "create", "other")
    with pytest.raises(CommandError, match="conflict"):
        call_command("store", "drop", "main", "--confirm", "main")


@pytest.mark.django_db(transaction=True)
def test_a_process_that_knew_the_key_of_a_dropped_store_refuses_it(there: Caller) -> None:
    assert there.get("/v1/topics").status == 200
    call_command("store", "drop", "other", "--confirm", "other")
    assert there.get("/v1/topics").code == "key-unknown"
    assert there.get("/v1/topics").code == "key-unknown"


def _schedules(store: str | None) -> list[str]:
    rows = Schedule.objects.filter(func=FUNCTION, kwargs=None if store is None else repr({"store": store}))
    return list(rows.order_by("args").values_list("args", flat=True))


def test_a_schedule_belongs_to_its_store(there: Caller) -> None:
    there.remember("Only there")
    tasks.upkeep(store="other")
    with store_use("other"):
        key_create(name="operator", role="operator", secret=SECRET + "2")
    operator = Caller(in_process, SECRET + "2")
    operator.put("/v1/policies/user", {"values": {"half_life_days": 3}, "reason": "x"}).ok()
    assert _schedules("other") == ["('/',)", "('/user',)"]
    assert _schedules(None) == ["('/',)"]


def _night_begin() -> FairBroker:
    """Empty the queue, and make all scheduled runs due, and nothing else. Return the broker of the scheduler."""
    OrmQ.objects.all().delete()
    now = timezone.now()
    Schedule.objects.update(next_run=now + dt.timedelta(hours=1))
    Schedule.objects.filter(func=FUNCTION).update(next_run=now - dt.timedelta(seconds=1))
    return FairBroker(list_key="memstate")


def _night() -> list[str]:
    """Let the scheduler and the worker do the scheduled runs, and return their stores."""
    broker = _night_begin()
    scheduler.scheduler(broker=broker)
    OrmQ.objects.update(lock=timezone.now() - dt.timedelta(seconds=1))
    served = []
    while broker.queue_size():
        job = OrmQ.objects.get(pk=broker.dequeue()[0][0])
        tasks.forget_scheduled(*job.task["args"], **job.task["kwargs"])
        served.append(job.task["kwargs"]["store"])
        broker.acknowledge(job.pk)
    return served


def _minute_pass() -> None:
    """Let upkeep of ``main`` find the stores whose work has waited for a minute, and let the worker visit them."""
    Store.objects.filter(pending_at__isnull=False).update(pending_at=timezone.now() - dt.timedelta(minutes=2))
    OrmQ.objects.all().delete()
    tasks.upkeep()
    for job in OrmQ.objects.filter(key__contains=":"):
        tasks.upkeep(**job.task["kwargs"])


def _scheduled_runs() -> int:
    with store_use("other"):
        return ForgetRun.objects.filter(event="cron").count()


def test_a_store_has_scheduled_runs_while_it_has_live_topics(there: Caller) -> None:
    with store_use("other"):
        key_create(name="operator", role="operator", secret=SECRET + "2")
    operator = Caller(in_process, SECRET + "2")
    # A policy of an empty store does not create schedules.
    operator.put("/v1/policies/user", {"values": {"half_life_days": 3}, "reason": "x"}).ok()
    assert _night() == [MAIN]
    topic = there.remember("Only there")
    tasks.upkeep(store="other")
    assert _night() == [MAIN, "other", "other"]
    assert _scheduled_runs() == 2
    # The next night only finds that no topic is left to forget.
    operator.post(f"/v1/topics/{topic}/archive", {"reason": "x"}).ok()
    tasks.upkeep(store="other")
    assert _schedules("other") == []
    operator.post(f"/v1/topics/{topic}/restore", {"reason": "x"}).ok()
    _minute_pass()
    assert _schedules("other") == ["('/',)", "('/user',)"]
    with store_use("other"):
        topics_archive([uuid.UUID(topic)], principal=SYSTEM, reason="x", now=timezone.now())
    assert sorted(_night()) == [MAIN, "other", "other"]
    assert _night() == [MAIN]
    assert _scheduled_runs() == 2


def test_each_store_gets_its_turn() -> None:
    for name in ("noisy", "quiet"):
        store_create(name)
    OrmQ.objects.all().delete()
    for name, jobs in (("noisy", 5), ("quiet", 1), (MAIN, 1)):
        with store_use(name):
            for number in range(jobs):
                tasks.duplicates_enqueue(f"/{number}")
    OrmQ.objects.update(lock=timezone.now() - dt.timedelta(seconds=1))
    broker = FairBroker(list_key="memstate")
    served = []
    while job := (broker.dequeue() if broker.queue_size() else None):
        served.append(OrmQ.objects.get(pk=job[0][0]).key.partition(":")[2])
        assert broker.lock_size() == 1
        broker.acknowledge(job[0][0])
    assert sorted(served[:3]) == ["", "noisy", "quiet"]
    assert len(served) == 7


def _queue_fill(**jobs: int) -> FairBroker:
    """Fill the queue with jobs of stores, in this order, all due. Returns a new process that serves it."""
    OrmQ.objects.all().delete()
    for name, number in jobs.items():
        with store_use(name):
            for each in range(number):
                tasks.duplicates_enqueue(f"/{each}")
    OrmQ.objects.update(lock=timezone.now() - dt.timedelta(seconds=1))
    return FairBroker(list_key="memstate")


def _take(broker: FairBroker) -> OrmQ | None:
    job = broker.dequeue()
    return OrmQ.objects.get(pk=job[0][0]) if job else None


def _fail(job: OrmQ) -> None:
    task = {"id": job.task_id(), "name": "x", "func": "x", "kwargs": {}, "started": timezone.now()}
    Task.objects.create(**task, stopped=timezone.now(), success=False)


@pytest.mark.parametrize("noisy", [MAIN, "noisy"])
def test_a_store_with_long_jobs_leaves_a_worker_to_the_others(noisy: str) -> None:
    for name in ("noisy", "quiet"):
        store_create(name)
    broker = _queue_fill(**{noisy: 5})
    first = _take(broker)
    assert first is not None
    # The other of two workers is kept for those that come later.
    assert _take(broker) is None
    with store_use("quiet"):
        tasks.duplicates_enqueue("/")
    OrmQ.objects.filter(key__endswith=":quiet").update(lock=timezone.now() - dt.timedelta(seconds=1))
    quiet = _take(broker)
    assert quiet is not None
    assert quiet.task["kwargs"] == {"store": "quiet"}
    assert _take(broker) is None
    # A job that ended makes room, whether it succeeded or failed.
    broker.acknowledge(first.pk)
    second = _take(broker)
    assert second is not None
    assert second.task["kwargs"] == {"store": noisy}
    assert _take(broker) is None
    _fail(second)
    assert _take(broker) is not None


def test_a_store_alone_has_all_workers() -> None:
    broker = _queue_fill(main=3)
    assert all(_take(broker) for _time in range(3))


def test_work_of_a_lost_request_is_found_and_idle_stores_are_not_visited(there: Caller) -> None:
    there.remember("Tea")
    there.query("tea")
    with store_use("other"):
        tasks.upkeep_request()
    OrmQ.objects.all().delete()
    # Not while the request's own entry is to be expected.
    tasks.upkeep()
    assert OrmQ.objects.count() == 0
    Store.objects.filter(pk="other").update(pending_at=timezone.now() - dt.timedelta(minutes=2))
    tasks.upkeep()
    tasks.upkeep()
    (job,) = OrmQ.objects.all()
    assert job.task["kwargs"] == {"store": "other"}
    tasks.upkeep(store="other")
    with store_use("other"):
        assert AccessLog.objects.filter(folded_at__isnull=True).count() == 0
    assert Store.objects.get(pk="other").pending_at is None


def test_an_idle_store_costs_nothing(there: Caller) -> None:
    def statements() -> int:
        broker = _night_begin()
        with CaptureQueriesContext(connection) as asked:
            tasks.upkeep()
            tasks.shadow()
            tasks.tidy()
            scheduler.scheduler(broker=broker)
        assert [job.task["kwargs"]["store"] for job in OrmQ.objects.all()] == [MAIN]
        return len(asked)

    statements()
    before = statements()
    for number in range(3):
        store_create(f"idle{number}")
    assert statements() == before
