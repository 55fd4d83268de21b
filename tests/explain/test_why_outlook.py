"""The outlook of a topic against the candidate query on the days of its moves, over policies of all kinds."""

import datetime as dt
import random
import uuid

import pytest

from memory.core.rules import RELEASED
from memory.explain.outlook import outlook
from memory.models import Vitality
from memory.policy.effective import policies_current
from memory.policy.rekey import half_lives_rekey
from tests.cast import Cast, Clock
from tests.explain.past import days_live, policy_set
from tests.explain.test_backtest_agrees import POLICIES
from tests.forgetting.candidates import candidates_find

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in ("few at a time", "gated")])
@pytest.mark.parametrize("kind_of_clock", ["wall", "active"])
def test_the_outlook_on_a_topic_is_what_the_candidate_query_finds_on_its_days(
    cast: Cast, clock: Clock, name: str, kind_of_clock: str
):
    days_live(cast, clock, days=8, runs_from=99)
    clock.forward(days=2, hours=5)
    rng = random.Random(3)
    for row in Vitality.objects.all():
        Vitality.objects.filter(pk=row.pk).update(rung=rng.choice((0, 0, 1, 2)))
    gate = {} if name == "static" else {"prune_after_days": 3}
    policy_set(**{**POLICIES[name], **gate, "clock": kind_of_clock})
    while half_lives_rekey(now=clock.now, budget_seconds=10):
        pass
    policies = policies_current()
    known: dict[dt.datetime, dict[uuid.UUID, int]] = {}

    def due(at: dt.datetime) -> dict[uuid.UUID, int]:
        if at not in known:
            judged_by = policies if at == clock.now else policies.projected(clock.now)
            found = candidates_find(judged_by, "/", event="cron", now=at)
            known[at] = {each.topic_id: RELEASED if each.action == "released" else each.to_rung for each in found}
        return known[at]

    seen = set()
    for row in Vitality.objects.select_related("topic__scope"):
        ahead = outlook(row.pk, row.rung, policies.effective(row.topic.scope.path), now=clock.now)
        assert ahead.now == due(clock.now).get(row.pk, row.rung)
        reached = row.rung
        for move in ahead.moves:
            days = [clock.now + dt.timedelta(days=day) for day in (30, 700)] if move.at is None else []
            if move.at is not None and move.at > clock.now:
                assert due(move.at)[row.pk] == move.rung
                days.append(max(clock.now, move.at - dt.timedelta(days=1)))
            # Not a day earlier, and on no day if never.
            assert all(due(day).get(row.pk, row.rung) <= reached for day in days), (row.topic.title, move)
            reached = reached if move.at is None else move.rung
            seen.add((move.rung, move.at is None, move.rule is None))
    assert len(seen) > 2
