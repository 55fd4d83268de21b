"""Stores on a cluster: what is asked of Citus, in which order, and what is refused. Citus itself is a fake."""

import re
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from threading import Event

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.models import OrmQ

from memory.access.principal import SYSTEM
from memory.core.problem_codes import ProblemCode
from memory.erasure.check import erasure_check_work
from memory.erasure.purge import topics_purge
from memory.erasure.verify import erasure_verify
from memory.health import cluster_check
from memory.jobs.stores import store_create
from memory.management.store_command import CommandRefused
from memory.models import AuditEvent, ErasureCheck
from memory.recall import probe
from memory.stores import citus
from memory.stores.current import MAIN, store_use
from memory.stores.migrate import StoresNotMigrated, stores_migrate, stores_unfinished
from memory.stores.models import Store
from tests.cast import Caller, raises_code
from tests.console.people import account_make, body_of, client_of, person
from tests.stores.citus_fake import (
    FAKE,
    NODE_SCHEMA,
    SHARD,
    UNFAKE,
    run,
    schemas_distributed_at_once,
    shard_make,
    shard_statistics,
)
from tests.waiting import waiting
from tests.waits import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def calls() -> list[str]:
    return [str(said) for (said,) in run("SELECT said FROM citus_calls ORDER BY id")]


@pytest.fixture
def cluster() -> Iterator[None]:
    run(FAKE)
    yield
    run("DROP SCHEMA IF EXISTS store_acme CASCADE")
    Store.objects.filter(pk="acme").delete()
    run(UNFAKE)


@pytest.fixture
def acme(cluster: None) -> None:
    store_create("acme")


def move(*more: str) -> str:
    out = StringIO()
    call_command("store", "move", "acme", *more, stdout=out)
    return out.getvalue()


def refused(*more: str) -> str:
    with pytest.raises(CommandRefused) as problem:
        move(*more)
    return str(problem.value)


def test_a_new_store_is_placed_and_moves_to_the_emptiest_node(acme: None):
    assert calls() == ["distribute store_acme"]
    assert "two:5432" in move("--reason", "room")
    assert calls()[1:] == ["move store_acme to 3 by force_logical"]
    with store_use(MAIN):
        event = AuditEvent.objects.get(action="store_moved")
    assert (event.actor, event.reason) == ("terminal", "room")
    assert (event.before["node"], event.after["node"]) == ("one:5432", "two:5432")


@pytest.mark.parametrize(
    ("before", "words", "code"),
    [
        ("", ("--to", "three"), ProblemCode.NOT_FOUND),
        ("", ("--to", "coordinator"), ProblemCode.NOT_FOUND),
        ("", ("--to", "one:5432"), ProblemCode.CONFLICT),
        ("INSERT INTO citus_fault VALUES ('slot')", (), ProblemCode.CONFLICT),
        ("DELETE FROM pg_dist_placement", (), ProblemCode.CONFLICT),
        ("UPDATE stores_store SET version = '0000' WHERE name = 'acme'", (), ProblemCode.STORE_BEHIND),
    ],
)
def test_what_could_hang_is_refused_before(acme: None, before: str, words: tuple[str, ...], code: ProblemCode):
    if before:
        run(before)
    assert f"[{code}]" in refused(*words)
    assert calls() == ["distribute store_acme"]


@pytest.mark.parametrize("fault", ["fails", "hangs"])
def test_a_move_that_fails_or_hangs_is_cleaned_up(acme: None, fault: str):
    run(f"INSERT INTO citus_fault VALUES ('{fault}')")
    assert f"[{ProblemCode.CONFLICT}]" in refused("--seconds", "1")
    assert calls() == ["distribute store_acme", "clean"]
    with store_use(MAIN):
        assert not AuditEvent.objects.filter(action="store_moved").exists()


def test_a_store_is_created_on_a_given_node(cluster: None):
    with pytest.raises(CommandRefused):
        call_command("store", "create", "acme", "--node", "three")
    assert not Store.objects.filter(pk="acme").exists()
    call_command("store", "create", "acme", "--node", "two:5432", stdout=StringIO())
    assert calls() == ["distribute store_acme", "move store_acme to 3 by force_logical"]


