"""Backtest: what a draft of a policy would have forgotten in the past, and how often the forgotten topics were needed.

The access log is replayed under the draft with a run each day. There are two baselines: forgetting nothing, and
archiving the same number of random topics on the same days. Nothing is written. docs/regret.md defines all figures and
the limits of a replay.
"""

import datetime as dt
from contextlib import closing

import numpy as np
from django.db import transaction

from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.forgetting.gate import limit_scope
from memory.insight.replay import SALIENCE_SET, SHOWN, Bools, Ints, Ruling, World
from memory.insight.replay_load import Events, topics_load
from memory.insight.replies import BacktestOutcome, BacktestReply
from memory.policy.partition import partitions_of
from memory.policy.snapshot import Policies

MOST_RUNS = 1_000
# The random baseline is the mean of so many draws.
DRAWS = 5

NOTES = (
    "The log holds what was retrieved under the policies of that time: archived topics were retrieved less often.",
    "Pins, kinds, categories and texts are those of today; topics that were released or merged are left out.",
    "Reinforcement uses the bump of the draft. Repeats that did not count when they were logged do not count here.",
    "Idle days do not count, unless clock is wall.",
    "max_archive_share and the mode review are not applied: every run counts as approved.",
)


def backtest(
    policies: Policies,
    scope: str,
    *,
    start: dt.datetime,
    end: dt.datetime,
    now: dt.datetime,
    step: dt.timedelta = dt.timedelta(days=1),
    seed: int = 1,
) -> BacktestReply:
    """Replay ``policies``, a draft or those in force, over the access log of ``scope`` from ``start`` to ``end``.

    Topics start with the salience of their creation and are reinforced by the log up to ``start``. Then a run happens
    at ``start`` and after each ``step``. Two queries, read in parts. The memory grows with the topics (about 150 bytes
    each), not with the log. An ``end`` in the future is replaced by ``now``. Raises ``ValueRefused`` if ``start`` is in
    the future, if ``end`` is not after ``start``, and for more than ``MOST_RUNS`` runs.
    """
    if start >= now:
        raise ValueRefused("`start` must be in the past.", code=ProblemCode.INVALID_PERIOD)
    if end <= start:
        raise ValueRefused("`end` must be later than `start`.", code=ProblemCode.INVALID_PERIOD)
    end = min(end, now)
    if step <= dt.timedelta(0) or (end - start) / step > MOST_RUNS:
        raise ValueRefused(
            f"This would take more than {MOST_RUNS:,} runs. Choose a shorter period or a longer step.",
            code=ProblemCode.INVALID_PERIOD,
        )
    partitions = partitions_of(policies, scope, forgetting=False)
    rulings = [
        Ruling(
            partition.policy.knobs,
            partition.policy.rules.on("cron"),
            limit_scope(partition.policy),
            partition.policy.time,
        )
        for partition in partitions
    ]
    # Server-side cursors need a transaction.
    with transaction.atomic():
        keys, topics = topics_load(partitions, rulings, end=end)
        world = World(topics, rulings)
        reply = _reply_empty(scope, start, end, topics=len(keys))
        with closing(Events(keys, scope, knobs=policies.knobs(scope), end=end)) as events:
            _replay(reply, world, events, policies, step=step, seed=seed)
    return reply


def _reply_empty(scope: str, start: dt.datetime, end: dt.datetime, *, topics: int) -> BacktestReply:
    """Return a reply in which all counts but ``topics`` are zero."""
    outcome: BacktestOutcome = {"archived": 0.0, "used_afterwards": 0.0, "missed_retrievals": 0.0, "saved": 0.0}
    return {
        "scope": scope,
        "start": start,
        "end": end,
        "runs": 0,
        "topics": topics,
        "retrievals": 0,
        "draft": outcome,
        "no_forgetting": outcome,
        "by_lot": outcome,
        "released": 0,
        "summarized": 0,
        "detached": 0,
        "restored": 0,
        "archived_share": 0.0,
        "days": [],
        "notes": list(NOTES),
        "sentence": "",
    }


