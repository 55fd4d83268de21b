"""A small past: topics made and asked for day by day under a clock that moves, and runs at the end of each day."""

import datetime as dt
import random
from typing import Any

from memory.forgetting.runs import run_start
from memory.models import ForgetRun
from memory.policy.save import policy_save
from memory.recall.access_fold import accesses_fold
from tests.cast import Cast, Clock, principal_like

BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
KINDS = ("observation", "tool_output", "decision", "identity", "")
SCOPES = ("/home", "/work", "/user/alice")


def policy_set(
    scope: str = "/", /, *, preset: str | None = None, rules: list[Any] | None = None, **values: Any
) -> None:
    """Make a version of the policy of ``scope`` with exactly this."""
    policy_save(
        scope, preset=preset, values=values, rules=rules, author="test:operator", reason="for the test", now=BEGIN
    )


def folded(now: dt.datetime) -> None:
    """Fold every access that is waiting."""
    while accesses_fold(now=now):
        pass


def run_now(clock: Clock, scope: str = "/") -> ForgetRun:
    """Make the scheduled run over ``scope`` at the present moment of the clock; it must come to its end."""
    folded(clock.now)
    run = run_start(scope, event="cron", dry_run=False, principal=principal_like("operator"), now=clock.now)
    assert run.status == ForgetRun.Status.DONE, (run.status, run.held_because, run.gate)
    return run


def days_live(cast: Cast, clock: Clock, *, days: int, runs_from: int, seed: int = 1) -> list[str]:
    """Let ``days`` pass from ``BEGIN``: each brings topics and questions, and from ``runs_from`` on begins with a run.

    Returns the ids of the topics. Questions go to a few favourites mostly, so that the rest fades.
    """
    rng = random.Random(seed)
    titles: list[str] = []
    made: list[str] = []
    for day in range(days):
        clock.set(BEGIN + dt.timedelta(days=day))
        if day >= runs_from:
            run_now(clock)
        clock.forward(hours=2)
        items = [_item(len(titles) + more, rng) for more in range(3)]
        titles += [item["title"] for item in items]
        made += [result["topic_id"] for result in cast.agent.post("/v1/ingest/batch", items).ok()["results"]]
        for _ in range(2):
            clock.forward(hours=3, seconds=rng.random())
            cast.agent.query(titles[int(len(titles) * rng.random() ** 3)], top_k=3)
        folded(clock.now)
    clock.set(BEGIN + dt.timedelta(days=days))
    return made


def _item(number: int, rng: random.Random) -> dict[str, Any]:
    return {
        "placement": "new_topic",
        "title": f"note {number} on {rng.choice(('tea', 'rent', 'paint', 'trains'))}",
        "topic_kind": rng.choice(KINDS),
        "scope": rng.choice(SCOPES),
        "salience": rng.choice((1.0, 1.0, 0.4, 0.03)),
        "pinned": rng.random() < 0.05,
    }
