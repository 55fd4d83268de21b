"""The candidate query returns the topics that a run would act on, and what it would do to each. One SQL statement.

Previews, dry runs, runs, counts and projections use the same SQL. If the fade key alone decides which topics are due,
the query reads ranges of the index of fade keys. If rules, another strategy or a draft are involved, it scans the whole
Vitality table.
"""

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from psycopg import sql

from memory.core.rules import RELEASED, RuleSet
from memory.forgetting.compaction import (
    LEAST_GROUP,
    MAX_COMPARED,
    MAX_GROUP,
    VECTORS_SQL,
    compacts_on,
    compacts_sql,
    groups_make,
)
from memory.forgetting.field_summaries import MAX_DEPTH, fold_least
from memory.forgetting.judge import Judge, KeptSql, RulesSql, rules_sql
from memory.forgetting.soft_limit import OPEN, Gate, rules_by_age
from memory.models import Rung
from memory.models.formulas_sql import number_sql
from memory.models.prepared import rows_prepared
from memory.models.statements import rows_read
from memory.policy.partition import ALL_TOPICS, PolicyPartition, TopicSubset, partitions_of
from memory.policy.snapshot import EffectivePolicy, Policies
from memory.predicates.binding import Bound, scope_sql

# The names under which a run counts its actions.
COUNTS = ("released", "archived", "detached", "summarized", "folded", "restored", "pinned", "unpinned", "categorized")


@dataclass(frozen=True, slots=True)
class CandidateQuery:
    """The text of a SELECT and its bound values."""

    text: str
    bound: Bound


def candidates_sql(
    policies: Policies,
    scope: str,
    *,
    event: str,
    now: dt.datetime,
    keys_outdated: bool = False,
    bound: Bound | None = None,
    topics: Sequence[uuid.UUID] | str | None = None,
    subset: TopicSubset = ALL_TOPICS,
    gate: Gate = OPEN,
    grouped: Sequence[uuid.UUID] = (),
) -> CandidateQuery:
    """Return the candidate query for ``scope`` at ``now``, without executing it. Columns: topic_id, from_rung, to_rung,
    action, score, why (jsonb), changes (jsonb).

    ``keys_outdated`` says that the half-life or clock of stored fade keys may differ from the policies. The index of
    fade keys is then not used. ``topics`` (ids, or SQL for an array of ids) and ``subset`` limit the topics. ``gate``
    names the scopes to leave out. Compaction archives only topics in ``grouped``.
    """
    bound = bound or Bound()
    parts = [
        _partition_sql(
            partition,
            event=event,
            now=now,
            bound=bound,
            trusted=not keys_outdated and not policies.rekeying_touches(partition.path),
            topics=topics,
            subset=subset,
            part=part,
            grouped=grouped,
            only_rules=partition.path in gate.by_age,
        )
        for partition in _partitions_open(policies, scope, gate)
        for part in ("moves", "folds")
        if part == "moves" or partition.path not in gate.by_age
    ]
    return CandidateQuery(" UNION ALL ".join(parts) or _NOTHING_SQL, bound)


def groups_find(
    policies: Policies, scope: str, *, event: str, now: dt.datetime, gate: Gate = OPEN, most: int
) -> list[list[uuid.UUID]]:
    """Return the groups of topics that a run of at most ``most`` topics would compact. One query, which reads the
    vectors of up to ``MAX_COMPARED`` topics; no query if no policy compacts."""
    if most < LEAST_GROUP:
        return []
    bound = Bound()
    parts = [
        _partition_sql(
            partition,
            event=event,
            now=now,
            bound=bound,
            trusted=not policies.rekeying_touches(partition.path),
            part="groups",
        )
        for partition in _partitions_open(policies, scope, gate)
        if compacts_on(partition.policy, event) and partition.path not in gate.by_age
    ]
    if not parts:
        return []
    return groups_make(
        rows_read(VECTORS_SQL.format(query=" UNION ALL ".join(parts), most=MAX_COMPARED), bound.values),
        most=min(most, MAX_GROUP),
    )


def _partitions_open(policies: Policies, scope: str, gate: Gate) -> list[PolicyPartition]:
    partitions = partitions_of(policies, scope, paused=gate.paused)
    return [
        _by_age(partition) if partition.path in gate.by_age else partition
        for partition in partitions
        if partition.path not in gate.excluded
    ]


def _by_age(partition: PolicyPartition) -> PolicyPartition:
    rules = RuleSet(rules_by_age(partition.policy.rules.rules))
    return replace(partition, policy=replace(partition.policy, rules=rules))


