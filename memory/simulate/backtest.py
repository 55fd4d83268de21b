"""Backtest: what a draft of a policy would have forgotten in the past, and how often the forgotten topics were needed.

Read-only. docs/regret.md defines all figures and the limits of a replay.
"""

import datetime as dt
from collections import Counter
from contextlib import closing

import numpy as np
from django.db import transaction

from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.forgetting.soft_limit import limit_scope
from memory.models.labels import label_sql
from memory.models.statements import rows_read
from memory.policy.partition import partitions_of
from memory.policy.snapshot import Policies
from memory.predicates.binding import Bound, path_sql, scope_sql
from memory.simulate.replay import SALIENCE_SET, SHOWN, Bools, Ints, Ruling, World
from memory.simulate.replay_load import Events, topics_load
from memory.simulate.replies import BacktestDay, BacktestNeeded, BacktestReply

MAX_RUNS = 1_000
# The random baseline is the mean of this many draws.
DRAWS = 5

# How many of the topics that were used after they had been archived are named.
NAMED = 10

_NEEDED_SQL = """
SELECT t.id::text, {label}, s.path, n.uses, a.at, coalesce(a.query, '')
FROM unnest({keys}::bigint[], {uses}::int[], {accesses}::bigint[]) AS n (key, uses, access)
JOIN memory_topic t ON uuid_hash_extended(t.id, 0) = n.key AND {within}
JOIN memory_scope s ON s.id = t.scope_id
LEFT JOIN memory_accesslog a ON a.id = n.access AND {asked_within}
ORDER BY n.uses DESC, t.id
"""

