"""What each page of the console costs the server over a store of 100,000 topics, beside a bare count by index in the
same run."""

import uuid
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from memory.embedding import embedder_get
from memory.forgetting.runs import run_work
from memory.models import ApiKey, ForgetRun, PolicyVersion
from memory.policy.save import policy_save
from tests.benchmarks import ladder_store
from tests.benchmarks.report import milliseconds, p50, p95, table
from tests.benchmarks.synthetic import store_fill, topic_id
from tests.cast import cast_make, in_process
from tests.console.people import account_make, body_of, client_of, statements_reported
from tests.console.table import Address, pages
from tests.vacuum import vacuum_analyze

TOPICS = 100_000
ASKED, CHANGED, RUNS = 300_000, 100_000, 500
TIMES = 11
# The topics below the active rung, which an index knows.
BARE = "SELECT count(*) FROM memory_vitality WHERE rung > 0"

# Questions about words that the synthetic store has.
QUERIES = {"lookup": {"q": "word7 word40"}, "lookup_agent": {"q": "word7 word40"}, "topic_field": {"name": "value"}}
# The same address as a page, with one threshold moved: what is asked while a line is dragged.
MOVED = {"forget_salience_threshold": "0.08"}

_ASKED = """
INSERT INTO memory_accesslog (at, kind, actor, scope, query, query_hash, topic_ids, scores, relevances, cut_ids,
    field_ids, bump, field_bump, min_relevance, folded_at, counted)
SELECT now() - n * interval '50 seconds', CASE WHEN n %% 50 = 0 THEN 'lookup' ELSE 'query' END, 'bench', '/bench',
    'word' || n %% 5000, n::text,
    ARRAY[('00000000-0000-7000-8000-' || lpad(to_hex(1 + n * 7919 %% %(topics)s), 12, '0'))::uuid], '{}', '{}', '{}',
    '{}', 0.1, 0.1, 0, now(), true
FROM generate_series(1, %(rows)s::bigint) AS n
"""
_CHANGED = """
INSERT INTO memory_auditevent (at, actor, action, topic_id, scope, reason, before, after)
SELECT now() - n * interval '150 seconds', 'bench',
    (ARRAY['pinned', 'edited', 'restored', 'ingest_new_topic'])[1 + n %% 4],
    ('00000000-0000-7000-8000-' || lpad(to_hex(1 + n * 104729 %% %(topics)s), 12, '0'))::uuid, '/bench', '', '{}', '{}'
FROM generate_series(1, %(rows)s::bigint) AS n
"""


def _sql(statement: str, **bound: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, bound or None)
        if cursor.description:
            cursor.fetchall()


def _fill() -> ForgetRun:
    """Fill the store, forget what is due in it by a real run, and return the run."""
    ladder_store.store_clear()
    store_fill(TOPICS, model=embedder_get().model_name)
    now = timezone.now()
    values = {"max_archive_share": 1, "max_topics_for_forget_scan": 1_000_000, "topic_count_soft_limit": 0}
    policy_save("/", preset=None, values=values, author="bench", reason="for the bench", now=now)
    run = ladder_store.pressure_plan(now)
    run = run_work(run.id, now=now, seconds=1200)
    assert run.status == "done"
    members = {field.attname: getattr(run, field.attname) for field in ForgetRun._meta.concrete_fields}
    ForgetRun.objects.bulk_create(ForgetRun(**{**members, "id": uuid.uuid4(), "dry_run": True}) for _ in range(RUNS))
    _sql(_ASKED, rows=ASKED, topics=TOPICS)
    _sql(_CHANGED, rows=CHANGED, topics=TOPICS)
    vacuum_analyze()
    return run


def _address(address: Address, run: ForgetRun) -> str:
    known = {"topic_id": topic_id(150), "run_id": run.id, "key_id": ApiKey.objects.order_by("created_at")[0].pk}
    given = {name: value for name, value in known.items() if name in address.arguments}
    return address.url(query=QUERIES.get(address.name), **given)


@pytest.mark.bench
@pytest.mark.django_db(transaction=True)
def test_no_page_grows_slow_with_the_store() -> None:
    cast_make(in_process)
    run = _fill()
    assert PolicyVersion.objects.get().number == 1
    client = client_of(account_make("administrator"))
    bare = p50(milliseconds(partial(_sql, BARE), times=50))
    asked = [(address.name, _address(address, run), {}) for address in pages()]
    moved = next(address for address in pages() if address.name == "salience").url(query=MOVED)
    asked.append(("salience, a threshold moved", moved, {"HX-Request": "true"}))
    rows = []
    for name, url, headers in asked:
        with statements_reported() as got:
            reply = client.get(url, headers=headers)
            body_of(reply)
        if reply.status_code != 200:
            continue
        spent = milliseconds(
            lambda url=url, headers=headers: body_of(client.get(url, headers=headers)), times=TIMES, warm_up=2
        )
        rows.append([name, p50(spent), p95(spent), len(got), p50(spent) / bare])
    rows.sort(key=lambda row: -row[1])
    print(f"\n\nA bare count by index over {TOPICS:,} topics takes {bare:.2f} ms.")
    table(
        f"Pages of the console over {TOPICS:,} topics, {ASKED:,} questions and {CHANGED:,} changes (ms)",
        ["page", "p50", "p95", "SQL statements", "times the bare count"],
        rows,
    )
    ladder_store.store_clear()