def test_only_one_store_moves_at_a_time(acme: None):
    def other() -> str:
        try:
            return refused("--seconds", "4")
        finally:
            connection.close()

    moving = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
    run("INSERT INTO citus_fault VALUES ('hangs')")
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(other)
        eventually(lambda: run(moving) == [(1,)])
        assert f"[{ProblemCode.CONFLICT}]" in refused()
        assert f"[{ProblemCode.CONFLICT}]" in first.result(60)
    run("DELETE FROM citus_fault")
    assert "two:5432" in move()


@pytest.mark.parametrize("killed", ["schema_place", "_Recorder.record_applied"])
def test_a_store_whose_first_migration_was_killed_is_placed_by_the_next(
    cluster: None, monkeypatch: pytest.MonkeyPatch, killed: str
):
    def end(*_arguments: object) -> None:
        raise RuntimeError

    Store.objects.create(name="acme", created_at=Store.objects.get(pk=MAIN).created_at)
    with monkeypatch.context() as patch:
        patch.setattr(f"memory.stores.migrate.{killed}", end)
        with pytest.raises(StoresNotMigrated):
            stores_migrate()
    assert "distribute store_acme" not in calls()
    # As the next start does.
    assert "acme" in stores_unfinished()
    stores_migrate()
    stores_migrate()
    assert stores_unfinished() == []
    assert sorted(calls()) == ["distribute store_acme", "distribute store_main"]


def test_without_a_cluster_nothing_moves(db: None):
    store_create("acme")
    try:
        assert f"[{ProblemCode.CONFLICT}]" in refused()
    finally:
        run("DROP SCHEMA store_acme CASCADE")
        Store.objects.filter(pk="acme").delete()


def test_doctor_knows_what_is_wrong_with_a_cluster(acme: None):
    now = AuditEvent.objects.latest("id").at
    # Only acme is on a node.
    assert not cluster_check(now).ok
    citus.schema_place(MAIN)
    assert cluster_check(now).ok
    run("UPDATE pg_dist_placement SET groupid = 2 WHERE shardid = (SELECT min(shardid) FROM pg_dist_placement)")
    assert not cluster_check(now).ok
    run("UPDATE pg_dist_placement SET groupid = 1")
    for fault in ("INSERT INTO citus_fault VALUES ('old')", "INSERT INTO pg_dist_cleanup VALUES (1)"):
        run(fault)
        assert not cluster_check(now).ok
        run("DELETE FROM citus_fault; DELETE FROM pg_dist_cleanup")
        assert cluster_check(now).ok


def test_doctor_knows_a_node_that_the_settings_of_a_search_do_not_reach(acme: None, monkeypatch: pytest.MonkeyPatch):
    citus.schema_place(MAIN)
    assert cluster_check(timezone.now()).ok
    monkeypatch.setattr(citus, "settings_send", lambda _values: None)
    assert not cluster_check(timezone.now()).ok


def test_the_list_names_the_node_of_each_store(acme: None):
    out = StringIO()
    call_command("store", "list", stdout=out)
    lines = {line.split()[0]: line for line in out.getvalue().splitlines()}
    assert "one:5432" in lines["acme"]
    assert ":5432" not in lines[MAIN]


def test_a_store_is_created_where_new_schemas_are_distributed_at_once(cluster: None):
    with schemas_distributed_at_once():
        store_create("acme")
    assert calls() == ["distribute store_acme"]


# Statistics on the nodes, which contain common values of columns.

ERASED = "Zofia Wyszynska"


def purge(topic_id: str) -> None:
    topics_purge([uuid.UUID(topic_id)], principal=SYSTEM, reason="a test", now=timezone.now())


def test_a_purge_renews_the_statistics_on_the_node(cluster: None, agent: Caller):
    topic_id = agent.remember(ERASED)
    shard_make("memory_topic", ERASED, "Tea", then=f"DELETE FROM {{}} WHERE title = '{ERASED}'")
    # ANALYZE does not change the statistics of an empty table.
    shard_make("memory_topicedit", ERASED, then="DELETE FROM {}")
    assert ERASED in shard_statistics()
    purge(topic_id)
    assert ERASED not in shard_statistics()
    assert "Tea" in shard_statistics()
    assert erasure_verify().ok


