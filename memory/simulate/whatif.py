"""What-if: what a draft of a policy would forget, now and later, compared with the policies in force. Read-only.

The census counts classes of topics in one pass over Vitality, and Python computes what runs would do to each class. The
list of affected topics comes from the candidate query of runs.
"""

import datetime as dt
import json
import math
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memory.core.cursors import cursor_make, cursor_parse
from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import scope_within
from memory.forgetting.breaker import breaker_reason
from memory.forgetting.candidates import candidates_sql
from memory.forgetting.judge import Judge
from memory.forgetting.run_text import why_words
from memory.forgetting.soft_limit import gate_of
from memory.models import Rung
from memory.models.formulas_sql import number_sql, rung_label_sql
from memory.models.labels import label_sql
from memory.models.statements import dicts_read, rows_read
from memory.policy.partition import ALL_TOPICS, TopicSubset, partition_is_skipped, partitions_of
from memory.policy.snapshot import Policies
from memory.predicates.binding import Bound
from memory.simulate.census import CensusPart, PolicyView, TopicClass, census_take

BINS = 64
# On a logarithmic scale, the first bin is from 0 to this score.
LEAST_SHOWN = 1e-4
PROJECTIONS = (dt.timedelta(days=30), dt.timedelta(days=90))
MAX_PROJECTIONS = 12
# The steps down the ladder with the rung of each, and the step that counts topics that move up.
STEPS = {"summarize": Rung.SUMMARIZED, "detach": Rung.DETACHED, "archive": Rung.ARCHIVED}
CLIMB = "climb"


@dataclass(frozen=True, slots=True)
class Trial:
    """A draft for a scope, and the policies in force (``present``) with which it is compared. Both are evaluated for a
    run for ``event``."""

    scope: str
    present: Policies
    draft: Policies
    now: dt.datetime
    event: str = "cron"
    subset: TopicSubset = ALL_TOPICS

    @property
    def gate(self) -> str:
        """What scheduled runs under the draft skip at present because of the soft limit, as a sentence; empty if
        nothing. At most one query."""
        return gate_of(self.draft, self.scope, event="cron").sentence


@dataclass(frozen=True, slots=True)
class Histogram:
    """The number of topics in each bin, per rung. The bins are intervals of the score under the draft. Bin n lies
    between the edges n and n + 1."""

    edges: list[float]
    rungs: dict[str, list[int]]


@dataclass(slots=True)
class StepCounts:
    """How many topics a run would move under the draft, under the policies in force (``now``) and under another draft.
    ``gained`` topics are moved only under the draft, ``lost`` topics only under the policies in force."""

    draft: int = 0
    now: int = 0
    other: int = 0
    gained: int = 0
    lost: int = 0

    @property
    def difference(self) -> int:
        """How many more topics the draft moves; negative for fewer."""
        return self.draft - self.now

    def add(self, count: int, draft: bool, now: bool, other: bool) -> None:
        """Add ``count`` topics. The flags say which policies move them."""
        self.draft += count * draft
        self.now += count * now
        self.other += count * other
        self.gained += count * (draft and not now)
        self.lost += count * (now and not draft)


