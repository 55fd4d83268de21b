"""What a retrieval adds is bounded by the policy of the scope, whatever else the worker folds in the same turn."""

import pytest

from tests.cast import Caller, Clock, worker_turn
from tests.forgetting.shop import NOON, policy_put


@pytest.fixture(autouse=True)
def _noon(clock: Clock) -> None:
    clock.set(NOON)


def test_the_highest_salience_is_that_of_the_scope_the_topic_lies_in(agent: Caller, operator: Caller):
    policy_put(
        operator,
        "/low",
        field_salience_max=1.25,
        query_salience_bump=1,
        query_field_salience_bump=1,
        reinforce_once_seconds=0,
    )
    fields = [{"name": "colour", "value": "black and white"}]
    low = agent.remember("Zebra stripes", scope="/low", fields=fields)
    high = agent.remember("Giraffe neck", scope="/high", fields=fields)
    for _time in range(3):
        agent.query("zebra stripes", scope="/low")
    # Asked from above, the cap is still that of the topic's own scope.
    relevances = agent.query("giraffe neck and zebra stripes")["candidates"]
    relevance = next(each["relevance"] for each in relevances if each["topic_id"] == high)
    worker_turn()
    assert agent.topic(low)["salience"] == pytest.approx(1.25)
    assert agent.topic(low)["fields"][0]["salience"] == pytest.approx(1.25)
    assert agent.topic(high)["salience"] == pytest.approx(1 + relevance)


def test_whether_a_repeat_counts_is_decided_by_the_scope_that_was_asked_in(agent: Caller, operator: Caller):
    policy_put(operator, "/each", reinforce_once_seconds=0)
    each = agent.remember("Zebra stripes", scope="/each")
    once = agent.remember("Zebra stripes", scope="/once")
    for _time in range(3):
        agent.query("zebra stripes", scope="/each")
        agent.query("zebra stripes", scope="/once")
    worker_turn()
    assert agent.topic(each)["retrieval_count"] == 3
    assert agent.topic(once)["retrieval_count"] == 1
