"""Under the preset ``balanced``, a memory that answers a question every day stays, and one that no one needs goes."""

import datetime as dt

import pytest
from django.utils import timezone

from memory.recall.access_fold import accesses_fold
from tests.cast import Caller, Clock
from tests.forgetting.shop import NOON, policy_put, run
from tests.languages import FACTS

pytestmark = [pytest.mark.django_db, pytest.mark.meaning]

DAYS = 365


@pytest.mark.parametrize("language", FACTS)
def test_a_memory_that_answers_a_question_a_day_is_live_after_a_year_and_the_others_are_archived(
    agent: Caller, operator: Caller, clock: Clock, language: str
) -> None:
    clock.set(NOON)
    policy_put(operator, preset="balanced", topic_count_soft_limit=0, max_archive_share=1.0)
    topics = {fact: agent.remember("", summary=fact) for fact, _question in FACTS[language]}
    fact, question = FACTS[language][0]
    for day in range(DAYS):
        clock.forward(days=1)
        assert topics[fact] in agent.found(question, top_k=3)
        accesses_fold(now=timezone.now())
        if day % 7 == 0:
            run(operator, dry_run=False)
    assert {topic_id for topic_id in topics.values() if agent.topic(topic_id)["rung"] != "archived"} == {topics[fact]}
    assert timezone.now() - NOON == dt.timedelta(days=DAYS)
