"""A rule for a fixed period acts below the soft limit, and a preview says what the limit holds back."""

from typing import Any

import pytest

from memory.jobs import tasks
from tests.cast import Caller, worker_turn
from tests.forgetting.shop import policy_put, rungs, topics_make


def rule(*parts: dict[str, Any], action: str = "archive", **members: Any) -> dict[str, Any]:
    return {"name": "rule", "condition": {"all": list(parts)}, "action": action, **members}


def compare(field: str, op: str, value: Any) -> dict[str, Any]:
    return {"field": field, "op": op, "value": value}


LOG, OLD = compare("kind", "is", "log"), compare("age", ">=", "7d")


def stored(operator: Caller) -> tuple[str, str, str]:
    """Return an old log, a new log, and a faded note."""
    (old,) = topics_make(operator, 1, days=10, topic_kind="log")
    (new,) = topics_make(operator, 1, days=1, topic_kind="log")
    (note,) = topics_make(operator, 1, days=900, topic_kind="note")
    return old, new, note


@pytest.mark.parametrize("event", ["cron", "ingest_complete"])
def test_a_time_to_live_ends_below_the_soft_limit(operator: Caller, event: str) -> None:
    old, new, note = stored(operator)
    policy_put(operator, topic_count_soft_limit=500, max_archive_share=1, rules=[rule(LOG, OLD, events=[event])])
    if event == "cron":
        tasks.forget_scheduled("/")
    else:
        operator.remember("Something else")
        worker_turn()
    assert rungs(operator, old, new, note) == ["archived", "active", "active"]
    (run,) = [each for each in operator.get("/v1/runs").ok()["items"] if each["planned"]]
    assert "500" in run["gate"]
    # The thresholds act when the limit is reached.
    policy_put(operator, topic_count_soft_limit=0, max_archive_share=1)
    tasks.forget_scheduled("/")
    assert rungs(operator, old, new, note)[2] == "archived"


@pytest.mark.parametrize(
    "held_back",
    [
        rule(LOG, compare("idle", ">=", "7d")),
        rule(LOG, OLD, compare("retrievals", "<", 3)),
        rule(LOG, OLD, compare("score", "<", 0.9)),
        rule(LOG),
        rule(compare("age", "<", "30d")),
        rule(LOG, OLD, action="pin"),
    ],
    ids=["idle", "retrievals", "score", "no age", "young", "pin"],
)
def test_other_rules_wait_for_the_soft_limit(operator: Caller, held_back: dict[str, Any]) -> None:
    topics = stored(operator)
    policy_put(operator, topic_count_soft_limit=500, max_archive_share=1, rules=[held_back])
    tasks.forget_scheduled("/")
    assert rungs(operator, *topics) == ["active"] * 3
    assert not any(operator.topic(each)["pinned"] for each in topics)


def test_a_preview_says_what_scheduled_runs_skip(operator: Caller) -> None:
    stored(operator)
    values = {"topic_count_soft_limit": 500}
    preview = operator.post("/v1/policies/preview", {"scope": "/", "values": values}).ok()
    assert "500" in preview["gate"]
    preview = operator.post("/v1/policies/preview", {"scope": "/", "values": {"topic_count_soft_limit": 0}}).ok()
    assert preview["gate"] == ""
