"""Questions to the demo: nonsense and what it cannot know renew nothing, an answered question renews its answer."""

from datetime import UTC, datetime

import pytest

from memory.demo.build import story_build
from memory.demo.store import story_load
from memory.models import Vitality
from tests.cast import Caller, worker_turn

NOW = datetime(2026, 8, 20, 9, 30, tzinfo=UTC)
UNANSWERED = (
    "zxqv wrtk plomf",
    "boiling point of tungsten",
    "What is the capital of Mongolia?",
    "How is an oboe tuned?",
)


def uses() -> list[tuple[object, ...]]:
    worker_turn()
    return list(Vitality.objects.order_by("pk").values_list("pk", "salience", "retrieval_count", "last_retrieved_at"))


@pytest.mark.meaning
@pytest.mark.django_db
def test_only_what_answers_is_renewed(agent: Caller) -> None:
    story_load(story_build(now=NOW, topics=100), now=NOW, progress=lambda _steps: None)
    before = uses()
    for question in UNANSWERED:
        found = agent.query(question)["candidates"]
        assert len(found) == 8
        assert max(each["relevance"] for each in found) < 0.3, question
    assert uses() == before
    for title in Vitality.objects.filter(live=True).order_by("pk").values_list("topic__title", flat=True)[:100:25]:
        answer = next(each for each in agent.query(title)["candidates"] if each["title"] == title)
        assert answer["relevance"] > 0.5, title
        worker_turn()
        now = agent.topic(answer["topic_id"])
        assert now["retrieval_count"] == answer["retrieval_count"] + 1
        assert now["salience"] > answer["salience"]
