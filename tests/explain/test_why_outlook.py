"""The verdict on one topic in Python against the candidate query, over topics and policies of all kinds."""

import datetime as dt
import random
import uuid
from typing import Any

import pytest

from memory.explain.outlook import Subject, verdict
from memory.explain.topic_snapshot import texts_match
from memory.formulas.strategies import TopicUsage
from memory.models import Topic, Vitality
from memory.policy.effective import policies_current
from memory.policy.snapshot import EffectivePolicy
from tests.cast import Cast, Clock
from tests.explain.past import days_live, policy_set
from tests.explain.test_backtest_agrees import POLICIES
from tests.forgetting.candidates import candidates_find

pytestmark = pytest.mark.django_db


def subject_of(topic: Topic, row: Vitality, policy: EffectivePolicy) -> Subject:
    last = row.last_retrieved_at
    return Subject(
        usage=TopicUsage(
            row.salience,
            row.reinforced_at.timestamp(),
            row.created_at.timestamp(),
            None if last is None else last.timestamp(),
            row.retrieval_count,
            row.kind,
        ),
        rung=row.rung,
        pinned=row.pinned,
        half_life=row.half_life,
        scope=topic.scope.path,
        categories=frozenset(topic.categories),
        provenance=topic.provenance,
        texts=texts_match(topic.pk, policy.rules.rules),
    )


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in ("few at a time", "gated")])
def test_the_verdict_on_a_topic_is_that_of_the_candidate_query(cast: Cast, clock: Clock, name: str):
    days_live(cast, clock, days=8, runs_from=99)
    rng = random.Random(3)
    for row in Vitality.objects.all():
        Vitality.objects.filter(pk=row.pk).update(rung=rng.choice((0, 0, 1, 2)))
    policy_set(**{**POLICIES[name], **({} if name == "static" else {"prune_after_days": 3})})
    from memory.policy.rekey import half_lives_rekey

    while half_lives_rekey(now=clock.now, budget_seconds=10):
        pass
    policies = policies_current()
    seen: set[Any] = set()
    for days in (0, 2, 5, 9, 30):
        at = clock.now + dt.timedelta(days=days)
        due = {found.topic_id: found for found in candidates_find(policies, "/", event="cron", now=at)}
        for row in Vitality.objects.select_related("topic__scope"):
            policy = policies.effective(row.topic.scope.path)
            judged = verdict(subject_of(row.topic, row, policy), policy, now=at.timestamp(), event="cron")
            found = due.get(uuid.UUID(str(row.pk)))
            expected = row.rung if found is None else found.to_rung
            assert judged.rung == expected, (row.topic.title, days, judged, found)
            seen.add(judged.rung)
    assert len(seen) > 2 or name == "static"
