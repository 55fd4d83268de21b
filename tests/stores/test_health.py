"""Health and metrics of all stores, in a number of statements that does not depend on theirs."""

import datetime as dt
from typing import Any

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ, Task

from memory.access.keys import key_create
from memory.health import failure_check, queue_check, stores_check
from memory.ingest.metrics import items_count
from memory.jobs import tasks
from memory.jobs.stores import store_create
from memory.stores import metrics
from memory.stores.current import MAIN, store_use
from memory.stores.metrics import OTHERS, store_label
from memory.stores.models import Store
from memory.stores.pending import work_pending
from tests.cast import Caller, Cast, in_process

pytestmark = pytest.mark.django_db

SECRET = "ms_the-secret-of-an-agent-in-the-store-busy"


def _failed(store: str) -> None:
    now = timezone.now()
    group = None if store == MAIN else f"store:{store}"
    task = {"id": f"task of {store}", "name": "x", "func": "memory.jobs.tasks.upkeep", "group": group}
    Task.objects.create(**task, started=now, stopped=now, success=False)


def _waiting(store: str, *, since: dt.timedelta) -> None:
    with store_use(store):
        tasks.duplicates_enqueue("/")
    OrmQ.objects.filter(pk=OrmQ.objects.latest("id").pk).update(lock=timezone.now() - since)


@pytest.mark.parametrize("problem", ["behind", "late", "failed"])
def test_a_problem_of_one_store_is_found_in_main_and_there(problem: str) -> None:
    for name in ("ill", "well"):
        store_create(name)
    now = timezone.now()
    assert stores_check(now).ok
    if problem == "behind":
        Store.objects.filter(pk="ill").update(version="")
    elif problem == "late":
        _waiting("ill", since=dt.timedelta(minutes=11))
    else:
        _failed("ill")
    found = stores_check(now)
    assert (found.ok, "ill" in found.sentence, "well" in found.sentence) == (False, True, False)
    # The checks of a store are about its own jobs.
    own: dict[str, list[str]] = {name: [] for name in (MAIN, "ill", "well")}
    for name in own:
        with store_use(name):
            own[name] = [check.__name__ for check in (queue_check, failure_check) if not check(now).ok]
    there = {"behind": "", "late": "queue_check", "failed": "failure_check"}[problem]
    assert own == {MAIN: [], "ill": [there] if there else [], "well": []}
    with store_use("well"):
        assert "ill" not in stores_check(now).sentence


def test_the_doctor_examines_a_store(capsys: pytest.CaptureFixture[str]) -> None:
    store_create("ill")
    _failed("ill")
    with pytest.raises(SystemExit):
        call_command("doctor", "--in-store", "ill")
    assert "failures" in capsys.readouterr().out.splitlines()[-1]


def test_metrics_name_the_store(cast: Cast) -> None:
    for name in ("busy", "idle"):
        store_create(name)
    with store_use("busy"):
        key_create(name="agent", role="agent", secret=SECRET)
        work_pending()
    agent = Caller(in_process, SECRET)
    agent.remember("Green tea")
    agent.query("tea")
    agent.post("/v1/ingest", {"placement": "no such"})
    _waiting("busy", since=dt.timedelta(seconds=90))
    found = _samples(cast)
    assert found['memstate_requests_total{method="POST",route="v1/query",status="200",store="busy"}'] == 1
    assert found['memstate_request_seconds_count{method="POST",route="v1/query",store="busy"}'] == 1
    assert found['memstate_query_stage_seconds_count{stage="semantic",store="busy"}'] == 1
    assert found['memstate_ingested_items_total{outcome="accepted",store="busy"}'] == 1
    assert found['memstate_topics{rung="active",store="busy"}'] == 1
    assert found['memstate_topics{rung="active",store="main"}'] == 0
    assert found['memstate_archivings{store="busy",what="archived"}'] == 0
    assert found['memstate_backlog{store="busy",what="unfolded_accesses"}'] == 1
    assert found['memstate_backlog{store="main",what="unfolded_accesses"}'] == 0
    assert 90 <= found['memstate_queue_age_seconds{store="busy"}'] < 600
    assert found['memstate_queue_age_seconds{store="main"}'] == 0
    assert found['memstate_runs_held{store="busy"}'] == 0
    assert not [name for name in found if "idle" in name]


def test_metrics_of_many_stores_cost_as_many_statements_as_of_one(cast: Cast) -> None:
    def statements() -> int:
        # Whole tables are counted too.
        cache.clear()
        with CaptureQueriesContext(connection) as asked:
            _samples(cast)
        return len(asked)

    statements()
    before = statements()
    for number in range(3):
        store_create(f"busy{number}")
        with store_use(f"busy{number}"):
            work_pending()
        _waiting(f"busy{number}", since=dt.timedelta(seconds=90))
    assert statements() == before


def test_a_request_without_a_valid_key_has_no_store(cast: Cast) -> None:
    name = 'memstate_requests_total{method="POST",route="v1/query",status="401",store=""}'
    before = _samples(cast).get(name, 0)
    for headers in ({}, {"X-MemState-Store": "no_such_store"}):
        assert cast.anonymous.post("/v1/query", {"q": "tea"}, headers=headers).status == 401
    found = _samples(cast)
    assert found[name] == before + 2
    assert not [name for name in found if "no_such_store" in name]


def test_metrics_name_a_bounded_number_of_stores(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_used", {})
    monkeypatch.setattr(metrics, "MAX_STORES", 2)

    def labels(*names: str) -> list[str]:
        found = []
        for name in names:
            with store_use(name):
                items_count(accepted=1, refused=0)
                found.append(store_label())
        return found

    assert labels("one", "two", "three", MAIN, "two") == ["one", "two", OTHERS, MAIN, "two"]
    assert _samples(cast)['memstate_ingested_items_total{outcome="accepted",store="one"}'] == 1
    # A store that was idle for an hour makes room, with all of its series.
    monkeypatch.setattr(metrics, "WORKED_WITHIN", dt.timedelta(0))
    assert labels("three") == ["three"]
    found = _samples(cast)
    assert [name for name in found if 'store="one"' in name] == []
    assert found['memstate_ingested_items_total{outcome="accepted",store="two"}'] == 2


def _samples(cast: Cast) -> dict[str, Any]:
    lines = cast.anonymous.get("/metrics").text.splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")}
