"""What-if: what a draft of a policy would forget, now and later, beside the policy in force. Nothing is written.

One pass over Vitality judges every topic under both policies at every moment asked for, with the expressions that a run
is made of (``judgement``), and counts the outcomes. The list of topics is the candidate query itself.
"""

import datetime as dt
import itertools
import json
import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from memory.domain.cursors import cursor_make, cursor_parse
from memory.domain.errors import ValueRefused
from memory.domain.scopes import scope_within
from memory.forgetting.candidates import candidates_sql
from memory.forgetting.ground import Ground, grounds_of, scope_sql
from memory.forgetting.judgement import Bound, Judge, float_sql
from memory.models import Rung
from memory.policy.snapshot import Policies

BINS = 64
# The least score that a bin of its own is kept for on a logarithmic scale.
LEAST_SHOWN = 1e-4
PROJECTIONS = (dt.timedelta(days=30), dt.timedelta(days=90))
MOST_PROJECTIONS = 12
STEPS = {"summarize": int(Rung.SUMMARIZED), "detach": int(Rung.DETACHED), "archive": int(Rung.ARCHIVED)}


@dataclass(frozen=True, slots=True)
class Histogram:
    """Scores of the topics of a scope under the draft. ``edges`` has one more than each list of ``rungs``."""

    edges: list[float]
    rungs: dict[str, list[int]]


@dataclass(slots=True)
class Step:
    """How many topics a run would move to one rung: under the policy in force, under the draft, and the difference."""

    now: int = 0
    draft: int = 0
    gained: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Projection:
    """What a run at ``at`` would do if nothing were used until then."""

    at: dt.datetime
    now: dict[str, int]
    draft: dict[str, int]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The outcome of a draft."""

    active: int
    steps: dict[str, Step]
    projections: list[Projection]
    histogram: Histogram


def edges_make(*, scale: str, highest: float) -> list[float]:
    """Return the edges of ``BINS`` bins from nothing to ``highest``; the first of a log scale holds all that is less.

    Raises ``ValueRefused`` for another scale than ``linear`` or ``log``.
    """
    if scale == "linear":
        return [highest * place / BINS for place in range(BINS + 1)]
    if scale == "log":
        step = math.log(highest / LEAST_SHOWN) / (BINS - 1)
        return [0.0] + [LEAST_SHOWN * math.exp(step * place) for place in range(BINS)]
    raise ValueRefused(f"There is no scale {scale!r}; scales are linear and log.")


def whatif(
    scope: str, *, present: Policies, draft: Policies, now: dt.datetime, at: Sequence[dt.datetime] | None = None,
    event: str = "cron", scale: str = "log",
) -> WhatIf:  # fmt: skip
    """Return what runs under ``draft`` would do in ``scope`` beside runs under ``present``. One query.

    ``at`` holds the moments of the projections, in 30 and in 90 days unless given. Counts are of topics that a run
    would move to a rung, not of those that stand there already. The scores of archived topics are in the histogram.
    Raises ``ValueRefused`` for too many moments or another scale.
    """
    moments = [now + ahead for ahead in PROJECTIONS] if at is None else list(at)
    if len(moments) > MOST_PROJECTIONS:
        raise ValueRefused(f"at holds {len(moments)} moments; at most {MOST_PROJECTIONS} are projected at once.")
    knobs = draft.knobs(scope)
    # The other two strategies score on a scale that ends at 1.
    highest = knobs.field_salience_max if knobs.strategy in ("half_life", "static") else 1.0
    edges = edges_make(scale=scale, highest=highest)
    bound = Bound()
    targets = [(policies, moment) for moment in (now, *moments) for policies in (present, draft)]
    parts = [
        _ground_sql(ground, targets, draft, now=now, event=event, edges=edges, bound=bound)
        for ground in grounds_of(draft, scope, forgetting=False)
    ]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), bound.values)
        rows = cursor.fetchall()
    return _counted(rows, moments, edges, len(targets))


def _ground_sql(
    ground: Ground, targets: list[tuple[Policies, dt.datetime]], draft: Policies, *, now: dt.datetime, event: str,
    edges: list[float], bound: Bound,
) -> str:  # fmt: skip
    """Return how many topics of one ground share a bin, a rung and an outcome under each policy and moment."""
    judge = Judge(draft.effective(ground.path), now, event, bound.bind)
    outcomes = []
    needs_topic = False
    for policies, moment in targets:
        outcome, reads_topic = _target_sql(policies, ground, moment, event=event, bound=bound)
        outcomes.append(outcome)
        needs_topic = needs_topic or reads_topic
    join = "JOIN memory_topic t ON t.id = v.topic_id" if needs_topic else ""
    # All outcomes in one number: grouping by it costs a fraction of grouping by as many columns.
    packed = " + ".join(f"{4 ** (place + 1)}::int8 * ({outcome})" for place, outcome in enumerate(outcomes))
    return f"""
        SELECT bin, packed & 3, packed >> 2, live, count(*) FROM (
            SELECT {judge.bin(edges)} AS bin, v.rung + {packed} AS packed, v.live
            FROM memory_vitality v {join}
            WHERE (v.live OR v.rung = {Rung.ARCHIVED:d}) AND {ground.within_sql("v.scope_id", bound.bind)}
        ) x GROUP BY bin, packed, live"""


def _target_sql(
    policies: Policies, ground: Ground, moment: dt.datetime, *, event: str, bound: Bound
) -> tuple[str, bool]:
    """Return the rung on which a run would leave the topic, and whether that reads the topic's own row."""
    policy = policies.effective(ground.path)
    exempt = policy.knobs.exempt_scopes
    if policy.knobs.mode == "off" or any(scope_within(ground.path, path) for path in exempt):
        return "v.rung", False
    judge = Judge(policy, moment, event, bound.bind)
    rules = judge.rules()
    spared = ["NOT v.live", judge.exempt(), f"coalesce({rules.pins}, v.pinned)" if rules else "v.pinned"]
    spared += [scope_sql("v.scope_id", path, bound.bind) for path in exempt if scope_within(path, ground.path)]
    # What a rule releases has left retrieval like what is archived, and is counted with it.
    target = (
        f"least({Rung.ARCHIVED:d}, greatest({judge.ladder()}, {rules.standing_rung_at_once}))"
        if rules
        else judge.ladder()
    )
    return f"CASE WHEN {' OR '.join(spared)} THEN v.rung ELSE {target} END", rules.needs_topic