_NOTHING_SQL = """
SELECT NULL::uuid AS topic_id, 0 AS from_rung, 0 AS to_rung, '' AS action, 0::float8 AS score, NULL::jsonb AS why,
       NULL::jsonb AS changes
WHERE false
"""


# The ranges are joined as rows, because PostgreSQL assumes that a range between two columns is narrow. With constants,
# PostgreSQL would multiply the selectivities as if rung and key were independent, and scan the table, not the index.
_IN_RANGE = """v.rung = r.rung AND v.wall = r.wall AND v.half_life = r.half_life
    AND v.fade_floor >= r.low AND v.fade_floor < r.high"""


def _ranges_sql(judge: Judge) -> str:
    rung, wall, half_life, low, high = zip(*judge.leaving(), strict=True)
    columns = [f"{judge.bind(list(rung))}::int[]", f"{judge.bind(list(wall))}::bool[]"]
    columns += [f"{judge.bind(list(numbers))}::float8[]" for numbers in (half_life, low, high)]
    return f"unnest({', '.join(columns)}) AS r (rung, wall, half_life, low, high)"


def _partition_sql(
    partition: PolicyPartition,
    *,
    event: str,
    now: dt.datetime,
    bound: Bound,
    trusted: bool,
    part: str,
    topics: Sequence[uuid.UUID] | str | None = None,
    subset: TopicSubset = ALL_TOPICS,
    grouped: Sequence[uuid.UUID] = (),
    only_rules: bool = False,
) -> str:
    """Return the query of one partition. ``part`` selects the topics: those that a run changes (``moves``), others
    whose fields must be summarized again (``folds``), or those that may be compacted (``groups``). If ``trusted`` is
    true, all stored fade keys agree with the policy, and their index can be used. ``only_rules``: see ``Judge``."""
    judge = Judge(partition.policy, now, event, bound.bind, only_rules)
    rules = rules_sql(judge)
    conditions = ["v.live", partition.within_sql("v.scope_id", bound.bind), subset.sql("v", bound.bind)]
    if not rules:
        conditions.append("NOT v.pinned")
    source = "memory_vitality v"
    if topics is not None:
        named = topics if isinstance(topics, str) else f"{bound.bind(list(topics))}::uuid[]"
        conditions.append(f"v.topic_id = ANY({named})")
    if part == "folds":
        conditions.append(f"v.rung IN ({Rung.SUMMARIZED:d}, {Rung.DETACHED:d})")
        source = f"({_grown_sql(partition.policy)}) grown JOIN memory_vitality v ON v.topic_id = grown.topic_id"
    elif topics is None and not rules and judge.by_key and trusted:
        source = f"{_ranges_sql(judge)} JOIN memory_vitality v ON {_IN_RANGE}"
    least_rung = judge.kept()
    if rules.needs_topic or least_rung.needs_topic:
        source += " JOIN memory_topic t ON t.id = v.topic_id"
    compacted = "false"
    if grouped:
        compacted = f"compacts AND topic_id = ANY({bound.bind(list(grouped))}::uuid[])"
    selected = "to_rung <> from_rung OR released OR pin_changed OR adds IS NOT NULL"
    action, changes = _ACTION, _changes_sql(partition.policy, rules)
    if part == "folds":
        selected = f"NOT ({selected} OR protected)"
        action, changes = "'folded'", f"jsonb_build_object('fold', {judge.policy.knobs.keep_recent_revisions:d})"
    columns = f"""topic_id, from_rung, to_rung, {action} AS action, score,
               {_why_sql(judge, rules)} AS why, {changes} AS changes"""
    if part == "groups":
        selected = "compacts"
        columns = f"topic_id, score, {number_sql(partition.policy.knobs.compact_threshold)} AS least_cosine"
    judged = _judged_sql(
        judge, rules, least_rung, rows=f"FROM {source} WHERE {' AND '.join(conditions)}", compacted=compacted
    )
    return f"SELECT {columns} FROM {judged} c WHERE {selected}"


def verdicts_sql(
    policy: EffectivePolicy, topic_id: uuid.UUID, rows: str, *, event: str, now: dt.datetime, bound: Bound
) -> str:
    """Return a SELECT of what a run at ``now`` would do to states of a topic that need not be stored. Columns: probe,
    rung (``RELEASED`` if the topic would be released), rule (its number among the rules for ``event``, 0 for none),
    compacts (whether the topic would be compacted if there are enough similar topics).

    ``rows`` is the FROM clause of these states. Its row ``v`` has the columns of Vitality and a column ``probe``, its
    row ``t`` those of Topic. Whether runs skip the scope of the topic is not considered.
    """
    judge = Judge(policy, now, event, bound.bind, topic_id=f"{bound.bind(topic_id)}::uuid")
    rules = rules_sql(judge)
    judged = _judged_sql(judge, rules, judge.kept(), rows=rows, added="v.probe,")
    return f"""
        SELECT probe, CASE WHEN released THEN {RELEASED} ELSE to_rung END AS rung, {_RULE} AS rule, compacts
        FROM {judged} c"""