NOTES = (
    "The log holds what was recalled under the policies of that time: archived memories were recalled less often.",
    "Pins, kinds, categories and texts are those of today; memories that were released or merged are left out.",
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
    """Replay ``policies`` over the access log of ``scope`` from ``start`` to ``end`` or ``now``, whichever is earlier.
    Runs take place at ``start`` and after each ``step``. Three queries; about 200 bytes of memory per topic. Raises
    ``ValueRefused`` for a bad period and for more than ``MAX_RUNS`` runs."""
    if start >= now:
        raise ValueRefused("`start` must be in the past.", code=ProblemCode.INVALID_PERIOD, member="start")
    if end <= start:
        raise ValueRefused("`end` must be later than `start`.", code=ProblemCode.INVALID_PERIOD, member="end")
    end = min(end, now)
    if step <= dt.timedelta(0) or (end - start) / step > MAX_RUNS:
        raise ValueRefused(
            f"This would take more than {MAX_RUNS:,} runs. Choose a shorter period or a longer step.",
            code=ProblemCode.INVALID_PERIOD,
            member="step",
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
        with closing(Events(keys, scope, knobs=policies.knobs(scope), end=end)) as events:
            for ids, at, what, _access, value in events.until(start.timestamp()):
                world.events_apply(ids, at, what, value)
            most = policies.knobs(scope).max_topics_for_forget_scan
            return _replay(world, events, scope, start=start, end=end, step=step, most=most, seed=seed)


def _replay(
    world: World,
    events: Events,
    scope: str,
    *,
    start: dt.datetime,
    end: dt.datetime,
    step: dt.timedelta,
    most: int,
    seed: int,
) -> BacktestReply:
    topics = len(world.forgotten)
    draft = _Misses(world.forgotten)
    draws = [_RandomDraw(world, np.random.default_rng([seed, draw])) for draw in range(DRAWS)]
    totals: Counter[str] = Counter()
    archived_seconds = topic_seconds = 0.0
    days: list[BacktestDay] = []
    moment = start
    while moment < end:
        now, following = moment.timestamp(), min(moment + step, end)
        existing = int(world.created_by(now).sum())
        effect = world.run(now, most=most)
        for name in ("released", "summarized", "detached", "restored"):
            totals[name] += getattr(effect, name)
        for draw in draws:
            draw.archive(len(effect.forgotten), world, now)
        archived = int(world.forgotten.sum())
        missed, by_lot = draft.missed, sum(draw.misses.missed for draw in draws)
        for ids, at, what, access, value in events.until(following.timestamp()):
            totals["retrievals"] += len(np.unique(access[what <= SHOWN]))
            for misses in (draft, *(draw.misses for draw in draws)):
                misses.count(ids, what, access)
            world.events_apply(ids, at, what, value)
        days.append(
            {
                "at": moment,
                "topics": existing,
                "archived": archived,
                "missed": draft.missed - missed,
                "missed_by_lot": (sum(draw.misses.missed for draw in draws) - by_lot) / DRAWS,
            }
        )
        seconds = (following - moment).total_seconds()
        archived_seconds += archived * seconds
        topic_seconds += existing * seconds
        moment = following
    saved = archived_seconds / topic_seconds if topic_seconds else 0.0
    archived = int(world.forgotten.sum())
    reply: BacktestReply = {
        "scope": scope,
        "start": start,
        "end": end,
        "runs": len(days),
        "topics": topics,
        "retrievals": totals["retrievals"],
        "draft": {
            "archived": archived,
            "used_afterwards": draft.used,
            "missed_retrievals": draft.missed,
            "saved": saved,
        },
        "no_forgetting": {"archived": 0.0, "used_afterwards": 0.0, "missed_retrievals": 0.0, "saved": 0.0},
        # The random baseline archives the same number of topics on the same days, so the saved share is the same.
        "by_lot": {
            "archived": float(np.mean([draw.misses.forgotten.sum() for draw in draws])),
            "used_afterwards": float(np.mean([draw.misses.used for draw in draws])),
            "missed_retrievals": float(np.mean([draw.misses.missed for draw in draws])),
            "saved": saved,
        },
        "released": totals["released"],
        "summarized": totals["summarized"],
        "detached": totals["detached"],
        "restored": totals["restored"],
        "archived_share": archived / topics if topics else 0.0,
        "needed": _needed(draft, events.keys, scope),
        "days": days,
        "notes": list(NOTES),
        "sentence": "",
    }
    return {**reply, "sentence": _sentence(reply)}


def _sentence(reply: BacktestReply) -> str:
    if not reply["topics"]:
        return "This scope had no memories in this period."
    archived = int(reply["draft"]["archived"])
    if not archived:
        return f"Of {reply['topics']:,} memories it would have archived none."
    topics, draft, random = reply["topics"], reply["draft"], reply["by_lot"]
    return (
        f"Of {topics:,} memories it would have archived {archived:,} ({archived / topics:.0%}), of which "
        f"{int(draft['used_afterwards']):,} were used afterwards; {int(draft['missed_retrievals']):,} of "
        f"{reply['retrievals']:,} recalls would have missed something. On average, {draft['saved']:.0%} of the "
        f"memories would have been archived. With as many archived at random, {random['used_afterwards']:,.0f} would "
        f"have been used afterwards and {random['missed_retrievals']:,.0f} recalls would have missed "
        "something."
    )


class _Misses:
    """Counts the uses of forgotten topics. The replay changes the array ``forgotten``, which marks these topics."""

    def __init__(self, forgotten: Bools) -> None:
        self.forgotten = forgotten
        self.uses = np.zeros(len(forgotten), dtype=np.int32)
        # The first access to each topic; 0 for none.
        self.first = np.zeros(len(forgotten), dtype=np.int64)
        self.missed = 0

    @property
    def used(self) -> int:
        """How many topics were retrieved, looked up or restored after they had been archived."""
        return int(np.count_nonzero(self.uses))

    def count(self, topics: Ints, what: Ints, access: Ints) -> None:
        """Count the events of a period. The arrays contain the topic, the type and the access id of each event."""
        forgotten = self.forgotten[topics] & (what != SALIENCE_SET)
        np.add.at(self.uses, topics[forgotten], 1)
        logged = forgotten & (access > 0) & (self.first[topics] == 0)
        # Of several values for one topic, numpy keeps the last.
        self.first[topics[logged][::-1]] = access[logged][::-1]
        # A lookup by id finds archived topics, so it misses nothing.
        self.missed += len(np.unique(access[forgotten & (what <= SHOWN)]))


def _needed(draft: _Misses, keys: Ints, scope: str) -> list[BacktestNeeded]:
    """Return the topics that were used most often after the draft had archived them. One query, or none."""
    most = np.argsort(-draft.uses, kind="stable")[:NAMED]
    chosen = most[draft.uses[most] > 0]
    if not len(chosen):
        return []
    bound = Bound()
    sql = _NEEDED_SQL.format(
        label=label_sql(),
        keys=bound.bind(keys[chosen].tolist()),
        uses=bound.bind(draft.uses[chosen].tolist()),
        accesses=bound.bind(draft.first[chosen].tolist()),
        within=scope_sql("t.scope_id", scope, bound.bind),
        asked_within=path_sql("a.scope", scope, bound.bind),
    )
    return [
        {"topic_id": topic_id, "title": title, "scope": path, "uses": uses, "at": at, "query": query}
        for topic_id, title, path, uses, at, query in rows_read(sql, bound.values)
    ]


class _RandomDraw:
    """One draw of the random baseline, among the topics that a run could archive."""

    def __init__(self, world: World, random: np.random.Generator) -> None:
        self.random = random
        self.misses = _Misses(np.zeros(len(world.forgotten), dtype=np.bool_))
        self.protected = world.topics.excluded | world.topics.exempt | world.topics.pinned

    def archive(self, count: int, world: World, now: float) -> None:
        left = np.flatnonzero(world.created_by(now) & ~self.misses.forgotten & ~self.protected)
        if count and len(left):
            self.misses.forgotten[self.random.choice(left, size=min(count, len(left)), replace=False)] = True
