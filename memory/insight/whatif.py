"""What-if: what a draft of a policy would forget, now and later, compared with the policy in force. Nothing is written.

One pass over Vitality counts classes of equal topics (``census``). For each class, the module computes what runs under
both policies would do at every time. The list of topics comes from the candidate query of runs.
"""

import datetime as dt
import itertools
import json
import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from memory.core.cursors import cursor_make, cursor_parse
from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import scope_within
from memory.forgetting.candidates import candidates_sql
from memory.forgetting.judge import Judge
from memory.insight.census import CensusPart, PolicyView, TopicClass, census_take
from memory.models import Rung
from memory.models.expressions import number_sql
from memory.policy.partition import ALL_TOPICS, TopicSubset, partition_is_skipped, partitions_of
from memory.policy.snapshot import Policies
from memory.predicates.binding import Bound

BINS = 64
# The end of the first bin of a logarithmic scale, which begins at 0.
LEAST_SHOWN = 1e-4
PROJECTIONS = (dt.timedelta(days=30), dt.timedelta(days=90))
MOST_PROJECTIONS = 12
STEPS = {"summarize": int(Rung.SUMMARIZED), "detach": int(Rung.DETACHED), "archive": int(Rung.ARCHIVED)}


@dataclass(frozen=True, slots=True)
class Histogram:
    """The scores of the topics of a scope under the draft: the number of topics per rung in each bin. Bin n lies
    between the edges n and n + 1."""

    edges: list[float]
    rungs: dict[str, list[int]]


