"""A mistyped policy does no harm: the run is held, and if someone lets it go ahead, undo brings all of it back."""

import datetime as dt
from typing import Any

import pytest

from memory.models import ForgetRun, PolicyVersion, Rekeying, Topic
from tests.cast import Caller, Clock, worker_turn
from tests.forgetting.shop import JOURNALS, NOON, dump, policy_put, run, topics_make
from tests.waits import turns_until_done


def tended() -> None:
    turns_until_done(worker_turn)


@pytest.fixture
def two_thousand(without_vector_index: None, operator: Caller, clock: Clock, settings: Any) -> list[str]:
    """Topics of forty days with a value each, one in five of them reinforced since, some linked."""
    # No one looks for duplicates here, which without the index takes the longer the more there are.
    settings.MEMSTATE_KNOBS = {**settings.MEMSTATE_KNOBS, "duplicates_mode": "off"}
    clock.set(NOON)
    made = topics_make(operator, 2000, days=40, fields=[{"name": "kind", "value": "green"}])
    for topic_id, other in zip(made[:20], made[100:120], strict=True):
        edges = [{"to_topic_id": other, "kind": "near"}]
        at = (NOON - dt.timedelta(days=39)).isoformat()
        operator.ingest("extend_topic", topic_id=topic_id, edges=edges, created_at=at, last_used_at=at)
    tended()
    assert not ForgetRun.objects.exists()
    return made


def test_a_half_life_of_an_hour_by_mistake_archives_nothing_and_can_be_undone(
    operator: Caller, two_thousand: list[str]
):
    policy_put(operator, half_life_days=1 / 24)
    got = run(operator, event="cron", dry_run=False)
    assert (got["status"], got["applied"], got["counts"]["archived"]) == ("held", 0, 2000)
    assert got["held_because"] == (
        "It would archive 2,000 of 2,000 live memories (100%), more than the 20% that max_archive_share allows."
    )
    assert not Topic.objects.exclude(rung=0).exists()
    # The worker gives all rows the new half-life and meets the same plan; it does not make it either.
    operator.remember("One more")
    tended()
    assert not Rekeying.objects.filter(finished_at=None).exists()
    assert not Topic.objects.exclude(rung=0).exists()
    assert list(ForgetRun.objects.values_list("status", flat=True)) == ["held"]

    before = dump(*JOURNALS)
    operator.post(f"/v1/runs/{got['run_id']}/approve", {"reason": "by mistake"}).ok()
    # What a request has no time for is the worker's.
    tended()
    approved = operator.get(f"/v1/runs/{got['run_id']}").ok()
    assert (approved["status"], approved["applied"], len(approved["results"])) == ("done", 2000, 2000)
    tended()
    assert Topic.objects.filter(rung=3).count() == 2000
    undone = operator.post(f"/v1/runs/{got['run_id']}/undo").ok()
    assert (undone["restored"], undone["conflicts"]) == (2000, [])
    tended()
    after = dump(*JOURNALS)
    assert after.keys() == before.keys()
    for table, rows in before.items():
        assert after[table] == rows, table
    assert "memory_vitality" in before
    assert PolicyVersion.objects.count() == 1
