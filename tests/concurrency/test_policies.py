"""Policies with more than one connection: one version after the other, in force everywhere, and little written."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from memory.core.errors import Conflict
from memory.models import Field, PolicyVersion, Rekeying, Vitality
from memory.policy import rekey
from memory.policy.effective import knobs_effective, policies_current
from memory.policy.rekey import half_lives_rekey
from memory.policy.save import policy_save
from tests.cast import Cast
from tests.waits import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(jobs: list[Callable[[], Any]]) -> list[Any]:
    """Run every job in a thread with a connection of its own, all released at one moment; return what they gave."""
    start, outcomes = threading.Barrier(len(jobs), timeout=60), [None] * len(jobs)

    def run(at: int) -> None:
        try:
            start.wait(20)
            outcomes[at] = jobs[at]()
        except BaseException as problem:
            outcomes[at] = problem
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=[at]) for at in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return outcomes


def save(scope: str = "/", *, base_version: int | None = None, reason: str = "because", **values: Any) -> PolicyVersion:
    return policy_save(
        scope, preset=None, values=values, author="test", reason=reason, now=timezone.now(), base_version=base_version
    )


def written() -> dict[str, tuple[int, int, int]]:
    """Rows inserted, updated and deleted so far, by table, for every table of the database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot()")
        cursor.execute("SELECT 1")
        cursor.execute("SELECT relname, n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables")
        return {name: tuple(counts) for name, *counts in cursor.fetchall()}


def difference(before: dict[str, tuple[int, int, int]]) -> dict[str, tuple[int, ...]]:
    return {
        name: tuple(now - then for now, then in zip(counts, before[name], strict=True))
        for name, counts in written().items()
        if counts != before[name]
    }


def test_moving_a_threshold_writes_one_policy_row_and_nothing_else(http_cast: Cast) -> None:
    items = [{"placement": "new_topic", "title": f"Topic {n}"} for n in range(300)]
    start = written()
    http_cast.agent.post("/v1/ingest/batch", items).ok()
    # The connections of the server count what they wrote a while after they wrote it.
    got = {"memory_topic", "memory_auditevent", "memory_apikey"}
    eventually(lambda: got <= difference(start).keys())
    for scope in ("/", "/user"):
        save(scope, theta_summary=0.3)
        before = written()
        for step in range(5):
            save(scope, theta_summary=0.31 + step / 100, forget_salience_threshold=0.01)
        assert difference(before) == {"memory_policyversion": (5, 0, 0)}
        # Nor does a save that changes nothing, or one that is refused, write a row.
        save(scope, theta_summary=0.35, forget_salience_threshold=0.01)
        for refused in ({"theta_summary": 0.001, "theta_detach": 0.002}, {"half_life_days": -1}):
            with pytest.raises(Exception, match="must"):
                save(scope, **refused)
        assert difference(before) == {"memory_policyversion": (5, 0, 0)}


def test_of_many_editors_of_one_version_one_wins_and_the_others_are_reported(http_cast: Cast) -> None:
    save(half_life_days=20)
    outcomes = at_once([lambda n=n: save(base_version=1, query_salience_bump=n / 100) for n in range(8)])
    assert sum(isinstance(outcome, PolicyVersion) for outcome in outcomes) == 1
    conflicts = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
    assert len(conflicts) == 7
    assert all(conflict.code == "changed-meanwhile" for conflict in conflicts)
    assert list(PolicyVersion.objects.values_list("number", flat=True).order_by("number")) == [1, 2]


def test_editors_who_saw_nothing_come_one_after_the_other_and_ids_rise_with_numbers(http_cast: Cast) -> None:
    scopes = ("/", "/user", "/user/alice")
    outcomes = at_once(
        [lambda n=n: [save(scopes[n % 3], query_salience_bump=(n * 10 + k) / 100) for k in range(5)] for n in range(6)]
    )
    assert all(isinstance(outcome, list) for outcome in outcomes), outcomes
    for scope in scopes:
        rows = list(PolicyVersion.objects.filter(scope=scope).order_by("id").values_list("number", flat=True))
        assert rows == list(range(1, 11))
        newest = PolicyVersion.objects.filter(scope=scope).latest("number")
        assert knobs_effective(scope).query_salience_bump == newest.values["query_salience_bump"]


def test_a_policy_is_in_force_for_the_others_with_its_commit_and_not_before(http_cast: Cast) -> None:
    save(half_life_days=20)
    saved, look, looked = threading.Event(), threading.Event(), []

    def writer() -> None:
        with transaction.atomic():
            save(half_life_days=10)
            looked.append(("writer", knobs_effective("/").half_life_days))
            saved.set()
            look.wait(20)

    def reader() -> None:
        saved.wait(20)
        # The process has the writer's snapshot in mind; this connection must not see it.
        looked.append(("reader", knobs_effective("/").half_life_days))
        look.set()

    assert at_once([writer, reader]) == [None, None]
    assert looked == [("writer", 10), ("reader", 20)]
    assert knobs_effective("/").half_life_days == 10


def test_rekeying_beside_retrievals_ingest_and_a_second_worker_leaves_every_row_right(
    http_cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memory.recall.access_fold import accesses_fold

    monkeypatch.setattr(rekey, "TOPICS_PER_BATCH", 20)
    items = [
        {"placement": "new_topic", "title": f"Topic {n}", "fields": [{"name": "a", "value": "1"}]} for n in range(200)
    ]
    http_cast.agent.post("/v1/ingest/batch", items).ok()
    save(half_life_days=7)

    def worker() -> int:
        return half_lives_rekey(now=timezone.now(), budget_seconds=60)

    def use() -> None:
        for _ in range(10):
            http_cast.agent.query("Topic", top_k=20)
            accesses_fold(now=timezone.now())

    def write() -> None:
        for n in range(20):
            http_cast.agent.remember(f"New {n}", values={"a": "1"})

    outcomes = at_once([worker, worker, use, write])
    assert not [outcome for outcome in outcomes if isinstance(outcome, BaseException)], outcomes
    half_lives_rekey(now=timezone.now(), budget_seconds=60)
    assert not Rekeying.objects.filter(finished_at=None).exists()
    assert not policies_current().rekeying
    for model in (Vitality, Field):
        assert set(model.objects.values_list("half_life", flat=True)) == {7 * 86_400.0}
        for row in model.objects.all():
            assert row.fade_floor <= row.fade
    assert Vitality.objects.count() == 220