@dataclass(frozen=True, slots=True)
class TrialMoment:
    """What a run at ``at`` would do, by step, if no topic is used until then and no day is idle."""

    at: dt.datetime
    steps: dict[str, StepCounts] = field(default_factory=lambda: {name: StepCounts() for name in (*STEPS, CLIMB)})


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The counts of a trial: now (``today``) and at the ``projections``. ``active`` is the number of live topics.
    ``newly`` is the number of topics that the draft moves, but the policies in force do not move in the same way.
    ``held_because`` is why the circuit breaker would hold a run under the draft now; empty if it would not, or if the
    trial is about a part of the topics."""

    active: int
    newly: int
    held_because: str
    today: TrialMoment
    projections: list[TrialMoment]
    histogram: Histogram


def whatif(
    trial: Trial,
    *,
    at: Sequence[dt.datetime] | None = None,
    scale: str = "log",
    other: Policies | None = None,
    highest: float | None = None,
) -> WhatIf:
    """Return what runs under the draft would do. One query. Raises ``ValueRefused`` for too many times or a bad scale.

    ``at`` are the times of the projections, by default in 30 and in 90 days. ``other`` is a second draft. ``highest``
    is the upper end of the histogram. The histogram includes archived topics.
    """
    now, scope = trial.now, trial.scope
    times = [now, *([now + ahead for ahead in PROJECTIONS] if at is None else at)]
    if len(times) - 1 > MAX_PROJECTIONS:
        raise ValueRefused(
            f"`at` has {len(times) - 1} times; the limit is {MAX_PROJECTIONS}.", code=ProblemCode.TOO_LARGE, member="at"
        )
    knobs = trial.draft.knobs(scope)
    # The scores of the other two strategies are at most 1.
    possible = knobs.field_salience_max if knobs.strategy in ("half_life", "static") else 1.0
    edges = _edges(scale=scale, highest=possible if highest is None else min(highest, possible))
    bound = Bound()
    # Without another draft, the draft is compared twice. This costs nothing: equal expressions are computed once.
    compared = (trial.draft, trial.present, other or trial.draft)

    def view(policies: Policies, path: str, moment: dt.datetime) -> PolicyView:
        policy = policies.effective(path)
        if moment > now:
            policy = policy.projected(now)
        exempt = tuple(each for each in policy.knobs.exempt_scopes if scope_within(each, path))
        judge = Judge(policy, moment, trial.event, bound.bind)
        return PolicyView(judge, exempt, rests=partition_is_skipped(policy, scope))

    parts = [
        CensusPart(partition, [view(policies, partition.path, moment) for moment in times for policies in compared])
        for partition in partitions_of(trial.draft, scope, forgetting=False)
    ]
    classes = census_take(parts, edges=edges, bound=bound, subset=trial.subset)
    held_because = _held_because(trial, classes) if trial.subset == ALL_TOPICS else ""
    return _counted(classes, times, edges, held_because)


def _edges(*, scale: str, highest: float) -> list[float]:
    if scale == "linear":
        return [highest * place / BINS for place in range(BINS + 1)]
    if scale == "log":
        step = math.log(highest / LEAST_SHOWN) / (BINS - 1)
        return [0.0] + [LEAST_SHOWN * math.exp(step * place) for place in range(BINS)]
    raise ValueRefused(f"`scale` must be linear or log, not {scale!r}.", member="scale")


def _held_because(trial: Trial, classes: list[TopicClass]) -> str:
    leaving: Counter[str] = Counter()
    live: Counter[str] = Counter()
    for each in classes:
        if each.live:
            live[each.partition.path] += each.count
            # The draft is the first view.
            leaving[each.partition.policy.at] += each.count * (each.targets[0] >= Rung.ARCHIVED > each.rung)
    return breaker_reason(
        trial.draft, trial.scope, leaving, live=lambda part: live.total() if part is None else live[part.path]
    )


def _counted(classes: list[TopicClass], times: list[dt.datetime], edges: list[float], held_because: str) -> WhatIf:
    moments = [TrialMoment(at) for at in times]
    bins = {rung.label: [0] * BINS for rung in Rung}
    active = newly = 0
    for each in classes:
        bins[Rung(each.rung).label][each.bin] += each.count
        if not each.live:
            continue
        active += each.count
        newly += each.count * _moved_otherwise(each.rung, *each.targets[:2])
        for number, moment in enumerate(moments):
            draft, now, other = each.targets[3 * number : 3 * number + 3]
            for name, rung in STEPS.items():
                moved = (target == rung > each.rung for target in (draft, now, other))
                moment.steps[name].add(each.count, *moved)
            moment.steps[CLIMB].add(each.count, draft < each.rung, now < each.rung, other < each.rung)
    return WhatIf(active, newly, held_because, moments[0], moments[1:], Histogram(edges, bins))


def _moved_otherwise(rung: int, draft: int, present: int) -> bool:
    """Return whether the draft moves a topic and the policies in force do not move it in the same way."""
    return draft != present if draft > rung else draft < rung <= present


def affected_page(
    trial: Trial, *, only_new: bool = False, cursor: str | None = None, limit: int = 50
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the topics that a run under the draft would change, lowest score first, and the cursor of the next page.
    Two queries; one with ``only_new``. Raises ``ValueRefused``.

    A topic is ``new`` if the policies in force would not change it in the same way. ``only_new`` selects these topics.
    """
    bound = Bound()
    text, conditions = _affected_sql(trial, only_new=only_new, bound=bound)
    if cursor is not None:
        score, topic_id = cursor_parse(cursor, float, uuid.UUID)
        conditions.append(f"(c.score, c.topic_id) > ({number_sql(score)}, {bound.bind(topic_id)}::uuid)")
    # The details are computed only for the topics of the page.
    details = candidates_sql(
        trial.draft,
        trial.scope,
        event=trial.event,
        now=trial.now,
        topics="ARRAY(SELECT topic_id FROM page)",
        bound=bound,
        subset=trial.subset,
    )
    statement = f"""
        WITH page AS MATERIALIZED (
            SELECT c.topic_id, c.score FROM ({text}) c WHERE {" AND ".join(conditions)}
            ORDER BY c.score, c.topic_id LIMIT {limit + 1:d}
        )
        SELECT c.topic_id, {label_sql()} AS title, t.kind, s.path AS scope, c.action,
               {rung_label_sql("c.from_rung")} AS from_rung, {rung_label_sql("c.to_rung")} AS to_rung, c.score, c.why
        FROM ({details.text}) c
        JOIN memory_topic t ON t.id = c.topic_id
        JOIN memory_scope s ON s.id = t.scope_id
        ORDER BY c.score, c.topic_id"""
    rows = dicts_read(statement, bound.values)
    known = set() if only_new else _acted_on(trial, [row["topic_id"] for row in rows])
    for row in rows:
        row["why"] = json.loads(row["why"])
        row["why_words"] = why_words(row["why"], row["action"])
        row["new"] = (row["topic_id"], row["action"]) not in known
    last = rows[limit - 1] if len(rows) > limit else None
    return rows[:limit], cursor_make(last["score"], last["topic_id"]) if last else None


