"""The why-card of a topic: its state, what will happen, what happened and why, and what would have kept it."""

import datetime as dt
import json
import uuid
from typing import Any, cast

from memory.access.principal import Principal
from memory.core.scopes import scope_within
from memory.explain.outlook import THRESHOLDS, outlook, protections, rescue_since, rung_name, score_of
from memory.explain.regret import regret_of_topic
from memory.explain.replies import WhyEvent, WhyNext, WhyReply, WhyRescue, WhyReturned, WhyStanding, WhyStep, WhyUse
from memory.explain.run_policies import policies_of_run
from memory.explain.topic_snapshot import TopicSnapshot, topic_snapshot
from memory.explain.why_sentences import why_sentences
from memory.forgetting.manual_runs import by_hand_sql
from memory.forgetting.pause import paused_scopes
from memory.forgetting.soft_limit import Gate, gate_of
from memory.models import Rung
from memory.models.formulas_sql import rung_label_sql, share_of_topic_sql
from memory.models.identities import uuid_sql
from memory.models.statements import dicts_read, rows_read
from memory.policy.effective import policies_current
from memory.policy.snapshot import EffectivePolicy, Policies

# A card has at most this many of the newest history entries, and of the newest uses.
MAX_EVENTS = 100
MAX_USES = 20

# Planned actions are shown only for held runs, because most dry runs are never applied. Manual changes are read from
# the audit events.
_ACTIONS_SQL = f"""
SELECT coalesce(a.at, r.judged_at) AS at, 'run' AS by, a.action AS what,
       CASE a.state WHEN 'planned' THEN 'held' ELSE a.state END AS state, a.run_id::text, r.event, r.actor,
       nullif(r.approved_by, '') AS approved_by, r.judged_at, {rung_label_sql("a.from_rung")} AS from_rung,
       {rung_label_sql("a.to_rung")} AS to_rung, a.why->>'rule' AS rule, a.why->>'threshold' AS threshold,
       (a.why->>'theta')::float8 AS theta, (a.why->>'score')::float8 AS score, a.why->>'strategy' AS strategy,
       a.why->>'policy' AS policy, (a.why->>'version')::int AS version, p.author AS policy_author,
       p.reason AS policy_reason, CASE a.state WHEN 'undone' THEN r.undone_at END AS undone_at,
       CASE a.state WHEN 'undone' THEN r.undone_by END AS undone_by, a.note,
       {uuid_sql("a.changes->>'into'")}::text AS into, (a.changes->>'from')::int AS sources, '' AS reason,
       r.scope, a.before, r.policy_versions
FROM memory_forgetaction a JOIN memory_forgetrun r ON r.id = a.run_id
LEFT JOIN memory_policyversion p ON p.scope = a.why->>'policy' AND p.number = (a.why->>'version')::int
WHERE a.topic_id = %(id)s AND (a.state <> 'planned' OR r.status = 'held') AND NOT {by_hand_sql("a")}
ORDER BY a.id DESC LIMIT %(most)s
"""
# Columns of ``_ACTIONS_SQL`` that the card does not show.
_HIDDEN = ("scope", "before", "policy_versions")

_BY_HAND_SQL = f"""
SELECT e.at, 'hand' AS by,
       CASE e.action WHEN 'ingest_new_topic' THEN 'created' WHEN 'edited' THEN 'salience set' ELSE e.action END AS what,
       CASE a.state WHEN 'undone' THEN 'undone' ELSE 'applied' END AS state,
       {uuid_sql("e.after->>'run'")}::text AS run_id, CASE a.state WHEN 'undone' THEN r.undone_at END AS undone_at,
       CASE a.state WHEN 'undone' THEN r.undone_by END AS undone_by, e.actor, e.before->>'rung' AS from_rung,
       e.after->>'rung' AS to_rung, (e.after->>'salience')::float8 AS salience, e.reason
FROM memory_auditevent e
LEFT JOIN memory_forgetaction a
  ON a.topic_id = e.topic_id AND a.run_id = {uuid_sql("e.after->>'run'")} AND e.action <> 'undone'
LEFT JOIN memory_forgetrun r ON r.id = a.run_id
WHERE e.topic_id = %(id)s AND (e.action <> 'edited' OR e.after ? 'salience')
  AND e.action IN ('ingest_new_topic', 'imported', 'archived', 'restored', 'released', 'pinned', 'unpinned', 'merged',
                   'edited', 'undone')
ORDER BY e.at DESC, e.id DESC LIMIT %(most)s
"""

