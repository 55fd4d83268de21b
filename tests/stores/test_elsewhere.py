"""The list of stores names the cluster of each. A store of another cluster is not served here, and says where it is."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from memory.access.keys import key_create
from memory.health import stores_check
from memory.jobs import tasks
from memory.jobs.stores import store_create
from memory.models import AuditEvent
from memory.stores.current import MAIN, store_use
from memory.stores.migrate import stores_migrate
from memory.stores.models import Store
from memory.stores.queue import FairBroker
from tests.cast import Caller, Cast, in_process
from tests.console.people import account_make, body_of, client_of, codes_of

pytestmark = pytest.mark.django_db

SECRET = "ms_the-secret-of-an-agent-in-the-store-acme"
PAGE = "/settings/stores/"


@pytest.fixture
def acme() -> Caller:
    """An agent of the store ``acme``, which is here, until it moves to another cluster."""
    store_create("acme")
    with store_use("acme"):
        key_create(name="agent", role="agent", secret=SECRET)
    return Caller(in_process, SECRET)


def _moved() -> None:
    Store.objects.filter(pk="acme").update(cluster="north", version="")


def _rpc(caller: Caller) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    return caller.post("/mcp", message, headers=headers)


def _named(cast: Cast) -> Any:
    """A request with a key of the installation."""
    key_create(name="hosting", role="operator", secret=f"{SECRET}-of-all", installation=True)
    return Caller(in_process, f"{SECRET}-of-all").get("/v1/topics", headers={"X-MemState-Store": "acme"})


@pytest.mark.parametrize(
    "ask",
    [
        lambda acme, _cast: acme.get("/v1/topics"),
        lambda acme, _cast: acme.post("/v1/ingest", {"placement": "new_topic", "title": "Tea"}),
        lambda acme, _cast: _rpc(acme),
        lambda _acme, cast: _named(cast),
    ],
    ids=["read", "write", "mcp", "key for all stores"],
)
def test_its_requests_are_refused_and_learn_its_cluster(
    acme: Caller, cast: Cast, ask: Callable[[Caller, Cast], Any]
) -> None:
    assert acme.get("/v1/topics").status == 200
    _moved()
    answer = ask(acme, cast)
    assert (answer.status, answer.code) == (421, "store-elsewhere")
    assert "north" in json.loads(answer.body)["detail"]
    assert cast.agent.get("/v1/topics").status == 200


def test_nothing_is_done_for_it_here(acme: Caller, cast: Cast, capsys: pytest.CaptureFixture[str]) -> None:
    acme.remember("Tea")
    _moved()
    Store.objects.filter(pk="acme").update(used_at=timezone.now(), pending_at=Store.objects.get(pk=MAIN).created_at)
    OrmQ.objects.all().delete()
    for work in (tasks.upkeep, tasks.shadow, tasks.tidy):
        work()
    assert not OrmQ.objects.exists()
    # A job that waited when the store moved.
    with store_use("acme"):
        tasks.duplicates_enqueue("/")
    assert FairBroker(list_key="memstate").dequeue() is None
    stores_migrate()
    assert Store.objects.get(pk="acme").version == ""
    with store_use(MAIN):
        assert stores_check(timezone.now()).ok
    for command in (("key", "--in-store", "acme", "list"), ("store", "grant", "acme", "x", "reader")):
        with pytest.raises(CommandError, match="store-elsewhere"):
            call_command(*command)


def test_a_store_that_is_served_here_is_of_no_other_cluster(acme: Caller) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Store.objects.filter(pk="acme").update(cluster="north")
    assert acme.get("/v1/topics").status == 200


def test_it_is_listed_and_removed_from_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("store", "create", "acme", "--cluster", "north")
    with pytest.raises(CommandError, match="already-exists"):
        call_command("store", "create", "acme")
    call_command("store", "list")
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("acme ")]
    assert "north" in line
    assert AuditEvent.objects.get(action="store_created").after == {"store": "acme", "cluster": "north"}
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regnamespace('store_acme')")
        assert cursor.fetchone() == (None,)
    call_command("store", "drop", "acme", "--confirm", "acme")
    assert not Store.objects.filter(pk="acme").exists()
    assert AuditEvent.objects.get(action="store_dropped").before["topics"] is None


def test_the_page_names_the_cluster_of_a_store_that_is_elsewhere(administrator: Client) -> None:
    store_create("here")
    assert "north" not in body_of(administrator.get(PAGE))
    call_command("store", "create", "acme", "--cluster", "north")
    page = body_of(administrator.get(PAGE))
    assert page.count("north") == 1
    row = page.partition('break">acme<')[2].partition("</tr>")[0]
    assert "north" in row
    assert "/stores/open/" not in row
    # The list of each page offers it, too.
    administrator.post("/stores/open/", {"store": "acme"})
    reply = administrator.get("/lookup/")
    assert (reply.status_code, codes_of(reply)) == (421, ["store-elsewhere"])
    assert "north" in body_of(reply)
    administrator.post("/stores/open/", {"store": MAIN})
    assert administrator.get("/lookup/").status_code == 200
    assert "north" in body_of(administrator.get(f"{PAGE}acme/drop/"))
    reply = administrator.post(f"{PAGE}acme/drop/", {"typed": "acme", "reason": "moved on"})
    assert reply.headers["Location"] == PAGE
    assert body_of(administrator.get(PAGE)).count("moved on") == 1


@pytest.fixture
def administrator() -> Client:
    return client_of(account_make("administrator"))
