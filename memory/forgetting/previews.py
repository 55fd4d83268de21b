"""What applying, approving or undoing a run would touch, and what not and why. Nothing here changes anything."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from memory.core.errors import Conflict
from memory.forgetting.candidates import live_count
from memory.forgetting.manual_runs import MERGED
from memory.forgetting.plan import ALWAYS_ALLOWED
from memory.forgetting.runs import begin_refuse
from memory.forgetting.topic_state import STATE, drift_words, same_state_sql
from memory.forgetting.undo import merge_conflicts
from memory.models import ForgetAction, ForgetRun
from memory.policy.effective import policies_current

# So many of the topics that would be left alone are named; all of them are counted.
NAMED = 50

# Topics that differ in the same way are told in the same words, so that one of them speaks for all.
_GROUPS = """
WITH compared AS (
    SELECT a.action, a.{side} AS said, s.state, {same} AS same
    FROM memory_forgetaction a
    JOIN (SELECT t.id, {state} AS state FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id) s
      ON s.id = a.topic_id
    WHERE a.run_id = %(run)s AND a.state = %(state)s
)
SELECT same, CASE WHEN same THEN action END, d.keys, d.status, count(*),
       (array_agg(said))[1], (array_agg(state))[1]
FROM compared CROSS JOIN LATERAL (
    SELECT CASE WHEN NOT same THEN ARRAY(
        SELECT e.key FROM jsonb_each(said) e WHERE e.value IS DISTINCT FROM state->e.key ORDER BY e.key) END AS keys,
    CASE WHEN NOT same THEN jsonb_build_array(state->'rung', state->'pinned', state->>'released_at' IS NULL) END
        AS status
) d
GROUP BY 1, 2, 3, 4
"""

_NAMED = """
SELECT a.topic_id, s.title, a.{side}, s.state FROM memory_forgetaction a
JOIN (SELECT t.id, t.title, {state} AS state FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id) s
  ON s.id = a.topic_id
WHERE a.run_id = %(run)s AND a.state = %(state)s AND NOT {same}
ORDER BY a.place LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class Preview:
    """``touched`` topics would be changed, by action in ``by_action``; ``left`` have changed meanwhile, for
    ``reasons`` with their counts; the first of them are named. ``hindrance`` is why nothing can be done at all."""

    touched: int
    by_action: dict[str, int]
    left: int = 0
    reasons: list[tuple[str, int]] = field(default_factory=list)
    named: list[dict[str, Any]] = field(default_factory=list)
    hindrance: str = ""
    warning: str = ""


def apply_preview(run: ForgetRun) -> Preview:
    """Return what applying the plan of a dry run would do. About six queries.

    A plan of which a topic has changed is not applied at all. A plan that the circuit breaker would have held, had it
    come from the schedule, has a warning: whoever applies a plan by hand is asked once, here.
    """
    found = _compared(run, state="planned", side="before", text=True)
    hindrance = _hindrance(run, ForgetRun.Status.PLANNED, "applied")
    if not hindrance and found.left:
        verb = "topic of this plan has" if found.left == 1 else "topics of this plan have"
        hindrance = f"{found.left:,} {verb} changed since, and a plan is applied as it was read. Plan it anew."
    leaving = run.counts.get("archived", 0) + run.counts.get("released", 0)
    return Preview(
        found.touched, found.by_action, found.left, found.reasons, found.named, hindrance, _share_warning(run, leaving)
    )


def approve_preview(run: ForgetRun) -> Preview:
    """Return what approving a held run would do: what has changed since the plan is left alone. Five queries."""
    found = _compared(run, state="planned", side="before", text=True)
    hindrance = _hindrance(run, ForgetRun.Status.HELD, "approved")
    return Preview(found.touched, found.by_action, found.left, found.reasons, found.named, hindrance)


def undo_preview(run: ForgetRun) -> Preview:
    """Return what undoing a run would do: topics that are still as the run left them become what they were before,
    the others are left alone. At most two queries; of a merge, about thirty."""
    if run.status not in (ForgetRun.Status.DONE, ForgetRun.Status.FAILED):
        return Preview(0, {}, hindrance=f"This run is {run.status}; only a run that is done can be undone.")
    if not run.applied:
        return Preview(0, {}, hindrance="This run has changed nothing, so there is nothing to undo.")
    if run.counts.get(MERGED):
        return _merge_undo_preview(run)
    return _compared(run, state="applied", side="after", text=False)


def plan_preview(run: ForgetRun) -> Preview | None:
    """Return what going ahead with a run would do that is planned or held, None for any other and for an empty plan."""
    if not run.planned:
        return None
    if run.status == ForgetRun.Status.PLANNED:
        return apply_preview(run)
    return approve_preview(run) if run.status == ForgetRun.Status.HELD else None


def _merge_undo_preview(run: ForgetRun) -> Preview:
    conflicts = merge_conflicts(run)
    actions = list(
        run.actions.filter(state=ForgetAction.State.APPLIED).values_list("action", "topic_id", "topic__title")
    )
    if not conflicts:
        return Preview(len(actions), dict(Counter(action for action, _topic, _title in actions)))
    titles = {topic_id: title for _action, topic_id, title in actions}
    named = [{"topic_id": topic_id, "title": titles[topic_id], "why": why} for topic_id, why in conflicts]
    return Preview(
        0,
        {},
        len(conflicts),
        Counter(why for _topic, why in conflicts).most_common(),
        named,
        "A merge is undone as a whole, and one of its topics has changed since.",
    )


def _compared(run: ForgetRun, *, state: str, side: str, text: bool) -> Preview:
    parts = {"state": STATE, "side": side}
    wanted: dict[str, Any] = {"run": run.pk, "state": state, "most": NAMED}
    by_action: dict[str, int] = {}
    reasons: dict[str, int] = {}
    named: list[dict[str, Any]] = []
    with connection.cursor() as cursor:
        cursor.execute(_GROUPS.format(same=same_state_sql("s.state", f"a.{side}", text=text), **parts), wanted)
        for same, action, _keys, _status, count, said, present in cursor.fetchall():
            if same:
                by_action[action] = by_action.get(action, 0) + count
            else:
                words = drift_words(json.loads(said), json.loads(present))
                reasons[words] = reasons.get(words, 0) + count
        if reasons:
            cursor.execute(_NAMED.format(same=same_state_sql("s.state", f"a.{side}", text=text), **parts), wanted)
            named = [
                {"topic_id": topic_id, "title": title, "why": drift_words(json.loads(said), json.loads(present))}
                for topic_id, title, said, present in cursor.fetchall()
            ]
    told = sorted(reasons.items(), key=lambda each: (-each[1], each[0]))
    return Preview(_sum(by_action), by_action, _sum(reasons), told, named)


def _hindrance(run: ForgetRun, status: ForgetRun.Status, verb: str) -> str:
    try:
        begin_refuse(run, status=status, verb=verb)
    except Conflict as problem:
        return problem.sentence
    return ""


def _share_warning(run: ForgetRun, leaving: int) -> str:
    share = policies_current().knobs(run.scope).max_archive_share
    active = live_count(run.scope) if leaving else 0
    if leaving <= ALWAYS_ALLOWED or leaving <= share * active:
        return ""
    return (
        f"That takes {leaving:,} of {active:,} live topics ({leaving / active:.0%}) out of retrieval, more than the "
        f"{share:.0%} that max_archive_share lets pass without somebody looking at it. You are looking at it now."
    )


def _sum(counts: dict[str, int]) -> int:
    return sum(counts.values())