# Scans the index by time backwards from the last use. The limit ends the scan when all counted uses are found.
_USES_SQL = f"""
SELECT at, actor, query, scope FROM memory_accesslog a
WHERE at <= %(last)s AND at >= %(first)s AND counted AND %(id)s = ANY(topic_ids)
  AND {share_of_topic_sql("a", "%(id)s::uuid")} > 0
ORDER BY at DESC, id DESC LIMIT %(most)s
"""


# The log has no index by topic, so at most this many of the latest rows are read.
ROWS_READ = 10_000
_RETURNED_SQL = f"""
WITH looked AS MATERIALIZED (
    SELECT * FROM memory_accesslog WHERE at >= %(first)s AND at <= %(now)s ORDER BY at DESC, id DESC LIMIT %(most)s
), returned AS (
    SELECT at, min_relevance, relevances[array_position(topic_ids, %(id)s)] AS relevance,
           {share_of_topic_sql("looked", "%(id)s")} = 0 AS too_weak
    FROM looked
    WHERE kind = 'query' AND folded_at IS NOT NULL AND %(id)s = ANY(topic_ids)
      AND NOT (counted AND {share_of_topic_sql("looked", "%(id)s")} > 0)
)
SELECT count(*), count(*) FILTER (WHERE too_weak), max(at), max(relevance) FILTER (WHERE too_weak),
       min(min_relevance) FILTER (WHERE too_weak), (SELECT count(*) < %(most)s FROM looked)
FROM returned
"""


