"""The store behind the browser: the demo, loaded once and put back before each test.

Loading takes seconds, so the tables are kept as they are then in a schema of their own, and copied from there: those
that the test before has changed, which for a page that is only looked at are few.
"""

import datetime as dt
from unittest import mock

from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone

from memory.access.keys import key_create
from memory.demo.build import story_build
from memory.demo.store import story_load
from memory.embedding import embedder_reset
from memory.jobs import tasks
from memory.stores.current import MAIN, store_schema
from memory.stores.models import Store, WorkerHeartbeat
from tests.cast import secret_of
from tests.console.people import account_make
from tests.waits import turns_until_done

TOPICS = 400
# Copies have names of their own: the statistics of the database know tables by name alone, and tests read them.
KEPT = "kept_"
PASSWORD = "a password for the tests"
# Slow hashing is what makes guessing slow; here it would only make the tests slow.
HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Two operators, for what happens when two work at once.
PEOPLE = {"reader": "reader", "operator": "operator", "olga": "operator", "administrator": "administrator"}


def _tables(schema: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s "
            "AND tablename NOT IN ('django_migrations', 'stores_store') ORDER BY 1",
            [schema],
        )
        return [name for (name,) in cursor.fetchall()]


def tables_keep(schema: str) -> None:
    """Keep every row of the store as it is now under the name ``schema``."""
    _put_back.clear()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        cursor.execute(f"CREATE SCHEMA {schema}")
        for table in _tables("public") + _tables(store_schema(MAIN)):
            cursor.execute(f'CREATE UNLOGGED TABLE {schema}."{KEPT}{table}" AS TABLE "{table}"')


def tables_put_back(schema: str) -> None:
    """Make every row of the store what ``tables_keep`` kept. Sequences go on, so no number is given twice."""
    Store.objects.exclude(pk=MAIN).delete()
    tables = [name.removeprefix(KEPT) for name in _tables(schema)]
    with transaction.atomic(), connection.cursor() as cursor:
        before = _looks(tables)
        changed = [table for table in tables if before[table] != _put_back.get((schema, table))]
        if not changed:
            return
        cursor.execute(f"TRUNCATE {', '.join(changed)} CASCADE")
        emptied = _looks(tables)
        # In any order: foreign keys are looked at when the transaction ends.
        for table in tables:
            if table in changed or emptied[table] != before[table]:
                cursor.execute(f'INSERT INTO "{table}" SELECT * FROM {schema}."{KEPT}{table}"')
        looks = _looks(tables)
    _put_back.clear()
    _put_back.update({(schema, table): look for table, look in looks.items()})


# How each table looked when it was put back last, by schema and name.
_put_back: dict[tuple[str, str], str] = {}


def _looks(tables: list[str]) -> dict[str, str]:
    """Return what differs as soon as a table is changed. All rows of one that was put back were written by one
    transaction, so that whatever is written later is seen by its number, and whatever is removed by their count."""
    with connection.cursor() as cursor:
        cursor.execute(
            " UNION ALL ".join(
                f"SELECT '{table}', concat_ws(' ', count(*), min(xmin::text), max(xmin::text)) FROM \"{table}\""
                for table in tables
            )
        )
        return dict(cursor.fetchall())


def demo_make() -> dt.datetime:
    """Fill the store with the demo, people and keys, and return the time that it is about. Takes about as many seconds
    as there are hundreds of topics."""
    now = timezone.now()
    with override_settings(MEMSTATE_EMBEDDER="instant", PASSWORD_HASHERS=HASHERS):
        embedder_reset()
        story_load(story_build(now=now, seed=7, topics=TOPICS), now=now, progress=lambda _done: None)
        # A test begins at this time, however long the demo took; so nothing in the store may be later.
        with mock.patch.object(timezone, "now", return_value=now):
            tasks.schedules_ensure()
            turns_until_done(tasks.upkeep)
            for name, role in PEOPLE.items():
                account_make(role, name=name, password=PASSWORD)
            for name, role in (("agent", "agent"), ("auditor", "reader")):
                key_create(name=name, role=role, secret=secret_of(name), scope="/")
    WorkerHeartbeat.objects.update_or_create(name="worker", defaults={"seen_at": now + dt.timedelta(minutes=5)})
    return now
