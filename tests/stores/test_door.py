"""Every statement goes to the current store, whatever sends it, and no connection remembers a store."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, connection, transaction

from memory.jobs.stores import store_create
from memory.models import Scope
from memory.models.prepared import rows_prepared
from memory.stores.current import MAIN, store_use
from memory.stores.database.base import PreparedCursor
from memory.stores.migrate import StoresNotMigrated, stores_migrate
from memory.stores.models import Store
from memory.stores.template import store_statements
from memory.stores.versions import stores_behind

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "SELECT current_schema()"


@pytest.fixture
def other() -> Iterator[str]:
    store_create("other")
    yield "other"
    with store_use(None), connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA store_other CASCADE")
    Store.objects.filter(pk="other").delete()


def _django() -> str:
    with connection.cursor() as cursor:
        cursor.execute(PATH)
        return str(cursor.fetchone()[0])


def _composed() -> str:
    with connection.cursor() as cursor:
        cursor.execute(psycopg.sql.SQL(PATH))
        return str(cursor.fetchone()[0])


def _prepared() -> str:
    return str(rows_prepared(PATH, ())[0][0])


def _in_parts() -> str:
    with connection.chunked_cursor() as cursor:
        cursor.execute(PATH)
        return str(cursor.fetchone()[0])


def _copy() -> str:
    with connection.cursor() as cursor, cursor.copy(f"COPY ({PATH}) TO STDOUT") as copy:
        return b"".join(bytes(part) for part in copy).decode().strip()


def _of_the_driver() -> str:
    return str(connection.connection.execute(PATH).fetchone()[0])


WAYS = [_django, _composed, _prepared, _in_parts, _copy, _of_the_driver]


@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_sending_follows_the_store(way: Any, other: str) -> None:
    assert way() == "store_main"
    with store_use(other):
        assert way() == "store_other"
        with transaction.atomic():
            assert way() == "store_other"
            with store_use(MAIN):
                assert way() == "store_main"
            assert way() == "store_other"
    with transaction.atomic():
        assert way() == "store_main"
    with store_use(None):
        assert way() == "public"
        with transaction.atomic():
            assert way() == "public"
            with store_use(other):
                assert way() == "store_other"
            assert way() == "public"
    assert connection.connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_a_rolled_back_savepoint_takes_no_path_with_it(other: str) -> None:
    with transaction.atomic():
        assert _django() == "store_main"
        with store_use(other):
            with transaction.atomic():
                assert _django() == "store_other"
                transaction.set_rollback(True)
            assert _django() == "store_other"
        with pytest.raises(ProgrammingError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT FROM there_is_no_such_table")
        assert _django() == "store_main"


def test_the_session_keeps_no_store(other: str) -> None:
    with store_use(other):
        _django(), _prepared()
        with transaction.atomic():
            _django()
        with pytest.raises(ProgrammingError), connection.cursor() as cursor:
            cursor.execute("SELECT FROM there_is_no_such_table")
    with store_use(None):
        assert [way() for way in WAYS] == ["public"] * len(WAYS)


def test_without_a_store_its_tables_do_not_exist() -> None:
    with store_use(None), pytest.raises(ProgrammingError, match="memory_scope"):
        Scope.objects.count()


def test_a_cursor_that_would_miss_the_store_is_refused() -> None:
    connection.ensure_connection()
    with pytest.raises(psycopg.InterfaceError), psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(PATH)


def test_a_write_outside_a_transaction_is_kept_and_one_that_fails_is_not(other: str) -> None:
    with store_use(other):
        Scope.objects.create(path="/of/the/other")
        connection.ensure_connection()
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO memory_scope (path) VALUES (%s)", [("/many/one",), ("/many/two",)])
            assert cursor.rowcount == 2
        with pytest.raises(psycopg.errors.UniqueViolation), PreparedCursor(connection.connection) as prepared:
            prepared.execute("INSERT INTO memory_scope (path) VALUES ('/many/one')", prepare=True)
        assert set(Scope.objects.values_list("path", flat=True)) >= {"/of/the/other", "/many/one", "/many/two"}
    assert not Scope.objects.filter(path="/of/the/other").exists()


def test_a_plan_that_is_kept_reads_the_store_of_its_call(other: str) -> None:
    statement = "SELECT count(*) FROM memory_scope WHERE path = %s"
    with store_use(other):
        Scope.objects.create(path="/kept")
    for _time in range(8):
        for name, expected in ((other, 1), (MAIN, 0)):
            with store_use(name):
                assert rows_prepared(statement, ["/kept"]) == [(expected,)]
                with transaction.atomic():
                    assert rows_prepared(statement, ["/kept"]) == [(expected,)]


def _tables(name: str) -> list[str]:
    with store_use(name), connection.cursor() as cursor:
        # PostgreSQL writes a list of values in another way once it has read what it wrote.
        return [
            statement.replace("::character varying::text", "::character varying").replace("]::text[]", "]")
            for statement in store_statements(cursor)
        ]


def test_a_new_store_has_the_tables_that_migrations_make(other: str) -> None:
    from_migrations = _tables(MAIN)
    assert _tables(other) == from_migrations
    assert len(from_migrations) > 100


def test_stores_are_migrated_side_by_side_and_one_that_fails_holds_up_no_other() -> None:
    names = ["one", "two", "three", "four", "five", "stuck"]
    now = Store.objects.get(pk=MAIN).created_at
    Store.objects.bulk_create(Store(name=name, created_at=now) for name in names)
    done: list[int] = []
    try:
        with store_use(None), connection.cursor() as cursor:
            cursor.execute("CREATE SCHEMA store_stuck; CREATE TABLE store_stuck.memory_topic (id int)")
        with pytest.raises(StoresNotMigrated) as problem:
            stores_migrate(progress=done.append)
        assert problem.value.failed.keys() == {"stuck"}
        # The command reports the store, after the steps that follow the migrations of the others.
        ContentType.objects.filter(app_label="memory", model="topic").delete()
        with pytest.raises(CommandError, match="stuck"):
            call_command("migrate", verbosity=0)
        assert ContentType.objects.filter(app_label="memory", model="topic").exists()
        assert (sum(done), stores_behind()) == (6, ["stuck"])
        assert all(_tables(name) == _tables(MAIN) for name in names[:-1])
        with store_use(None), connection.cursor() as cursor:
            cursor.execute("DROP TABLE store_stuck.memory_topic")
        stores_migrate()
        assert stores_behind() == []
        assert _tables("stuck") == _tables(MAIN)
    finally:
        with store_use(None), connection.cursor() as cursor:
            for name in names:
                cursor.execute(f"DROP SCHEMA IF EXISTS store_{name} CASCADE")
        Store.objects.filter(pk__in=names).delete()
