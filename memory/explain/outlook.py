"""What runs would do to one topic, now and on later days, and which retrieval would have kept it from a past run.

The candidate query of runs decides. It is asked about the row of the topic as it would be on each of many days.
"""

import datetime as dt
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory.core.rules import RELEASED, Rule
from memory.core.scopes import scope_within
from memory.forgetting.candidates import verdicts_sql
from memory.formulas.ladder import ARCHIVED, DETACHED, SUMMARIZED
from memory.formulas.partition_time import midnight
from memory.formulas.salience import salience_effective
from memory.formulas.strategies import TopicUsage, score
from memory.models import Rung
from memory.models.formulas_sql import number_sql, salience_effective_sql
from memory.models.statements import rows_read
from memory.policy.partition import partition_is_skipped
from memory.policy.snapshot import EffectivePolicy
from memory.predicates.binding import Bound

THRESHOLDS = {SUMMARIZED: "theta_summary", DETACHED: "theta_detach", ARCHIVED: "forget_salience_threshold"}
# The days ahead on which runs are considered: each day of two years, then every hundredth of the time ahead, for two
# centuries. A later change counts as never.
DAYS = (*range(730), *(round(730 * 1.01**step) for step in range(463)))
_DAY = dt.timedelta(days=1)

# The rows of one topic, one for each probe: the stored row with the members of ``state``, older by ``later``, with
# ``idle`` more idle seconds before its last use, and after a retrieval at ``used``. The candidate query computes the
# fade key if there is none.
_ROWS_SQL = """
FROM (
    SELECT s.topic_id, s.scope_id, s.kind, s.rung, s.pinned, s.pinned_by_agent, s.half_life, p.probe,
           s.created_at - p.later AS created_at, greatest(s.reinforced_at, p.used) - p.later AS reinforced_at,
           greatest(s.last_retrieved_at, p.used) - p.later AS last_retrieved_at,
           s.retrieval_count::bigint + (p.used IS NOT NULL)::int AS retrieval_count,
           CASE WHEN p.used IS NULL THEN s.salience ELSE {raised} END AS salience,
           s.idle_before + p.idle AS idle_before, NULL::float8 AS fade, NULL::boolean AS wall
    FROM memory_vitality stored CROSS JOIN jsonb_populate_record(stored, {state}) s CROSS JOIN ({probes}) p
    WHERE stored.topic_id = {topic_id}
) v JOIN (
    SELECT s.* FROM memory_topic stored CROSS JOIN jsonb_populate_record(stored, {state}) s
    WHERE stored.id = {topic_id}
) t ON t.id = v.topic_id
"""


@dataclass(frozen=True, slots=True)
class PredictedMove:
    """When a run would move a topic to ``rung`` if nothing uses or changes the topic; ``RELEASED`` means that the run
    would release it. ``at`` is now, or the first midnight (UTC) after which every run would do it; None for never.
    ``rule`` is None if a threshold decides."""

    rung: int
    at: dt.datetime | None
    rule: Rule | None = None


@dataclass(frozen=True, slots=True)
class Outlook:
    """The rung to which a run would move a topic now, whether the run would compact it if there are enough similar
    topics, and the moves down the ladder, now and later."""

    now: int
    may_compact: bool
    moves: list[PredictedMove]


def outlook(topic_id: uuid.UUID, rung: int, policy: EffectivePolicy, *, now: dt.datetime) -> Outlook:
    """Return what scheduled runs would do to a live topic on ``rung`` under ``policy`` if nothing uses it and no later
    day is idle. Rungs that the topic would skip are left out. At most one query."""
    found, today = [(rung, 0, 0, False)], dt.datetime.fromtimestamp(midnight(now), dt.UTC)
    if not partition_is_skipped(policy, policy.scope):
        bound = Bound()
        # On later days, today counts as active.
        counted = policy.time.idle(now.timestamp()) - policy.projected(now).time.idle(now.timestamp())
        probes = f"""
            SELECT day AS probe, greatest(interval '0', day * interval '1 day' - {bound.bind(now - today)}) AS later,
                   NULL::timestamptz AS used, CASE day WHEN 0 THEN 0 ELSE {number_sql(counted)} END AS idle
            FROM unnest({bound.bind(list(DAYS))}::int[]) day"""
        rows = _rows_sql(topic_id, probes, policy, bound)
        verdicts = verdicts_sql(policy, topic_id, rows, event="cron", now=now, bound=bound)
        statement = f"SELECT DISTINCT ON (rung) rung, probe, rule, compacts FROM ({verdicts}) x ORDER BY rung, probe"
        # A topic that was purged in the meantime has no rows.
        found = sorted(rows_read(statement, bound.values), key=lambda row: row[1]) or found
    rules, moves, reached = policy.rules.on("cron"), [], rung
    for target, day, rule, _compacts in found:
        if target > reached:
            at = today + day * _DAY if day else now
            moves.append(PredictedMove(target, at, rules[rule - 1] if rule else None))
            reached = target
    moves += [PredictedMove(never, None) for never in range(reached + 1, ARCHIVED + 1)]
    return Outlook(found[0][0], found[0][3], moves)


