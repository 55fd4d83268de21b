"""What reinforcement costs the database, as its own statistics tell: one insert a query, updates that stay in place."""

from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from memory.models import AccessLog, Vitality
from memory.recall.access_fold import accesses_fold
from tests.cast import Cast, worker_turn
from tests.vacuum import vacuum_analyze

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.alone]

TOPICS = 300
QUERIES = 400


def statistics(table: str) -> dict[str, int]:
    """The counters of a table and of all its indexes, up to date."""
    names = ("n_tup_ins", "n_tup_upd", "n_tup_hot_upd", "n_tup_del")
    with connection.cursor() as cursor:
        # Every session reports what it did a moment later, unless it is asked to do so at once.
        cursor.execute("SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot()")
        cursor.execute("SELECT 1")
        cursor.execute(f"SELECT {', '.join(names)} FROM pg_stat_user_tables WHERE relname = %s", [table])
        counters = dict(zip(names, cursor.fetchone(), strict=True))
        cursor.execute(
            """SELECT indexrelname, idx_scan, idx_tup_read, pg_relation_size(indexrelid)
               FROM pg_stat_user_indexes WHERE relname = %s""",
            [table],
        )
        return counters | {
            f"{name}.{what}": value for name, *values in cursor.fetchall() for what, value in enumerate(values)
        }


def test_folding_never_touches_the_vectors_and_updates_vitality_in_place(http_cast: Cast) -> None:
    agent = http_cast.agent
    items = [
        {"placement": "new_topic", "title": f"Topic {n}", "fields": [{"name": "a", "value": str(n)}]}
        for n in range(TOPICS)
    ]
    results = agent.post("/v1/ingest/batch", items).ok()["results"]
    ids = [result["topic_id"] for result in results]
    worker_turn()
    with connection.cursor() as cursor:
        # Whoever vacuums or analyzes meanwhile keeps the old versions of rows, and with them the room on their pages.
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
    vacuum_analyze("memory_vitality", "memory_field")
    with transaction.atomic():
        fields = dict(zip(ids, fields_of(ids), strict=True))
    vectors, documents = statistics("memory_topicvector"), statistics("memory_topicdocument")
    vitality, field = statistics("memory_vitality"), statistics("memory_field")
    # Queries that come in over some minutes, eight topics each, folded every ten of them.
    for start in range(0, QUERIES, 10):
        AccessLog.objects.bulk_create(
            AccessLog(
                at=timezone.now(),
                kind="query",
                actor="key",
                scope="/",
                query="q",
                query_hash=str(number),
                topic_ids=(hits := [ids[(number * 7 + place * 31) % TOPICS] for place in range(8)]),
                field_ids=[fields[hit] for hit in hits],
                bump=0.1,
                field_bump=0.1,
            )
            for number in range(start, start + 10)
        )
        assert accesses_fold(now=timezone.now()) == 10
    assert statistics("memory_topicvector") == vectors
    assert statistics("memory_topicdocument") == documents
    for table, before in (("memory_vitality", vitality), ("memory_field", field)):
        after = statistics(table)
        updated = after["n_tup_upd"] - before["n_tup_upd"]
        in_place = after["n_tup_hot_upd"] - before["n_tup_hot_upd"]
        print(f"{table}: {updated} updates, {in_place} in place ({in_place / updated:.0%})")
        assert updated > 1000
        assert after["n_tup_ins"] == before["n_tup_ins"]
        # The floor of a key moves with every second bump of a topic that is not much used yet, and ever less later.
        assert in_place / updated > 0.6
    assert sum(Vitality.objects.values_list("retrieval_count", flat=True)) == QUERIES * 8


def fields_of(ids: list[str]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT topic_id, id FROM memory_field WHERE topic_id = ANY(%s::uuid[])", [ids])
        found = {str(topic_id): field_id for topic_id, field_id in cursor.fetchall()}
    return [found[topic_id] for topic_id in ids]


def test_a_query_inserts_one_row_and_changes_none(http_cast: Cast) -> None:
    agent = http_cast.agent
    for number in range(5):
        agent.remember(f"Harbor {number}", values={"a": "1"})
    worker_turn()
    # The first call of a key notes when it was last used.
    agent.query("harbor")
    tables = ["memory_vitality", "memory_field", "memory_topicvector", "memory_topicdocument", "memory_topic"]

    def rows() -> list[Any]:
        with connection.cursor() as cursor:
            found = []
            for table in tables:
                cursor.execute(f"SELECT ctid::text, xmin::text FROM {table} ORDER BY ctid")
                found.append(cursor.fetchall())
            return found

    before, logged = rows(), AccessLog.objects.count()
    assert len(agent.found("harbor 3")) == 5
    assert rows() == before
    assert AccessLog.objects.count() == logged + 1
    # A question that nothing answers is kept too: forgetting may have left it without an answer.
    assert agent.found("harbor", scope="/nobody") == []
    assert AccessLog.objects.count() == logged + 2
