"""Previews of applying, approving and undoing a run: what would change, what would be skipped, and why. Read only."""

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from django.utils import timezone

from memory.core.errors import Conflict
from memory.core.problem_codes import ProblemCode
from memory.forgetting.breaker import ALWAYS_ALLOWED
from memory.forgetting.candidates import live_count
from memory.forgetting.compaction import LEAST_GROUP, TOO_FEW
from memory.forgetting.manual_runs import BY_HAND, MERGED
from memory.forgetting.pause import pause_refuse
from memory.forgetting.plan import overlap_refuse
from memory.forgetting.topic_state import COMPACTED, STATE, drift_words, planned_state_sql, undone_state_sql
from memory.forgetting.undo import PAIR, merges_blocked
from memory.models import ForgetAction, ForgetRun
from memory.models.labels import label_sql, labels_read
from memory.models.statements import rows_read
from memory.policy.effective import policies_current

# At most this many skipped topics are listed by name. All skipped topics are counted.
NAMED = 50
# The verb that starts a run of each status: a planned run is applied, a held run is approved.
BEGUN = {ForgetRun.Status.PLANNED: "applied", ForgetRun.Status.HELD: "approved"}

# Topics that differ in the same way have the same reason, so one example of each group is read.
_GROUPS_SQL = """
WITH compared AS (
    SELECT a.action, a.{side} AS stored, s.state, {same} AS same, a.changes->'group' AS number
    FROM memory_forgetaction a
    JOIN (SELECT t.id, {state} AS state FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id) s
      ON s.id = a.topic_id
    WHERE a.run_id = %(run)s AND a.state = %(state)s
)
SELECT same, CASE WHEN same THEN action END, d.keys, d.status, alone, count(*), count(DISTINCT number),
       (array_agg(stored))[1], (array_agg(state))[1]
FROM (
    SELECT *, same AND {planned} AND number IS NOT NULL
              AND count(*) FILTER (WHERE same) OVER (PARTITION BY number) < {least} AS alone
    FROM compared
) c CROSS JOIN LATERAL (
    SELECT CASE WHEN NOT same THEN ARRAY(
        SELECT e.key FROM jsonb_each(stored) e WHERE e.value IS DISTINCT FROM state->e.key ORDER BY e.key) END AS keys,
    CASE WHEN NOT same THEN jsonb_build_array(state->'rung', state->'pinned', state->>'released_at' IS NULL) END
        AS status
) d
GROUP BY 1, 2, 3, 4, 5
"""

_NAMED_SQL = """
SELECT a.topic_id, s.title, a.{side}, s.state FROM memory_forgetaction a
JOIN (SELECT t.id, {label} AS title, {state} AS state FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id) s
  ON s.id = a.topic_id
WHERE a.run_id = %(run)s AND a.state = %(state)s AND NOT {same}
ORDER BY a.place LIMIT %(most)s
"""


class _Group(NamedTuple):
    """A row of ``_GROUPS_SQL``. ``topics`` is the number of topics that are unchanged (``same``) or changed in the same
    way. ``stored`` and ``present`` are the compared states of one of these topics, as JSON. ``groups`` counts the
    groups to compact. ``alone`` means that compaction skips the topics, because too few topics of their group are
    unchanged."""

    same: bool
    action: str | None
    keys: list[str] | None
    status: str | None
    alone: bool
    topics: int
    groups: int
    stored: str
    present: str


@dataclass(frozen=True, slots=True)
class Preview:
    """What applying, approving or undoing a run would do. ``touched`` counts the topics that would be changed. ``left``
    counts the topics that would be skipped, because they changed after the plan or the run; ``named`` lists the first
    of them. ``hindrance`` says why the whole action would be refused; otherwise it is empty."""

    touched: int
    by_action: dict[str, int]
    left: int = 0
    reasons: list[tuple[str, int]] = field(default_factory=list)
    named: list[dict[str, Any]] = field(default_factory=list)
    hindrance: str = ""
    warning: str = ""


def apply_preview(run: ForgetRun) -> Preview:
    """Return what applying the plan of a dry run would do. About six queries. A plan with a changed topic is refused.
    The circuit breaker never holds an applied dry run. The preview therefore warns if the breaker would hold a
    scheduled run. A planned manual change skips changed topics."""
    found = plan_compare(run)
    if run.event == BY_HAND:
        return replace(found, hindrance=_hindrance(run, ForgetRun.Status.PLANNED))
    hindrance = _hindrance(run, ForgetRun.Status.PLANNED)
    if not hindrance and found.left:
        verb = "memory of this plan has" if found.left == 1 else "memories of this plan have"
        hindrance = f"{found.left:,} {verb} changed, so the plan no longer applies. Plan it again."
    leaving = run.counts.get("archived", 0) + run.counts.get("released", 0)
    return replace(found, hindrance=hindrance, warning=_share_warning(run, leaving))


def approve_preview(run: ForgetRun) -> Preview:
    """Return what approving a held run would do. Topics that changed after the plan would be skipped. Five queries."""
    return replace(plan_compare(run), hindrance=_hindrance(run, ForgetRun.Status.HELD))