def _judged_sql(
    judge: Judge, rules: RulesSql, least_rung: KeptSql, *, rows: str, added: str = "", compacted: str = "false"
) -> str:
    """Return a subquery of what a run would do to each row of ``rows``, a FROM clause. ``added`` are more columns, and
    ``compacted`` is the condition under which a topic is archived by compaction."""
    # OFFSET 0 makes PostgreSQL evaluate each expression once instead of at every use.
    return f"""(
            SELECT *, CASE WHEN released OR protected THEN from_rung WHEN {compacted} THEN {Rung.ARCHIVED:d}
                           ELSE greatest(ladder, rule_rung, least(from_rung, kept)) END AS to_rung
            FROM (
                SELECT *, rule_rung = {RELEASED} AND NOT protected AS released,
                       {compacts_sql(judge.policy, rules)} AS compacts,
                       pinned IS DISTINCT FROM pinned_before OR coalesce(pins AND by_agent, false) AS pin_changed
                FROM (
                    SELECT *, coalesce(pins, pinned_before) AS pinned,
                           coalesce(pins, pinned_before) OR exempt AS protected,
                           {rules.rule_rung} AS rule_rung
                    FROM (
                        SELECT {added} v.topic_id, v.rung AS from_rung, v.pinned AS pinned_before,
                               v.pinned_by_agent AS by_agent, {judge.exempt()} AS exempt,
                               {judge.score()} AS score, {judge.ladder()} AS ladder, {rules.rung_rule} AS rule,
                               {least_rung.rung} AS kept,
                               {rules.pins} AS pins, {rules.pin_rule} AS pin_rule, {rules.adds} AS adds,
                               {rules.compact_rule} AS compact_rule
                        {rows}
                        OFFSET 0
                    ) seen
                    OFFSET 0
                ) ruled
            ) judged
        )"""


def _grown_sql(policy: EffectivePolicy) -> str:
    """Return a SELECT of the topics with a field that must be summarized again. Such a field has at least twice as many
    warm revisions as summarizing keeps, and its summary has not reached ``MAX_DEPTH``."""
    return f"""
        SELECT DISTINCT f.topic_id FROM memory_field f
        WHERE f.last_seq > 1 AND f.last_seq - f.cold_through >= {fold_least(policy.knobs.keep_recent_revisions):d}
          AND NOT EXISTS (
              SELECT 1 FROM memory_fieldsummary s
              WHERE s.field_id = f.id AND s.withdrawn_at IS NULL AND s.depth >= {MAX_DEPTH:d}
          )"""


_ACTION = f"""
CASE WHEN released THEN 'released'
     WHEN to_rung = {Rung.ARCHIVED:d} AND from_rung < {Rung.ARCHIVED:d} THEN 'archived'
     WHEN to_rung < from_rung THEN 'restored'
     WHEN to_rung = {Rung.DETACHED:d} AND from_rung < {Rung.DETACHED:d} THEN 'detached'
     WHEN to_rung = {Rung.SUMMARIZED:d} AND from_rung < {Rung.SUMMARIZED:d} THEN 'summarized'
     WHEN pin_changed THEN CASE WHEN pinned THEN 'pinned' ELSE 'unpinned' END
     ELSE 'categorized' END"""

# The number of the rule that decides; 0 if a threshold does.
_RULE = f"""
CASE WHEN to_rung = {Rung.ARCHIVED:d} AND greatest(ladder, rule_rung) < to_rung THEN compact_rule
     WHEN released OR (rule > 0 AND to_rung <> from_rung AND rule_rung >= ladder) THEN rule
     WHEN to_rung = from_rung AND pin_changed THEN pin_rule ELSE 0 END"""


