"""Any two topics: merging loses no row, gives one history by time, and undo is identity over all tables."""

import datetime as dt
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from memory.duplicates.pair_actions import pair_merge, pair_undo
from memory.models import Field, Link, Revision, Topic
from tests.cast import Caller, Cast, store_rows
from tests.duplicates.shop import PERSON, pair_make, settle, store
from tests.forgetting.shop import NOON
from tests.generated import examples

names = st.sampled_from(["city", "job", "pet"])
values = st.sampled_from(["Oslo", "Bergen", "", "a cat", "never mind"])
# Who is written to, and what: 0 and 1 are the two, 2 a third topic that links lead to.
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 1), names, values),
        # Whoever links a topic to itself keeps that link; what a merge must not do is make one.
        st.tuples(st.just("link"), st.integers(0, 2), st.integers(0, 2), st.sampled_from(["knows", "near"])).filter(
            lambda step: step[1] != step[2]
        ),
        st.tuples(st.just("categorize"), st.integers(0, 1), st.sampled_from(["people", "pets"]), st.none()),
        st.tuples(st.just("pin"), st.integers(0, 1), st.none(), st.none()),
        st.tuples(st.just("ask"), values, st.none(), st.none()),
        st.tuples(st.just("forget"), st.none(), st.none(), st.none()),
    ),
    max_size=14,
)
saliences = st.sampled_from([0.0, 0.05, 0.2, 1.0, 9.0])


def _do(step: tuple[Any, ...], agent: Caller, operator: Caller, ids: list[str]) -> None:
    verb, one, two, three = step
    if verb == "write":
        agent.ingest("extend_topic", topic_id=ids[one], fields=[{"name": two, "value": three}])
    elif verb == "link":
        agent.ingest("extend_topic", topic_id=ids[one], edges=[{"to_topic_id": ids[two], "kind": three}])
    elif verb == "categorize":
        agent.patch(f"/v1/topics/{ids[one]}", {"categories": [two]}).ok()
    elif verb == "pin":
        agent.post(f"/v1/topics/{ids[one]}/pin", {"reason": "dear"}).ok()
    elif verb == "ask":
        agent.post("/v1/query", {"q": f"Anna {one}"}).ok()
    else:
        operator.post("/v1/runs", {"event": "manual", "dry_run": False}).ok()


def _check(before: dict[str, int], survivor: str, loser: str) -> None:
    grown = {"memory_auditevent", "memory_forgetrun", "memory_forgetaction", "memory_topicedit"}
    assert {name: rows for name, rows in store_rows().items() if name not in grown} == {
        name: rows for name, rows in before.items() if name not in grown
    }
    assert str(Topic.objects.get(pk=loser).merged_into_id) == survivor
    for field in Field.objects.filter(topic=survivor):
        revisions = list(Revision.objects.filter(field=field).order_by("seq"))
        assert [each.seq for each in revisions] == list(range(1, field.last_seq + 1))
        moments = [each.recorded_at for each in revisions]
        assert moments == sorted(moments)
        assert field.cold_through <= field.last_seq
    assert not Link.objects.filter(source=survivor, target=survivor).exists()


@pytest.mark.django_db
@given(before=steps, after=steps, one=saliences, other=saliences)
@examples(8)
def test_merge_and_undo_is_identity(cast: Cast, monkeypatch: Any, before: Any, after: Any, one: float, other: float):
    with transaction.atomic(), monkeypatch.context() as patch:
        moment = [NOON]
        patch.setattr(timezone, "now", lambda: moment[0])
        agent, operator = cast.agent, cast.operator
        policy = {"strategy": "static", "prune_after_days": 0, "topic_count_soft_limit": 0, "keep_recent_revisions": 1}
        policy |= {"max_archive_share": 1, "forget_salience_threshold": 0, "duplicates_mode": "off"}
        operator.put("/v1/policies/", {"values": policy, "reason": "test"}).ok()
        ids = [agent.remember("Anna", salience=salience) for salience in (one, other)] + [agent.remember("Bob")]
        for step in (*before, *after):
            moment[0] += dt.timedelta(minutes=1)
            _do(step, agent, operator, ids)
        pair = pair_make(*ids[:2])
        settle()
        found, rows = store(), store_rows()
        moment[0] += dt.timedelta(minutes=1)
        run = pair_merge(pair.pk, principal=PERSON, reason="", now=moment[0])
        pair.refresh_from_db()
        survivor = str(pair.survivor_id)
        _check(rows, survivor, next(each for each in ids[:2] if each != survivor))
        settle()
        moment[0] += dt.timedelta(minutes=1)
        assert not pair_undo(pair.pk, principal=PERSON, reason="", now=moment[0]), run.pk
        settle()
        assert store() == found
        transaction.set_rollback(True)
