"""The why-card of a topic: its state, what will happen, what happened and why, and what would have kept it."""

import datetime as dt
import itertools
import json
import uuid
from typing import Any, Literal, NamedTuple

from django.db import connection

from memory.access.principal import Principal
from memory.core.scopes import scope_within
from memory.forgetting.manual_runs import by_hand_sql
from memory.forgetting.pause import paused_scopes
from memory.forgetting.soft_limit import Gate, gate_of
from memory.insight.outlook import (
    BEYOND,
    THRESHOLDS,
    Subject,
    protections,
    rescue_since,
    score_of,
    steps_ahead,
    verdict,
)
from memory.insight.regret import regret_of_topic
from memory.insight.replies import WhyEvent, WhyNext, WhyReply, WhyRescue, WhyStanding, WhyStep, WhyUse
from memory.insight.run_policies import policies_of_run
from memory.insight.topic_snapshot import TopicSnapshot, texts_match, topic_snapshot
from memory.insight.why_text import why_sentences
from memory.models import Rung
from memory.models.expressions import share_of_topic_sql
from memory.models.identities import uuid_sql
from memory.policy.effective import policies_current
from memory.policy.snapshot import EffectivePolicy, Policies

# The most entries of the history, and the most uses, that a card has; the newest ones.
MOST_EVENTS = 100
MOST_USES = 20

# Planned actions are shown only for held runs, because dry runs are mostly not applied. Manual changes are read from
# the audit events.
_ACTIONS_SQL = f"""
SELECT a.run_id, r.event, r.actor, r.approved_by, r.scope, r.judged_at, a.at, a.action, a.from_rung,
       a.to_rung, a.state, a.note, a.why, a.before, r.undone_at, r.undone_by, p.author, p.reason, r.policy_versions,
       {uuid_sql("a.changes->>'into'")}, (a.changes->>'from')::int
FROM memory_forgetaction a JOIN memory_forgetrun r ON r.id = a.run_id
LEFT JOIN memory_policyversion p ON p.scope = a.why->>'policy' AND p.number = (a.why->>'version')::int
WHERE a.topic_id = %(id)s AND (a.state <> 'planned' OR r.status = 'held') AND NOT {by_hand_sql("a")}
ORDER BY a.id DESC LIMIT %(most)s
"""

_BY_HAND_SQL = f"""
SELECT e.at, e.actor, e.action, e.reason, e.before, e.after, {uuid_sql("e.after->>'run'")}, a.state, r.undone_at,
       r.undone_by
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
SELECT at, actor, scope, query FROM memory_accesslog a
WHERE at <= %(last)s AND at >= %(first)s AND counted AND %(id)s = ANY(topic_ids)
  AND {share_of_topic_sql("a", "%(id)s::uuid")} > 0
ORDER BY at DESC, id DESC LIMIT %(most)s
"""


class _Action(NamedTuple):
    """One action of a run on the topic, with its run."""

    run_id: uuid.UUID
    event: str
    actor: str
    approved_by: str
    scope: str
    judged_at: dt.datetime
    at: dt.datetime | None
    action: str
    from_rung: int
    to_rung: int
    state: Literal["planned", "applied", "skipped", "undone", "conflict"]
    note: str
    why: str
    before: str
    undone_at: dt.datetime | None
    undone_by: str
    author: str | None
    reason: str | None
    versions: str
    into: uuid.UUID | None
    sources: int | None