def affected_count(trial: Trial, *, only_new: bool = False, at_most: int) -> int:
    """Return the number of topics of ``affected_page``, at most ``at_most`` + 1. One query."""
    bound = Bound()
    text, conditions = _affected_sql(trial, only_new=only_new, bound=bound)
    chosen = f"SELECT 1 FROM ({text}) c WHERE {' AND '.join(conditions)} LIMIT {at_most + 1:d}"
    return int(rows_read(f"SELECT count(*) FROM ({chosen}) x", bound.values)[0][0])


def _affected_sql(trial: Trial, *, only_new: bool, bound: Bound) -> tuple[str, list[str]]:
    """Return the candidate query of the draft, and conditions on its rows ``c``."""
    present, draft, scope = trial.present, trial.draft, trial.scope
    # The index contains fade keys for the half-lives and clocks in force. A draft that changes these cannot use it.
    trusted = all(node.knobs.keys == present.knobs(node.scope).keys for node in draft.nodes(scope))
    candidates = candidates_sql(
        draft, scope, event=trial.event, now=trial.now, keys_outdated=not trusted, bound=bound, subset=trial.subset
    )
    if not only_new:
        return candidates.text, ["true"]
    in_force = candidates_sql(present, scope, event=trial.event, now=trial.now, bound=bound, subset=trial.subset)
    same = f"SELECT 1 FROM ({in_force.text}) p WHERE p.topic_id = c.topic_id AND p.action = c.action"
    return candidates.text, [f"NOT EXISTS ({same})"]


def _acted_on(trial: Trial, topics: list[uuid.UUID]) -> set[tuple[Any, ...]]:
    query = candidates_sql(trial.present, trial.scope, event=trial.event, now=trial.now, topics=topics)
    return set(rows_read(f"SELECT topic_id, action FROM ({query.text}) c", query.bound.values))
