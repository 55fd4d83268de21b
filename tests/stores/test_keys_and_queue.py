"""A key leads to its store or says why not; all stores share one queue, fairly, and idle stores cost nothing."""

import datetime as dt

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ, Schedule

from memory.access.keys import key_create, secret_hash
from memory.core.errors import Conflict
from memory.jobs import tasks
from memory.jobs.stores import store_create
from memory.models import AccessLog, AuditEvent
from memory.stores.current import MAIN, store_use
from memory.stores.keys import key_forget
from memory.stores.models import Store
from memory.stores.queue import FairBroker
from tests.cast import Caller, Cast, in_process, raises_code

pytestmark = pytest.mark.django_db

SECRET = "ms_the-secret-of-an-agent-in-the-store-other"


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
    assert cast.operator.get(f"/v1/topics/{topic}").code == "topic-not-found"
    assert cast.agent.found("only there") == []
    mine = cast.agent.remember("Only here")
    assert there.get(f"/v1/topics/{mine}").code == "topic-not-found"


def test_a_secret_belongs_to_one_store(there: Caller) -> None:
    with raises_code(Conflict, "key-already-made"):
        key_create(name="the same", role="reader", secret=SECRET)


def test_a_request_leaves_no_store_behind(there: Caller) -> None:
    there.remember("Only there")
    assert there.send("GET", "/v1/topics", None, {}).code == "key-missing"
    assert there.send("GET", "/v1/topics", None, {"X-API-Key": "ms_unknown"}).code == "key-unknown"


def test_a_store_that_is_behind_answers_503_while_others_work(cast: Cast, there: Caller) -> None:
    Store.objects.filter(pk="other").update(version="")
    key_forget(secret_hash(SECRET))
    answer = there.get("/v1/topics")
    assert (answer.status, answer.code) == (503, "store-behind")
    assert cast.agent.get("/v1/topics").status == 200
    call_command("store", "list")


@pytest.mark.parametrize(
    ("name", "code"), [("Other", "invalid-store-name"), ("a" * 41, "invalid-store-name"), ("main", "store-exists")]
)
def test_a_name_that_will_not_do_makes_nothing(name: str, code: str) -> None:
    before = Store.objects.count()
    with pytest.raises(CommandError, match=code):
        call_command("store", "create", name)
    assert Store.objects.count() == before


def test_commands_work_on_the_store_they_are_given(there: Caller) -> None:
    call_command("key", "--in-store", "other", "create", "another")
    call_command("key", "create", "in main")
    with pytest.raises(CommandError, match="store-not-found"):
        call_command("key", "--in-store", "nowhere", "list")
    with store_use("other"):
        assert tasks.Topic.objects.count() == 0


def test_a_store_is_dropped_with_all_that_is_its_own(cast: Cast, there: Caller) -> None:
    there.remember("Only there")
    mine = cast.agent.remember("Only here")
    with store_use("other"):
        tasks.upkeep_request()
    with pytest.raises(CommandError, match="invalid-argument"):
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
    with pytest.raises(CommandError, match="store-is-main"):
        call_command("store", "drop", "main", "--confirm", "main")


@pytest.mark.django_db(transaction=True)
def test_a_process_that_knew_the_key_of_a_dropped_store_refuses_it(there: Caller) -> None:
    assert there.get("/v1/topics").status == 200
    call_command("store", "drop", "other", "--confirm", "other")
    assert there.get("/v1/topics").code == "key-unknown"
    assert there.get("/v1/topics").code == "key-unknown"


def test_a_schedule_belongs_to_its_store(there: Caller) -> None:
    assert Schedule.objects.filter(func="memory.jobs.tasks.forget_scheduled", kwargs__contains="other").count() == 1
    with store_use("other"):
        key_create(name="operator", role="operator", secret=SECRET + "2")
    operator = Caller(in_process, SECRET + "2")
    operator.put("/v1/policies/user", {"values": {"half_life_days": 3}, "reason": "x"}).ok()
    ours = Schedule.objects.filter(func="memory.jobs.tasks.forget_scheduled", kwargs=None)
    assert [row.args for row in ours] == ["('/',)"]


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
    assert sorted(served[:3]) == ["", "noisy", "quiet"]
    assert len(served) == 7
    assert broker.lock_size() == 7


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


def test_an_idle_store_costs_upkeep_nothing() -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as asked:
            tasks.upkeep()
            tasks.shadow()
            tasks.tidy()
        return len(asked)

    statements()
    before = statements()
    for number in range(3):
        store_create(f"idle{number}")
    assert statements() == before