def test_a_purge_waits_for_statistics_that_a_node_is_making(cluster: None, agent: Caller):
    topic_id = agent.remember(ERASED)
    shard_make("memory_topic", "Tea", then=f"INSERT INTO {{}} VALUES ('{ERASED}'), ('{ERASED}')")
    analyzed = Event()

    def autovacuum() -> None:
        with transaction.atomic():
            run(f"ANALYZE {NODE_SCHEMA}.memory_topic_{SHARD}")
            analyzed.set()
            eventually(lambda: waiting() > 0)
        connection.close()

    with ThreadPoolExecutor(1) as threads:
        ended = threads.submit(autovacuum)
        analyzed.wait(30)
        run(f"DELETE FROM {NODE_SCHEMA}.memory_topic_{SHARD} WHERE title = '{ERASED}'")
        purge(topic_id)
        ended.result(60)
    assert ERASED not in shard_statistics()


def test_what_is_left_in_the_statistics_on_a_node_is_found(cluster: None, agent: Caller):
    purge(agent.remember(ERASED))
    shard_make("memory_topic", ERASED, then="DELETE FROM {}")
    assert [trace.table for trace in erasure_verify().traces] == ["the statistics of memory_topic"]
    with raises_code(CommandError, "erasure-not-proven"):
        call_command("verify_erasure", "--quiet")


def test_a_node_that_cannot_be_searched_is_reported(cluster: None, agent: Caller, capsys: pytest.CaptureFixture[str]):
    purge(agent.remember(ERASED))
    run("INSERT INTO citus_fault VALUES ('away')")
    report = erasure_verify()
    assert not report.ok
    assert report.nodes_away == ["two:5432"]
    with raises_code(CommandError, "erasure-not-proven"):
        call_command("verify_erasure", "--quiet")
    assert "two:5432" in capsys.readouterr().err
    person("operator").post("/forget/receipts/verify/")
    erasure_check_work(ErasureCheck.objects.get().pk, clock=timezone.now, seconds=60)
    assert "two:5432" in person("reader").get("/forget/receipts/").content.decode()


def test_a_purge_whose_node_is_away_is_committed_and_reported(
    cluster: None, agent: Caller, caplog: pytest.LogCaptureFixture
):
    topic_id = agent.remember(ERASED)
    run("INSERT INTO citus_fault VALUES ('away')")
    purge(topic_id)
    assert agent.get(f"/v1/topics/{topic_id}").status == 404
    assert "two:5432" in caplog.text


# Settings, which ``set_config`` does not send to a node.


def test_a_query_sends_its_settings_to_the_node(agent: Caller, monkeypatch: pytest.MonkeyPatch):
    agent.post("/v1/ingest", {"placement": "new_topic", "title": "Tea", "summary": "Green tea."})
    sent: list[dict[str, str]] = []
    monkeypatch.setattr(probe, "VERSION_SQL", "'14.0'::text")
    monkeypatch.setattr(probe, "settings_send", lambda values: sent.append(dict(values)))
    assert agent.post("/v1/query", {"q": "tea"}).status == 200
    assert sent == [{"synchronous_commit": "off"}]


def test_a_store_is_moved_on_its_page(acme: None):
    client = client_of(account_make("administrator"))
    page = "/settings/stores/acme/move/"
    assert client.post(page, {"node": "three:5432", "reason": "room"}).status_code == 422
    assert client.post(page, {"node": "two:5432", "reason": "room"}).status_code == 302
    (job,) = OrmQ.objects.all()
    import_string(job.func())(*job.task["args"])
    assert calls()[1:] == ["move store_acme to 3 by force_logical"]
    assert "two:5432" in body_of(client.get("/settings/stores/"))


def test_the_list_of_stores_has_the_size_on_the_node(acme: None):
    client = client_of(account_make("administrator"))
    page = body_of(client.get("/settings/stores/"))
    sizes = dict(re.findall(r'break">(\w+)</span>.*?data-is="Size">([^<]*)<', page, re.DOTALL))
    assert sizes["acme"] == "5.0\xa0GB"
    # ``main`` is not placed, so its tables are here.
    assert sizes[MAIN] not in ("5.0\xa0GB", "0\xa0bytes")