def _counted(rows: list[tuple[Any, ...]], moments: list[dt.datetime], edges: list[float], targets: int) -> WhatIf:
    steps = {name: Step() for name in STEPS}
    later = [Projection(moment, _steps_empty(), _steps_empty()) for moment in moments]
    bins = {rung.label: [0] * BINS for rung in Rung}
    active = 0
    for place, rung, packed, live, count in rows:
        bins[Rung(rung).label][place] += count
        if not live:
            continue
        active += count
        outcomes = [(packed >> (2 * at)) & 3 for at in range(targets)]
        for name, step in STEPS.items():
            now, draft = (outcome == step > rung for outcome in outcomes[:2])
            steps[name].now += count * now
            steps[name].draft += count * draft
            steps[name].gained += count * (draft and not now)
            steps[name].lost += count * (now and not draft)
        for projection, present, draft in zip(later, outcomes[2::2], outcomes[3::2], strict=True):
            for outcome, said in ((present, projection.now), (draft, projection.draft)):
                if outcome > rung:
                    said[_NAMES[outcome]] += count
    return WhatIf(active, steps, later, Histogram(edges, bins))


_NAMES = {step: name for name, step in STEPS.items()}


def _steps_empty() -> dict[str, int]:
    return dict.fromkeys(STEPS, 0)


@dataclass(frozen=True, slots=True)
class Affected:
    """One topic that a run under the draft would act on; ``new`` if a run under the policy in force would not do so."""

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
        """The rule or threshold that put it on the list, with score and policy."""
        told: dict[str, Any] = json.loads(self.why_json)
        return told


def affected_page(
    scope: str, *, present: Policies, draft: Policies, now: dt.datetime, event: str = "cron", cursor: str | None = None,
    limit: int = 50, only_new: bool = False,
) -> tuple[list[Affected], str | None]:  # fmt: skip
    """Return topics that a run under ``draft`` would act on, lowest score first, and the cursor of the next page.

    One query: the candidate query of the draft, beside that of the policy in force. Raises ``ValueRefused`` for a
    foreign cursor.
    """
    # The index knows the half-lives that are in force, and serves a draft that leaves them as they are.
    trusted = all(node.knobs.half_life == present.knobs(node.scope).half_life for node in draft.nodes(scope))
    bound = Bound()
    wanted = candidates_sql(draft, scope, event=event, now=now, draft=not trusted, bound=bound)
    beside = candidates_sql(present, scope, event=event, now=now, bound=bound)
    conditions = ["true"]
    if only_new:
        conditions.append("p.topic_id IS NULL")
    if cursor is not None:
        score, topic_id = cursor_parse(cursor, float, uuid.UUID)
        conditions.append(f"(c.score, c.topic_id) > ({float_sql(score)}, {bound.bind(topic_id)}::uuid)")
    sql = f"""
        WITH c AS MATERIALIZED ({wanted.sql}), p AS MATERIALIZED ({beside.sql})
        SELECT c.topic_id, t.title, t.kind, s.path, c.action, c.from_rung, c.to_rung, c.score, c.why, p.topic_id IS NULL
        FROM c
        LEFT JOIN p ON p.topic_id = c.topic_id AND p.action = c.action
        JOIN memory_topic t ON t.id = c.topic_id
        JOIN memory_scope s ON s.id = t.scope_id
        WHERE {" AND ".join(conditions)}
        ORDER BY c.score, c.topic_id LIMIT {limit + 1:d}"""
    with connection.cursor() as database:
        database.execute(sql, bound.values)
        found: list[tuple[Any, ...]] = database.fetchall()
    rows = list(itertools.starmap(Affected, found))
    following = None
    if len(rows) > limit:
        last = rows[limit - 1]
        following = cursor_make(last.score, last.topic_id)
    return rows[:limit], following
