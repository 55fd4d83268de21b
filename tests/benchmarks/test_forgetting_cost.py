"""What forgetting costs as the store grows: the work follows what is due, beside raw SQL in the same run."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.forgetting.runs import run_work
from memory.forgetting.undo import run_revert
from memory.models import ForgetRun
from memory.policy.draft import policies_drafted
from memory.policy.effective import policies_current
from memory.policy.save import policy_save
from memory.simulate.whatif import Trial, affected_page, whatif
from tests.benchmarks.ladder_store import NOW, pressure_plan, store_clear, store_fill, topics_make_due
from tests.benchmarks.report import milliseconds, p50, table
from tests.cast import Caller
from tests.forgetting.candidates import candidates_find
from tests.forgetting.shop import policy_put, topics_make

SIZES = (50_000, 1_000_000)
DUE = 1_000
TIMES = 7


def statement(sql: str) -> Callable[[], None]:
    """Return a call that runs ``sql`` and reads what it returns."""

    def run() -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            cursor.fetchall()

    return run


@pytest.mark.bench
@pytest.mark.django_db(transaction=True)
def test_forgetting_costs_what_is_due_and_not_what_there_is(settings: Any) -> None:
    settings.MEMSTATE_KNOBS = {"clock": "active"}
    found, looked, ran = [], [], []
    for size in SIZES:
        store_fill(size)
        _warm()
        found.append(_find_nothing(size))
        looked.append(_whatif(size))
        ran.append(_run(size))
    table("Finding what is due when nothing is (ms)", ["topics", "p50", "SELECT 1", "ratio"], found)
    table(
        "What-if: all rungs, 64 bins, now and three projections, under two policies (ms)",
        ["topics", "thresholds moved", "one scan of Vitality", "ratio", "half-life moved", "relevance", "first page"],
        looked,
    )
    table(
        f"A run with {DUE:,} topics due (ms)",
        ["topics", "plan", "apply", "whole run", "undo", "same updates in plain SQL"],
        ran,
    )
    print(
        f"\nA run over {SIZES[-1]:,} topics takes {ran[-1][3] / ran[0][3]:.2f} times what it takes over {SIZES[0]:,}."
    )
    store_clear()


def _warm() -> None:
    for name in ("memory_vitality", "memory_topic", "memory_topicvector", "memory_topicdocument"):
        statement(f"SELECT count(*) FROM {name}")()


def _find_nothing(size: int) -> list[object]:
    policies = policies_current()
    assert candidates_find(policies, "/", event="cron", now=NOW) == []
    find = milliseconds(lambda: candidates_find(policies, "/", event="cron", now=NOW), times=500, warm_up=20)
    bare = milliseconds(statement("SELECT 1"), times=500, warm_up=20)
    return [f"{size:,}", p50(find), p50(bare), p50(find) / p50(bare)]


def _whatif(size: int) -> list[object]:
    present = policies_current()
    moments = [NOW.replace(month=12), NOW.replace(year=2027, month=2), NOW.replace(year=2027)]
    spent = []
    for values in ({"forget_salience_threshold": 0.08}, {"half_life_days": 20}, {"strategy": "relevance"}):
        draft = policies_drafted(present, "/", values=values)
        spent.append(
            p50(
                milliseconds(
                    lambda draft=draft: whatif(Trial("/", present, draft, NOW), at=moments), times=TIMES, warm_up=2
                )
            )
        )
    draft = policies_drafted(present, "/", values={"forget_salience_threshold": 0.08})
    page = milliseconds(lambda: affected_page(Trial("/", present, draft, NOW)), times=TIMES, warm_up=2)
    scan = milliseconds(statement("SELECT count(*), max(fade) FROM memory_vitality"), times=TIMES, warm_up=2)
    return [f"{size:,}", spent[0], p50(scan), spent[0] / p50(scan), spent[1], spent[2], p50(page)]


_PLAIN = (
    "UPDATE memory_topic SET rung = 3 WHERE id = ANY(%(ids)s)",
    "UPDATE memory_vitality SET rung = 3, live = false, fade = 0, fade_floor = 0 WHERE topic_id = ANY(%(ids)s)",
    "UPDATE memory_topicvector SET live = false WHERE topic_id = ANY(%(ids)s)",
    "UPDATE memory_topicdocument SET live = false, uncounted = true WHERE topic_id = ANY(%(ids)s)",
)


def _run(size: int) -> list[object]:
    topics_make_due(DUE, size)
    plans, applies, undos, plains = [], [], [], []
    for _ in range(TIMES):
        started = time.perf_counter()
        run = pressure_plan(NOW)
        planned = time.perf_counter()
        run = run_work(run.id, now=NOW, seconds=600)
        applied = time.perf_counter()
        assert (run.status, run.applied) == (ForgetRun.Status.DONE, DUE)
        ids = list(run.actions.values_list("topic_id", flat=True))
        begun = time.perf_counter()
        assert run_revert(run.id, actor=SYSTEM.actor, now=NOW).restored == DUE
        undos.append((time.perf_counter() - begun) * 1000)
        plans.append((planned - started) * 1000)
        applies.append((applied - planned) * 1000)
        plains.append(_plain(ids))
    whole = [plan + apply for plan, apply in zip(plans, applies, strict=True)]
    return [f"{size:,}", p50(plans), p50(applies), p50(whole), p50(undos), p50(plains)]


def _plain(ids: list[object]) -> float:
    """Return what archiving costs without plan, journal and checks, and take it back."""
    connection.set_autocommit(False)
    try:
        started = time.perf_counter()
        with connection.cursor() as cursor:
            for sql in _PLAIN:
                cursor.execute(sql, {"ids": ids})
        return (time.perf_counter() - started) * 1000
    finally:
        connection.rollback()
        connection.set_autocommit(True)


@pytest.mark.bench
@pytest.mark.django_db(transaction=True)
def test_moving_a_threshold_writes_one_row() -> None:
    store_fill(SIZES[0])
    before = _written()
    spent = milliseconds(_threshold_mover(), times=TIMES, warm_up=0)
    after = _written()
    changed = {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}
    table(
        f"A threshold moved {TIMES} times over {SIZES[0]:,} topics",
        ["tables written to", "rows", "ms each"],
        [[", ".join(changed), sum(changed.values()), p50(spent)]],
    )
    assert changed == {"memory_policyversion": TIMES}
    store_clear()


def _threshold_mover() -> Callable[[], None]:
    steps = iter(range(1, 100))

    def move() -> None:
        values = {"forget_salience_threshold": 0.05 + next(steps) / 1000}
        policy_save("/", preset=None, values=values, author="bench", reason="measuring", now=NOW)

    return move


def _written() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables")
        return dict(cursor.fetchall())


@pytest.mark.bench
@pytest.mark.meaning
@pytest.mark.django_db(transaction=True)
def test_what_compaction_adds_to_a_run(operator: Caller) -> None:
    themes, each = 100, 20
    for theme in range(themes):
        topics_make(
            operator, each, days=400, title=f"Note {theme}", summary=f"What happened at stop {theme} of the line."
        )
    spent = []
    for compact in (False, True):
        policy_put(operator, compact=compact, compact_threshold=0.999, topic_count_soft_limit=0)
        for _turn in range(3):
            now = timezone.now()
            started = time.perf_counter()
            run = pressure_plan(now)
            ForgetRun.objects.filter(pk=run.id).update(status=ForgetRun.Status.APPLYING)
            planned = time.perf_counter()
            run = run_work(run.id, now=now, seconds=600)
            applied = time.perf_counter()
            assert (run.applied, run.counts.get("compacted", 0)) == (themes * each, themes * compact)
            run_revert(run.id, actor=SYSTEM.actor, now=timezone.now())
        spent.append((planned - started, applied - planned))
    table(
        f"A run with {themes * each:,} topics due (ms)",
        ["", "plan", "apply", "whole run", "ratio"],
        [
            [name, plan * 1000, apply * 1000, (plan + apply) * 1000, (plan + apply) / sum(spent[0])]
            for name, (plan, apply) in zip(("archived", f"in {themes} groups"), spent, strict=True)
        ],
    )