def _replay(
    reply: BacktestReply, world: World, events: Events, policies: Policies, *, step: dt.timedelta, seed: int
) -> None:
    """Replay the events and the runs, and fill in ``reply``."""
    knobs = policies.knobs(reply["scope"])
    for topics, at, what, _access, value in events.until(reply["start"].timestamp()):
        world.events_apply(topics, at, what, value)
    draft = _Misses(world.forgotten)
    draws = [_RandomDraw(world, np.random.default_rng([seed, draw])) for draw in range(DRAWS)]
    archived_seconds = topic_seconds = 0.0
    moment = reply["start"]
    while moment < reply["end"]:
        now, following = moment.timestamp(), min(moment + step, reply["end"])
        existing = int(world.created_by(now).sum())
        effect = world.run(now, most=knobs.max_topics_for_forget_scan)
        reply["released"] += effect.released
        reply["summarized"] += effect.summarized
        reply["detached"] += effect.detached
        reply["restored"] += effect.restored
        for draw in draws:
            draw.archive(len(effect.forgotten), world, now)
        archived = int(world.forgotten.sum())
        missed_before = draft.missed, sum(draw.misses.missed for draw in draws)
        for topics, at, what, access, value in events.until(following.timestamp()):
            reply["retrievals"] += len(np.unique(access[what <= SHOWN]))
            for misses in (draft, *(draw.misses for draw in draws)):
                misses.count(topics, what, access)
            world.events_apply(topics, at, what, value)
        reply["days"].append(
            {
                "at": moment,
                "topics": existing,
                "archived": archived,
                "missed": draft.missed - missed_before[0],
                "missed_by_lot": (sum(draw.misses.missed for draw in draws) - missed_before[1]) / DRAWS,
            }
        )
        seconds = (following - moment).total_seconds()
        archived_seconds += archived * seconds
        topic_seconds += existing * seconds
        moment = following
    reply["runs"] = len(reply["days"])
    saved = archived_seconds / topic_seconds if topic_seconds else 0.0
    archived = int(world.forgotten.sum())
    reply["archived_share"] = archived / reply["topics"] if reply["topics"] else 0.0
    reply["draft"] = {
        "archived": archived,
        "used_afterwards": draft.used,
        "missed_retrievals": draft.missed,
        "saved": saved,
    }
    # The random baseline archives the same number of topics on the same days, so its ``saved`` is the same.
    reply["by_lot"] = {
        "archived": float(np.mean([draw.misses.forgotten.sum() for draw in draws])),
        "used_afterwards": float(np.mean([draw.misses.used for draw in draws])),
        "missed_retrievals": float(np.mean([draw.misses.missed for draw in draws])),
        "saved": saved,
    }
    reply["sentence"] = _sentence(reply)


def _sentence(reply: BacktestReply) -> str:
    """Return the outcome as a short text."""
    if not reply["topics"]:
        return "This scope had no topics in this period."
    archived = int(reply["draft"]["archived"])
    if not archived:
        return f"Of {reply['topics']:,} topics it would have archived none."
    topics, draft, random = reply["topics"], reply["draft"], reply["by_lot"]
    return (
        f"Of {topics:,} topics it would have archived {archived:,} ({archived / topics:.0%}), of which "
        f"{int(draft['used_afterwards']):,} were used afterwards; {int(draft['missed_retrievals']):,} of "
        f"{reply['retrievals']:,} retrievals would have missed something. On average, {draft['saved']:.0%} of the "
        f"topics would have been archived. With as many topics archived at random, {random['used_afterwards']:,.0f} "
        f"would have been used afterwards and {random['missed_retrievals']:,.0f} retrievals would have missed "
        "something."
    )


class _Misses:
    """Counts the uses of archived and released topics. ``forgotten`` marks these topics; the replay changes this
    array."""

    def __init__(self, forgotten: Bools) -> None:
        self.forgotten = forgotten
        self.needed = np.zeros(len(forgotten), dtype=np.bool_)
        self.missed = 0

    @property
    def used(self) -> int:
        """How many topics were retrieved, looked up or restored after they had been archived."""
        return int(self.needed.sum())

    def count(self, topics: Ints, what: Ints, access: Ints) -> None:
        """Count the events of a period: the topic, the type and the access of each."""
        forgotten = self.forgotten[topics] & (what != SALIENCE_SET)
        self.needed[topics[forgotten]] = True
        # A lookup by id finds archived topics, so it misses nothing.
        self.missed += len(np.unique(access[forgotten & (what <= SHOWN)]))


class _RandomDraw:
    """One draw of the random baseline. It archives random topics among those that a run could archive."""

    def __init__(self, world: World, random: np.random.Generator) -> None:
        self.random = random
        self.misses = _Misses(np.zeros(len(world.forgotten), dtype=np.bool_))
        self.protected = world.topics.excluded | world.topics.exempt | world.topics.pinned

    def archive(self, count: int, world: World, now: float) -> None:
        left = np.flatnonzero(world.created_by(now) & ~self.misses.forgotten & ~self.protected)
        if count and len(left):
            self.misses.forgotten[self.random.choice(left, size=min(count, len(left)), replace=False)] = True
