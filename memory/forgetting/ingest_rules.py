"""Applies rules at ingest: pins and categorizes topics in the transaction that writes them, before a run can archive
them.

The run for the event ``ingest_complete`` applies all other actions, and the rules that were skipped here.
"""

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import structlog
from django.db import DatabaseError, connection, transaction
from django.db.backends.utils import CursorWrapper

from memory.core.field_values import json_array
from memory.core.rules import PIN_ACTIONS, Rule, RuleSet
from memory.core.text import MAX_CATEGORIES
from memory.forgetting.judge import Judge
from memory.models import AuditEvent
from memory.policy.snapshot import EffectivePolicy, Policies
from memory.predicates.binding import Bound
from memory.predicates.rule_conditions import condition_parse
from memory.predicates.sql import predicate_sql
from memory.predicates.tree import patterns_of
from memory.predicates.words import predicate_describe

logger = structlog.get_logger(__name__)

EVENT = "ingest_complete"
LIMIT_MS = 1000
# After this many timeouts in one ingest, the remaining rules with patterns are skipped.
MAX_TIMEOUTS = 3

_LIMIT_SQL = "SELECT current_setting('statement_timeout'), set_config('statement_timeout', %s, true)"
_UNLIMIT_SQL = "SELECT set_config('statement_timeout', %s, true)"

# To avoid deadlocks, the rows are locked in the order of their ids. The worker uses the same order to write accesses.
_PINS_SQL = """
WITH asked AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(reasons)s::text[]) AS d (topic_id, reason)
), held AS MATERIALIZED (
    SELECT topic_id FROM memory_vitality WHERE topic_id = ANY(%(ids)s::uuid[]) AND (NOT pinned OR pinned_by_agent)
    ORDER BY topic_id FOR NO KEY UPDATE
)
UPDATE memory_vitality v SET pinned = true, pin_reason = asked.reason, pinned_by_agent = false
FROM held JOIN asked USING (topic_id) WHERE v.topic_id = held.topic_id
RETURNING v.topic_id
"""

_CATEGORIES_SQL = """
UPDATE memory_topic t SET categories = d.categories::varchar[], updated_at = greatest(t.updated_at, %(now)s)
FROM (
    SELECT id, ARRAY(SELECT jsonb_array_elements_text(categories)) AS categories
    FROM unnest(%(ids)s::uuid[], %(after)s::jsonb[]) AS e (id, categories)
) d
WHERE t.id = d.id
"""

# The time of the edit must be after all earlier edits of the topic, because ``as_of`` depends on the order.
_EDITS_SQL = """
WITH edits (topic_id, at, before, actor) AS MATERIALIZED (
    SELECT d.id, greatest(%(now)s, (SELECT max(e.at) + interval '1 microsecond' FROM memory_topicedit e
                                    WHERE e.topic_id = d.id)),
           jsonb_build_object('categories', d.categories), d.actor
    FROM unnest(%(ids)s::uuid[], %(before)s::jsonb[], %(actors)s::text[]) AS d (id, categories, actor)
)
INSERT INTO memory_topicedit (topic_id, at, before, actor)
SELECT * FROM edits
"""