@dataclass(slots=True)
class StepCounts:
    """How many topics a run would move to one rung, or back up: under the policy in force (``now``), under the
    ``draft``, only under the draft (``gained``), and only under the policy in force (``lost``)."""

    now: int = 0
    draft: int = 0
    gained: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Projection:
    """What a run at ``at`` would do if nothing is used until then and every day counts: how many topics it would move
    to each rung under the policy in force (``now``), the ``draft`` and the ``other`` draft. ``climbs`` are the topics
    that it would move back up."""

    at: dt.datetime
    now: dict[str, int]
    draft: dict[str, int]
    other: dict[str, int] = field(default_factory=dict)
    climbs: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("now", "draft", "other"), 0))


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The counts for a draft.

    ``steps`` counts the topics that a run would move to each lower rung, ``climbs`` those that it would move back up.
    ``other`` and ``other_climbs`` are the same for the other draft. ``standing`` is the present number of topics on
    each rung. ``newly`` counts the topics that the draft moves and the policy in force does not move in the same way;
    rule actions other than moves do not count.
    """

    active: int
    steps: dict[str, StepCounts]
    projections: list[Projection]
    histogram: Histogram
    standing: dict[str, int]
    other: dict[str, int]
    newly: int
    climbs: StepCounts
    other_climbs: int


def histogram_edges(*, scale: str, highest: float) -> list[float]:
    """Return the edges of ``BINS`` bins from 0 to ``highest``. The first bin of a log scale ends at ``LEAST_SHOWN``.

    Raises ``ValueRefused`` for a scale other than ``linear`` and ``log``.
    """
    if scale == "linear":
        return [highest * place / BINS for place in range(BINS + 1)]
    if scale == "log":
        step = math.log(highest / LEAST_SHOWN) / (BINS - 1)
        return [0.0] + [LEAST_SHOWN * math.exp(step * place) for place in range(BINS)]
    raise ValueRefused(f"`scale` must be linear or log, not {scale!r}.", code=ProblemCode.UNKNOWN_CHOICE)


def whatif(
    scope: str,
    *,
    present: Policies,
    draft: Policies,
    now: dt.datetime,
    at: Sequence[dt.datetime] | None = None,
    event: str = "cron",
    scale: str = "log",
    other: Policies | None = None,
    subset: TopicSubset = ALL_TOPICS,
    highest: float | None = None,
) -> WhatIf:
    """Return what runs under ``draft`` would do in ``scope``, compared with runs under ``present``. One query.

    ``at`` are the times of the projections, by default in 30 and in 90 days. The counts are of topics that a run would
    move, without topics that are already on the rung. The histogram includes archived topics. ``other`` is a second
    draft for ``scope``. ``subset`` restricts the topics. ``highest`` is the end of the histogram, by default the
    highest possible score; the last bin includes higher scores. Raises ``ValueRefused`` for too many times or an
    unknown scale.
    """
    moments = [now + ahead for ahead in PROJECTIONS] if at is None else list(at)
    if len(moments) > MOST_PROJECTIONS:
        raise ValueRefused(
            f"`at` has {len(moments)} times; the limit is {MOST_PROJECTIONS}.", code=ProblemCode.TOO_MANY_MOMENTS
        )
    knobs = draft.knobs(scope)
    # The scores of the other two strategies end at 1.
    possible = knobs.field_salience_max if knobs.strategy in ("half_life", "static") else 1.0
    edges = histogram_edges(scale=scale, highest=possible if highest is None else min(highest, possible))
    bound = Bound()
    # Each time has three views. Without another draft, the draft is the third view too; this costs nothing, because
    # equal expressions are computed once.
    compared = (draft, present, other or draft)

    def view(policies: Policies, path: str, moment: dt.datetime) -> PolicyView:
        policy = policies.effective(path)
        if moment > now:
            policy = policy.projected(now)
        exempt = tuple(each for each in policy.knobs.exempt_scopes if scope_within(each, path))
        return PolicyView(Judge(policy, moment, event, bound.bind), exempt, rests=partition_is_skipped(policy, scope))

    parts = [
        CensusPart(
            partition, [view(policies, partition.path, moment) for moment in (now, *moments) for policies in compared]
        )
        for partition in partitions_of(draft, scope, forgetting=False)
    ]
    return _counted(census_take(parts, edges=edges, bound=bound, subset=subset), moments, edges)


def _counted(classes: list[TopicClass], moments: list[dt.datetime], edges: list[float]) -> WhatIf:
    steps = {name: StepCounts() for name in STEPS}
    later = [Projection(moment, _steps_empty(), _steps_empty(), _steps_empty()) for moment in moments]
    bins = {rung.label: [0] * BINS for rung in Rung}
    standing = {rung.label: 0 for rung in Rung}
    other_steps = _steps_empty()
    climbs = StepCounts()
    active = newly = other_climbs = 0
    for each in classes:
        standing[Rung(each.rung).label] += each.count
        bins[Rung(each.rung).label][each.bin] += each.count
        if not each.live:
            continue
        active += each.count
        newly += each.count * _moved_otherwise(each.rung, *each.targets[:2])
        for name, rung in STEPS.items():
            draft, now, other = (target == rung > each.rung for target in each.targets[:3])
            _step_count(steps[name], each.count, now=now, draft=draft)
            other_steps[name] += each.count * other
        draft, now, other = (target < each.rung for target in each.targets[:3])
        _step_count(climbs, each.count, now=now, draft=draft)
        other_climbs += each.count * other
        for number, projection in enumerate(later, start=1):
            targets = each.targets[3 * number : 3 * number + 3]
            for target, policy in zip(targets, ("draft", "now", "other"), strict=True):
                if target > each.rung:
                    getattr(projection, policy)[_NAMES[target]] += each.count
                elif target < each.rung:
                    projection.climbs[policy] += each.count
    return WhatIf(active, steps, later, Histogram(edges, bins), standing, other_steps, newly, climbs, other_climbs)


def _step_count(step: StepCounts, count: int, *, now: bool, draft: bool) -> None:
    step.now += count * now
    step.draft += count * draft
    step.gained += count * (draft and not now)
    step.lost += count * (now and not draft)


def _moved_otherwise(rung: int, draft: int, present: int) -> bool:
    """Return whether the draft moves a topic and the policy in force does not move it in the same way."""
    return draft != present if draft > rung else draft < rung <= present


_NAMES = {step: name for name, step in STEPS.items()}


def _steps_empty() -> dict[str, int]:
    return dict.fromkeys(STEPS, 0)


@dataclass(frozen=True, slots=True)
class Affected:
    """One topic that a run under the draft would change. ``new`` means that the policy in force would not act in the
    same way."""

    topic_id: uuid.UUID
    title: str
    kind: str
    scope: str
    action: str
    from_rung: int
    to_rung: int
    score: float
    why_json: str
    new: bool

    @property
    def why(self) -> dict[str, Any]:
        """The rule or the threshold that selects the topic, with the score and the policy."""
        reasons: dict[str, Any] = json.loads(self.why_json)
        return reasons


def affected_page(
    scope: str,
    *,
    present: Policies,
    draft: Policies,
    now: dt.datetime,
    event: str = "cron",
    cursor: str | None = None,
    limit: int = 50,
    only_new: bool = False,
    subset: TopicSubset = ALL_TOPICS,
) -> tuple[list[Affected], str | None]:
    """Return topics that a run under ``draft`` would change, lowest score first, and the cursor of the next page.

    Two queries: the candidate query of the draft, and that of the policy in force for the topics of the page. With
    ``only_new`` a single query. Raises ``ValueRefused`` for an invalid cursor.
    """
    bound = Bound()
    text, conditions = _affected_sql(
        scope, present, draft, event=event, now=now, only_new=only_new, subset=subset, bound=bound
    )
    if cursor is not None:
        score, topic_id = cursor_parse(cursor, float, uuid.UUID)
        conditions.append(f"(c.score, c.topic_id) > ({number_sql(score)}, {bound.bind(topic_id)}::uuid)")
    # The details are computed only for the topics of the page.
    details = candidates_sql(
        draft, scope, event=event, now=now, topics="ARRAY(SELECT topic_id FROM page)", bound=bound, subset=subset
    )
    statement = f"""
        WITH page AS MATERIALIZED (
            SELECT c.topic_id, c.score FROM ({text}) c WHERE {" AND ".join(conditions) or "true"}
            ORDER BY c.score, c.topic_id LIMIT {limit + 1:d}
        )
        SELECT c.topic_id, t.title, t.kind, s.path, c.action, c.from_rung, c.to_rung, c.score, c.why
        FROM ({details.text}) c
        JOIN memory_topic t ON t.id = c.topic_id
        JOIN memory_scope s ON s.id = t.scope_id
        ORDER BY c.score, c.topic_id"""
    with connection.cursor() as database:
        database.execute(statement, bound.values)
        found = database.fetchall()
    known = set() if only_new else _acted_on(present, scope, [row[0] for row in found], event=event, now=now)
    rows = list(itertools.starmap(Affected, ((*row, (row[0], row[4]) not in known) for row in found)))
    following = None
    if len(rows) > limit:
        last = rows[limit - 1]
        following = cursor_make(last.score, last.topic_id)
    return rows[:limit], following


def affected_count(
    scope: str,
    *,
    present: Policies,
    draft: Policies,
    now: dt.datetime,
    event: str = "cron",
    only_new: bool = False,
    subset: TopicSubset = ALL_TOPICS,
    at_most: int | None = None,
) -> int:
    """Return the number of topics of ``affected_page``, at most ``at_most`` + 1. One query."""
    bound = Bound()
    text, conditions = _affected_sql(
        scope, present, draft, event=event, now=now, only_new=only_new, subset=subset, bound=bound
    )
    most = "" if at_most is None else f" LIMIT {at_most + 1:d}"
    statement = f"""
        SELECT count(*) FROM (SELECT 1 FROM ({text}) c WHERE {" AND ".join(conditions) or "true"}{most}) x"""
    with connection.cursor() as database:
        database.execute(statement, bound.values)
        return int(database.fetchone()[0])


def _affected_sql(
    scope: str,
    present: Policies,
    draft: Policies,
    *,
    event: str,
    now: dt.datetime,
    only_new: bool,
    subset: TopicSubset,
    bound: Bound,
) -> tuple[str, list[str]]:
    """Return the candidate query of the draft, and conditions on its rows ``c``."""
    # The index contains fade keys for the half-lives and clocks in force. A draft that changes these cannot use it.
    trusted = all(node.knobs.keys == present.knobs(node.scope).keys for node in draft.nodes(scope))
    candidates = candidates_sql(draft, scope, event=event, now=now, draft=not trusted, bound=bound, subset=subset)
    if not only_new:
        return candidates.text, []
    in_force = candidates_sql(present, scope, event=event, now=now, bound=bound, subset=subset)
    return candidates.text, [
        f"NOT EXISTS (SELECT 1 FROM ({in_force.text}) p WHERE p.topic_id = c.topic_id AND p.action = c.action)"
    ]


def _acted_on(
    policies: Policies, scope: str, topics: list[uuid.UUID], *, event: str, now: dt.datetime
) -> set[tuple[uuid.UUID, str]]:
    query = candidates_sql(policies, scope, event=event, now=now, topics=topics)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT topic_id, action FROM ({query.text}) c", query.bound.values)
        return {(topic_id, action) for topic_id, action in cursor.fetchall()}