def topic_why(topic_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> WhyReply:
    """Return the why-card of a topic. At most twelve queries. Raises ``NotVisible``.

    The card omits actors, texts and reasons of runs, queries and policies outside the caller's scope.
    """
    row = topic_snapshot(topic_id, principal)
    actions = dicts_read(_ACTIONS_SQL, {"id": topic_id, "most": MAX_EVENTS})
    changes: Any = dicts_read(_BY_HAND_SQL, {"id": topic_id, "most": MAX_EVENTS})
    policies = policies_current()
    policy = policies.effective(row.scope)
    protected = protections(row.usage, policy, pinned=row.pinned)
    history: list[WhyEvent] = [*(_event_seen(each, principal) for each in actions), *changes]
    history.sort(key=lambda entry: entry["at"], reverse=True)
    card: WhyReply = {
        "topic_id": str(topic_id),
        "title": row.label,
        "topic_kind": row.kind,
        "scope": row.scope,
        "standing": _standing(row, protected, policy, now),
        "next": _next(topic_id, row, protected, policies, policy, now, principal),
        "history": history[:MAX_EVENTS],
        "reinforced": {"total": row.retrieval_count, "last": _uses(topic_id, row, principal)},
        "returned": _returned(topic_id, row, now),
        "rescue": _rescue(topic_id, row, actions, policies),
        "regret": regret_of_topic(topic_id, now=now),
        "sentences": [],
    }
    card["sentences"] = why_sentences(card, mode=policy.knobs.mode)
    return card


def _standing(row: TopicSnapshot, protected: list[str], policy: EffectivePolicy, now: dt.datetime) -> WhyStanding:
    return {
        "rung": Rung(row.rung).label,
        "released_at": row.released_at,
        "merged_into": str(row.merged_into) if row.merged_into else None,
        "pinned": row.pinned,
        "pin_reason": row.pin_reason,
        "protected_because": protected,
        "salience": row.salience,
        "salience_at": row.reinforced_at,
        "score": score_of(row.usage, policy, now=now.timestamp()),
        "strategy": policy.knobs.strategy,
        "clock": policy.knobs.clock,
        "policy": policy.at,
        "version": policy.version,
    }


def _next(
    topic_id: uuid.UUID,
    row: TopicSnapshot,
    protected: list[str],
    policies: Policies,
    policy: EffectivePolicy,
    now: dt.datetime,
    principal: Principal,
) -> WhyNext:
    """Return what the next run would do, and when later runs would move the topic down if nothing uses it."""
    if row.is_gone or row.rung == Rung.ARCHIVED:
        return {"now": None, "may_compact": False, "steps": [], "gate": ""}
    ahead = outlook(topic_id, row.rung, policy, now=now)
    steps: list[WhyStep] = []
    for step in ahead.moves:
        name = THRESHOLDS.get(step.rung, "")
        steps.append(
            {
                "rung": rung_name(step.rung),
                "at": step.at,
                "due": step.at == now,
                "rule": step.rule.name if step.rule else None,
                "threshold": None if step.rule else name,
                "theta": None if step.rule else getattr(policy.knobs, name),
                "never_because": _never(protected, policy) if step.at is None else "",
            }
        )
    # The sentence of the gate contains a number of topics, so only callers who may see all these topics get it.
    gate = gate_of(policies, policy.at, event="cron") if principal.sees(policy.at) else Gate()
    reasons = [f"Forgetting is paused in {path}." for path in paused_scopes(now) if scope_within(row.scope, path)]
    reasons += [gate.sentence] if gate.closed or policy.at in gate.excluded | gate.by_age else []
    return {"now": rung_name(ahead.now), "may_compact": ahead.may_compact, "steps": steps, "gate": " ".join(reasons)}


def _never(protected: list[str], policy: EffectivePolicy) -> str:
    if protected:
        return " ".join(protected)
    return f"Under {policy.knobs.strategy} its score stays above the threshold, and no rule applies."


def _event_seen(action: dict[str, Any], principal: Principal) -> WhyEvent:
    """Return a row of ``_ACTIONS_SQL`` without the members that the caller may not see."""
    event = {name: value for name, value in action.items() if name not in _HIDDEN}
    if not principal.sees(action["scope"]):
        event |= dict.fromkeys(("actor", "approved_by", "undone_by"))
    if action["policy"] is None or not principal.sees(action["policy"]):
        event |= dict.fromkeys(("policy_author", "policy_reason"))
    return cast(WhyEvent, event)


def _uses(topic_id: uuid.UUID, row: TopicSnapshot, principal: Principal) -> list[WhyUse]:
    if row.last_retrieved_at is None:
        return []
    last, most = row.last_retrieved_at, min(MAX_USES, row.retrieval_count)
    found = rows_read(_USES_SQL, {"id": topic_id, "last": last, "first": min(row.created_at, last), "most": most})
    return [
        {"at": at, "actor": actor if seen else None, "query": query if seen else None}
        for at, actor, query, seen in ((*row, principal.sees(scope)) for *row, scope in found)
    ]


def _returned(topic_id: uuid.UUID, row: TopicSnapshot, now: dt.datetime) -> WhyReturned:
    wanted = {"id": topic_id, "first": row.created_at, "now": now, "most": ROWS_READ}
    ((total, too_weak, last_at, best, needed, complete),) = rows_read(_RETURNED_SQL, wanted)
    return {
        "total": total,
        "too_weak": too_weak,
        "last_at": last_at,
        "best_relevance": best,
        "needed_relevance": needed,
        "all": complete,
    }


def _rescue(
    topic_id: uuid.UUID, row: TopicSnapshot, actions: list[dict[str, Any]], present: Policies
) -> WhyRescue | None:
    """Return whether one more retrieval would have kept the topic from the last run that archived it. Two queries."""
    if row.rung != Rung.ARCHIVED or row.is_gone:
        return None
    last = next(
        (each for each in actions if each["what"] == "archived" and each["state"] in ("applied", "conflict")), None
    )
    if last is None:
        return None
    policies = policies_of_run(json.loads(last["policy_versions"]), present=present)
    policy = policies.effective(row.scope)
    before, run_at = json.loads(last["before"]), last["judged_at"]
    used = [dt.datetime.fromisoformat(before[name]) for name in ("reinforced_at", "last_retrieved_at") if before[name]]
    last_use = max(row.created_at, *used)
    since = rescue_since(topic_id, before, policy, last_use=last_use, run_at=run_at, event=last["event"])
    return {
        "run_id": last["run_id"],
        "run_at": run_at,
        "possible": since is not None,
        "earliest_sufficient": since,
        "latest": None if since is None else run_at,
        "any_later_use": since == last_use,
        "bump": policy.knobs.query_salience_bump,
    }