def _why_sql(judge: Judge, rules: RulesSql) -> str:
    """Return the reason for an action as jsonb. It contains the rule (or the threshold if no rule decides), the score,
    the strategy and the policy."""
    policy, bind = judge.policy, judge.bind
    thresholds = {
        Rung.ARCHIVED: ("forget_salience_threshold", policy.knobs.forget_salience_threshold),
        Rung.DETACHED: ("theta_detach", policy.knobs.theta_detach),
        Rung.SUMMARIZED: ("theta_summary", policy.knobs.theta_summary),
    }
    named = " ".join(
        f"WHEN {rung:d} THEN jsonb_build_object('threshold', '{name}', 'theta', {number_sql(theta)})"
        for rung, (name, theta) in thresholds.items()
    )
    by_threshold = f"CASE greatest(from_rung, to_rung) {named} END"
    by_rule = ""
    if rules:
        whens = [
            f"WHEN {number} THEN jsonb_build_object('rule', {bind(rule.name)}::text, "
            f"'rule_scope', {bind(rule.scope)}::text)"
            for number, rule in enumerate(rules.rules, start=1)
        ]
        by_rule = f"CASE {_RULE} {' '.join(whens)} END"
    by = f"coalesce({by_rule}, {by_threshold})" if by_rule else by_threshold
    return f"""coalesce({by}, '{{}}'::jsonb) || jsonb_build_object(
                   'score', score, 'strategy', {bind(policy.knobs.strategy)}::text,
                   'policy', {bind(policy.at)}::text, 'version', {policy.version:d})"""


def _changes_sql(policy: EffectivePolicy, rules: RulesSql) -> str:
    """Return jsonb with the parameters of the move and the other changes, so that a plan can be applied without its
    policy."""
    knobs = policy.knobs
    parts = [
        f"""CASE WHEN to_rung <> from_rung THEN jsonb_build_object(
                   'attenuation', {number_sql(knobs.archive_attenuation)}, 'keep', {knobs.keep_recent_revisions:d},
                   'detach_below', {number_sql(knobs.theta_detach)}, 'max_history', {knobs.max_field_history:d})
                 ELSE '{{}}'::jsonb END"""
    ]
    if rules:
        grown = (
            f"from_rung IN ({Rung.SUMMARIZED:d}, {Rung.DETACHED:d}) AND to_rung = from_rung AND NOT released "
            f"AND NOT protected AND topic_id IN ({_grown_sql(policy)})"
        )
        parts += [
            "CASE WHEN released THEN '{\"released\": true}'::jsonb ELSE '{}'::jsonb END",
            "CASE WHEN pin_changed THEN jsonb_build_object('pinned', pinned) ELSE '{}'::jsonb END",
            # A topic has one action per run. Without the member ``fold``, its fields would be folded only in the next
            # run.
            f"CASE WHEN {grown} THEN '{{\"fold\": {knobs.keep_recent_revisions:d}}}'::jsonb ELSE '{{}}' END",
            "CASE WHEN adds IS NOT NULL THEN jsonb_build_object('categories', adds) ELSE '{}'::jsonb END",
        ]
    return " || ".join(parts)


def candidates_possible(policies: Policies, scope: str, *, event: str, now: dt.datetime) -> bool:
    """Return False if certainly no topic in ``scope`` is due, otherwise True. One prepared statement, which reads five
    ranges of the index for each policy.

    Always True if a policy has rules for the event or a strategy without fade keys, or while fade keys are recomputed.
    """
    ranges: list[tuple[int, bool, float, float, float]] = []
    exempt: set[str] | None = None
    for partition in partitions_of(policies, scope):
        judge = Judge(partition.policy, now, event, str)
        if not judge.by_key or partition.policy.rules.on(event) or policies.rekeying_touches(partition.path):
            return True
        ranges += judge.leaving()
        kinds = set(partition.policy.knobs.exempt_kinds)
        exempt = kinds if exempt is None else exempt & kinds
    if not ranges:
        return False
    bound = Bound()
    # The kinds are literals, so that PostgreSQL knows them when it makes the plan that it caches.
    rows = ", ".join(
        f"({rung:d}, {wall}, " + ", ".join(f"{bound.bind(number)}::float8" for number in numbers) + ")"
        for rung, wall, *numbers in ranges
    )
    exempt_list = sql.Literal(sorted(exempt or ())).as_string(None).replace("%", "%%")
    statement = f"""
        SELECT EXISTS (
            SELECT 1 FROM (VALUES {rows}) AS r (rung, wall, half_life, low, high)
            JOIN memory_vitality v ON {_IN_RANGE} AND v.fade >= r.low AND v.fade < r.high
            WHERE v.live AND NOT v.pinned AND v.kind <> ALL({exempt_list}::text[])
        )"""
    return bool(rows_prepared(statement, bound.values)[0][0])


def live_count(scope: str, *, excluded: tuple[str, ...] = ()) -> int:
    """Return the number of live topics at and below ``scope``. Topics at and below the scopes in ``excluded`` are not
    counted. One query."""
    bound = Bound()
    within = scope_sql("v.scope_id", scope, bound.bind, excluded=excluded)
    found = rows_read(f"SELECT count(*) FROM memory_vitality v WHERE v.live AND {within}", bound.values)
    return int(found[0][0])