def undo_preview(run: ForgetRun) -> Preview:
    """Return what undoing a run would do to each topic. At most two queries, six for merges."""
    if run.status not in (ForgetRun.Status.DONE, ForgetRun.Status.FAILED):
        return Preview(0, {}, hindrance=f"This run is {run.status}. Only a run that is done or failed can be undone.")
    if not run.applied:
        return Preview(0, {}, hindrance="This run has changed nothing, so there is nothing to undo.")
    if run.counts.get(MERGED):
        return _merge_undo_preview(run)
    return _compared(run, planned=False)


def plan_preview(run: ForgetRun) -> Preview | None:
    """Return what applying or approving a planned or held run would do; None for any other run or an empty plan."""
    if not run.planned:
        return None
    if run.status == ForgetRun.Status.PLANNED:
        return apply_preview(run)
    return approve_preview(run) if run.status == ForgetRun.Status.HELD else None


def begin_refuse(run: ForgetRun, *, status: ForgetRun.Status) -> None:
    """Raise ``Conflict`` if a run cannot be applied or approved now. This is so if its status is not ``status``, it was
    planned for another time, forgetting is paused, another run is applying in an overlapping scope, or the policy has
    changed. Of a manual change, only the status matters. Usually three queries. The result remains valid while the
    caller has the planner's lock."""
    verb = BEGUN[status]
    if run.status != status:
        raise Conflict(f"Run {run.id} is {run.status}, not {status}, so it cannot be {verb}.")
    if run.event == BY_HAND:
        return
    if run.judged_at != run.created_at:
        raise Conflict(
            f"Run {run.id} shows what would be due on {run.judged_at:%Y-%m-%d %H:%M}, so it cannot be {verb}. Plan a "
            "run without `now`."
        )
    pause_refuse(run.scope, now=timezone.now())
    overlap_refuse(run.scope, but=run.id)
    if run.policy_versions != policies_current().versions_touching(run.scope):
        raise Conflict(
            f"The policy has changed since run {run.id} was planned; plan it anew.", code=ProblemCode.CHANGED_MEANWHILE
        )


def plan_compare(run: ForgetRun) -> Preview:
    """Compare the topics of a plan with their states when the plan was made. At most two queries."""
    return _compared(run, planned=True)


def _merge_undo_preview(run: ForgetRun) -> Preview:
    conflicts = merges_blocked(run)
    applied = run.actions.filter(state=ForgetAction.State.APPLIED).order_by("place")
    actions = list(applied.values_list("action", "topic_id"))
    changed = {topic_id for topic_id, _why in conflicts}
    # A merge is undone as a whole.
    merges = [actions[at : at + PAIR] for at in range(0, len(actions), PAIR)]
    undone = [each for merge in merges if not changed & {topic_id for _action, topic_id in merge} for each in merge]
    labels = labels_read(changed) if changed else {}
    return Preview(
        len(undone),
        dict(Counter(action for action, _topic_id in undone)),
        len(conflicts),
        Counter(why for _topic, why in conflicts).most_common(),
        [{"topic_id": topic_id, "title": labels[topic_id], "why": why} for topic_id, why in conflicts],
        "" if undone else "A merge is undone as a whole, and one of its memories has changed since.",
    )


def _compared(run: ForgetRun, *, planned: bool) -> Preview:
    """Compare the present states of the topics with the states in the plan (``planned``) or after the run."""
    state, side = ("planned", "before") if planned else ("applied", "after")
    same = planned_state_sql("s.state", "a") if planned else undone_state_sql("s.state", "a")
    parts = {"state": STATE, "side": side}
    parameters: dict[str, Any] = {"run": run.pk, "state": state, "most": NAMED}
    by_action: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    sql = _GROUPS_SQL.format(same=same, planned=str(planned).lower(), least=LEAST_GROUP, **parts)
    for each in map(_Group._make, rows_read(sql, parameters)):
        if each.action is not None and not each.alone:
            by_action[each.action] += each.topics
            if planned and each.groups:
                by_action[COMPACTED] += each.groups
        else:
            words = TOO_FEW if each.alone else drift_words(json.loads(each.stored), json.loads(each.present))
            reasons[words] += each.topics
    found = rows_read(_NAMED_SQL.format(same=same, label=label_sql(), **parts), parameters) if reasons else []
    named = [
        {"topic_id": topic_id, "title": title, "why": drift_words(json.loads(stored), json.loads(present))}
        for topic_id, title, stored, present in found
    ]
    most_frequent = sorted(reasons.items(), key=lambda each: (-each[1], each[0]))
    # The topics made by compaction are not counted, because their sources are counted.
    touched = by_action.total() - by_action[COMPACTED]
    return Preview(touched, dict(+by_action), reasons.total(), most_frequent, named)


def _hindrance(run: ForgetRun, status: ForgetRun.Status) -> str:
    try:
        begin_refuse(run, status=status)
    except Conflict as problem:
        return problem.sentence
    return ""


def _share_warning(run: ForgetRun, leaving: int) -> str:
    share = policies_current().knobs(run.scope).max_archive_share
    active = live_count(run.scope) if leaving else 0
    if leaving <= ALWAYS_ALLOWED or leaving <= share * active:
        return ""
    return (
        f"This plan removes {leaving:,} of {active:,} live memories ({leaving / active:.0%}) from recalls. A "
        f"scheduled run over {share:.0%} (max_archive_share) would wait for approval; this plan will not."
    )