def rescue_since(
    topic_id: uuid.UUID,
    before: Mapping[str, Any],
    policy: EffectivePolicy,
    *,
    last_use: dt.datetime,
    run_at: dt.datetime,
    event: str,
) -> dt.datetime | None:
    """Return the time from which on one more retrieval would have saved the topic from the run at ``run_at``:
    ``last_use``, a midnight (UTC) after it, or ``run_at``. Return None if none would have. One query. ``before`` is the
    state in which the run found the topic."""
    if last_use > run_at:
        return None
    bound, first = Bound(), dt.datetime.fromtimestamp(midnight(last_use), dt.UTC) + _DAY
    uses = [last_use, *(first + day * _DAY for day in range((run_at - first) // _DAY + 1)), run_at]
    idle = [float(policy.time.skipped(before["idle_before"], at.timestamp())) for at in uses]
    probes = f"""
        SELECT probe, interval '0' AS later, used, idle
        FROM unnest({bound.bind(uses)}::timestamptz[], {bound.bind(idle)}::float8[])
        WITH ORDINALITY AS u (used, idle, probe)"""
    rows = _rows_sql(topic_id, probes, policy, bound, before)
    verdicts = verdicts_sql(policy, topic_id, rows, event=event, now=run_at, bound=bound)
    ((too_early,),) = rows_read(f"SELECT max(probe) FROM ({verdicts}) x WHERE rung >= {ARCHIVED:d}", bound.values)
    return next(iter(uses[too_early or 0 :]), None)


def _rows_sql(
    topic_id: uuid.UUID, probes: str, policy: EffectivePolicy, bound: Bound, before: Mapping[str, Any] | None = None
) -> str:
    """Return the FROM clause of the rows of a topic for ``verdicts_sql``. ``before`` is an earlier state."""
    raised = (
        f"{salience_effective_sql('s', 'p.used', skipped='p.idle')} + {number_sql(policy.knobs.query_salience_bump)}"
    )
    return _ROWS_SQL.format(
        topic_id=f"{bound.bind(topic_id)}::uuid",
        state=f"{bound.bind(json.dumps(before or {}))}::jsonb",
        raised=f"least(greatest({number_sql(policy.knobs.field_salience_max)}, s.salience), {raised})",
        probes=probes,
    )


def rung_name(rung: int) -> str:
    """Return the label of a rung, or "released" for ``RELEASED``."""
    return "released" if rung == RELEASED else Rung(rung).label


def protections(usage: TopicUsage, policy: EffectivePolicy, *, pinned: bool) -> list[str]:
    """Return the reasons why no run changes the topic, as sentences; an empty list if runs may change it."""
    knobs, reasons = policy.knobs, []
    if pinned:
        reasons.append("It is pinned.")
    if usage.kind in knobs.exempt_kinds:
        reasons.append(f"Memories of kind {usage.kind} are never forgotten.")
    reasons += [
        f"Nothing in {path} is ever forgotten." for path in knobs.exempt_scopes if scope_within(policy.scope, path)
    ]
    if knobs.mode == "off":
        reasons.append(f"Forgetting is switched off in {policy.at}.")
    return reasons


def score_of(usage: TopicUsage, policy: EffectivePolicy, *, now: float) -> float:
    """Return the score at ``now``: the number that is compared with the thresholds."""
    knobs = policy.knobs
    value = score(
        usage,
        strategy=knobs.strategy,
        half_life=knobs.half_life,
        active_half_life=knobs.active_half_life,
        now=now,
        skipped=policy.time.skipped(usage.idle_before, now),
    )
    return float(value)


def salience_of(usage: TopicUsage, policy: EffectivePolicy, *, half_life: float, now: float) -> float:
    """Return the effective salience of a topic at ``now`` if nothing uses the topic until then. ``half_life`` is that
    of its stored row."""
    found = salience_effective(
        usage.salience,
        reinforced_at=usage.reinforced_at,
        half_life=half_life,
        now=now,
        skipped=policy.time.skipped(usage.idle_before, now),
    )
    return float(found)