def topic_why(topic_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> WhyReply:
    """Return the why-card of a topic as plain values, and the same as ``sentences``.

    At most eleven queries, independent of the history. Of runs, queries and policies of scopes outside the caller's
    scope, the card has neither actors nor texts nor reasons. Raises ``NotVisible``.
    """
    with connection.cursor() as cursor:
        row = topic_snapshot(cursor, topic_id, principal)
        cursor.execute(_ACTIONS_SQL, {"id": topic_id, "most": MOST_EVENTS})
        actions = list(itertools.starmap(_Action, cursor.fetchall()))
        cursor.execute(_BY_HAND_SQL, {"id": topic_id, "most": MOST_EVENTS})
        by_hand: list[tuple[Any, ...]] = cursor.fetchall()
        uses: list[tuple[dt.datetime, str, str, str]] = []
        if row.retrieval_count and row.last_retrieved_at is not None:
            most = min(MOST_USES, row.retrieval_count)
            first = min(row.created_at, row.last_retrieved_at)
            cursor.execute(_USES_SQL, {"id": topic_id, "last": row.last_retrieved_at, "first": first, "most": most})
            uses = cursor.fetchall()
    policies = policies_current()
    policy = policies.effective(row.scope)
    subject = row.subject(texts_match(topic_id, policy.rules.rules))
    history = [_action_as_dict(entry, principal) for entry in actions] + list(
        itertools.starmap(_change_as_dict, by_hand)
    )
    history.sort(key=lambda entry: entry["at"], reverse=True)
    card: WhyReply = {
        "topic_id": str(topic_id),
        "title": row.title,
        "topic_kind": row.kind,
        "scope": row.scope,
        "standing": _standing(row, subject, policy, now),
        "next": _next(row, subject, policies, policy, now, principal),
        "history": history[:MOST_EVENTS],
        "reinforced": {"total": row.retrieval_count, "last": [_use_as_dict(*entry, principal) for entry in uses]},
        "rescue": _rescue(topic_id, row, actions, policies),
        "regret": regret_of_topic(topic_id, now=now),
        "sentences": [],
    }
    card["sentences"] = why_sentences(card)
    return card


def _standing(row: TopicSnapshot, subject: Subject, policy: EffectivePolicy, now: dt.datetime) -> WhyStanding:
    return {
        "rung": Rung(row.rung).label,
        "released_at": row.released_at,
        "merged_into": str(row.merged_into) if row.merged_into else None,
        "pinned": row.pinned,
        "pin_reason": row.pin_reason,
        "protected_because": protections(subject, policy),
        "salience": row.salience,
        "salience_at": row.reinforced_at,
        "score": score_of(subject, policy, now=now.timestamp()),
        "strategy": policy.knobs.strategy,
        "clock": policy.knobs.clock,
        "policy": policy.at,
        "version": policy.version,
    }


def _next(
    row: TopicSnapshot,
    subject: Subject,
    policies: Policies,
    policy: EffectivePolicy,
    now: dt.datetime,
    principal: Principal,
) -> WhyNext:
    """Return what the next run would do, and when later runs would move the topic down if nothing uses it."""
    if row.is_gone or row.rung == Rung.ARCHIVED:
        return {"now": None, "may_compact": False, "steps": [], "gate": ""}
    result = verdict(subject, policy, now=now.timestamp())
    protected = protections(subject, policy)
    steps: list[WhyStep] = []
    for step in steps_ahead(subject, policy, now=now.timestamp()):
        name = THRESHOLDS.get(step.rung, "")
        steps.append(
            {
                "rung": "released" if step.rung == BEYOND else Rung(step.rung).label,
                "at": None if step.at is None else _moment(step.at),
                "due": step.at is not None and step.at <= now.timestamp(),
                "rule": step.rule.name if step.rule else None,
                "threshold": None if step.rule else name,
                "theta": None if step.rule else getattr(policy.knobs, name),
                "never_because": _never(protected, policy) if step.at is None else "",
            }
        )
    # The sentence of the gate contains a number of topics, so only callers who may see all of these get it.
    gate = gate_of(policies, policy.at, event="cron") if principal.sees(policy.at) else Gate()
    reasons = [f"Forgetting is paused in {path}." for path in paused_scopes(now) if scope_within(row.scope, path)]
    reasons += [gate.sentence] if gate.closed or policy.at in gate.without else []
    return {
        "now": "released" if result.released else Rung(result.rung).label,
        "may_compact": result.may_compact,
        "steps": steps,
        "gate": " ".join(reasons),
    }


def _never(protected: list[str], policy: EffectivePolicy) -> str:
    if protected:
        return " ".join(protected)
    return f"Under {policy.knobs.strategy} its score stays above the threshold, and no rule applies."


def _action_as_dict(entry: _Action, principal: Principal) -> WhyEvent:
    reasons = json.loads(entry.why)
    seen = principal.sees(entry.scope)
    policy_seen = "policy" in reasons and principal.sees(reasons["policy"])
    undone = entry.state == "undone"
    return {
        "at": entry.at or entry.judged_at,
        "by": "run",
        "what": entry.action,
        "state": "held" if entry.state == "planned" else entry.state,
        "run_id": str(entry.run_id),
        "event": entry.event,
        "actor": entry.actor if seen else None,
        "approved_by": (entry.approved_by or None) if seen else None,
        "judged_at": entry.judged_at,
        "from_rung": Rung(entry.from_rung).label,
        "to_rung": Rung(entry.to_rung).label,
        "rule": reasons.get("rule"),
        "threshold": reasons.get("threshold"),
        "theta": reasons.get("theta"),
        "score": reasons.get("score"),
        "strategy": reasons.get("strategy"),
        "policy": reasons.get("policy"),
        "version": reasons.get("version"),
        "policy_author": entry.author if policy_seen else None,
        "policy_reason": entry.reason if policy_seen else None,
        "undone_at": entry.undone_at if undone else None,
        "undone_by": entry.undone_by if undone and seen else None,
        "note": entry.note,
        "into": str(entry.into) if entry.into else None,
        "sources": entry.sources,
        "reason": "",
    }


def _change_as_dict(
    at: dt.datetime,
    actor: str,
    action: str,
    reason: str,
    before: str,
    after: str,
    run_id: str | None,
    state: str | None,
    undone_at: dt.datetime | None,
    undone_by: str | None,
) -> WhyEvent:
    """Return a row of ``_BY_HAND_SQL`` as a reply."""
    undone = state == "undone"
    was, became = json.loads(before), json.loads(after)
    return {
        "at": at,
        "by": "hand",
        "what": {"ingest_new_topic": "created", "edited": "salience set"}.get(action, action),
        "state": "undone" if undone else "applied",
        "run_id": str(run_id) if run_id else None,
        "undone_at": undone_at if undone else None,
        "undone_by": undone_by if undone else None,
        "actor": actor,
        "from_rung": was.get("rung"),
        "to_rung": became.get("rung"),
        "salience": became.get("salience"),
        "reason": reason,
    }


def _use_as_dict(at: dt.datetime, actor: str, scope: str, query: str, principal: Principal) -> WhyUse:
    seen = principal.sees(scope)
    return {"at": at, "actor": actor if seen else None, "query": query if seen else None}


def _rescue(topic_id: uuid.UUID, row: TopicSnapshot, actions: list[_Action], present: Policies) -> WhyRescue | None:
    """Return whether one more retrieval would have kept the last run from archiving the topic. None if no run archived
    it.

    Uses the policies of that run. One query, and one more if their rules compare texts.
    """
    if row.rung != Rung.ARCHIVED or row.is_gone:
        return None
    last = next((each for each in actions if each.action == "archived" and each.state in ("applied", "conflict")), None)
    if last is None:
        return None
    policies = policies_of_run(json.loads(last.versions), present=present)
    policy = policies.effective(row.scope)
    subject = row.as_it_was(json.loads(last.before)).subject(texts_match(topic_id, policy.rules.rules))
    since = rescue_since(
        subject, policy, run_at=last.judged_at.timestamp(), event=last.event, cap=policy.knobs.field_salience_max
    )
    usage = subject.usage
    last_use = max(usage.created_at, usage.reinforced_at, usage.last_retrieved_at or 0.0)
    return {
        "run_id": str(last.run_id),
        "run_at": last.judged_at,
        "possible": since is not None,
        "earliest_sufficient": None if since is None else _moment(since),
        "latest": None if since is None else last.judged_at,
        "any_later_use": since is not None and since <= last_use,
        "bump": policy.knobs.query_salience_bump,
    }


def _moment(epoch: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(epoch, dt.UTC)