@dataclass(slots=True)
class _Group:
    """Topics governed by the same rules."""

    policy: EffectivePolicy
    rules: tuple[Rule, ...]
    scopes: dict[uuid.UUID, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Match:
    """One topic and the rules that match it."""

    topic_id: uuid.UUID
    pinned: bool
    by_agent: bool
    categories: list[str]
    rules: list[Rule]


def ingest_rules_apply(topics: Mapping[uuid.UUID, str], *, policies: Policies, actor: str, now: dt.datetime) -> int:
    """Apply the rules for ingest to topics that ``actor`` has written in this transaction. ``topics`` maps each topic
    to its scope. Return how many topics were pinned or categorized.

    At most nine SQL statements for each policy with rules for ingest, and more only if a rule is slow. A rule that
    cannot be evaluated in a second is skipped, logged and journaled.
    """
    groups: dict[str, _Group] = {}
    for topic_id, scope in topics.items():
        node = policies.node_of(scope)
        if node not in groups:
            policy = policies.effective(node)
            # An ``unpin`` rule changes nothing here, but if it matches first, a ``pin`` rule after it has no effect, as
            # in a run.
            relevant = tuple(rule for rule in policy.rules.on(EVENT) if rule.action in (*PIN_ACTIONS, "categorize"))
            groups[node] = _Group(policy, relevant)
        groups[node].scopes[topic_id] = scope
    return sum(
        _group_apply(group, actor, now)
        for _node, group in sorted(groups.items())
        if any(rule.action in ("pin", "categorize") for rule in group.rules)
    )


def _group_apply(group: _Group, actor: str, now: dt.datetime) -> int:
    try:
        with transaction.atomic():
            return _write(group, _match(group, group.rules, now), actor, now)
    except DatabaseError:
        # At least one rule is too slow. Each rule is evaluated alone to find out which.
        return _write_safely(group, _rules_in_time(group, now), actor, now)


def _rules_in_time(group: _Group, now: dt.datetime) -> tuple[Rule, ...]:
    """Return the rules that can be evaluated in time. Journal the other rules as skipped."""
    in_time: list[Rule] = []
    failed = 0
    for rule in group.rules:
        risky = bool(patterns_of(condition_parse(rule.condition)))
        try:
            if failed >= MAX_TIMEOUTS and risky:
                raise DatabaseError("too many earlier rules took too long")
            with transaction.atomic():
                # The condition may depend on a category that an earlier rule adds.
                _match(group, (*(before for before in in_time if before.category), rule), now)
        except DatabaseError as problem:
            failed += 1
            _skip(group, rule, problem, now)
        else:
            in_time.append(rule)
    return tuple(in_time)


def _write_safely(group: _Group, rules: Sequence[Rule], actor: str, now: dt.datetime) -> int:
    try:
        with transaction.atomic():
            return _write(group, _match(group, rules, now, factor=max(1, len(rules))), actor, now)
    except DatabaseError as problem:
        for rule in rules:
            _skip(group, rule, problem, now)
        return 0


def _skip(group: _Group, rule: Rule, problem: DatabaseError, now: dt.datetime) -> None:
    cause = (str(problem).splitlines() or [""])[0]
    logger.warning("rule_skipped", rule=rule.name, scope=rule.scope, topics=len(group.scopes), because=cause)
    AuditEvent.objects.create(
        at=now,
        actor=f"rule {rule.name}",
        action="rule_skipped",
        scope=rule.scope,
        reason=f"could not be evaluated on a write and was left to the next run: {cause}",
        after={"topics": len(group.scopes)},
    )


def _match(group: _Group, rules: Sequence[Rule], now: dt.datetime, *, factor: int = 1) -> list[_Match]:
    """Return the topics that match at least one rule. Three SQL statements, within ``factor`` times the time limit."""
    bound = Bound()
    judge = Judge(replace(group.policy, rules=RuleSet(tuple(rules))), now, EVENT, bound.bind)
    time, score = f"{bound.bind(now)}::timestamptz", judge.score()
    added: dict[str, str] = {}
    conditions = []
    for rule in rules:
        sql = predicate_sql(
            condition_parse(rule.condition), now=time, score_sql=score, bind=bound.bind, categories_added=dict(added)
        ).sql
        conditions.append(f"({sql}) IS TRUE")
        if rule.category:
            added[rule.category] = f"({added[rule.category]} OR {sql})" if rule.category in added else sql
    statement = f"""
        SELECT * FROM (
            SELECT v.topic_id, v.pinned, v.pinned_by_agent, t.categories,
                   ARRAY[{", ".join(conditions)}]::boolean[] AS matched
            FROM memory_vitality v JOIN memory_topic t ON t.id = v.topic_id
            WHERE v.topic_id = ANY({bound.bind(list(group.scopes))}::uuid[]) AND v.live
            OFFSET 0
        ) seen
        WHERE true = ANY(matched) ORDER BY topic_id"""
    with connection.cursor() as cursor:
        cursor.execute(_LIMIT_SQL, [str(LIMIT_MS * factor)])
        before = cursor.fetchone()[0]
        cursor.execute(statement, bound.values)
        found = [
            _Match(
                topic_id, pinned, by_agent, categories, [rule for rule, met in zip(rules, matched, strict=True) if met]
            )
            for topic_id, pinned, by_agent, categories, matched in cursor.fetchall()
        ]
        # The limit would outlive the savepoint, so it is reset.
        cursor.execute(_UNLIMIT_SQL, [before])
    return found


def _write(group: _Group, matches: Sequence[_Match], actor: str, now: dt.datetime) -> int:
    """Pin and categorize topics, and journal each change. Return the number of changed topics."""
    changed: set[uuid.UUID] = set()
    events: list[AuditEvent] = []

    def journal(match: _Match, rule: Rule, action: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        changed.add(match.topic_id)
        events.append(
            AuditEvent(
                at=now,
                actor=f"rule {rule.name}",
                action=action,
                topic_id=match.topic_id,
                scope=group.scopes[match.topic_id],
                reason=f"on a write by {actor}, for topics {predicate_describe(condition_parse(rule.condition))}",
                before=before,
                after={**after, "rule_scope": rule.scope, "policy": group.policy.at, "version": group.policy.version},
            )
        )

    with connection.cursor() as cursor:
        for match, rule in _pins_write(cursor, matches):
            journal(match, rule, "pinned", {"pinned": match.pinned}, {"pinned": True})
        for match, rules in _categories_write(cursor, matches, now):
            after = list(match.categories)
            for rule in rules:
                before, after = after, sorted({*after, rule.category})
                journal(match, rule, "categorized", {"categories": before}, {"categories": after})
    if events:
        AuditEvent.objects.bulk_create(events)
    return len(changed)


def _pins_write(cursor: CursorWrapper, matches: Sequence[_Match]) -> list[tuple[_Match, Rule]]:
    """Pin each topic if the first of its matching ``pin`` and ``unpin`` rules is a ``pin`` rule. Return each pinned
    topic with the rule that pinned it. Topics that an operator or a rule pinned before are left out."""
    wanted: dict[uuid.UUID, tuple[_Match, Rule]] = {}
    for match in matches:
        first = next((rule for rule in match.rules if rule.action in PIN_ACTIONS), None)
        if first is not None and first.action == "pin" and (not match.pinned or match.by_agent):
            wanted[match.topic_id] = (match, first)
    if not wanted:
        return []
    reasons = [f"rule {rule.name}" for _match, rule in wanted.values()]
    cursor.execute(_PINS_SQL, {"ids": list(wanted), "reasons": reasons})
    return [wanted[topic_id] for (topic_id,) in cursor.fetchall()]


def _categories_write(
    cursor: CursorWrapper, matches: Sequence[_Match], now: dt.datetime
) -> list[tuple[_Match, list[Rule]]]:
    """Add missing categories, up to the limit of a topic. Return each changed topic with the rules that changed it."""
    changed: list[tuple[_Match, list[Rule]]] = []
    for match in matches:
        adding: dict[str, Rule] = {}
        for rule in match.rules:
            room = len(match.categories) + len(adding) < MAX_CATEGORIES
            if rule.category and room and rule.category not in match.categories:
                adding.setdefault(rule.category, rule)
        if adding:
            changed.append((match, list(adding.values())))
    if not changed:
        return []
    ids = [match.topic_id for match, _rules in changed]
    after = [sorted({*match.categories, *(rule.category for rule in rules)}) for match, rules in changed]
    cursor.execute(_CATEGORIES_SQL, {"ids": ids, "after": [json_array(words) for words in after], "now": now})
    edits: dict[str, Any] = {
        "ids": ids,
        "before": [json_array(match.categories) for match, _rules in changed],
        "now": now,
        "actors": [f"rule {rules[0].name}" for _match, rules in changed],
    }
    cursor.execute(_EDITS_SQL, edits)
    return changed
