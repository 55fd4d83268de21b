"""The backtest of a policy says what its real runs did, topic by topic and day by day."""

import datetime as dt
from collections import Counter
from typing import Any

import pytest

from memory.models import ForgetAction
from tests.cast import Cast, Clock, store_rows
from tests.explain.past import BEGIN, days_live, policy_set

pytestmark = pytest.mark.django_db

DAYS, RUNS_FROM = 30, 8
FREE = {"topic_count_soft_limit": 0, "max_archive_share": 1.0}
FAST = {"half_life_days": 4.0, "prune_after_days": 5.0, "active_half_life_days": 8.0}
RULES = [
    {
        "name": "tools",
        "condition": {
            "all": [{"field": "kind", "op": "is", "value": "tool_output"}, {"field": "age", "op": ">", "value": "9d"}]
        },
        "action": "archive",
    },
    {
        "name": "mark",
        "condition": {"field": "title", "op": "matches", "value": "rent"},
        "action": "categorize",
        "category": "money",
    },
    {
        "name": "money",
        "condition": {
            "all": [
                {"field": "category", "op": "has", "value": "money"},
                {"field": "idle", "op": ">=", "value": "6d"},
                {"not": {"field": "retrievals", "op": ">", "value": 2}},
            ]
        },
        "action": "archive",
    },
    {
        "name": "keep",
        "condition": {
            "all": [{"field": "scope", "op": "within", "value": "/user"}, {"field": "score", "op": ">", "value": 0.9}]
        },
        "action": "pin",
    },
]

POLICIES: dict[str, dict[str, Any]] = {
    "half_life": {**FREE, **FAST},
    "static": {**FREE, "strategy": "static"},
    "active_forgetting": {**FREE, **FAST, "strategy": "active_forgetting"},
    "relevance": {
        **FREE,
        **FAST,
        "strategy": "relevance",
        "theta_summary": 0.75,
        "theta_detach": 0.6,
        "forget_salience_threshold": 0.5,
    },
    # With a small bump, the rule pins new topics alone: a pin counts from the beginning of a backtest.
    "rules": {**FREE, **FAST, "query_salience_bump": 0.1, "rules": RULES},
    "exempt": {**FREE, **FAST, "exempt_scopes": ["/user"], "exempt_kinds": ["decision"]},
    "few at a time": {**FREE, **FAST, "max_topics_for_forget_scan": 2},
    "gated": {**FREE, **FAST, "topic_count_soft_limit": 60},
    "below the limit": {
        **FREE,
        **FAST,
        "topic_count_soft_limit": 10_000,
        "rules": [
            {
                "name": "lives 6d",
                "condition": {"all": [{"field": "age", "op": ">=", "value": "6d"}]},
                "action": "archive",
            },
            *RULES,
        ],
    },
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_backtest_archives_what_the_runs_did(cast: Cast, clock: Clock, name: str):
    policy_set(**POLICIES[name])
    days_live(cast, clock, days=DAYS, runs_from=RUNS_FROM)
    done = Counter(
        at.date() for at in ForgetAction.objects.filter(action="archived", state="applied").values_list("at", flat=True)
    )
    counted = Counter(ForgetAction.objects.filter(state="applied").values_list("action", flat=True))
    assert sum(done.values()) > 10
    before = store_rows()
    got = cast.operator.post(
        "/v1/policies/backtest",
        {"start": (BEGIN + dt.timedelta(days=RUNS_FROM)).isoformat(), "end": clock.now.isoformat()},
    ).ok()
    archived = 0
    for day in got["days"]:
        archived += done[dt.datetime.fromisoformat(day["at"]).date()]
        assert day["archived"] == archived, day
    assert got["draft"]["archived"] == archived
    for action in ("summarized", "detached", "restored"):
        assert got[action] == counted[action], action
    # What its own runs had archived, no query returned afterwards.
    assert (got["draft"]["used_afterwards"], got["draft"]["missed_retrievals"]) == (0, 0)
    assert got["runs"] == DAYS - RUNS_FROM
    assert store_rows() == before


def test_a_policy_set_below_rules_its_own_ground(cast: Cast, clock: Clock):
    policy_set(**POLICIES["half_life"])
    policy_set("/work", **FREE, **FAST, strategy="active_forgetting")
    policy_set("/home", mode="off")
    days_live(cast, clock, days=DAYS, runs_from=RUNS_FROM)
    done = ForgetAction.objects.filter(action="archived", state="applied")
    scopes = set(done.values_list("topic__scope__path", flat=True))
    assert scopes == {"/work", "/user/alice"}
    window = {"start": (BEGIN + dt.timedelta(days=RUNS_FROM)).isoformat(), "end": clock.now.isoformat()}
    assert cast.operator.post("/v1/policies/backtest", window).ok()["draft"]["archived"] == done.count()
    below = cast.operator.post("/v1/policies/backtest", {**window, "scope": "/work"}).ok()
    assert below["draft"]["archived"] == done.filter(topic__scope__path="/work").count()
    assert below["topics"] == sum(topic["scope"] == "/work" for topic in _all_topics(cast))


def _all_topics(cast: Cast) -> list[Any]:
    return cast.reader.get("/v1/topics?rung=any&limit=200").ok()["items"]


def test_a_salience_that_an_operator_set_is_replayed(cast: Cast, clock: Clock):
    policy_set(**FREE, strategy="static")
    clock.set(BEGIN)
    raised, lowered, _left = (cast.agent.remember(f"note {name}", salience=0.5) for name in "abc")
    clock.forward(days=2)
    cast.operator.patch(f"/v1/topics/{lowered}", {"salience": 0.01}).ok()
    cast.operator.patch(f"/v1/topics/{raised}", {"salience": 0.02}).ok()
    clock.forward(days=2)
    cast.operator.patch(f"/v1/topics/{raised}", {"salience": 2}).ok()
    clock.forward(days=1)
    start = BEGIN + dt.timedelta(days=4, hours=1)
    got = cast.operator.post("/v1/policies/backtest", {"start": start.isoformat(), "end": clock.now.isoformat()}).ok()
    assert got["draft"]["archived"] == 1
