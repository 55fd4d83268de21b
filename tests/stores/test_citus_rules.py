"""The check of all statements for Citus notices what a cluster refused, and lets pass what it ran."""

from pathlib import Path

import pytest
from django.db import connection

from memory.stores.current import MAIN, store_use
from tests.stores.citus_rules import statement_faults, text_faults

pytestmark = pytest.mark.django_db
_MEMORY = Path(__file__).parents[2] / "memory"

_EDIT = "INSERT INTO memory_topicedit (topic_id, at, before, actor)"
_READ = "SELECT t.id, now(), '{}'::jsonb, s.path FROM memory_topic t JOIN memory_scope s ON s.id = t.scope_id"


def faults(sql: str) -> list[str]:
    with store_use(MAIN), connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return statement_faults(connection.connection, sql.encode())


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE memory_vitality SET fade = CASE WHEN pinned THEN 0 ELSE extract(epoch FROM reinforced_at) END",
        "UPDATE memory_topic SET updated_at = created_at + interval '1 day'",
        "UPDATE memory_topic SET title = concat_ws(' ', title, summary)",
        "UPDATE memory_forgetaction SET before = jsonb_build_object('was', before)",
        "UPDATE memory_forgetaction SET at = (before->>'updated_at')::timestamptz",
        "UPDATE memory_topic SET title = '' WHERE to_jsonb(categories) = '[]'",
        "UPDATE memory_topic SET title = '' WHERE random() < 0.5",
        "UPDATE memory_topic SET title = coalesce(title, now()::text)",
        "UPDATE memory_topic t SET title = '' FROM stores_store s WHERE s.name = t.title",
        "DELETE FROM memory_link RETURNING concat_ws(' ', id, kind)",
        "DELETE FROM memory_link RETURNING now()",
        "UPDATE memory_accesslog SET topic_ids = topic_ids[1:2]",
        (
            "UPDATE memory_topic t SET updated_at = b.at FROM (SELECT topic_id, (before->>'at')::timestamptz AS at "
            "FROM memory_forgetaction) b WHERE t.id = b.topic_id"
        ),
        (
            "INSERT INTO memory_lexeme (word, documents) VALUES ('a', 1) ON CONFLICT (word) DO UPDATE SET "
            "documents = extract(epoch FROM now())"
        ),
        "INSERT INTO memory_lexeme (word, documents) VALUES ('a', (SELECT count(*) FROM memory_topic))",
        f"{_EDIT} {_READ}",
        f"WITH x AS ({_READ}) {_EDIT} SELECT * FROM x",
        f"WITH x AS ({_EDIT} {_READ} RETURNING id) SELECT count(*) FROM x",
        f"{_EDIT} SELECT t.id, now(), '{{}}', '' FROM unnest(ARRAY['a']) u JOIN memory_topic t ON t.title = u",
    ],
)
def test_what_a_cluster_refuses_is_noticed(sql: str) -> None:
    assert faults(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE memory_vitality SET fade = date_part('epoch', reinforced_at AT TIME ZONE 'UTC')",
        "UPDATE memory_topic SET updated_at = now() WHERE updated_at < now() - interval '1 day'",
        (
            "WITH x AS (SELECT id, concat_ws(' ', title, summary) AS said FROM memory_topic) "
            "UPDATE memory_topic t SET title = x.said FROM x WHERE x.id = t.id"
        ),
        "DELETE FROM memory_link RETURNING id::text || ' ' || kind",
        (
            "INSERT INTO memory_lexeme (word, documents) VALUES ('a', 1) ON CONFLICT (word) DO UPDATE SET "
            "documents = memory_lexeme.documents + excluded.documents"
        ),
        f"WITH x AS MATERIALIZED ({_READ}) {_EDIT} SELECT * FROM x",
        f"{_EDIT} SELECT id, now(), jsonb_build_object('is', title), '' FROM memory_topic",
        f"{_EDIT} SELECT u, now(), '{{}}', '' FROM unnest(ARRAY[]::uuid[]) u",
        "UPDATE stores_store SET name = concat_ws(' ', name, version)",
    ],
)
def test_what_a_cluster_ran_passes(sql: str) -> None:
    assert faults(sql) == []


def test_no_text_of_the_product_has_what_a_cluster_refuses_or_ignores() -> None:
    found = []
    for path in sorted(_MEMORY.rglob("*.py")):
        found += text_faults(str(path.relative_to(_MEMORY)), path.read_text())
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "cursor.execute('CREATE TRIGGER t AFTER INSERT ON memory_topic')",
        "RunSQL('ALTER TABLE memory_topic SET (fillfactor = 70); ALTER TABLE memory_field SET (fillfactor = 80);')",
        "cursor.execute(f'SET LOCAL {name} = 0; SELECT {one}')",
        "RunSQL('ALTER TABLE memory_topic ALTER COLUMN title SET (n_distinct = 5)')",
        "cursor.execute(\"SELECT set_config('plan_cache_mode', 'force_generic_plan', true)\")",
        "cursor.execute(\"SELECT set_config('hnsw.ef_search', %s, true)\", [ef])",
        "cursor.execute(f\"SELECT set_config('{name}', 'off', true)\")",
        "cursor.execute('SELECT set_config(%s, %s, true)', [name, value])",
        "cursor.execute('SET LOCAL enable_seqscan = off')",
    ],
)
def test_a_text_that_a_cluster_refuses_or_ignores_is_noticed(source: str) -> None:
    assert text_faults("recall/search.py", source)
